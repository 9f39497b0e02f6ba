"""Keep the gateway session, and decide from values alone what an end means for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Self

from hermes.core.dataclasses import dataclass
from hermes.core.errors import CredentialsError, PlatformError, RateLimitedError, UnreachableError
from hermes.core.i18n.failures import sentence
from hermes.core.messages import Cursor, Json

GROUP_AND_C2C = 1 << 25
INTERACTION = 1 << 26
DIRECT_MESSAGE = 1 << 12
PUBLIC_GUILD_MESSAGES = 1 << 30
ALL_INTENTS = GROUP_AND_C2C | INTERACTION | PUBLIC_GUILD_MESSAGES | DIRECT_MESSAGE
FEWER_INTENTS = GROUP_AND_C2C | INTERACTION  # for a bot that may not listen in guilds

QUICK_SECONDS = 5.0  # a connection that ends sooner did not really come to be
ANSWER_SECONDS = 10.0  # a Resume that nothing follows for so long has failed
WAIT_SECONDS = 60.0
MAX_FAILED_RESUMES = 2
MAX_REFUSED_TOKENS = 3
MAX_QUICK_ENDS = 3
TRY_ALL_AGAIN_SECONDS = 86400.0  # a bot may have been granted meanwhile what it lacked

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 0, 1, 2, 6, 7, 9, 10, 11


@dataclass(frozen=True, slots=True)
class Session:
    """Kept as marks, committed with the events it counts; so it outlives the connection and the process.

    ``seq`` is the last event that is stored. ``fewer_since`` (seconds since the epoch, 0: not) is when QQ refused the
    intents for guilds.
    """

    session_id: str = ""
    seq: int = 0
    failed_resumes: int = 0
    refused_tokens: int = 0
    quick_ends: int = 0
    fewer_since: int = 0

    @classmethod
    def of(cls, cursor: Cursor) -> Self:
        """Read a session from its cursor; unreadable values count as missing."""
        numbers = {name: _number(cursor.get(name)) for name in _NUMBERS}
        return cls(session_id=cursor.get("session_id", ""), **numbers)

    def cursor(self, known: Session) -> dict[str, str]:
        """Return the cursor values that differ from the stored ones."""
        return {
            field.name: str(getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != getattr(known, field.name)
        }

    @property
    def can_resume(self) -> bool:
        return bool(self.session_id) and self.seq > 0

    def intents(self, now: float) -> int:
        is_fresh = self.fewer_since and abs(now - self.fewer_since) < TRY_ALL_AGAIN_SECONDS
        return FEWER_INTENTS if is_fresh else ALL_INTENTS

    def forgotten(self) -> Session:
        return replace(self, session_id="", seq=0, failed_resumes=0)

    def begun(self, session_id: str, seq: int) -> Session:
        return replace(self, session_id=session_id, seq=max(seq, 1), failed_resumes=0, refused_tokens=0)

    def settled(self) -> Session:
        """The connection holds: what was counted against it is over."""
        return replace(self, failed_resumes=0, refused_tokens=0, quick_ends=0)


_NUMBERS = tuple(field.name for field in fields(Session) if field.name != "session_id")


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else 0


def identify(token: str, intents: int) -> Json:
    return {"op": IDENTIFY, "d": {"token": f"QQBot {token}", "intents": intents, "shard": [0, 1], "properties": {}}}


def resume(token: str, session: Session) -> Json:
    return {
        "op": RESUME,
        "d": {"token": f"QQBot {token}", "session_id": session.session_id, "seq": session.seq},
    }


@dataclass(frozen=True, slots=True)
class End:
    """How a connection ended. ``code`` 0: without one. ``lasted`` counts from Identify or Resume.

    ``was_answered``: READY, RESUMED or any event came. ``may_resume`` False: QQ said that the session is over.
    """

    code: int
    reason: str
    lasted: float
    was_resume: bool
    was_answered: bool
    may_resume: bool = True

    @property
    def words(self) -> str:
        if self.code:
            return f"WebSocket closed: code={self.code} reason={self.reason or '-'}"
        return self.reason


def after(session: Session, end: End, now: float) -> tuple[Session, PlatformError]:
    """Decide the next session after an end, and the error to report."""
    session = _counted(session, end)
    code = end.code
    if code in _FATAL:
        return session, CredentialsError(f"{sentence(end.words)} {_FATAL[code]}", cure=_CURES.get(code, _UPDATE))
    if code == 4014:
        if session.intents(now) == FEWER_INTENTS:
            return session, CredentialsError(
                f"{sentence(end.words)} The bot may not receive messages of groups and people: ask for it at q.qq.com.",
                cure="ask at q.qq.com for messages of groups and people",
            )
        return replace(session.forgotten(), fewer_since=int(now)), UnreachableError(end.words)
    if code == 4004:
        refused = session.refused_tokens + 1
        if refused >= MAX_REFUSED_TOKENS:
            reason = f"{sentence(end.words)} Check QQ_APP_ID and QQ_CLIENT_SECRET."
            return replace(session, refused_tokens=0), CredentialsError(reason)
        return replace(session, refused_tokens=refused), UnreachableError(end.words)
    if code == 4008:
        return session, RateLimitedError(end.words, WAIT_SECONDS)
    if session.quick_ends >= MAX_QUICK_ENDS:
        reason = (
            f"{sentence(end.words)} Three connections in a row ended at once: check the bot's permissions at q.qq.com."
        )
        return replace(session, quick_ends=0), RateLimitedError(reason, WAIT_SECONDS)
    return session, UnreachableError(end.words)


def _counted(session: Session, end: End) -> Session:
    """The guard: a session that cannot be resumed is given up after two tries, or at once where QQ says so."""
    is_quick = end.lasted < QUICK_SECONDS
    session = replace(session, quick_ends=session.quick_ends + 1) if is_quick else replace(session, quick_ends=0)
    if not end.may_resume or end.code in _SESSION_IS_OVER or 4900 <= end.code <= 4913:
        return session.forgotten()
    # A line that breaks after the answer says nothing about the session; a close that QQ sends does.
    has_failed = end.was_resume and (not end.was_answered or (is_quick and end.code not in (0, 1006)))
    if not has_failed:
        return session
    failed = session.failed_resumes + 1
    return session.forgotten() if failed >= MAX_FAILED_RESUMES else replace(session, failed_resumes=failed)


# 4001 and 4002 say that we wrote something wrong: one more try, from the beginning, does no harm.
_SESSION_IS_OVER = frozenset({4001, 4002, 4006, 4007})
_FATAL: Mapping[int, str] = {
    4010: "QQ does not know this shard.",
    4011: "QQ wants this bot to be split into shards, which is not supported.",
    4012: "QQ does not speak this version any more.",
    4013: "QQ does not know these intents.",
    4914: "The bot is taken down and may talk in its sandbox only: publish it at q.qq.com, or set QQ_BASE_URL to "
    "https://sandbox.api.sgroup.qq.com.",
    4915: "The bot is banned. Ask at q.qq.com.",
}
_UPDATE = "update hermes-gateway"
_CURES: Mapping[int, str] = {
    4914: "publish the bot at q.qq.com",
    4915: "ask at q.qq.com why the bot is banned",
}
