"""Count reply tickets: QQ takes few replies per message, for a limited time.

A ticket is one inbound message (``msg_id``) or one press or greeting (``event_id``). Whether it is still good,
only QQ knows: its clock counts, and a ticket is tried until QQ refuses it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.messages import Cursor

MESSAGE, EVENT = "msg_id", "event_id"
_MARKS = {MESSAGE: "answers:", EVENT: "follows:"}
_MAX_REMEMBERED = 2000
HIGHEST_SEQ = 65_535


@dataclass(frozen=True, slots=True)
class Ticket:
    kind: str
    id: str

    @property
    def params(self) -> dict[str, str]:
        return {self.kind: self.id}


class Ledger:
    """The newest ticket of each kind for each chat; the newest outlive the process as marks."""

    def __init__(self, cursor: Cursor) -> None:
        self._newest: dict[tuple[str, str], Ticket] = {}
        for kind, prefix in _MARKS.items():
            for name, value in cursor.items():
                if name.startswith(prefix) and value:
                    self._newest[name.removeprefix(prefix), kind] = Ticket(kind, value)
        self._spent = BoundedDict[Ticket, None](_MAX_REMEMBERED)
        self._taken = BoundedDict[tuple[Ticket, int], str](_MAX_REMEMBERED)
        self._tried = BoundedDict[str, Ticket](_MAX_REMEMBERED)

    def note(self, chat: str, kind: str, ticket_id: str) -> dict[str, str]:
        """A ticket arrived; the marks that keep it."""
        self._newest[chat, kind] = Ticket(kind, ticket_id)
        return {f"{_MARKS[kind]}{chat}": ticket_id}

    def newest_message(self, chat: str) -> Ticket | None:
        return self._newest.get((chat, MESSAGE))

    def tickets(self, chat: str, reply_to: str, key: str) -> Iterator[Ticket]:
        """What to try, in this order: what was tried for this very message before, so that QQ knows it again; the
        message that is answered; the newest one; the newest press."""
        wanted = (
            self._tried.get(key),
            Ticket(MESSAGE, reply_to) if reply_to else None,
            self._newest.get((chat, MESSAGE)),
            self._newest.get((chat, EVENT)),
        )
        for ticket in dict.fromkeys(wanted):
            if ticket is not None and ticket not in self._spent:
                self._tried[key] = ticket
                yield ticket

    def spend(self, ticket: Ticket) -> None:
        """QQ takes nothing more for this one."""
        self._spent[ticket] = None

    def seq(self, ticket: Ticket, key: str, *, besides: int = 0) -> int:
        """The number of a message among the answers to a ticket.

        It follows from the message's own name: whoever sends the same one again, even after a crash, sends the same
        number, and QQ then says that it has it already. ``besides``: how many numbers turned out to be taken.
        """
        start = zlib.crc32(key.encode()) % HIGHEST_SEQ
        for step in range(HIGHEST_SEQ):
            seq = (start + besides + step) % HIGHEST_SEQ + 1
            if self._taken.setdefault((ticket, seq), key) == key:
                return seq
        return start + 1  # all numbers of one ticket cannot be taken
