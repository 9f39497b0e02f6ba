"""Judge an event before it is stored: its sender, their access, its kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.config import Config
from hermes.core.bounded import Quota
from hermes.core.dataclasses import dataclass
from hermes.core.keys import LOCAL, AccountKey, ChatKind, SessionKey
from hermes.core.lane import ONE_MODE
from hermes.core.messages import Ignored, InboundEvent, InboundMessage, Press, Unreadable
from hermes.core.people.access import Allowed, RefusalReason, Refused, Unaddressed, Verdict, judge
from hermes.core.ports import Clock
from hermes.core.roles import PersonRole
from hermes.core.secret import Redactor
from hermes.core.slash_command import read_command
from hermes.core.text import storable
from hermes.services.inbound.group_context import GroupContext
from hermes.services.inbound.notices import Notices
from hermes.store import codec
from hermes.store.ids import new_id
from hermes.store.inbox import InboxState, Incoming

log = logging.getLogger(__name__)

MAX_TEXT = 1_000_000
REFUSED_SECONDS = 3600.0
MAX_REFUSED_OF_ONE = 5
MAX_REFUSED = 200
"""Refused events that are stored within an hour: of one stranger, and of all strangers of an account."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One event on its way in: what is stored, and what to do once it is.

    ``is_kept`` is False where a stranger has written so much that nothing more of it is stored.
    """

    incoming: Incoming
    event: InboundMessage | Press | None = None
    refusal: RefusalReason | None = None
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class BatchSource:
    """The account a batch came from."""

    account: AccountKey
    identity: str
    redelivers: bool
    sends_per_inbound: int = 0

    def scoped(self, keys: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{self.account.platform}/{self.identity}/{storable(key)}" for key in keys)


class EventJudge:
    """``is_paired`` says who was let in by pairing; ``calls_skill`` whether a command starts a turn with a skill."""

    def __init__(
        self,
        config: Callable[[], Config],
        clock: Clock,
        notices: Notices,
        is_paired: Callable[[str, str], bool],
        calls_skill: Callable[[str, str], bool],
        redact: Redactor,
    ) -> None:
        self._config = config
        self._clock = clock
        self._notices = notices
        self._is_paired = is_paired
        self._calls_skill = calls_skill
        self._redact = redact
        self._group_context = GroupContext()
        self._kept_of_stranger = Quota(MAX_REFUSED_OF_ONE, REFUSED_SECONDS)
        self._kept_of_strangers = Quota(MAX_REFUSED, REFUSED_SECONDS)

    def judge(self, source: BatchSource, event: InboundEvent) -> Arrival | None:
        """Say what is stored of an event. One that cannot be judged is kept raw; the batch goes on."""
        try:
            match event:
                case Ignored():
                    return None
                case Unreadable():
                    return self._unreadable(source, event.raw, event.reason, event.keys)
                case InboundMessage():
                    return self._message(source, _clean(event, self._redact))
                case Press():
                    return self._press(
                        source,
                        replace(event, data=storable(event.data[:1000]), sender_name=storable(event.sender_name)),
                    )
        except Exception as error:
            log.exception("Event could not be judged", extra={"platform": source.account.platform})
            return self._unreadable(source, repr(event), f"{type(error).__name__}: {error}", ())

    def _unreadable(self, source: BatchSource, raw: str, reason: str, keys: Sequence[str]) -> Arrival:
        log.warning("Unreadable event kept", extra={"platform": source.account.platform, "reason": reason})
        body = self._redact(storable(raw[:MAX_TEXT]))
        return Arrival(self._incoming(source, keys, "", "unreadable", "", body, InboxState.SET_ASIDE, storable(reason)))

    def _message(self, source: BatchSource, message: InboundMessage) -> Arrival | None:
        verdict = self._verdict(source, message.session_key, message.sender_id, is_addressed=message.is_addressed)
        message = self._with_overheard(source, message, verdict)
        lane = str(lane_key(message, self._config()))
        if isinstance(verdict, Allowed):
            self._notices.forget_code(source.account.platform, message.sender_id)
            kind, message = self._kind(message)
            body = codec.dump(message)
            state = InboxState.ACTING if kind == "command" else InboxState.QUEUED
            pause = self._config().agent.join_pause_seconds if message.may_continue else 0.0
            incoming = self._incoming(source, message.keys, lane, kind, message.sender_id, body, state, pause=pause)
            return Arrival(incoming, message)
        if isinstance(verdict, Refused):
            refused = InboxState.REFUSED
            incoming = self._incoming(
                source, message.keys, lane, "message", message.sender_id, "", refused, verdict.reason.value
            )
            return Arrival(incoming, message, verdict.reason, is_kept=self._may_store(source, message.sender_id))
        return None  # a group's talk that is not for us

    def _with_overheard(self, source: BatchSource, message: InboundMessage, verdict: Verdict) -> InboundMessage:
        """Add a group's last lines to a message, or remember it for the next one."""
        account = self._config().account(source.account.platform, source.account.account)
        most = account.group_context_lines if account is not None else 0
        if account is None or not most or message.session_key.kind is ChatKind.DM:
            return message
        if isinstance(verdict, Unaddressed) and account.access.answers_in_groups:
            self._group_context.hear(message, most)
        if isinstance(verdict, Allowed) and message.is_addressed:
            return replace(message, group_context=self._group_context.before(message, most))
        return message

    def _kind(self, message: InboundMessage) -> tuple[str, InboundMessage]:
        """A command acts at once; one that names a skill is a message like any other, for which the skill is read.

        ``/queue TEXT`` and ``/steer TEXT`` are the message TEXT, which says what it does while a turn runs.
        """
        line = read_command(message.text)
        if line is None:
            return "message", message
        if line.name in ONE_MODE and line.rest:
            return line.name, replace(message, text=line.rest)
        return "skill" if self._calls_skill(line.name, message.session_key.platform) else "command", message

    def _may_store(self, source: BatchSource, sender_id: str) -> bool:
        """Tell whether one more refused event is stored; strangers must not fill the store."""
        now = self._clock.now()
        if not self._kept_of_strangers.has_room(source.account, now):
            return False
        return self._kept_of_stranger.take((source.account, sender_id), now) and self._kept_of_strangers.take(
            source.account, now
        )

    def _press(self, source: BatchSource, press: Press) -> Arrival | None:
        verdict = self._verdict(source, press.session_key, press.sender_id, is_addressed=True)
        lane = str(press.session_key)
        state, reason = InboxState.ACTING, ""
        if isinstance(verdict, Refused):
            state, reason = InboxState.REFUSED, verdict.reason.value
            self._notices.log_refused_press(press, lane)
            if not self._may_store(source, press.sender_id):
                return None
        incoming = self._incoming(source, press.keys, lane, "press", press.sender_id, codec.dump(press), state, reason)
        return Arrival(incoming, press if state is InboxState.ACTING else None)

    def _verdict(self, source: BatchSource, key: SessionKey, sender_id: str, *, is_addressed: bool) -> Verdict:
        if key.platform == LOCAL:
            return Allowed(PersonRole.OWNER)
        account = self._config().account(source.account.platform, source.account.account)
        if account is None:
            return Refused(RefusalReason.NOT_LISTED)
        return judge(
            account.access,
            kind=key.kind,
            sender_id=sender_id,
            chat=key.chat,
            is_addressed=is_addressed,
            is_paired=self._is_paired(source.account.platform, sender_id),
        )

    def _incoming(
        self,
        source: BatchSource,
        keys: Sequence[str],
        lane: str,
        kind: str,
        sender_id: str,
        body: str,
        state: InboxState,
        reason: str = "",
        pause: float = 0.0,
    ) -> Incoming:
        account = source.account
        ready_at = self._clock.now() + pause
        return Incoming(
            new_id("ev"),
            source.scoped(keys),
            lane,
            account.platform,
            account.account,
            kind,
            storable(sender_id),
            body,
            state,
            ready_at,
            reason,
        )


def lane_key(message: InboundMessage, config: Config) -> SessionKey:
    """The lane of a message: per person in a group that is not shared."""
    key = message.session_key
    if key.kind is ChatKind.GROUP and not key.thread and config.has_session_per_person(key):
        return key.for_person(message.sender_id)
    return key


def _clean(message: InboundMessage, redact: Redactor) -> InboundMessage:
    """Make a message storable, without our secrets, and cut what is too long."""
    quote = message.quote
    if quote is not None:
        quote = replace(
            quote,
            text=redact(storable(quote.text[:MAX_TEXT])),
            sender_name=storable(quote.sender_name),
            message_id=storable(quote.message_id),
        )
    text = message.text
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}\n[cut: {len(message.text) - MAX_TEXT} more characters]"
    text, name = redact(storable(text)), redact(storable(message.sender_name))
    if quote is None and not message.attachments and (text, name) == (message.text, message.sender_name):
        return message
    files = tuple(
        replace(each, file_id=storable(each.file_id), name=storable(each.name), mime=storable(each.mime))
        for each in message.attachments
    )
    return replace(message, text=text, sender_name=name, quote=quote, attachments=files)
