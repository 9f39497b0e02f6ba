"""Call the REST API of one account, and renew its access token."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from yarl import URL

from hermes.core.errors import OutcomeUnknownError, RejectedError, UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.core.secret import Redactor, Secret
from hermes.platforms.qq import media, wire
from hermes.platforms.qq.config import QQConfig
from hermes.platforms.shared import files
from hermes.platforms.shared.http_errors import BROKEN, CUT, nothing_was_sent, within

CALL_SECONDS = 20.0
# In its last minute a token is exchanged for a new one, and stays good for that minute.
RENEW_SECONDS = 60.0
MAX_TOKEN_SECONDS = 7200.0
_LARGE_BYTES = 256 * 1024
_USER_AGENT = "hermes-gateway"
_JSON = {"Content-Type": "application/json", "User-Agent": _USER_AGENT}


class Api:
    """It borrows ``http`` and closes only what it opens itself."""

    def __init__(self, config: QQConfig, http: aiohttp.ClientSession) -> None:
        self._config = config
        self._http = http
        self._token: Secret | None = None
        self._good_until = 0.0
        self._token_lock = asyncio.Lock()
        self._hide = Redactor([config.client_secret])

    async def token(self) -> str:
        """A token that is good now. However many ask at once, QQ is asked once."""
        async with self._token_lock:
            if self._token is None or asyncio.get_running_loop().time() >= self._good_until:
                await self._renew()
            assert self._token is not None  # noqa: S101 - renewed just now
            return self._token.reveal()

    def drop_token(self, token: str) -> None:
        """QQ does not take this one any more, whatever it said about its life."""
        if self._token is not None and self._token.reveal() == token:
            self._token = None

    async def _renew(self) -> None:
        wanted = {"appId": self._config.app_id, "clientSecret": self._config.client_secret.reveal()}
        asked_at = asyncio.get_running_loop().time()
        try:
            async with self._http.post(
                self._config.token_url, data=orjson.dumps(wanted), headers=_JSON, timeout=within(CALL_SECONDS)
            ) as response:
                status, raw = response.status, await response.read()
        except BROKEN as error:
            raise UnreachableError(f"QQ gave out no access token ({describe_failure(error)})") from None
        answer = _object(raw)
        if answer is None:
            raise UnreachableError(f"What answered at QQ_TOKEN_URL is not QQ ({status}). Check it and the proxy.")
        token = answer.get("access_token")
        if not isinstance(token, str) or not token:
            refused = wire.token_refusal({**answer, "message": self._hide(str(answer.get("message") or ""))})
            raise UnreachableError(str(refused)) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else refused
        self._token = Secret(token)
        self._hide.learn([self._token])
        self._good_until = asked_at + max(_seconds(answer.get("expires_in")) - RENEW_SECONDS, 1.0)

    async def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        what: str,
        shows: bool = False,
        seconds: float = CALL_SECONDS,
    ) -> Json:
        """Call the API, renewing a refused token once. ``shows``: people see the effect, so unknown outcomes matter."""
        retried: set[str] = set()
        while True:
            token = await self.token()
            try:
                return await self._once(method, path, body, token, what, shows, seconds)
            except wire.TokenRefusedError:
                self.drop_token(token)
                if "token" in retried:
                    raise
                retried.add("token")
            except wire.RefusedError as refused:
                if refused.code not in wire.CHECK_FAILED or "check" in retried:
                    raise
                retried.add("check")

    async def _once(
        self, method: str, path: str, body: Json | None, token: str, what: str, shows: bool, seconds: float
    ) -> Json:
        headers = {**_JSON, "Authorization": f"QQBot {token}", "X-Union-Appid": self._config.app_id}
        try:
            async with self._http.request(
                method,
                f"{self._config.base_url}{path}",
                data=None if body is None else _payload(orjson.dumps(body)),
                headers=headers,
                timeout=within(seconds),
                allow_redirects=False,
            ) as response:
                status, raw, response_headers = response.status, await response.read(), response.headers
        except (*BROKEN, ValueError) as error:
            kind = UnreachableError if not shows or nothing_was_sent(error) else OutcomeUnknownError
            raise kind(f"QQ did not answer {what} ({describe_failure(error)})") from None
        return self._answer(what, shows, status, raw, response_headers)

    def _answer(self, what: str, shows: bool, status: int, raw: bytes, headers: Mapping[str, str]) -> Json:
        answer = _object(raw) if raw.strip() else {}
        if answer is None:
            reason = f"What answered {what} is not QQ ({status}). Check QQ_BASE_URL and the proxy."
            is_page = status < HTTPStatus.INTERNAL_SERVER_ERROR and raw.lstrip()[:1] == b"<"
            raise UnreachableError(reason) if not shows or is_page else OutcomeUnknownError(reason)
        if status < HTTPStatus.MULTIPLE_CHOICES:  # 201 and 202: accepted, and looked at by people first
            return answer
        hidden = {**answer, "message": self._hide(str(answer.get("message") or ""))}
        refused = wire.refusal(what, status, hidden, headers)
        if isinstance(refused, OutcomeUnknownError) and not shows:
            raise UnreachableError(str(refused))
        raise refused

    # Files

    async def put_part(self, url: str, data: bytes) -> None:
        """Upload one part of a large file to the address that QQ gave."""
        try:
            async with self._http.put(url, data=_payload(data), timeout=within(media.UPLOAD_SECONDS)) as response:
                status = response.status
        except (*BROKEN, ValueError) as error:
            raise UnreachableError(f"A part of the file could not be uploaded ({describe_failure(error)})") from None
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise UnreachableError(f"A part of the file could not be uploaded ({status})")

    async def download(self, address: str, into: Path, name: str, limit: int) -> Path:
        try:
            url = URL(address)
            if url.scheme not in ("http", "https") or not url.host:
                raise RejectedError(f"QQ does not say where {name} is.")
        except ValueError:
            raise RejectedError(f"QQ does not say where {name} is.") from None
        token = await self.token() if media.is_own(url.host, URL(self._config.base_url).host or "") else ""
        try:
            return await self._download(url, token, into, name, limit)
        except wire.TokenRefusedError:
            self.drop_token(token)
        try:
            return await self._download(url, await self.token(), into, name, limit)
        except wire.TokenRefusedError as refused:  # it is this file that we may not have
            raise RejectedError(str(refused)) from None

    async def _download(self, url: URL, token: str, into: Path, name: str, limit: int) -> Path:
        headers = {"User-Agent": _USER_AGENT} | ({"Authorization": f"QQBot {token}"} if token else {})
        try:
            async with self._http.get(
                url, headers=headers, timeout=within(media.DOWNLOAD_SECONDS), allow_redirects=False
            ) as response:
                if response.status == HTTPStatus.UNAUTHORIZED and token:
                    raise wire.TokenRefusedError(f"QQ does not hand out {name} ({response.status}).")
                if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise UnreachableError(f"QQ could not hand out {name} ({response.status})")
                if response.status != HTTPStatus.OK:
                    raise RejectedError(f"QQ has {name} no longer ({response.status}).")
                pieces = response.content.iter_chunked(files.CHUNK_BYTES)
                return await files.save(pieces, into, name, limit)
        except CUT as error:
            raise UnreachableError(f"QQ did not hand out {name} ({describe_failure(error)})") from None


def _payload(data: bytes) -> bytes | io.BytesIO:
    """A large body is written piece by piece, so that nothing else has to wait for it."""
    return io.BytesIO(data) if len(data) > _LARGE_BYTES else data


def _object(raw: bytes) -> Json | None:
    try:
        answer: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) else None


def _seconds(value: object) -> float:
    """How long a token lives. QQ writes the number as text."""
    try:
        seconds = float(str(value))
    except ValueError:
        return MAX_TOKEN_SECONDS / 2
    return min(max(seconds, 0.0), MAX_TOKEN_SECONDS)
