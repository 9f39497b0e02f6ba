"""Split a text into outbox rows that fit the platform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from hermes.config import Config
from hermes.core.keys import Target
from hermes.core.lane import DOORS
from hermes.core.messages import Capabilities, OutboundMessage, TextUnit
from hermes.core.ports import Clock
from hermes.core.text import split, storable
from hermes.services.outbound.rate_limits import Slot
from hermes.store import codec
from hermes.store.db import Tx
from hermes.store.ids import new_id
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.outbox_sending import BegunDelivery

# One message to a platform that is not running now: split at what every platform takes.
UNKNOWN_PLATFORM = Capabilities(text_limit=1900, text_unit=TextUnit.UTF16)  # fits wherever it may lead


class DeliveryQueue(Protocol):
    """Deliver rows: see ``services.outbound.delivery``."""

    def wake(self, target: str) -> None: ...
    def begin_within(self, tx: Tx, target: str, *, now: float) -> BegunDelivery | None: ...
    def adopt(self, begun: BegunDelivery, place: Slot) -> None: ...
    def reserve(self, target: str) -> Slot | None: ...


class OutboxWriter:
    def __init__(
        self,
        capabilities: Callable[[Target], Capabilities | None],
        config: Callable[[], Config],
        clock: Clock,
        delivery_queue: DeliveryQueue,
    ) -> None:
        self._capabilities = capabilities
        self._config = config
        self._clock = clock
        self._delivery_queue = delivery_queue

    def rows(
        self, message: OutboundMessage, kind: OutboxKind, *, turn_id: str = "", replaces: str = "", key: str = ""
    ) -> list[Outgoing]:
        """Make one row per platform call: buttons go last, quote and preview first. ``key`` makes it idempotent."""
        if message.target.platform in DOORS:
            return []  # whoever asked there is answered on the connection, or looks it up
        limits = self._capabilities(message.target) or UNKNOWN_PLATFORM
        parts = split(storable(message.text), limits.text_limit, limits.text_unit) or [""]
        group = key or new_id("ob")
        times = self._config().delivery
        expires_at = self._clock.now() + (
            times.notice_ttl_seconds if kind in (OutboxKind.NOTICE, OutboxKind.PREVIEW) else times.answer_ttl_seconds
        )
        rows = []
        for index, text in enumerate(parts):
            part = replace(
                message,
                text=text,
                reply_to=message.reply_to if index == 0 else "",
                buttons=message.buttons if index == len(parts) - 1 else (),
                attachment=message.attachment if index == 0 else None,
                idempotency_key=f"{group}.{index}",
            )
            rows.append(
                Outgoing(
                    id=group if index == 0 else f"{group}.{index}",
                    target=str(message.target),
                    group_id=group,
                    idx=index,
                    kind=kind,
                    body=codec.dump(part),
                    expires_at=expires_at,
                    turn_id=turn_id,
                    replaces=replaces if index == 0 else "",
                )
            )
        return rows

    def capabilities(self, target: Target) -> Capabilities:
        """The capabilities of this target's platform, as far as they are known now."""
        return self._capabilities(target) or UNKNOWN_PLATFORM

    def edits(self, target: str) -> bool:
        """Tell whether a message to this target can be edited."""
        return self.capabilities(Target.parse(target)).edits

    def notice(self, target: Target, text: str, *, turn_id: str = "", key: str = "") -> list[Outgoing]:
        return self.rows(OutboundMessage(target, text), OutboxKind.NOTICE, turn_id=turn_id, key=key)

    def now(self) -> float:
        return self._clock.now()

    def due(self, rows: Iterable[Outgoing]) -> None:
        """Wake delivery, once the rows are committed."""
        for target in {row.target for row in rows}:
            self._delivery_queue.wake(target)

    @contextmanager
    def place_for(self, rows: Sequence[Outgoing]) -> Iterator[Slot | None]:
        """The place of the first of these rows, if it can be sent at once; unused, it is given back."""
        place = self._delivery_queue.reserve(rows[0].target) if rows else None
        try:
            yield place
        finally:
            if place is not None and not place.is_handed_on:
                place.give_back()

    def begin_within(self, tx: Tx, rows: Sequence[Outgoing], place: Slot | None, *, now: float) -> BegunDelivery | None:
        """In the transaction that stores these rows: begin the first of them, if it has a place."""
        return self._delivery_queue.begin_within(tx, rows[0].target, now=now) if rows and place is not None else None

    def stored(self, rows: Sequence[Outgoing], begun: BegunDelivery | None, place: Slot | None) -> None:
        """Hand committed rows to delivery, with the one that was begun."""
        if begun is not None and place is not None:
            place.is_handed_on = True
            self._delivery_queue.adopt(begun, place)
            self.due(row for row in rows if row.target != rows[0].target)
        else:
            self.due(rows)

    def due_target(self, target: str) -> None:
        self._delivery_queue.wake(target)
