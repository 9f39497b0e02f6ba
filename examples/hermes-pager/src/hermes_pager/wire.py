"""The pager's protocol: its pages as our events, our messages as its pages, its refusals as our errors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp

from hermes.core.errors import (
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import Ignored, InboundEvent, InboundMessage, Json, OutboundMessage, read
from hermes.platforms.shared.http_errors import BROKEN, nothing_was_sent, within
from hermes_pager.config import PagerConfig

TEXT_LIMIT = 500
CALL_SECONDS = 20.0


def understand(page: Json, account: str) -> InboundEvent:
    """Whatever is wrong with a page, it is kept raw, and the next one is read."""
    return read(_parse, page, account)


def _parse(page: Json, account: str) -> InboundEvent:
    if page["kind"] != "page":
        return Ignored(str(page["kind"]))
    sender = _text(page["from"]["id"])
    return InboundMessage(
        # Not its number, which is its place in the inbox: handed out again, the same page has another one.
        keys=(f"page:{_text(page['id'])}",),
        session_key=SessionKey("pager", ChatKind.DM, sender, account=account),
        sender_id=sender,
        sender_name=_text(page["from"]["name"]),
        text=_text(page["text"]),
        sent_at=datetime.fromtimestamp(page["at"], UTC),
        message_id=_text(page["id"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def render(message: OutboundMessage) -> Json:
    return {"to": message.target.chat, "text": message.text, "key": message.idempotency_key}


def refusal(what: str, status: int, answer: Json, headers: Mapping[str, str]) -> PlatformError:
    reason = f"The pager refused {what} ({status}): {answer.get('error', 'no reason')}"
    match status:
        case 401:
            return CredentialsError(f"{reason}. Check PAGER_TOKEN.")
        case 429:
            return RateLimitedError(reason, retry_after=float(headers.get("Retry-After", "5")))
        case _ if status >= 500:
            return OutcomeUnknownError(reason)
        case _:
            return RejectedError(reason)


class Service:
    """The service's three requests. It borrows ``http``, which knows the proxy, and opens nothing itself."""

    def __init__(self, config: PagerConfig, http: aiohttp.ClientSession) -> None:
        self._root = config.base_url
        self._http = http
        self._headers = {"Authorization": f"Bearer {config.token.reveal()}"}

    async def me(self) -> Json:
        return await self._asked("GET", "/me")

    async def inbox(self, after: int, wait: int) -> list[Json]:
        """Pages that came after this number, oldest first. The service forgets all up to it."""
        answer = await self._asked("POST", "/inbox", {"after": after, "wait": wait}, CALL_SECONDS + wait)
        return list(answer["pages"])

    async def page(self, body: Json) -> Json:
        return await self._call("POST", "/pages", body)

    async def _asked(self, method: str, path: str, body: Json | None = None, seconds: float = CALL_SECONDS) -> Json:
        """A question may simply be asked again, whatever became of it."""
        try:
            return await self._call(method, path, body, seconds)
        except OutcomeUnknownError as error:
            raise UnreachableError(str(error)) from None

    async def _call(self, method: str, path: str, body: Json | None, seconds: float = CALL_SECONDS) -> Json:
        try:
            async with self._http.request(
                method, self._root + path, json=body, headers=self._headers, timeout=within(seconds)
            ) as response:
                status, headers = response.status, response.headers
                answer = await response.json(content_type=None)
        except (*BROKEN, ValueError) as error:
            kind = UnreachableError if nothing_was_sent(error) else OutcomeUnknownError
            raise kind(f"The pager did not answer {path} ({type(error).__name__}).") from None
        if not isinstance(answer, dict):
            raise OutcomeUnknownError(f"What answered {path} is no pager. Check PAGER_BASE_URL.")
        if status != 200:
            raise refusal(path, status, answer, headers)
        return answer
