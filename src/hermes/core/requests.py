"""Define requests that do not come from a chat, and their typed result."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Json, OutputFormat, Sampling, ToolCall, ToolSpec, Usage


class RequestKind(StrEnum):
    """Which door it came through: that decides what a restart does with it."""

    CHAT = "chat"  # somebody waits on the connection; after a restart nobody does
    RESPONSE = "response"  # synchronous too, but stored: it goes on after a restart
    RUN = "run"  # asked for and looked up later


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """How one turn differs from the agent's ordinary ones.

    ``instructions`` stands beside the persona. ``tools`` are the client's own: their calls end the turn and are
    handed back. A tool of the client with the name of ours replaces ours. ``origin`` is the lane of the chat on whose
    behalf a turn without a chat works: its questions are put there. ``depth`` counts errands within errands. ``folder``
    is where the owner asks from on this machine: their tools work there. ``reports``: the answer is told in the chat of
    ``origin``, below a line that names the task. ``format`` is the form of the answer: nothing but that answer is told,
    whatever the model said on its way there. ``sampling`` and ``reasoning`` (``low`` … ``high``, ``off``) are handed to
    the model. ``own_tools`` names the gateway's tools or toolsets that the model may use; None: all of them.

    What follows is for turns that nobody began by writing. ``deliver`` are the targets of the answer (None: as said
    above; empty: nowhere), ``header`` is the line above it. ``answer`` is told as it stands: no model is asked.
    ``job`` and ``slot`` name the job and its due time; ``script`` and ``skills`` are what is run and read first.
    ``may_be_silent``: an answer with the mark SILENT is not sent.
    """

    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = ""
    model: str = ""
    temperature: float | None = None
    max_tokens: int = 0
    origin: str = ""
    depth: int = 0
    folder: str = ""
    reports: bool = False
    format: OutputFormat | None = None
    sampling: Sampling | None = None
    reasoning: str = ""
    own_tools: tuple[str, ...] | None = None
    deliver: tuple[str, ...] | None = None
    header: str = ""
    answer: str = ""
    job: str = ""
    slot: float = 0.0
    script: str = ""
    skills: tuple[str, ...] = ()
    may_be_silent: bool = False


SILENT = "[SILENT]"
"""A scheduled answer that holds this mark is kept and not sent."""
EVENT_KINDS = frozenset({"request", "cron", "webhook"})
"""Kinds of inbox events whose body is an AgentRequest."""


def is_silent(text: str) -> bool:
    return SILENT in text.upper()


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One request, stored in the inbox as it is. ``messages`` are what this session has not seen yet.

    ``person_id`` names whose turn it is where the gateway itself asks; otherwise the sender's account tells.
    """

    kind: RequestKind
    session_key: SessionKey
    sender_id: str
    messages: tuple[ChatMessage, ...]
    options: TurnOptions = field(default_factory=TurnOptions)
    person_id: str = ""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended, for whoever asked for it.

    ``state`` is one of the store's turn states. ``text`` is the final reply, or what there was of it;
    ``finish_reason`` is 'stop', 'length' (the model was cut off), 'tool_calls' (``tool_calls`` are the client's to
    run) or 'error'. ``segments`` are texts that the model wrote before, beside calls of the gateway's tools.
    ``thinking`` is what the model thought, one text for each of its calls. ``notices`` tell how the answer came to be
    (a fallback was used). ``is_rate_limited``: the provider refused with 429, and asked for ``retry_after`` seconds.
    ``steps`` counts the times that the gateway ran tools of its own.
    """

    turn_id: str
    state: str
    text: str = ""
    reason: str = ""
    finish_reason: str = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    error_kind: str = ""
    segments: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    logprobs: tuple[Json, ...] = ()
    is_rate_limited: bool = False
    retry_after: float | None = None
    steps: int = 0

    @property
    def whole_text(self) -> str:
        """Everything that the model wrote in the turn, as a stream shows it."""
        # Calls that are the client's to run may stand in a step whose text was told with it.
        is_told = bool(self.tool_calls) and self.segments[-1:] == (self.text.strip(),)
        return "\n\n".join(text for text in (*self.segments, "" if is_told else self.text) if text)

    @property
    def whole_thinking(self) -> str:
        return "\n\n".join(text for text in self.thinking if text)

    @property
    def is_completed(self) -> bool:
        return self.state == "done"

    @property
    def is_partial(self) -> bool:
        """Some of the answer is there and some is not."""
        return self.finish_reason == "length" or (not self.is_completed and bool(self.text))
