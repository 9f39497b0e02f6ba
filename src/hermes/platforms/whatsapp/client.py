"""Call the bridge on loopback, with its token and a deadline."""

from __future__ import annotations

from dataclasses import field
from urllib.parse import quote

import aiohttp
import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import OutcomeUnknownError, RejectedError, UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.core.secret import Secret
from hermes.platforms.shared.http_errors import BROKEN, nothing_was_sent, within
from hermes.platforms.whatsapp import wire

CALL_SECONDS = 10.0
SEND_SECONDS = 35.0  # the bridge itself waits 20 s for WhatsApp's word
FILE_SECONDS = 280.0
GRACE_SECONDS = 10.0

_BROKEN = (*BROKEN, ValueError)  # the last for an answer that is no JSON


class HangsError(UnreachableError):
    """It took the request and gave no answer in time, or none that can be used: only a new one helps."""


class LostError(UnreachableError):
    """Nobody is there, or no longer."""


@dataclass(frozen=True, slots=True)
class Address:
    port: int
    token: Secret = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Client:
    """``http`` reaches loopback directly; whoever made it closes it."""

    def __init__(self, http: aiohttp.ClientSession, address: Address) -> None:
        self._http = http
        self._address = address

    async def health(self, *, unlike: str = "", seconds: float = 0.0) -> wire.Health:
        """How it is; with ``unlike``, as soon as it is not like that any more, and after ``seconds`` at the latest."""
        query = f"?not={quote(unlike, safe='')}&wait={seconds:.0f}" if unlike else ""
        answer = await self._get(f"health{query}", seconds + CALL_SECONDS)
        try:
            return wire.Health.of(answer)
        except ValueError:
            raise HangsError(_NOT_OURS) from None

    async def messages(self, after: int, seconds: float) -> wire.Batch:
        answer = await self._get(f"messages?after={after}&wait={seconds:.0f}", seconds + GRACE_SECONDS)
        try:
            return wire.read_batch(answer)
        except ValueError:
            raise HangsError(_NOT_OURS) from None

    async def ack(self, cursor: int) -> None:
        await self.call("ack", {"cursor": cursor})

    async def qr(self) -> tuple[str, int]:
        """The code to be scanned, '' while there is none, and which one it is."""
        answer = await self._get("qr", CALL_SECONDS)
        code, number = answer.get("qr"), answer.get("n")
        return (code if isinstance(code, str) else ""), (number if isinstance(number, int) else 0)

    async def call(self, path: str, body: Json, *, seconds: float = CALL_SECONDS) -> Json:
        """A request that can be repeated without harm. Raises a PlatformError."""
        try:
            return await self._request("POST", path, body, seconds)
        except OutcomeUnknownError as error:
            raise _harmless(error) from None

    async def send(self, path: str, body: Json, *, seconds: float = SEND_SECONDS) -> str:
        """The id of what was sent. An answer that did not come leaves the outcome unknown."""
        answer = await self._request("POST", path, body, seconds)
        return str(answer.get("messageId") or "")

    async def _get(self, path: str, seconds: float) -> Json:
        try:
            return await self._request("GET", path, None, seconds)
        except OutcomeUnknownError as error:
            raise _harmless(error) from None

    async def _request(self, method: str, path: str, body: Json | None, seconds: float) -> Json:
        name = path.partition("?")[0]
        try:
            content = None if body is None else orjson.dumps(body)
        except TypeError as error:  # nothing left this process, and trying again would not help
            raise RejectedError(f"This cannot be written for WhatsApp: {error}") from None
        try:
            async with self._http.request(
                method,
                f"{self._address.url}/{path}",
                data=content,
                headers={"Authorization": f"Bearer {self._address.token.reveal()}"},
                timeout=within(seconds),
                allow_redirects=False,
            ) as response:
                answer = wire.decode(await response.read())
                status = response.status
        except _BROKEN as error:
            raise _silence(name, error) from None
        if not isinstance(answer, dict):
            raise OutcomeUnknownError(_NOT_OURS)
        if status != 200:
            raise wire.refusal(name, status, answer)
        return answer


_NOT_OURS = "What answered is not the WhatsApp bridge."


class _EndedError(OutcomeUnknownError):
    """The connection broke before there was an answer."""


def _harmless(error: OutcomeUnknownError) -> UnreachableError:
    """Of a request that can simply be made again."""
    return (LostError if isinstance(error, _EndedError) else HangsError)(str(error))


def _silence(name: str, error: BaseException) -> UnreachableError | OutcomeUnknownError:
    if nothing_was_sent(error):
        return LostError("The WhatsApp bridge does not run.")
    if isinstance(error, TimeoutError):
        return OutcomeUnknownError(f"The WhatsApp bridge did not answer {name} in time.")
    if isinstance(error, ValueError):
        return OutcomeUnknownError(_NOT_OURS)
    return _EndedError(f"The WhatsApp bridge ended while it was asked for {name} ({describe_failure(error)}).")
