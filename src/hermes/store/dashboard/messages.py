"""Read pages of messages, inbound and outbound, the newest first."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.store import inbox, outbox
from hermes.store.db import Tx
from hermes.store.inbox import InboxRow
from hermes.store.outbox import OutboxRow
from hermes.store.reports import trace
from hermes.store.reports.trace import Latest

NO_MESSAGES = ("preview", "edit")
"""Rows of the outbox that only refresh another."""


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages a list shows; an empty field does not matter. ``words`` stand in the stored form of a message."""

    state: str = ""
    platform: str = ""
    words: str = ""


def inbound(tx: Tx, wanted: MessageFilter, *, before: tuple[float, str], limit: int) -> list[Latest]:
    """Return events that come after ``before`` (time, id) in a list that is newest first."""
    found = tx.all(
        f"""
        SELECT platform, {inbox.COLUMNS} FROM inbox
        WHERE received_at <= :at AND (received_at < :at OR id < :id)
            AND (:state = '' OR state = :state) AND (:platform = '' OR platform = :platform)
            AND (:words = '' OR {tx.dialect.find}(lower(body), :words) > 0)
        ORDER BY received_at DESC, id DESC LIMIT :limit
        """,
        lambda platform, *row: (str(platform), InboxRow(*row)),
        at=before[0],
        id=before[1],
        state=wanted.state,
        platform=wanted.platform,
        words=wanted.words,
        limit=limit,
    )
    return [trace.latest_of(tx, platform, event) for platform, event in found]


def outbound(tx: Tx, wanted: MessageFilter, *, before: tuple[float, str], limit: int) -> list[OutboxRow]:
    """Return deliveries, as ``inbound`` returns events. Previews and edits are left out: they are no messages."""
    # A dead letter has an index of its own, which the words of this condition name.
    dead = "AND state = 'dead'" if wanted.state == outbox.OutboxState.DEAD else ""
    return tx.all(
        f"""
        SELECT {outbox.COLUMNS} FROM outbox
        WHERE created_at <= :at AND (created_at < :at OR id < :id) AND kind NOT IN ('preview', 'edit')
            AND (:state = '' OR state = :state) {dead}
            AND (:platform = '' OR target = :platform OR substr(target, 1, length(:platform) + 1) IN (
                :platform || ':', :platform || '@'))
            AND (:words = '' OR {tx.dialect.find}(lower(body), :words) > 0)
        ORDER BY created_at DESC, id DESC LIMIT :limit
        """,
        OutboxRow,
        at=before[0],
        id=before[1],
        state=wanted.state,
        platform=wanted.platform,
        words=wanted.words,
        limit=limit,
    )
