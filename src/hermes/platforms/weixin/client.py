"""Make the requests of one account over a borrowed HTTP session."""

from __future__ import annotations

import secrets
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import OutcomeUnknownError, RejectedError, UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.core.secret import Secret
from hermes.platforms.shared import files
from hermes.platforms.shared.http_errors import BROKEN, CUT, nothing_was_sent, within
from hermes.platforms.weixin import media, wire

CALL_SECONDS = 20.0
UPLOAD_SECONDS = 120.0
DOWNLOAD_SECONDS = 300.0
UPLOAD_TRIES = 3

_BROKEN = (*BROKEN, ValueError)


class NoAnswerError(UnreachableError):
    """Nobody answered at all: there is no network, or nobody at its other end."""


class TimedOutError(NoAnswerError):
    """Connected, asked, and no answer in time."""


class _LostError(OutcomeUnknownError):
    """The same, of a request that may have arrived."""


class GarbledError(UnreachableError):
    """An answer came whole, and it cannot be read; ``body`` is all that is left of it."""

    def __init__(self, reason: str, body: bytes) -> None:
        super().__init__(reason)
        self.body = body


class SpoiledUploadError(RejectedError):
    """The CDN said that this place is no good (any more)."""


@dataclass(slots=True)
class Client:
    http: aiohttp.ClientSession
    base_url: str
    cdn_url: str
    token: Secret

    async def call(self, path: str, body: Json, *, seconds: float = CALL_SECONDS) -> Json:
        """A request that can be repeated without harm. Raises a PlatformError."""
        try:
            return await self._post(path, body, seconds)
        except OutcomeUnknownError as error:
            raise _harmless(error) from None

    async def send(self, body: Json) -> Json:
        """``sendmessage``: an answer that did not come leaves its outcome unknown."""
        return await self._post("sendmessage", body, CALL_SECONDS)

    async def poll(self, cursor: str, *, seconds: float) -> wire.Batch:
        """Wait for news. Raises TimedOutError when there was none, GarbledError with what could not be read."""
        try:
            body = await self._read("getupdates", {"get_updates_buf": cursor}, seconds)
        except OutcomeUnknownError as error:
            raise _harmless(error) from None
        try:
            answer = _answer(body)
            if wire.code_of(answer) == 0:
                return wire.read_batch(answer)
        except (ValueError, RecursionError):
            raise GarbledError("Weixin answered getupdates with something that cannot be read.", body) from None
        raise wire.refusal("getupdates", answer)

    async def _post(self, path: str, body: Json, seconds: float) -> Json:
        raw = await self._read(path, body, seconds)
        try:
            answer = _answer(raw)
        except (ValueError, RecursionError):
            raise OutcomeUnknownError(
                f"What answered {path} is not Weixin. Check WEIXIN_BASE_URL and the proxy."
            ) from None
        if wire.code_of(answer):
            raise wire.refusal(path, answer)
        return answer

    async def _read(self, path: str, body: Json, seconds: float) -> bytes:
        try:
            content = orjson.dumps(wire.signed(body))
        except TypeError as error:  # nothing left this process, and trying again would not help
            raise RejectedError(f"This cannot be written for Weixin's {path}: {error}") from None
        try:
            async with self.http.post(
                f"{self.base_url}/ilink/bot/{path}",
                data=content,
                headers=wire.headers(self.token.reveal(), secrets.randbits(32)),
                timeout=within(seconds),
                allow_redirects=False,
            ) as response:
                raw = await response.read()
                status = response.status
        except _BROKEN as error:
            raise _silence(path, error) from None
        if status >= 400 or 300 <= status < 400:
            raise OutcomeUnknownError(f"Weixin answered {path} with HTTP {status}.")
        return raw

    # Files

    async def upload(self, package: media.Package, peer: str) -> str:
        """Put it on the CDN; the parameter under which the phone finds it. A place that went bad is asked for anew."""
        try:
            return await self._uploaded(package, peer)
        except SpoiledUploadError:
            return await self._uploaded(package, peer)

    async def _uploaded(self, package: media.Package, peer: str) -> str:
        place = await self.call("getuploadurl", package.wanted(peer))
        url = media.upload_url(place, package, self.cdn_url, self.base_url)
        for attempt in range(UPLOAD_TRIES):
            try:
                return await self._put(url, package)
            except UnreachableError:
                if attempt == UPLOAD_TRIES - 1:
                    raise
        raise AssertionError

    async def _put(self, url: str, package: media.Package) -> str:
        headers = {"Content-Type": "application/octet-stream"}
        try:
            async with self.http.post(
                url, data=package.locked, headers=headers, timeout=within(UPLOAD_SECONDS), allow_redirects=False
            ) as response:
                await response.read()
                status, found = response.status, response.headers.get("x-encrypted-param", "")
                error_message = response.headers.get("x-error-message", "")
        except _BROKEN as error:
            raise UnreachableError(f"{package.name} could not be uploaded ({describe_failure(error)}).") from None
        if 400 <= status < 500:
            raise SpoiledUploadError(
                f"Weixin did not take {package.name} ({status} {error_message}).".replace(" )", ")")
            )
        if status != 200 or not found:
            raise UnreachableError(f"{package.name} was uploaded, and Weixin does not say where it lies ({status}).")
        return found

    async def download(self, handle: media.Handle, into: Path, name: str) -> Path:
        url = media.download_url(handle, self.cdn_url, self.base_url)
        try:
            async with self.http.get(url, timeout=within(DOWNLOAD_SECONDS), allow_redirects=False) as response:
                if response.status >= 500:
                    raise UnreachableError(f"Weixin could not hand out {name} ({response.status}).")
                if response.status != 200:
                    raise RejectedError(f"Weixin has {name} no longer ({response.status}).")
                locked = response.content.iter_chunked(files.CHUNK_BYTES)
                async with aclosing(media.unlocked(locked, handle.key)) as pieces:
                    return await files.save(pieces, into, name, media.DOWNLOAD_LIMIT)
        except CUT as error:
            raise UnreachableError(f"{name} could not be fetched ({describe_failure(error)}).") from None


class QrClient:
    """The two requests of a login. They go to the fixed host, never to an account's own."""

    def __init__(self, http: aiohttp.ClientSession, root: str) -> None:
        self._http = http
        self._root = root

    async def fetch(self, known_tokens: list[str]) -> Json:
        """A new code. Servers that do not take the POST are asked in the older way."""
        path = f"{self._root}/ilink/bot/get_bot_qrcode?bot_type=3"
        body = orjson.dumps({"local_token_list": known_tokens[:10]})
        headers = wire.headers("", secrets.randbits(32))
        try:
            return await self._request(self._http.post(path, data=body, headers=headers, timeout=within(CALL_SECONDS)))
        except _OldServerError:
            return await self._request(self._http.get(path, headers=wire.APP_HEADERS, timeout=within(CALL_SECONDS)))

    async def status(self, root: str, code: str, verify_code: str, seconds: float) -> Json:
        """Poll the state of a login code, for up to ``seconds``."""
        query = f"qrcode={quote(code, safe='')}" + (
            f"&verify_code={quote(verify_code, safe='')}" if verify_code else ""
        )
        url = f"{root or self._root}/ilink/bot/get_qrcode_status?{query}"
        return await self._request(self._http.get(url, headers=wire.APP_HEADERS, timeout=within(seconds)))

    async def _request(self, request: Any) -> Json:
        try:
            async with request as response:
                if response.status in (404, 405):
                    raise _OldServerError("Weixin does not know this request.")
                if response.status >= 400:
                    raise UnreachableError(f"Weixin answered with HTTP {response.status}.")
                return _answer(await response.read())
        except (*_BROKEN, RecursionError) as error:
            raise UnreachableError(f"Weixin did not answer ({describe_failure(error)}).") from None


class _OldServerError(UnreachableError):
    """A server from before codes were asked for by POST."""


def _answer(body: bytes) -> Json:
    answer = wire.decode(body)
    if not isinstance(answer, dict):
        raise ValueError("no object")  # noqa: TRY004 - the same as what is no JSON at all
    return answer


def _silence(path: str, error: BaseException) -> UnreachableError | OutcomeUnknownError:
    # The headers hold the token, so nothing of the cause's text is repeated here.
    reason = f"Weixin did not answer {path} ({describe_failure(error)})."
    if nothing_was_sent(error):
        return NoAnswerError(reason)
    if isinstance(error, TimeoutError) and path == "getupdates":
        return TimedOutError(reason)
    return _LostError(reason)


def _harmless(error: OutcomeUnknownError) -> UnreachableError:
    """Of a request that can simply be made again."""
    return (NoAnswerError if isinstance(error, _LostError) else UnreachableError)(str(error))
