"""Map frames to events, messages to requests, refusals to errors. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import (
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
    WindowClosedError,
)
from hermes.core.i18n.failures import sentence
from hermes.core.messages import REPEAT_MARK, InboundEvent, Json, OutboundMessage, read, unreadable
from hermes.core.text import storable
from hermes.platforms.qq import markdown
from hermes.platforms.qq.parse import Me, Place, Scene, parse
from hermes.platforms.qq.session import WAIT_SECONDS

TEXT_LIMIT = 4000
TEXT, MARKDOWN, TYPING, MEDIA = 0, 2, 6, 7
TYPING_SECONDS = 60
MAX_WAIT_SECONDS = 3600.0
_MAX_BUTTONS = 5  # in a row, and rows

ALREADY_SENT = 40054005
# QQ takes no (further) answer to this message, because of its age or their number.
TICKET_IS_SPENT = frozenset({40034024, 304027})
# Nothing may be sent of our own accord, or not as often.
NOT_UNASKED = frozenset({40034102, 22009})
TOKEN_REFUSED = frozenset({11241, 11243, 11244, 11245, 11251})
CHECK_FAILED = frozenset({11242, 11252, 11263, 11281})
NO_MARKDOWN = frozenset({50055, 50056, 304036})
NO_KEYBOARD = frozenset({304037, 304038, 304039, 304040})
NO_ADDRESS = 304003
MEDIA_FAILED = frozenset({304082, 304083})
PART_NOT_READY, QUOTA_SPENT = 40093001, 40093002
_RATE = frozenset({22009, 20028, 100001})
_BANNED = frozenset({11253, 11254, 11265})
_WRONG_CREDENTIALS = frozenset({10004, 100007, 100016})
_MEANT = NO_MARKDOWN | NO_KEYBOARD | MEDIA_FAILED | {ALREADY_SENT, NO_ADDRESS, PART_NOT_READY, QUOTA_SPENT, 304025}


def understand(frame: object, me: Me, now: datetime) -> InboundEvent:
    """Say what a frame holds; whatever is wrong with it, it becomes an event that can be kept."""
    if isinstance(frame, dict):
        return read(parse, frame, me, now)
    return unreadable(frame if isinstance(frame, str) else repr(frame), "it is not a frame")


def decode(data: str | bytes) -> object:
    """A frame. What is not JSON comes back as text, to be kept as it came."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False)  # half a surrogate pair spoils one letter, not the event
    except (ValueError, RecursionError):
        return text


@dataclass(frozen=True, slots=True)
class Abilities:
    """What this bot may do beyond plain text, as far as QQ has not said otherwise."""

    markdown: bool = True
    keyboard: bool = True


def path_of(place: Place) -> str:
    return f"{_PATHS[place.scene]}{quote(place.id, safe='')}"


_PATHS = {
    Scene.C2C: "/v2/users/",
    Scene.GROUP: "/v2/groups/",
    Scene.CHANNEL: "/channels/",
    Scene.GUILD_DM: "/dms/",
}


def render(message: OutboundMessage, may: Abilities) -> Json:
    """The body that says these words, without the ticket it is sent with."""
    place = Place.of(message.target.chat)
    text = (REPEAT_MARK if message.is_repeat else "") + storable(message.text)
    is_guild = place.scene in (Scene.CHANNEL, Scene.GUILD_DM)
    buttons = bool(message.buttons) and may.keyboard and may.markdown
    if may.markdown and (buttons or (not is_guild and markdown.has_marks(text))):
        body: Json = {"markdown": {"content": text}}
        if buttons:
            body["keyboard"] = _keyboard(message)
        return body if is_guild else {"msg_type": MARKDOWN, **body}
    return {"content": markdown.plain(text), **({} if is_guild else {"msg_type": TEXT})}


def caption(message: OutboundMessage) -> str:
    """The words beside a file, which are plain; QQ wants at least a space."""
    mark = REPEAT_MARK if message.is_repeat else ""
    return (mark + markdown.plain(storable(message.text))) or " "


def _keyboard(message: OutboundMessage) -> Json:
    flat = [button for row in message.buttons for button in row]
    rows = message.buttons
    if len(rows) > _MAX_BUTTONS or any(len(row) > _MAX_BUTTONS for row in rows):
        flat = flat[: _MAX_BUTTONS**2]
        rows = tuple(tuple(flat[at : at + _MAX_BUTTONS]) for at in range(0, len(flat), _MAX_BUTTONS))
    ids = iter(range(len(flat)))
    return {
        "content": {
            "rows": [
                {
                    "buttons": [
                        {
                            "id": str(number := next(ids)),
                            "render_data": {
                                "label": button.label,
                                "visited_label": button.label,
                                "style": 1 if number == 0 else 0,
                            },
                            # Everybody may press: who may answer is decided by who pressed and what was asked.
                            "action": {
                                "type": 1,
                                "permission": {"type": 2},
                                "data": button.data,
                                "unsupport_tips": button.label,
                            },
                        }
                        for button in row
                    ]
                }
                for row in rows
            ]
        }
    }


# Refusals


class RefusedError(RejectedError):
    """QQ's no, with its number: some can be mended."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


class TicketSpentError(WindowClosedError):
    """QQ takes no answer to this message any more; another ticket may do."""


class TokenRefusedError(CredentialsError):
    """A new token may do."""


def refusal(what: str, status: int, body: Json, headers: Mapping[str, str]) -> PlatformError:
    """Map QQ's refusal to our error."""
    code = _code(body)
    message = str(body.get("message") or body.get("msg") or _phrase(status))
    trace = headers.get("X-Tps-trace-Id") or str(body.get("trace_id") or "")
    reason = f"QQ refused {what}: {message} (code {code or status}{f', trace {trace}' if trace else ''})"
    if code in TICKET_IS_SPENT:
        return TicketSpentError(reason)
    if code == 40034102:
        return WindowClosedError(reason)
    if code in _RATE or status == HTTPStatus.TOO_MANY_REQUESTS:
        retry_after = headers.get("Retry-After", "")
        is_number = retry_after.isascii() and retry_after.isdigit()
        return TooOftenError(reason, min(float(retry_after), MAX_WAIT_SECONDS) if is_number else WAIT_SECONDS, code)
    if code in CHECK_FAILED:
        return RefusedError(reason, code)
    if code in _BANNED:
        return CredentialsError(
            f"{sentence(reason)} The bot lacks a privilege or is banned: see q.qq.com.",
            cure="look at q.qq.com what the bot may do",
        )
    if code in TOKEN_REFUSED or status == HTTPStatus.UNAUTHORIZED:
        return TokenRefusedError(f"{sentence(reason)} Check QQ_APP_ID and QQ_CLIENT_SECRET.")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and code not in _MEANT:
        return OutcomeUnknownError(reason)
    return RefusedError(reason, code)


class TooOftenError(RateLimitedError):
    """Too many calls; of a message that nobody asked for it may also mean: no more of these at all."""

    def __init__(self, reason: str, retry_after: float, code: int) -> None:
        super().__init__(reason, retry_after)
        self.code = code


def _code(body: Mapping[str, Any]) -> int:
    for name in ("err_code", "code"):
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value:
            return value
    return 0


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"


def is_window(code: int) -> bool:
    """Tell whether an unprompted message may be sent later as an answer."""
    return 304000 <= code < 305000 and code not in _MEANT


def token_refusal(body: Json) -> PlatformError:
    """Map a refused token request to our error."""
    code, message = _code(body), str(body.get("message") or "no reason given")
    reason = f"QQ gives out no access token: {message} (code {code})"
    match code:
        case 100001:
            return RateLimitedError(reason, WAIT_SECONDS, in_all=True)
        case _ if code in _WRONG_CREDENTIALS:
            return CredentialsError(f"{sentence(reason)} Check QQ_APP_ID and QQ_CLIENT_SECRET.")
        case _:  # something of QQ's own (100002), or a number that nobody has seen: neither is a reason to give up
            return UnreachableError(f"{sentence(reason)} If it stays so, check QQ_APP_ID and QQ_CLIENT_SECRET.")


# Mending


def mend(body: Json, message: OutboundMessage, refused: RefusedError) -> tuple[Json, str] | None:
    """A changed body that QQ may take, with what to tell about it; None when the refusal stands."""
    text = (REPEAT_MARK if message.is_repeat else "") + storable(message.text)
    if refused.code in NO_MARKDOWN and "markdown" in body:
        kept = {key: value for key, value in body.items() if key not in ("markdown", "keyboard")}
        kept |= {"content": markdown.plain(text)} | ({"msg_type": TEXT} if "msg_type" in body else {})
        return kept, "sent without formatting"
    if refused.code in NO_KEYBOARD and "keyboard" in body:
        return {key: value for key, value in body.items() if key != "keyboard"}, "sent without buttons"
    if refused.code == NO_ADDRESS:
        text = body["markdown"]["content"] if "markdown" in body else str(body.get("content") or "")
        changed = markdown.without_addresses(text)
        if changed == text:
            return None
        words: Json = {"markdown": {"content": changed}} if "markdown" in body else {"content": changed}
        return {**body, **words}, "QQ takes no addresses that are not on the bot's list; they were spelled out"
    return None
