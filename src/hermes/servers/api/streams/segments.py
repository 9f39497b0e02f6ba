"""Give a stream the same text as an answer in one piece: segments apart, no blanks around them, nothing missing."""

from __future__ import annotations

from dataclasses import field

from hermes.core.dataclasses import dataclass
from hermes.core.requests import TurnResult

PAUSE = "\n\n"
"""Between two texts of one turn, as ``TurnResult.whole_text`` joins them."""


@dataclass(slots=True)
class SegmentText:
    """The text of one turn as it goes out. Every method returns what is to be written now.

    ``keeps_start``: the client wrote the beginning of the answer, so that a blank at its start counts.
    ``is_late``: the client came in the middle of the turn, so that it gets all texts of the turn at the end.
    """

    keeps_start: bool = False
    is_late: bool = False
    _parts: list[str] = field(default_factory=list)  # of the text that the model is writing now
    _blanks: str = ""  # at the end of these parts: written if more follows
    _owes_pause: bool = False
    _thinks: bool = False
    _owes_thinking_pause: bool = False

    def add(self, text: str) -> str:
        if not self._parts and not self.keeps_start:
            text = text.lstrip()
        text = f"{self._blanks}{text}"
        written = text.rstrip()
        self._blanks = text[len(written) :]
        if not written:
            return ""
        self._parts.append(written)
        return self._after_pause(written)

    def add_thinking(self, text: str) -> str:
        pause = PAUSE if self._owes_thinking_pause else ""
        self._thinks, self._owes_thinking_pause = True, False
        return f"{pause}{text}"

    def end_segment(self, text: str) -> str:
        """The model has written this beside its calls; some of it may not have been streamed."""
        missing = self._missing(text, is_anew=False)
        if missing:
            self._parts.append(missing)
            missing = self._after_pause(missing)
        self._owes_pause = self._owes_pause or bool(self._parts)
        self._owes_thinking_pause = self._owes_thinking_pause or self._thinks
        self._parts.clear()
        self._blanks, self._thinks, self.keeps_start = "", False, False
        return missing

    def interject(self, text: str) -> str:
        """Put words of the gateway between those of the model."""
        self._owes_pause = self._owes_pause or bool(self._parts)
        self._parts.clear()
        self._blanks = ""
        written = self._after_pause(text)
        self._owes_pause = True
        return written

    def end_answer(self, result: TurnResult) -> str:
        """The rest of the last text: words that no model wrote, an answer in a form, one that was begun anew."""
        if self.is_late:
            return self._after_pause(result.whole_text) if result.whole_text else ""
        if result.tool_calls and not self._parts and result.segments[-1:] == (result.text.strip(),):
            return ""  # told with the step that the calls stand in
        # After a broken connection the answer begins anew without deltas, and a notice says so.
        missing = self._missing(result.text, is_anew=bool(result.notices))
        return self._after_pause(missing) if missing else ""

    def _missing(self, text: str, *, is_anew: bool) -> str:
        streamed = "".join(self._parts)
        if text.startswith(streamed):
            return text[len(streamed) :]
        return f"{PAUSE}{text}" if is_anew else ""

    def _after_pause(self, text: str) -> str:
        pause, self._owes_pause = PAUSE if self._owes_pause else "", False
        return f"{pause}{text}"
