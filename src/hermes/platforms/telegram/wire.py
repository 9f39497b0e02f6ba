"""Map updates to events, messages to Bot API calls, refusals to errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import field, replace
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from yarl import URL

from hermes.core.dataclasses import dataclass
from hermes.core.errors import (
    ConflictError,
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.i18n.failures import describe_failure, sentence
from hermes.core.keys import Target
from hermes.core.messages import (
    REPEAT_MARK,
    InboundEvent,
    Json,
    OutboundMessage,
    TextUnit,
    read,
    unreadable,
)
from hermes.core.ports import CommandHint
from hermes.core.secret import Redactor, Secret
from hermes.core.text import length, storable, trim
from hermes.platforms.shared import files
from hermes.platforms.shared.http_errors import BROKEN, CUT, NO_PROXY, nothing_was_sent, within
from hermes.platforms.telegram import markdown, media
from hermes.platforms.telegram.parse import Me, parse

TEXT_LIMIT = 4096  # UTF-16 units that are shown, marks not counted
CAPTION_LIMIT = 1024
PRESS_ANSWER_LIMIT = 200
MAX_COMMANDS = 100
COMMAND_SUMMARY_LIMIT = 256
_COMMAND_NAME = re.compile(r"[a-z0-9_]{1,32}")
CALL_SECONDS = 20.0
# A poll that is this late hangs. With the usual 20 s of waiting, a dead connection is noticed within 30 s.
POLL_GRACE_SECONDS = 8.0
GENERAL_TOPIC = "1"
DEFAULT_RETRY_SECONDS = 5.0
MAX_RETRY_SECONDS = 86400.0
UNFORMATTED = "sent without formatting"
GARBLED = "garbled"  # where an update that is not JSON keeps its text

_JSON = {"Content-Type": "application/json"}
_NOT_TELEGRAM = frozenset(
    {
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
        HTTPStatus.NETWORK_AUTHENTICATION_REQUIRED,
    }
)
# Doing these twice is the same as doing them once, so an unknown outcome is simply tried again.
_REPEATABLE = frozenset(
    {
        "getMe",
        "getUpdates",
        "getFile",
        "sendChatAction",
        "answerCallbackQuery",
        "editMessageText",
        "editMessageCaption",
        "setMyCommands",
    }
)


def understand(update: Json, me: Me, now: datetime) -> InboundEvent:
    """Say what an update holds; whatever is wrong with it, it becomes an event that can be kept."""
    return unreadable(update[GARBLED], "it is not JSON") if GARBLED in update else read(parse, update, me, now)


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the Bot API. ``uploads`` are the files to send along, each under the name of its field."""

    method: str
    params: Json
    uploads: tuple[media.Upload, ...] = ()
    plain: str = ""  # the text to fall back to when Telegram cannot read our markup


def render(message: OutboundMessage) -> Call:
    """The call that delivers this message. ``replaces`` makes it an edit, an attachment an upload."""
    params: Json = {"chat_id": chat_id(message.target.chat)}
    if message.replaces:
        params["message_id"] = _number(message.replaces)
    else:
        thread = message.target.thread
        if thread and thread != GENERAL_TOPIC:  # Telegram refuses the id of the general topic
            params["message_thread_id"] = _number(thread)
        if message.reply_to:
            # The message may have been deleted since; then the answer still goes out.
            params["reply_parameters"] = {"message_id": _number(message.reply_to), "allow_sending_without_reply": True}
    if message.buttons:
        rows = [[{"text": each.label, "callback_data": each.data} for each in row] for row in message.buttons]
        params["reply_markup"] = {"inline_keyboard": rows}
    # An edit that is repeated shows nothing twice, so only a new message carries the mark.
    mark = REPEAT_MARK if message.is_repeat and not message.replaces else ""
    text = mark + storable(message.text)
    if message.attachment is None:
        _add_text(params, "text", text, TEXT_LIMIT)
        return Call("editMessageText" if message.replaces else "sendMessage", params, plain=text)
    if text:
        _add_text(params, "caption", text, CAPTION_LIMIT)
    if message.album:
        # The caption stands at the first file; an album has no buttons.
        entries, uploads = media.album((message.attachment, *message.album))
        entries[0] |= {name: params.pop(name) for name in ("caption", "parse_mode") if name in params}
        params.pop("reply_markup", None)
        return Call("sendMediaGroup", {**params, "media": entries}, uploads, plain=text)
    method, upload = media.sending(message.attachment)
    if upload is None:
        params[media.FIELDS[method]] = message.attachment.file_id
        return Call(method, params, plain=text)
    return Call(method, params, (upload,), plain=text)


def _add_text(params: Json, name: str, text: str, limit: int) -> None:
    rendered = markdown.render(text)
    if length(rendered.shown, TextUnit.UTF16) > limit:  # a table grows by being aligned
        rendered = markdown.render(text, is_narrow=True)
    # Marks around nothing show nothing. Telegram would refuse that, and what is still too long.
    if rendered.is_formatted and rendered.shown.strip() and length(rendered.shown, TextUnit.UTF16) <= limit:
        params[name] = rendered.text
        params["parse_mode"] = "MarkdownV2"
    else:
        params[name] = text


def render_typing(target: Target) -> Call:
    params: Json = {"chat_id": chat_id(target.chat), "action": "typing"}
    if target.thread:
        params["message_thread_id"] = _number(target.thread)
    return Call("sendChatAction", params)


def render_commands(commands: Sequence[CommandHint], chat: str = "") -> Call:
    """The menu behind the "/" button, for everybody or for one private chat."""
    shown = [
        {"command": name, "description": trim(hint.summary.strip() or name, COMMAND_SUMMARY_LIMIT, TextUnit.UTF16)}
        for hint in commands
        if _COMMAND_NAME.fullmatch(name := hint.name.replace("-", "_"))
    ]
    scope: Json = {"type": "chat", "chat_id": chat_id(chat)} if chat else {"type": "default"}
    return Call("setMyCommands", {"commands": shown[:MAX_COMMANDS], "scope": scope})


def chat_id(chat: str) -> int | str:
    """A number, or the name of a public channel (``@news``)."""
    return int(chat) if chat.removeprefix("-").isascii() and chat.removeprefix("-").isdigit() else chat


def _number(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise RejectedError(f"{value!r} is not an id that Telegram gave out.") from None


class RefusedError(RejectedError):
    """Telegram's no, with what it says about mending the request."""

    def __init__(self, reason: str, description: str, parameters: Mapping[str, Any]) -> None:
        super().__init__(reason)
        self.description = description.lower()
        self.parameters = parameters


def mend(call: Call, refusal: RefusedError) -> tuple[Call, str] | None:
    """A changed call that Telegram may take, with what to tell about it; None when the refusal stands."""
    description, params = refusal.description, call.params
    if (moved := refusal.parameters.get("migrate_to_chat_id")) and params["chat_id"] != moved:
        return replace(call, params={**params, "chat_id": moved}), f"the chat is now {moved}"
    if "can't parse entities" in description and "media" in params:
        first, *others = params["media"]
        bare = {key: value for key, value in first.items() if key != "parse_mode"}
        return replace(call, params={**params, "media": [{**bare, "caption": call.plain}, *others]}), UNFORMATTED
    if "can't parse entities" in description and "parse_mode" in params:
        name = "text" if "text" in params else "caption"
        bare = {key: value for key, value in params.items() if key != "parse_mode"}
        return replace(call, params={**bare, name: call.plain}), UNFORMATTED
    if "thread not found" in description and "message_thread_id" in params:
        return _without(call, "message_thread_id"), "the topic is gone; sent to the chat"
    if "replied not found" in description and "reply_parameters" in params:
        return _without(call, "reply_parameters"), "the message it answers is gone"
    if call.uploads and any(word in description for word in media.NOT_AS_THIS_KIND):
        return _as_documents(call)
    return None


def _as_documents(call: Call) -> tuple[Call, str] | None:
    if call.method == "sendMediaGroup":
        entries = [{**entry, "type": "document"} for entry in call.params["media"]]
        changed = replace(call, params={**call.params, "media": entries})
        return (changed, "sent as files") if entries != call.params["media"] else None
    if call.method == "sendDocument":
        return None
    [upload] = call.uploads
    return replace(call, method="sendDocument", uploads=(replace(upload, field="document"),)), "sent as a file"


def _without(call: Call, name: str) -> Call:
    return replace(call, params={key: value for key, value in call.params.items() if key != name})


def refusal(method: str, body: Json) -> PlatformError:
    """Map Telegram's refusal to our error."""
    description = str(body.get("description") or "no reason given")
    code, details = body.get("error_code"), body.get("parameters")
    parameters: Mapping[str, Any] = details if isinstance(details, dict) else {}
    reason = f"Telegram refused {method}: {description}"
    match code:
        case 404 if "method not found" in description.lower():  # an older server of somebody's own
            return RefusedError(reason, description, parameters)
        case 401 | 404:
            return CredentialsError(f"{sentence(reason)} Check the bot token (TELEGRAM_BOT_TOKEN).")
        case 409 if "webhook" in description.lower():
            return ConflictError(
                f"{sentence(reason)} Another program set a webhook for this bot. Stop it and call deleteWebhook, "
                "or give this gateway a bot of its own."
            )
        case 409:
            return ConflictError(f"{sentence(reason)} Another process uses this token.")
        case 429:
            return RateLimitedError(reason, retry_after=_retry_after(parameters))
        case int() if code >= 500:
            return _silence(method, None, reason)
        case _:
            return RefusedError(reason, description, parameters)


def _retry_after(parameters: Mapping[str, Any]) -> float:
    seconds = parameters.get("retry_after")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
        return DEFAULT_RETRY_SECONDS
    return float(min(seconds, MAX_RETRY_SECONDS))


class GarbledError(UnreachableError):
    """An answer came whole, and it is not JSON."""

    def __init__(self, reason: str, body: bytes) -> None:
        super().__init__(reason)
        self.body = body


_UPDATE_ID = re.compile(rb'"update_id"\s*:\s*([0-9]{1,18})')


def salvage(body: bytes) -> Json | None:
    """The one update in an answer that is not JSON, with its id, by which it can be confirmed; None: there is none."""
    found = _UPDATE_ID.search(body)
    return {"update_id": int(found[1]), GARBLED: body.decode("utf-8", "replace")} if found else None


def decode(body: bytes) -> Any:
    """JSON as Telegram meant it: half a surrogate pair or a bad byte spoils one letter, not the batch."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body.decode("utf-8", "replace"), strict=False)


@dataclass(slots=True)
class Bot:
    """The client of one account. It borrows ``http`` and closes only what it opens itself."""

    token: Secret
    root: str
    http: aiohttp.ClientSession
    _urls: dict[str, URL] = field(default_factory=dict, repr=False)  # they hold the token

    async def call(self, method: str, params: Json, *, seconds: float = CALL_SECONDS) -> Any:
        try:
            body = orjson.dumps(params)
        except TypeError as error:  # nothing left this process, and trying again would not help
            raise RejectedError(f"This cannot be written for Telegram's {method}: {error}") from None
        return await self._post(method, body, _JSON, seconds)

    async def upload(self, method: str, params: Json, uploads: Sequence[media.Upload]) -> Any:
        async with AsyncExitStack() as stack:
            opened = [(upload, await stack.enter_async_context(media.opened(upload))) for upload in uploads]
            return await self._post(method, media.form(params, opened), {}, media.UPLOAD_SECONDS)

    async def _post(
        self, method: str, body: bytes | aiohttp.FormData, headers: Mapping[str, str], seconds: float
    ) -> Any:
        try:
            async with self.http.post(
                self._url(method),
                data=body,
                headers=headers,
                timeout=within(seconds),
                allow_redirects=False,
            ) as response:
                raw = await response.read()
                # A web page in Telegram's place (captive portal, proxy, wrong address) took nothing. Telegram's own
                # pages come with 413 or 5xx: then the outcome is unknown.
                is_foreign = response.status < HTTPStatus.BAD_REQUEST or response.status in _NOT_TELEGRAM
                is_page = is_foreign and raw.lstrip()[:1] == b"<"
        except (*BROKEN, ValueError) as error:
            # The URL holds the token, so neither it nor the cause's text is repeated here.
            raise _silence(method, error, _unanswered(method, error)) from None
        try:
            answer = decode(raw)
        except (ValueError, RecursionError):
            reason = f"What answered {method} is not a Bot API server. Check TELEGRAM_BASE_URL and the proxy."
            if method in _REPEATABLE:
                raise GarbledError(reason, raw) from None
            raise UnreachableError(reason) if is_page else OutcomeUnknownError(reason) from None
        if isinstance(answer, dict) and answer.get("ok") is True and "result" in answer:
            return answer["result"]
        if isinstance(answer, dict) and answer.get("ok") is False:
            # A server may repeat the address it was asked at, and the address holds the token.
            hide = Redactor([self.token])
            raise refusal(method, {**answer, "description": hide(str(answer.get("description") or ""))})
        raise _silence(
            method, None, f"What answered {method} is not a Bot API server. Check TELEGRAM_BASE_URL and the proxy."
        )

    async def download(self, path: str, into: Path, name: str, limit: int) -> Path:
        url = URL(f"{self.root}/file/bot{self.token.reveal()}/") / path.lstrip("/")
        timeout = within(media.DOWNLOAD_SECONDS)
        try:
            async with self.http.get(url, timeout=timeout, allow_redirects=False) as response:
                if response.status >= 500:
                    raise UnreachableError(f"Telegram could not hand out {name} ({response.status})")
                if response.status != 200:
                    raise RejectedError(f"Telegram has {name} no longer ({response.status}).")
                pieces = response.content.iter_chunked(files.CHUNK_BYTES)
                return await files.save(pieces, into, name, limit)
        except CUT as error:
            raise UnreachableError(f"Telegram did not hand out {name} ({describe_failure(error)})") from None

    def _url(self, method: str) -> URL:
        url = self._urls.get(method)
        if url is None:
            url = self._urls[method] = URL(f"{self.root}/bot{self.token.reveal()}/{method}", encoded=True)
        return url


def _unanswered(method: str, error: BaseException) -> str:
    reason = f"Telegram did not answer {method} ({describe_failure(error)})"
    if isinstance(error, (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError, *NO_PROXY)):
        return f"{reason}: the proxy on the way refuses. Check TELEGRAM_PROXY, HTTPS_PROXY and ALL_PROXY."
    return reason


def _silence(method: str, error: BaseException | None, reason: str) -> PlatformError:
    is_safe = method in _REPEATABLE or (error is not None and nothing_was_sent(error))
    return UnreachableError(reason) if is_safe else OutcomeUnknownError(reason)
