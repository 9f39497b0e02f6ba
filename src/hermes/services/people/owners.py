"""Make people the owner: those whom the settings name, and the only listed person who says so.

The role is stored like every other. What the settings name is applied when somebody first writes after a start or a
change of the settings, in the transaction that stores the message, and once for everybody in the background.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import Button, OutboundMessage
from hermes.core.people.access import OWNER_NO, OWNER_YES
from hermes.core.ports import Clock
from hermes.core.roles import OwnerBy, PersonRole
from hermes.services.events import EventBus, TurnEnded
from hermes.services.inbound.owner_settings import apply_settings
from hermes.services.outbound.approval_cards import in_place_of
from hermes.services.outbound.rows import OutboxWriter
from hermes.store import outbox, people
from hermes.store.db import Database, Tx
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.people import Person
from hermes.store.turns import turns

log = logging.getLogger(__name__)

MOST_WAITING = 100
"""Turns that have ended and are not looked at yet; of more than these, a later one is."""


@dataclass(frozen=True, slots=True)
class OwnerAnswer:
    """What the person who answered is told, and whether the answer changed anything."""

    text: str
    counts: bool = False


class Owners:
    def __init__(
        self, db: Database, config: Callable[[], Config], clock: Clock, outbox_writer: OutboxWriter, bus: EventBus
    ) -> None:
        self._db = db
        self._config = config
        self._clock = clock
        self._outbox_writer = outbox_writer
        self._bus = bus
        self._ended: asyncio.Queue[TurnEnded | None] = asyncio.Queue(MOST_WAITING)
        self._judged: tuple[Config, tuple[str, str] | None] | None = None
        self._settled: tuple[str, str] | None = None  # the person who need not be looked at again

    def changed(self) -> None:
        """The settings changed: apply them to everybody."""
        if not self._ended.full():  # else it looks soon
            self._ended.put_nowait(None)

    async def run(self) -> None:
        """Apply the settings to everybody, and ask the only listed person after the first turn, until cancelled."""
        applied: tuple[str, ...] | None = None
        with self._bus.watch_ends(self._saw):
            while True:
                if (owners := self._config().owners) != applied:
                    await self._db.write(_apply_to_all, owners)
                    applied = owners
                if (event := await self._ended.get()) is not None:
                    await self._ask_after(event)

    def _candidate(self) -> tuple[str, str] | None:
        config = self._config()
        if self._judged is None or self._judged[0] is not config:
            self._judged = config, config.only_user()
        return self._judged[1]

    def _saw(self, event: TurnEnded) -> None:
        if self._ended.full():
            return
        candidate = self._candidate()
        if candidate is None or candidate == self._settled:
            return
        key = SessionKey.parse(event.lane)
        if key.kind is ChatKind.DM and key.platform == candidate[0]:
            self._ended.put_nowait(event)

    async def _ask_after(self, event: TurnEnded) -> None:
        candidate = self._candidate()
        if candidate is None or candidate == self._settled:
            return
        try:
            is_settled, rows = await self._db.write(self._ask, event, candidate, now=self._clock.now())
        except StoreIsDownError as error:  # asked after a later turn
            log.warning("Store is down", extra={"turn": event.turn_id, "reason": str(error)})
            return
        if is_settled:
            self._settled = candidate
        self._outbox_writer.due(rows)

    def _ask(self, tx: Tx, event: TurnEnded, candidate: tuple[str, str], *, now: float) -> tuple[bool, list[Outgoing]]:
        """Ask once, in the private chat of the one person who may write, while nobody is the owner.

        Returns whether this person need not be looked at again, and the rows of the question.
        """
        turn, person = turns.get(tx, event.turn_id), people.find(tx, *candidate)
        if turn is None or person is None or turn.person_id != person.id:
            return False, []
        if not _may_become(tx, person) or people.owner_by(tx, person.id) != OwnerBy.NEVER_ASKED:
            return True, []
        words = self._words(person)
        message = OutboundMessage(
            SessionKey.parse(event.lane).target,
            words.OWNER_ASK.format(id=f"{candidate[0]}:{candidate[1]}"),
            buttons=(
                (
                    Button(words.OWNER_YES_BUTTON, OWNER_YES),
                    Button(words.OWNER_NO_BUTTON, OWNER_NO),
                ),
            ),
        )
        rows = self._outbox_writer.rows(message, OutboxKind.REPLY, key=_name_of_question(person))
        people.set_owner(tx, person.id, PersonRole(person.role), OwnerBy.ASKED)
        outbox.enqueue(tx, rows, now=now)
        return True, rows

    async def answer(self, key: SessionKey, sender_id: str, words: Texts, *, is_owner: bool) -> OwnerAnswer:
        """Take the answer of the person who wrote it; it counts only while they are the only one on the lists."""
        candidate = self._candidate()
        now = self._clock.now()

        def settle(tx: Tx) -> tuple[OwnerAnswer, list[Outgoing]]:
            person = people.find(tx, key.platform, sender_id)
            if person is None or key.kind is not ChatKind.DM:
                return OwnerAnswer(words.OWNER_ONLY_PRIVATELY), []
            if person.role == PersonRole.OWNER:
                return OwnerAnswer(words.OWNER_ALREADY), []
            if candidate != (key.platform, sender_id) or not _may_become(tx, person):
                return OwnerAnswer(words.OWNER_AT_MACHINE.format(id=f"{key.platform}:{sender_id}")), []
            role, by = (PersonRole.OWNER, OwnerBy.YES) if is_owner else (PersonRole(person.role), OwnerBy.NO)
            people.set_owner(tx, person.id, role, by)
            text = words.OWNER_CONFIRMED if is_owner else words.OWNER_DECLINED.format(id=f"{key.platform}:{sender_id}")
            return OwnerAnswer(text, counts=True), self._close_question(tx, person, text, now)

        answered, rows = await self._db.write(settle)
        self._outbox_writer.due(rows)
        if answered.counts:
            about = {"platform": key.platform, "user": sender_id, "is_owner": is_owner}
            log.info("Owner question answered", extra=about)
        return answered

    def question(self, key: SessionKey, sender_id: str, person: Person, words: Texts) -> str:
        """Say where things stand, for somebody who asks."""
        if person.role == PersonRole.OWNER:
            return words.OWNER_ALREADY
        if key.kind is ChatKind.DM and self._candidate() == (key.platform, sender_id):
            return words.OWNER_ASK.format(id=f"{key.platform}:{sender_id}")
        return words.OWNER_AT_MACHINE.format(id=f"{key.platform}:{sender_id}")

    def _close_question(self, tx: Tx, person: Person, text: str, now: float) -> list[Outgoing]:
        """Take the buttons from the question, where the platform edits."""
        asked = outbox.of_group(tx, _name_of_question(person))
        if not asked or not self._outbox_writer.edits(asked[-1].target):
            return []
        rows = [in_place_of(asked[-1], text, now=now)]
        outbox.enqueue(tx, rows, now=now)
        return rows

    def _words(self, person: Person) -> Texts:
        return words_of(pick(self._config().language, person.language))


def _may_become(tx: Tx, person: Person) -> bool:
    """Tell whether a person can still become the owner by a word: a role that somebody gave by hand stays."""
    return person.role == PersonRole.USER and not people.has_owner(tx)


def _apply_to_all(tx: Tx, owners: tuple[str, ...]) -> None:
    for person in people.with_owner_by(tx, OwnerBy.CONFIG):
        apply_settings(tx, owners, person)
    for name in owners:
        platform, _, user_id = name.partition(":")
        if user_id and (found := people.find(tx, platform, user_id)) is not None:
            apply_settings(tx, owners, found)


def _name_of_question(person: Person) -> str:
    return f"ob_owner_{person.id}"
