"""Map envelopes, messages and refusals of Slack. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus

import orjson

from hermes.core.errors import (
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.i18n.failures import sentence
from hermes.core.messages import (
    REPEAT_MARK,
    Button,
    Capabilities,
    Ignored,
    InboundEvent,
    Json,
    OutboundMessage,
    Rate,
    Rates,
    TextUnit,
    Unreadable,
    dump_event,
    read,
    unreadable,
)
from hermes.core.text import length, split, trim
from hermes.platforms.slack import media, parse
from hermes.platforms.slack.markdown import escape, render
from hermes.platforms.slack.parse import Me

TEXT_LIMIT = 4000  # what Slack advises; what it takes, with every sign escaped, is ten times that
MAX_TEXT_CHARS = 40_000
SAFE_BYTES = 4000  # of a text as it is written: more takes no earlier one's place, and some have seen it refused anew
TOO_LONG = "msg_too_long"
SECTION_LIMIT = 3000
SMALL_PART = 500  # of a section: with every sign escaped it fits, however it is written
MAX_BLOCKS = 50
LABEL_LIMIT = 75
ROW_LIMIT = 25
DEFAULT_RETRY_SECONDS = 30.0
MAX_RETRY_SECONDS = 3600.0

CAPABILITIES = Capabilities(
    # What is left when a repeated message has to carry its mark.
    text_limit=TEXT_LIMIT - len(REPEAT_MARK),
    caption_limit=TEXT_LIMIT - len(REPEAT_MARK),
    edits=True,
    typing=True,
    buttons=True,
    media=True,
    album_limit=media.ALBUM_LIMIT,
    threads=True,
    catch_up=True,
    # Slack allows some 50 changes in a minute.
    edit_pause_seconds=1.5,
    # One message a second in a channel; short bursts are let through.
    rates=Rates(in_chat=Rate(10, 10.0)),
    # Three heartbeats.
    silence_seconds=35.0,
    upload_limit_bytes=media.UPLOAD_LIMIT,
    download_limit_bytes=media.DOWNLOAD_LIMIT,
)

_HALF_ESCAPED = re.compile(r"&[a-z]{0,3}…$")
_SIGNED_OUT = frozenset(
    {
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "not_allowed_token_type",
        "org_login_required",
        "team_access_not_granted",
    }
)
_THEIRS = frozenset({"fatal_error", "internal_error", "service_unavailable", "request_timeout", "team_added_to_org"})
_ADVICE = {
    "channel_not_found": "There is no such channel, or the app is not in it.",
    "not_in_channel": "Invite the app into the channel first: /invite @its-name.",
    "is_archived": "The channel is archived.",
    "missing_scope": "Take the app's manifest from `hermes slack manifest` and install the app again.",
    "edit_window_closed": "Messages there cannot be changed any more.",
}


class RefusedError(RejectedError):
    """Slack read the request and said no; ``error`` is its own word for why."""

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason)
        self.error = error


# In


def understand(envelope: object, me: Me, now: datetime) -> InboundEvent:
    """Parse an envelope; what cannot be read is stored raw under a stable key."""
    if not isinstance(envelope, dict):
        return keep_unreadable(envelope, "no envelope")
    known = read(_parse, envelope, me, now, dump=_dump)
    return keep_unreadable(envelope, known.reason) if isinstance(known, Unreadable) else known


def past(message: object, channel: str, me: Me) -> InboundEvent:
    """Parse a message of the history."""
    if not isinstance(message, dict):
        return keep_unreadable(message, "no message")
    return read(parse.message, {**message, "channel": channel}, me, dump=_dump)


def keep_unreadable(raw: object, reason: str) -> Unreadable:
    """A retry has another envelope around the same payload, which names it."""
    payload = raw.get("payload", raw) if isinstance(raw, dict) else raw
    return unreadable(dump_event(raw, _dump), reason, same=dump_event(payload, _dump))


def _parse(envelope: Json, me: Me, now: datetime) -> InboundEvent:
    payload = envelope.get("payload")
    match envelope.get("type"):
        case "events_api":
            return parse.event(_object(payload), me)
        case "interactive":
            return parse.interaction(_object(payload), me, now)
        case "slash_commands":
            return parse.slash(_object(payload), me, now)
        case kind:
            return Ignored(str(kind)[:50])


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise TypeError("the payload is no object")
    return value


def _dump(raw: object) -> str:
    return orjson.dumps(raw).decode()


# Out


def text_of(message: OutboundMessage) -> str:
    """An edit that is repeated shows nothing twice, so only a new message carries the mark."""
    rendered = render(message.text)
    # A table grows by being aligned; one that would become too large is shown as it was written.
    fits = len(rendered) <= MAX_TEXT_CHARS - len(REPEAT_MARK)
    return f"{_mark(message)}{rendered if fits else escape(message.text)}"


def _mark(message: OutboundMessage) -> str:
    return REPEAT_MARK if message.is_repeat and not message.replaces else ""


def post(message: OutboundMessage) -> tuple[str, Json]:
    """The method and body that show a text: anew, or in place of an earlier one."""
    text = text_of(message)
    body: Json = {"channel": message.target.chat, "text": text}
    if message.buttons:
        body["blocks"] = blocks(message.text, message.buttons, _mark(message))
    if message.replaces:
        # Without blocks of its own the new text would stand under the old buttons.
        return "chat.update", {"blocks": [], **body, **in_blocks(message, text), "ts": message.replaces}
    body |= {"unfurl_links": False, "unfurl_media": False}
    if message.target.thread:
        body["thread_ts"] = message.target.thread
    return "chat.postMessage", body


def in_blocks(message: OutboundMessage, text: str) -> Json:
    """What is too long for a text stands in blocks; in the text, which is then for notifications, how it begins."""
    if length(text, TextUnit.BYTES) <= SAFE_BYTES:
        return {}
    beginning = _HALF_ESCAPED.sub("…", trim(text, SAFE_BYTES, TextUnit.BYTES))
    return {"text": beginning, "blocks": blocks(message.text, message.buttons, _mark(message))}


def blocks(text: str, buttons: tuple[tuple[Button, ...], ...], mark: str = "") -> list[Json]:
    """Buttons stand in blocks, and where there are blocks people see nothing else: so the words do too."""
    rows = [row[at : at + ROW_LIMIT] for row in buttons for at in range(0, len(row), ROW_LIMIT)]
    parts, rows = _sections(text, SECTION_LIMIT - len(mark)), rows[: MAX_BLOCKS - 1]
    parts = [f"{'' if number else mark}{part}" for number, part in enumerate(parts[: MAX_BLOCKS - len(rows)])]
    return [
        *({"type": "section", "text": {"type": "mrkdwn", "text": part}} for part in parts),
        *(
            {"type": "actions", "elements": [_button(button, number, place) for place, button in enumerate(row)]}
            for number, row in enumerate(rows)
        ),
    ]


def _button(button: Button, row: int, place: int) -> Json:
    label = trim(button.label, LABEL_LIMIT, TextUnit.CHARACTERS)
    words = {"type": "plain_text", "text": label, "emoji": True}
    return {"type": "button", "text": words, "value": button.data, "action_id": f"hermes:{row}:{place}"}


def _sections(source: str, limit: int) -> list[str]:
    """A section holds less than a message, and each is read by itself: what is cut is cut as messages are, so that code
    stays code, and before it is escaped, so that no sign is cut in two."""
    dump_event = render(source)
    if len(dump_event) <= limit:
        return [dump_event] if dump_event.strip() else []
    if len(source) <= SMALL_PART:
        return [escape(source)]
    halves = split(source, min(limit, len(source) // 2 + 1), TextUnit.CHARACTERS)
    return [section for half in halves for section in _sections(half, limit)]


# Refusals


def refusal(method: str, error: str, status: int, headers: Mapping[str, str], needed: str = "") -> PlatformError:
    reason = f"Slack refused {method}: {error or status}"
    if error in ("ratelimited", "rate_limited") or status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimitedError(reason, retry_after=_seconds(headers.get("Retry-After")))
    if error in _SIGNED_OUT:
        name = "SLACK_APP_TOKEN" if method == "apps.connections.open" else "SLACK_BOT_TOKEN"
        return CredentialsError(f"{sentence(reason)} Check {name}: install the app again and copy its token.")
    if error in _THEIRS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return OutcomeUnknownError(reason)
    if not error:
        reason = f"What answered {method} is not Slack ({status}). Check SLACK_BASE_URL and the proxy."
        # A page in Slack's place (a captive portal, a proxy) took nothing; of anything else nobody knows.
        is_page = "html" in headers.get("Content-Type", "")
        return UnreachableError(reason) if is_page else OutcomeUnknownError(reason)
    if error == "missing_scope" and method == "apps.connections.open":
        return CredentialsError(f"{sentence(reason)} SLACK_APP_TOKEN needs the scope connections:write.")
    scope = f" (it lacks {needed})" if needed else ""
    advice = _ADVICE.get(error, "")
    return RefusedError(f"{reason}{scope}.{' ' if advice else ''}{advice}", error)


def _seconds(value: str | None) -> float:
    try:
        seconds = float(value) if value is not None else math.nan
    except ValueError:
        seconds = math.nan
    return DEFAULT_RETRY_SECONDS if math.isnan(seconds) else min(max(0.0, seconds), MAX_RETRY_SECONDS)
