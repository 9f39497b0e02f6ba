"""Pair strangers: give each a code, and apply the owner's decision at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hermes.core.bounded import Quota
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.core.i18n.catalogue import ENGLISH, words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import guess, pick
from hermes.core.keys import LOCAL, MAIN, Target
from hermes.core.messages import Button, InboundMessage, OutboundMessage
from hermes.core.people import pairing as rules
from hermes.core.ports import Clock
from hermes.core.roles import PersonRole
from hermes.core.text import one_line
from hermes.services.approvals import THE_OWNER
from hermes.services.news import StrangerKnocked
from hermes.services.outbound.approval_cards import in_place_of
from hermes.services.outbound.rows import OutboxWriter
from hermes.store import codec, outbox, pairings, people
from hermes.store.db import Database, Tx
from hermes.store.home import own_secret
from hermes.store.ids import new_id
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.pairings import Pairing, PairingState

log = logging.getLogger(__name__)
T = TypeVar("T")

SECRET_FILE = "pairing.secret"  # noqa: S105 - the name of the file
NAME_LENGTH = 40


class NoSuchPairingError(GatewayError):
    """There is no such code, or nobody of that id was let in."""


class PairingLockedError(GatewayError):
    """Too many wrong codes; ``retry_after`` is in seconds."""

    def __init__(self, text: str, retry_after: float) -> None:
        super().__init__(text)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class PairingOffer:
    """The answer to a stranger: the code, the stranger's language and the owner's.

    ``owners`` are the chats of the owners themselves, where there is no home channel. ``displaced`` are the oldest
    requests of a full account, which gave way to this one.
    """

    code: str
    is_new: bool
    language: str
    home_language: str
    owners: tuple[Target, ...] = ()
    displaced: tuple[Pairing, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingPairing:
    """A request with its code, for whoever decides."""

    pairing: Pairing
    code: str


@dataclass(frozen=True, slots=True)
class ApprovedPairing:
    pairing: Pairing
    role: PersonRole
    is_first_owner: bool


class Pairings:
    """Knows who was let in, without asking the store for each message."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        outbox_writer: OutboxWriter,
        home: Path,
        home_targets: Callable[[], Sequence[Target]],
        language: Callable[[], str] = lambda: "",
        on_asked: Callable[[StrangerKnocked], None] = lambda _: None,
    ) -> None:
        """``language`` is the owner's choice for everybody, '' where there is none. ``on_asked`` is told of each
        stranger once, when their request is stored."""
        self._db = db
        self._clock = clock
        self._outbox_writer = outbox_writer
        self._home = home
        self._home_targets = home_targets
        self._language = language
        self._on_asked = on_asked
        self._approved: set[tuple[str, str]] = set()
        self._secret = b""
        self._cards = Quota(rules.MAX_CARDS, rules.LIVE_SECONDS)
        self.on_change: Callable[[], None] = lambda: None
        """Called when somebody was let in or sent away here: other nodes have to know."""

    async def load(self) -> None:
        """Before the first message is judged; in a cluster again and again, as other nodes let people in too."""
        if self._db.dialect.name == "postgres" and not self._secret:
            # A code that one node gave is a code at every node.
            own = await asyncio.to_thread(own_secret, self._home / SECRET_FILE)
            self._secret = bytes.fromhex(await self._db.write(pairings.shared_secret, own.hex()))
        self._approved = await self._db.read(pairings.approved)

    def is_paired(self, platform: str, user_id: str) -> bool:
        return (platform, user_id) in self._approved

    @property
    def has_let_in_somebody(self) -> bool:
        return bool(self._approved)

    # A stranger writes

    async def meet(self, message: InboundMessage, account: str) -> None:
        """Answer a stranger with a code, and announce the request in the home channel once."""
        now, source = self._clock.now(), (message.session_key.platform, account)
        is_crowd = not self._cards.has_room(source, now)
        rows, news = await self._db.write(self._meet, message, account, is_crowd=is_crowd, now=now)
        self._outbox_writer.due(rows)
        if news is not None:
            self._cards.take(source, now)
            self._on_asked(news)

    def _meet(
        self, tx: Tx, message: InboundMessage, account: str, *, is_crowd: bool, now: float
    ) -> tuple[list[Outgoing], StrangerKnocked | None]:
        """Note that they ask, and store what is said of it: whoever asks a second time is no news to the owner."""
        key = message.session_key
        name = one_line(message.sender_name, NAME_LENGTH)
        asked = self._ask(tx, message, account, name, now=now)
        if asked is None:
            return [], None
        words = words_of(pick(self._language(), asked.language))
        text = words.PAIRING.format(code=asked.code, platform=key.platform)
        rows = self._outbox_writer.notice(key.target, text, key=new_id(pairings.STRANGER_NOTICE))
        for displaced in asked.displaced:
            rows += self._ended_cards(tx, displaced, words_at_home(tx, self._language()).CARD_GAVE_WAY, now=now)
        if asked.is_new:
            at_home = words_of(pick(self._language(), asked.home_language))
            shown = "" if is_crowd else asked.code
            card, group = self._card(at_home, key.platform, account, message.sender_id, name, shown)
            for number, target in enumerate(self._home_targets() or asked.owners):
                outgoing = replace(card, target=target)
                rows += self._outbox_writer.rows(outgoing, OutboxKind.REPLY, key=_name_of_card(group, number))
        outbox.enqueue(tx, rows, now=now)
        is_news = asked.is_new and not is_crowd
        return rows, StrangerKnocked(key.platform, message.sender_id, name, asked.code) if is_news else None

    def _ask(self, tx: Tx, message: InboundMessage, account: str, name: str, *, now: float) -> PairingOffer | None:
        """None: they were sent away within the hour, and nothing is said again."""
        platform, chat, user_id = message.session_key.platform, message.session_key.chat, message.sender_id
        met = people.find(tx, platform, user_id)  # somebody who may not talk any more
        language = (met.language if met is not None else "") or guess(message.language, message.text)
        home_language = people.language_of_owner(tx)
        since = now - rules.LIVE_SECONDS
        earlier = pairings.get(tx, platform, user_id)
        if earlier is not None and earlier.state == PairingState.REFUSED and (earlier.decided_at or 0.0) > since:
            return None
        waiting = pairings.waiting(tx, platform, since=since)
        known = next((pairing for pairing in waiting if pairing.user_id == user_id), None)
        if known is not None:
            return PairingOffer(self._code(known), False, language, home_language)
        # A full list keeps nobody out: the oldest requests give way, and their senders may write again.
        pending = [pairing for pairing in pairings.pending_of(tx, platform, account) if pairing.user_id != user_id]
        displaced = pending[: max(0, len(pending) - rules.MAX_WAITING + 1)]
        for pairing in displaced:
            pairings.forget(tx, platform, pairing.user_id)
        pairings.ask(tx, platform, user_id, account=account, chat=chat, name=name, now=now, language=language)
        made = pairings.get(tx, platform, user_id)
        assert made is not None  # noqa: S101 - written a line above, in this transaction
        return PairingOffer(self._code(made), True, language, home_language, _owners(tx), tuple(displaced))

    def _card(
        self, words: Texts, platform: str, account: str, user_id: str, name: str, code: str
    ) -> tuple[OutboundMessage, str]:
        """Return the announcement of a stranger, and its key, by which each request is announced once.

        Without a code it announces a crowd.
        """
        person = f"{name or words.SOMEBODY} ({platform} {one_line(user_id, 64)})"
        if not code:
            text = words.STRANGERS_QUEUE.format(who=person, platform=platform)
            # The key holds the hour: a crowd is announced once an hour.
            hour = int(self._clock.now() // rules.LIVE_SECONDS)
            return OutboundMessage(NOWHERE, text), f"crowd_{platform}_{account}_{hour}"
        buttons = (
            Button(words.LET_IN_BUTTON, rules.button_data(platform, code, approve=True)),
            Button(words.SEND_AWAY_BUTTON, rules.button_data(platform, code, approve=False)),
        )
        text = words.STRANGER_AT_THE_DOOR.format(who=person, platform=platform, code=code)
        return OutboundMessage(NOWHERE, text, buttons=(buttons,)), f"{platform}_{code}"

    def _decided_cards(self, tx: Tx, pairing: Pairing, by: str, *, is_in: bool, now: float) -> list[Outgoing]:
        """The cards of a request that was decided say who did it."""
        words = words_at_home(tx, self._language())
        form = words.CARD_ALLOWED if is_in else words.CARD_REFUSED
        return self._ended_cards(tx, pairing, form.format(who=words.reason(one_line(by, NAME_LENGTH))), now=now)

    def _ended_cards(self, tx: Tx, pairing: Pairing, end: str, *, now: float) -> list[Outgoing]:
        """The cards of a request that is over lose their buttons and say how it ended, where they can be edited."""
        ended: list[Outgoing] = []
        for number in range(len(self._home_targets()) or 1):
            group = _name_of_card(f"{pairing.platform}_{self._code(pairing)}", number)
            outbox.withdraw(tx, group, reason="decided before it was delivered", now=now)
            for row in outbox.of_group(tx, group)[-1:]:  # the part with the buttons
                if self._outbox_writer.capabilities(Target.parse(row.target)).edits:
                    headline = codec.load_outbound(row.body).text.partition("\n")[0]
                    ended.append(in_place_of(row, f"{headline}\n\n{end}", now=now))
        return ended

    def _code(self, pairing: Pairing) -> str:
        if not self._secret:
            self._secret = own_secret(self._home / SECRET_FILE)
        return rules.code_of(
            self._secret,
            platform=pairing.platform,
            account=pairing.account,
            user_id=pairing.user_id,
            asked_at=pairing.asked_at,
        )

    # Somebody decides

    async def waiting(self, platform: str = "") -> list[PendingPairing]:
        since = self._clock.now() - rules.LIVE_SECONDS
        return await self._db.read(self._waiting, platform, since)

    def _waiting(self, tx: Tx, platform: str, since: float) -> list[PendingPairing]:
        return [PendingPairing(pairing, self._code(pairing)) for pairing in pairings.waiting(tx, platform, since=since)]

    async def decided(self, platform: str = "") -> list[Pairing]:
        return await self._db.read(pairings.decided, platform)

    async def approve(
        self, platform: str, code: str, *, by: str, is_at_machine: bool = False, words: Texts = ENGLISH
    ) -> ApprovedPairing:
        """Let in whoever has this code. Raises NoSuchPairingError, or PairingLockedError when too many were wrong."""
        now = self._clock.now()

        def let_in(tx: Tx, found: Pairing) -> tuple[ApprovedPairing, list[Outgoing]]:
            approval = self._let_in(tx, found, by, is_at_machine=is_at_machine, now=now)
            decided_by = THE_OWNER if is_at_machine else by
            return approval, self._decided_cards(tx, found, decided_by, is_in=True, now=now)

        approval = await self._with_code(platform, code, let_in, words, is_at_machine=is_at_machine, now=now)
        return self._noted(approval, by)

    async def approve_user(self, platform: str, user_id: str, *, by: str) -> ApprovedPairing:
        """Approve the person with this id, for a person at the machine.

        A waiting request is approved as by its code. Without one (it gave way, or the person never wrote) the person
        becomes a user: a mistyped id must not become the owner.
        """
        now = self._clock.now()

        def let_in(tx: Tx) -> tuple[ApprovedPairing, list[Outgoing]]:
            waiting = pairings.waiting(tx, platform, since=now - rules.LIVE_SECONDS)
            found = next((pairing for pairing in waiting if pairing.user_id == user_id), None)
            if found is not None:
                approval = self._let_in(tx, found, by, is_at_machine=True, now=now)
                cards = self._decided_cards(tx, found, THE_OWNER, is_in=True, now=now)
                outbox.enqueue(tx, cards, now=now)
                return approval, cards
            known = pairings.get(tx, platform, user_id)
            account, chat, name, language = (
                (known.account, known.chat, known.name, known.language) if known else (MAIN, "", "", "")
            )
            pairings.ask(tx, platform, user_id, account=account, chat=chat, name=name, now=now, language=language)
            made = Pairing(platform, user_id, account, chat, name, PairingState.PENDING, now, None, "", language)
            return self._let_in(tx, made, by, is_at_machine=False, now=now), []

        approval, cards = await self._db.write(let_in)
        self._outbox_writer.due(cards)
        return self._noted(approval, by)

    def _noted(self, approval: ApprovedPairing, by: str) -> ApprovedPairing:
        """Log a stored approval and wake the delivery of its notice."""
        pairing = approval.pairing
        self._approved.add((pairing.platform, pairing.user_id))
        self.on_change()
        self._outbox_writer.due_target(str(_target(pairing)))
        about = {"platform": pairing.platform, "user": pairing.user_id, "role": approval.role, "by": by}
        log.info("Pairing approved", extra=about)
        return approval

    async def refuse(
        self, platform: str, code: str, *, by: str, is_at_machine: bool = False, words: Texts = ENGLISH
    ) -> Pairing:
        """Send away whoever has this code; they are not told, and may ask again when the hour is over.

        A wrong code counts as it does for ``approve``: this must not be the door at which codes are guessed.
        """
        now = self._clock.now()

        def send_away(tx: Tx, found: Pairing) -> tuple[Pairing, list[Outgoing]]:
            pairings.decide(tx, found.platform, found.user_id, PairingState.REFUSED, by=by, now=now)
            decided_by = THE_OWNER if is_at_machine else by
            return found, self._decided_cards(tx, found, decided_by, is_in=False, now=now)

        found = await self._with_code(platform, code, send_away, words, is_at_machine=is_at_machine, now=now)
        log.info("Pairing refused", extra={"platform": platform, "user": found.user_id, "by": by})
        return found

    async def _with_code(
        self,
        platform: str,
        code: str,
        act: Callable[[Tx, Pairing], tuple[T, list[Outgoing]]],
        words: Texts,
        *,
        is_at_machine: bool,
        now: float,
    ) -> T:
        """Act on the request with this code and change its cards, in the transaction that found it."""

        def look(tx: Tx) -> tuple[T, list[Outgoing]] | GatewayError:
            locked = pairings.locked_until(tx, platform)
            if locked > now and not is_at_machine:
                minutes = max(1, round((locked - now) / 60))
                return PairingLockedError(words.PAIRING_LOCKED.format(platform=platform, minutes=minutes), locked - now)
            waiting = self._waiting(tx, platform, now - rules.LIVE_SECONDS)
            found = next((pending.pairing for pending in waiting if rules.is_same(pending.code, code)), None)
            if found is None:
                if not is_at_machine:
                    pairings.note_wrong(tx, platform, most=rules.WRONG_CODES, lock_seconds=rules.LOCK_SECONDS, now=now)
                    return NoSuchPairingError(words.NO_SUCH_CODE)
                return NoSuchPairingError(self._no_such_code(words, platform, waiting, now))
            pairings.forget_wrong(tx, platform)
            done, cards = act(tx, found)
            outbox.enqueue(tx, cards, now=now)
            return done, cards

        outcome = await self._db.write(look)
        if isinstance(outcome, GatewayError):  # returned, not raised: a wrong code has to be counted
            raise outcome
        self._outbox_writer.due(outcome[1])
        return outcome[0]

    def _let_in(self, tx: Tx, pairing: Pairing, by: str, *, is_at_machine: bool, now: float) -> ApprovedPairing:
        pairings.decide(tx, pairing.platform, pairing.user_id, PairingState.APPROVED, by=by, now=now)
        is_first = is_at_machine and not people.has_owner(tx)
        role = PersonRole.OWNER if is_first else PersonRole.USER
        person = people.ensure(
            tx,
            people.first_id(pairing.platform, pairing.user_id),
            platform=pairing.platform,
            user_id=pairing.user_id,
            name=pairing.name,
            role=role.value,
            now=now,
            language=pairing.language,
        )
        if is_first:
            people.set_role(tx, person.id, role.value)
        words = words_of(pick(self._language(), person.language or pairing.language))
        text = words.LET_IN_NAMED.format(name=pairing.name) if pairing.name else words.LET_IN
        welcome = OutboundMessage(_target(pairing), text)
        key = f"ob_in_{pairing.platform}_{pairing.user_id}_{pairing.asked_at:.0f}"
        if pairing.chat:  # else they have never written, and there is no chat to write into
            outbox.enqueue(tx, self._outbox_writer.rows(welcome, OutboxKind.REPLY, key=key), now=now)
        kept = PersonRole(person.role) if not is_first else role
        return ApprovedPairing(pairing, kept, is_first)

    def _no_such_code(self, words: Texts, platform: str, waiting: Sequence[PendingPairing], now: float) -> str:
        if not waiting:
            return f"{words.NO_SUCH_CODE} {words.NOBODY_WAITS.format(platform=platform)}"
        shown = "; ".join(
            f"{pending.pairing.platform} {pending.code}, {pending.pairing.name or pending.pairing.user_id}, "
            f"{max(0, round((now - pending.pairing.asked_at) / 60))} min ago"
            for pending in waiting
        )
        return f"{words.NO_SUCH_CODE} Waiting: {shown}."

    async def revoke(self, platform: str, user_id: str, *, by: str) -> Pairing:
        """Whoever was let in is a stranger again, from their next message on, and their role is gone."""
        found = await self._db.write(self._revoke, platform, user_id, by, now=self._clock.now())
        if found is None:
            text = f"{platform} {one_line(user_id, 64)} was not approved by pairing. Look: hermes pairing list"
            raise NoSuchPairingError(text)
        self._approved.discard((platform, user_id))
        self.on_change()
        log.info("Pairing revoked", extra={"platform": platform, "user": user_id, "by": by})
        return found

    def _revoke(self, tx: Tx, platform: str, user_id: str, by: str, *, now: float) -> Pairing | None:
        found = pairings.get(tx, platform, user_id)
        if found is None or found.state != PairingState.APPROVED:
            return None
        pairings.decide(tx, platform, user_id, PairingState.REVOKED, by=by, now=now)
        # An open group or an allowlist may still let them write: not as the admin they were.
        people.make_plain(tx, platform, user_id, role=PersonRole.USER.value, now=now)
        return pairings.get(tx, platform, user_id)

    async def clear_waiting(self, platform: str = "") -> int:
        return await self._db.write(pairings.clear_waiting, platform)

    async def find(self, platform: str, user_id: str) -> Pairing | None:
        return await self._db.read(pairings.get, platform, user_id)


NOWHERE = Target(LOCAL, "nowhere")
"""Stands in a letter until it is written for each home channel."""


def words_at_home(tx: Tx, chosen: str) -> Texts:
    """The sentences in the owner's language, unless one was chosen for everybody."""
    return words_of(pick(chosen, people.language_of_owner(tx)))


def _name_of_card(name: str, number: int) -> str:
    return f"ob_pair_{name}_{number}"


def _target(pairing: Pairing) -> Target:
    return Target(pairing.platform, pairing.chat or pairing.user_id, account=pairing.account)


def _owners(tx: Tx) -> tuple[Target, ...]:
    chats = pairings.chats_of_owners(tx)[:1]  # one word is enough; more places are what a home channel is for
    return tuple(Target(platform, chat, account=account) for platform, account, chat in chats)
