"""Call the REST API through discord.py's client, with its rate limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
from discord import File, HTTPException, RateLimited
from discord.http import HTTPClient, Ratelimit, Route
from yarl import URL

from hermes.core.errors import OutcomeUnknownError, PlatformError, RateLimitedError, RejectedError, UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.platforms.discord import media, wire
from hermes.platforms.discord.buckets import SHORT_SECONDS, Bucket
from hermes.platforms.discord.config import DiscordConfig
from hermes.platforms.shared import files
from hermes.platforms.shared.http_errors import BROKEN, CUT, clock_ahead, nothing_was_sent, own_address, soften, within

CALL_SECONDS = 20.0
CLOSE_SECONDS = 1.0
_OWN_HOSTS = (".discordapp.com", ".discordapp.net", ".discord.com")


class BorrowingClient(HTTPClient):
    """The SDK's client with a session that it borrows, which knows the proxy and is closed by whoever made it."""

    def __init__(self, session: aiohttp.ClientSession, token: str) -> None:
        super().__init__(asyncio.get_running_loop())
        self._HTTPClient__session = session  # the SDK would make one of its own, and close it
        self._global_over = asyncio.Event()
        self._global_over.set()
        self.token = token
        self.max_ratelimit_timeout = SHORT_SECONDS
        self.ahead = 0.0  # how many seconds Discord's clock is ahead of ours

    def get_ratelimit(self, key: str) -> Ratelimit:
        if key not in self._buckets:
            self._buckets[key] = Bucket(self._dated)
            self._try_clear_expired_ratelimits()
        return self._buckets[key]

    def _dated(self, date: str | None) -> None:
        self.ahead = clock_ahead(date, time.time())

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        session: aiohttp.ClientSession = self._HTTPClient__session
        return await session.ws_connect(
            url,
            max_msg_size=0,
            autoclose=False,
            compress=compress,
            headers={"User-Agent": self.user_agent},
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
        )

    def unlock(self) -> None:
        """A call that was given up during a limit on all calls would leave everybody waiting for its end."""
        self._global_over.set()


class Api:
    """It borrows ``http`` and opens nothing itself."""

    def __init__(self, config: DiscordConfig, http: aiohttp.ClientSession) -> None:
        self._config = config
        self._http = http
        self._client: BorrowingClient | None = None
        # The SDK keeps the address in a class; with one of our own, accounts may have different ones.
        self._route = type("Route", (Route,), {"BASE": config.base_url})

    @property
    def client(self) -> BorrowingClient:
        if self._client is None:
            self._client = BorrowingClient(self._http, self._config.token.reveal())
        return self._client

    async def get(self, what: str, path: str, *, query: Json | None = None, **parts: str) -> Any:
        """``what`` says in words what is asked for, for whoever reads that it was refused."""
        return await self._call(what, "GET", path, parts, False, CALL_SECONDS, params=query or {})

    async def call(
        self,
        what: str,
        method: str,
        path: str,
        body: Json | Sequence[Json] | None = None,
        *,
        shows: bool = False,
        seconds: float = CALL_SECONDS,
        **parts: str,
    ) -> Any:
        """``shows``: people see what it does, so an unknown outcome is told as such."""
        request = {} if body is None else {"json": body}
        return await self._call(what, method, path, parts, shows, seconds, **request)

    async def upload(self, what: str, path: str, body: str, attached: Sequence[File], **parts: str) -> Any:
        """A message with files: its JSON stands beside them."""
        form: list[Json] = [{"name": "payload_json", "value": body}]
        form += [
            {"name": f"files[{number}]", "value": file.fp, "filename": file.filename, "content_type": _ANY_BYTES}
            for number, file in enumerate(attached)
        ]
        return await self._call(what, "POST", path, parts, True, media.UPLOAD_SECONDS, form=form, files=attached)

    async def _call(
        self, what: str, method: str, path: str, parts: Json, shows: bool, seconds: float, **request: Any
    ) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await self.client.request(self._route(method, path, **parts), **request)
        except RateLimited as limited:
            raise RateLimitedError(f"Discord wants a pause before it will {what}", limited.retry_after) from None
        except HTTPException as error:
            raise soften(_refusal(what, error), shows=shows) from None
        except (*BROKEN, ValueError, TypeError, KeyError) as error:
            # An answer that is no JSON, or of another shape, ends in the SDK as one of the last three.
            self.client.unlock()
            kind = UnreachableError if not shows or nothing_was_sent(error) else OutcomeUnknownError
            raise kind(f"Discord did not answer when asked to {what} ({describe_failure(error)})") from None
        except asyncio.CancelledError:
            self.client.unlock()
            raise

    async def download(self, address: str, into: Path, name: str, limit: int) -> Path:
        """Addresses of files hold for a day; an older one is exchanged for a new one."""
        try:
            return await self._download(self._own(address, name), into, name, limit)
        except _StaleError:
            fresh = await self._refreshed(address, name)
        try:
            return await self._download(self._own(fresh, name), into, name, limit)
        except _StaleError as stale:
            raise RejectedError(str(stale)) from None

    async def _download(self, url: URL, into: Path, name: str, limit: int) -> Path:
        timeout = within(media.DOWNLOAD_SECONDS)
        try:
            async with self._http.get(url, timeout=timeout, allow_redirects=False) as response:
                if response.status in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
                    raise _StaleError(f"Discord does not hand out {name} any more ({response.status}).")
                if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise UnreachableError(f"Discord could not hand out {name} ({response.status})")
                if response.status != HTTPStatus.OK:
                    raise RejectedError(f"Discord does not hand out {name} ({response.status}).")
                return await files.save(response.content.iter_chunked(files.CHUNK_BYTES), into, name, limit)
        except CUT as error:
            raise UnreachableError(f"Discord did not hand out {name} ({describe_failure(error)})") from None

    async def _refreshed(self, address: str, name: str) -> str:
        answer = await self.call(
            f"renew the address of {name}", "POST", "/attachments/refresh-urls", {"attachment_urls": [address]}
        )
        match answer:
            case {"refreshed_urls": [{"refreshed": str(fresh)}, *_]}:
                return fresh
            case _:
                raise RejectedError(f"Discord does not hand out {name} any more.")

    def _own(self, address: str, name: str) -> URL:
        return own_address(address, name, root=self._config.base_url, hosts=_OWN_HOSTS, platform="Discord")


_ANY_BYTES = "application/octet-stream"


class _StaleError(RejectedError):
    """The address of a file is too old."""


def _refusal(what: str, error: HTTPException) -> PlatformError:
    """The SDK tells of a page that is not JSON by its whole text; only what Discord itself says is shown."""
    headers = getattr(error.response, "headers", None) or {}
    is_certain = error.code or error.status == HTTPStatus.UNAUTHORIZED
    return wire.refusal(
        what, error.status, error.code, error.text[:300] if is_certain else "", _seconds(headers.get("Retry-After"))
    )


def _seconds(value: str | None) -> float | None:
    try:
        return float(value) if value is not None else None
    except ValueError:
        return None
