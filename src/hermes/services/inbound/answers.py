"""Answer a command or press: settle it and store the reply in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.config import Config
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.core.messages import InboundMessage, OutboundMessage, Press
from hermes.core.ports import Clock
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.turns.lanes import Lanes
from hermes.store import inbox, outbox
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.people import Person


class Answers:
    def __init__(self, db: Database, clock: Clock, outbox_writer: OutboxWriter, lanes: Lanes) -> None:
        self._db = db
        self._clock = clock
        self._outbox_writer = outbox_writer
        self._lanes = lanes

    async def settle(self, event_id: str, message: OutboundMessage | None) -> None:
        """End the event as answered, with this reply (None: it was answered already). A second call does nothing."""
        rows: list[Outgoing] = []
        if message is not None:
            rows = self._outbox_writer.rows(message, OutboxKind.REPLY, key=f"ob_{event_id}")
        lane = await self._db.write(_settle_with_reply, event_id, rows, now=self._clock.now())
        self._outbox_writer.due(rows)
        if lane:
            self._lanes.wake(lane)


def words_for(config: Config, person: Person | None, event: InboundMessage | Press) -> Texts:
    """Choose the language of the person who sent an event."""
    own = person.language if person is not None else ""
    text = event.text if isinstance(event, InboundMessage) else ""
    return words_of(pick(config.language, own, hint=event.language, text=text))


def _settle_with_reply(tx: Tx, event_id: str, rows: Sequence[Outgoing], *, now: float) -> str:
    """Return the lane that waited for the event, or ''."""
    if not inbox.settle(tx, event_id, state=InboxState.ANSWERED, now=now):
        return ""
    outbox.enqueue(tx, rows, now=now)
    row = inbox.get(tx, event_id)
    return row.lane if row is not None and inbox.has_queued(tx, row.lane) else ""
