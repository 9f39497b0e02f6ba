"""Remember the last unaddressed lines of a group, for who addresses us next.

Only in memory, and only where the owner asked for it: a group's talk is nobody's business until somebody brings us in.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import field

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
    told: OrderedDict[str, int] = field(default_factory=OrderedDict)  # by person: the last line they were shown with


class GroupContext:
    def __init__(self) -> None:
        self._places: OrderedDict[str, _GroupLines] = OrderedDict()

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
        since = place.told.get(message.sender_id, 0)
        place.told[message.sender_id] = place.count
        place.told.move_to_end(message.sender_id)
        if len(place.told) > MAX_PEOPLE:
            place.told.popitem(last=False)
        return tuple(line.quote for line in place.lines if line.number > since)

    def _place(self, message: InboundMessage, most: int) -> _GroupLines:
        name = str(message.session_key)
        place = self._places.get(name)
        if place is None or place.lines.maxlen != most:
            kept = place.lines if place is not None else ()
            place = _GroupLines(
                deque(kept, maxlen=most),
                place.count if place is not None else 0,
                place.told if place is not None else OrderedDict(),
            )
        self._places[name] = place
        self._places.move_to_end(name)
        if len(self._places) > MAX_PLACES:
            self._places.popitem(last=False)
        return place
