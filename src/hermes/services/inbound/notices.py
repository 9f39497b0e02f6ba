"""Notify the sender of a message: it waits, it was refused, it failed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from hermes.config import Config
from hermes.core.approval import read_button
from hermes.core.bounded import Quota, Throttle
from hermes.core.i18n.en import Texts
from hermes.core.keys import ChatKind
from hermes.core.lane import BusyMode
from hermes.core.messages import InboundMessage, OutboundMessage, Press
from hermes.core.people.access import RefusalReason
from hermes.core.ports import Clock
from hermes.core.text import one_line
from hermes.services.approvals import MAX_ID_CHARS, log_refused
from hermes.services.inbound.answers import words_for
from hermes.services.outbound.rows import OutboxWriter
from hermes.store import inbox, outbox, pairings, people
from hermes.store.db import Database, Tx
from hermes.store.ids import new_id
from hermes.store.inbox import Accepted, InboxState
from hermes.store.outbox import OutboxKind

log = logging.getLogger(__name__)

STRANGER_NOTICE_SECONDS = 3600.0
CODE_NOTICE_SECONDS = 20.0
MAX_NOTICES_TO_ONE = 10
MAX_NOTICES_TO_STRANGERS = 100
"""Answers to strangers within an hour: to one of them, and to all who write to an account."""


class Strangers(Protocol):
    """Who was let in by pairing, and what is said to those who were not."""

    def is_paired(self, platform: str, user_id: str) -> bool: ...
    async def meet(self, message: InboundMessage, account: str) -> None: ...


class Notices:
    def __init__(
        self,
        db: Database,
        config: Callable[[], Config],
        clock: Clock,
        outbox_writer: OutboxWriter,
        strangers: Strangers,
    ) -> None:
        self._db = db
        self._config = config
        self._clock = clock
        self._outbox_writer = outbox_writer
        self._strangers = strangers
        self._strangers_notified = Throttle(STRANGER_NOTICE_SECONDS)
        self._codes_shown = Throttle(CODE_NOTICE_SECONDS)
        self._logged = Throttle(STRANGER_NOTICE_SECONDS)
        self._told_one = Quota(MAX_NOTICES_TO_ONE, STRANGER_NOTICE_SECONDS)
        self._told_all = Quota(MAX_NOTICES_TO_STRANGERS, STRANGER_NOTICE_SECONDS)

    def forget_code(self, platform: str, sender_id: str) -> None:
        """Show the next pairing code of this person at once: they were let in meanwhile."""
        self._codes_shown.forget((platform, sender_id))

    def log_refused_press(self, press: Press, lane: str) -> None:
        """Log a press on an approval by a stranger, once an hour for each."""
        button = read_button(press.data)
        platform = press.session_key.platform
        if button is None:
            return
        if self._logged.is_due(((platform, press.sender_id), button.approval_id), self._clock.now()):
            log_refused(lane, platform, press.sender_id, button.approval_id)

    async def say_queued(self, taken: Accepted, message: InboundMessage, mode: BusyMode) -> None:
        """Say what becomes of a message that waits for a running turn: once per turn and mode."""
        words = await self.words_for(message)
        text = words.TAKEN_INTO_ACCOUNT if mode is BusyMode.STEER else words.WAITS_IN_LINE
        rows = self._outbox_writer.rows(
            OutboundMessage(message.session_key.target, text, reply_to=message.message_id),
            OutboxKind.NOTICE,
            key=f"ob_busy_{mode}_{taken.turn_id}",
        )
        if await self._db.write(_enqueue_if_queued, taken.event_id, rows, now=self._clock.now()):
            self._outbox_writer.due(rows)

    async def say_waits_for_approval(self, turn_id: str, message: InboundMessage) -> None:
        """Once per turn, however many messages wait: the key of the outbox row makes it so."""
        text = (await self.words_for(message)).WAITS_FOR_APPROVAL
        rows = self._outbox_writer.notice(message.session_key.target, text, turn_id=turn_id, key=f"ob_waits_{turn_id}")
        await self._send(rows)

    def meet_stranger(self, message: InboundMessage, reason: RefusalReason) -> Awaitable[None] | None:
        """Log a stranger, and return what tells them how to be let in; None where nothing is to be said now.

        Only a direct chat gets an answer, now and then. A group is never told anything.
        """
        platform = message.session_key.platform
        now = self._clock.now()
        stranger = (platform, message.sender_id)
        if self._logged.is_due((stranger, reason), now):
            log.warning(
                "Unauthorized user: %s",
                one_line(message.sender_id, MAX_ID_CHARS),
                extra={"platform": platform, "reason": reason.value},
            )
        is_pairing = reason is RefusalReason.NOT_PAIRED
        answers = message.session_key.kind is ChatKind.DM and reason is not RefusalReason.DMS_DISABLED
        if not answers or not (self._codes_shown if is_pairing else self._strangers_notified).is_due(stranger, now):
            return None
        account = (platform, message.session_key.account)
        if not self._told_all.has_room(account, now) or not self._told_one.take(stranger, now):
            return None
        self._told_all.take(account, now)
        if is_pairing:
            return self._strangers.meet(message, message.session_key.account)
        return self._explain_allowlist(message)

    async def _explain_allowlist(self, message: InboundMessage) -> None:
        setting = f"{message.session_key.platform.upper()}_ALLOWED_USERS"
        text = (await self.words_for(message)).STRANGER.format(sender_id=message.sender_id, setting=setting)
        await self._send(
            self._outbox_writer.notice(message.session_key.target, text, key=new_id(pairings.STRANGER_NOTICE))
        )

    async def words_for(self, event: InboundMessage | Press) -> Texts:
        person = await self._db.read(people.find, event.session_key.platform, event.sender_id)
        return words_for(self._config(), person, event)

    async def _send(self, rows: Sequence[outbox.Outgoing]) -> None:
        await self._db.write(outbox.enqueue, rows, now=self._clock.now())
        self._outbox_writer.due(rows)


def _enqueue_if_queued(tx: Tx, event_id: str, rows: Sequence[outbox.Outgoing], *, now: float) -> bool:
    row = inbox.get(tx, event_id)
    if row is None or row.state != InboxState.QUEUED:
        return False
    outbox.enqueue(tx, rows, now=now)
    return True
