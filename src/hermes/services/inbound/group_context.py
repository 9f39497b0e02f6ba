"""Remember the last unaddressed lines of a group, for who addresses us next.

Only in memory, and only where the owner asked for it: a group's talk is nobody's business until somebody brings us in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import field

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.messages import InboundMessage, Quote
from hermes.core.text import one_line

MAX_PLACES = 500
MAX_PEOPLE = 200
MAX_LINE_CHARS = 500
MAX_NAME_CHARS = 60


@dataclass(frozen=True, slots=True)
class _OverheardLine:
    number: int
    key: str
    quote: Quote


@dataclass(slots=True)
class _GroupLines:
    lines: deque[_OverheardLine]
    count: int = 0
    # by person: the last line they were shown with
    shown_up_to: BoundedDict[str, int] = field(default_factory=lambda: BoundedDict(MAX_PEOPLE))


class GroupContext:
    def __init__(self) -> None:
        self._places = BoundedDict[str, _GroupLines](MAX_PLACES)

    def hear(self, message: InboundMessage, most: int) -> None:
        """Keep a line; the same message once. ``most`` lines are kept of a place."""
        if not message.text.strip() or message.is_edit:
            return
        place = self._place(message, most)
        key = message.keys[0] if message.keys else ""
        if any(line.key == key for line in place.lines):
            return
        place.count += 1
        quote = Quote(
            one_line(message.text, MAX_LINE_CHARS), one_line(message.sender_name, MAX_NAME_CHARS), message.message_id
        )
        place.lines.append(_OverheardLine(place.count, key, quote))

    def before(self, message: InboundMessage, most: int) -> tuple[Quote, ...]:
        """The lines since this person last addressed us here, at most ``most`` of them; each person gets them once."""
        if str(message.session_key) not in self._places:
            return ()
        place = self._place(message, most)
        since = place.shown_up_to.get(message.sender_id, 0)
        place.shown_up_to[message.sender_id] = place.count
        return tuple(line.quote for line in place.lines if line.number > since)

    def _place(self, message: InboundMessage, most: int) -> _GroupLines:
        name = str(message.session_key)
        place = self._places.get(name)
        if place is None or place.lines.maxlen != most:
            lines = deque(place.lines if place is not None else (), maxlen=most)
            place = _GroupLines(lines, place.count, place.shown_up_to) if place is not None else _GroupLines(lines)
        self._places[name] = place
        return place
