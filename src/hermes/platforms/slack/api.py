"""Call the Web API of one workspace through slack_sdk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

import aiohttp
import orjson
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from hermes.core.errors import OutcomeUnknownError, PlatformError, RejectedError, UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.core.secret import Secret
from hermes.platforms.shared import files
from hermes.platforms.shared.http_errors import BROKEN, CUT, clock_ahead, nothing_was_sent, own_address, soften, within
from hermes.platforms.slack import media, wire
from hermes.platforms.slack.config import SlackConfig

CALL_SECONDS = 20.0
_OWN_HOSTS = (".slack.com", ".slack-edge.com", ".slack-files.com")


class Api:
    """It borrows ``http``, which knows the proxy, and opens nothing itself."""

    def __init__(self, config: SlackConfig, http: aiohttp.ClientSession) -> None:
        self._config = config
        self._http = http
        self._clients: dict[str, AsyncWebClient] = {}
        self._ahead = 0.0  # how many seconds Slack's clock is ahead of ours

    def now(self) -> float:
        """The time by Slack's clock, which names its messages; ours may be set wrong."""
        return time.time() + self._ahead

    async def call(self, method: str, body: Json, *, shows: bool = False, seconds: float = CALL_SECONDS) -> Json:
        """One call with a JSON body. ``shows``: people see what it does, so an unknown outcome is told as such."""
        return await self._call(method, shows, seconds, json=body)

    async def ask(self, method: str, form: Mapping[str, str] | None = None, *, shows: bool = False) -> Json:
        """One call with a form: reading methods and those of files take nothing else."""
        return await self._call(method, shows, CALL_SECONDS, data=dict(form or {}))

    async def open_socket(self) -> str:
        """The address of a new socket; this is the one call that is made with the app's own token."""
        answer = await self._call("apps.connections.open", False, CALL_SECONDS, token=self._config.app_token, data={})
        url = answer.get("url")
        if not isinstance(url, str) or not url.startswith(("ws://", "wss://")):
            raise UnreachableError("Slack does not say where its socket is.")
        return url

    async def _call(
        self, method: str, shows: bool, seconds: float, *, token: Secret | None = None, **request: Any
    ) -> Json:
        key = (token or self._config.bot_token).reveal()
        if key not in self._clients:
            # No retries inside: a repeated post would be shown twice. The session knows the proxy, not the SDK.
            client = AsyncWebClient(token=key, base_url=self._config.base_url, session=self._http, retry_handlers=[])
            client.proxy = None
            self._clients[key] = client
        client = self._clients[key]
        try:
            async with asyncio.timeout(seconds):
                response = await client.api_call(method, **request)
        except SlackApiError as error:
            raise soften(_refusal(method, error), shows=shows) from None
        except (*BROKEN, ValueError, AttributeError) as error:
            # An answer that is no object ends in the SDK as an AttributeError.
            kind = UnreachableError if not shows or nothing_was_sent(error) else OutcomeUnknownError
            raise kind(f"Slack did not answer {method} ({describe_failure(error)})") from None
        self._ahead = clock_ahead(response.headers.get("Date"), time.time())
        data = response.data
        return data if isinstance(data, dict) else {}

    async def respond(self, address: str, text: str) -> None:
        """Say something to whoever pressed, and to nobody else."""
        body = {"text": text, "response_type": "ephemeral", "replace_original": False}
        try:
            async with self._http.post(
                address,
                data=orjson.dumps(body),
                headers={"Content-Type": "application/json"},
                timeout=within(10.0),
                allow_redirects=False,
            ) as response:
                status = response.status
        except (*BROKEN, ValueError) as error:
            raise UnreachableError(f"Slack did not take the answer to a press ({describe_failure(error)})") from None
        if status >= HTTPStatus.BAD_REQUEST:
            raise wire.RefusedError(f"Slack refused the answer to a press ({status})", "expired_url")

    async def upload(self, address: str, file: IO[bytes]) -> None:
        """The bytes of a file, to the address that Slack gave for it."""
        headers = {"Content-Type": "application/octet-stream"}
        try:
            async with self._http.post(
                address, data=file, headers=headers, timeout=within(media.UPLOAD_SECONDS)
            ) as response:
                status = response.status
        except (*BROKEN, ValueError) as error:
            raise UnreachableError(f"The file could not be uploaded ({describe_failure(error)})") from None
        if status != HTTPStatus.OK:
            raise UnreachableError(f"The file could not be uploaded ({status})")

    async def download(self, address: str, into: Path, name: str, mime: str, limit: int) -> Path:
        url = own_address(address, name, root=self._config.base_url, hosts=_OWN_HOSTS, platform="Slack")
        headers = {"Authorization": f"Bearer {self._config.bot_token.reveal()}"}
        try:
            async with self._http.get(
                url, headers=headers, timeout=within(media.DOWNLOAD_SECONDS), allow_redirects=False
            ) as response:
                if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise UnreachableError(f"Slack could not hand out {name} ({response.status})")
                if response.status != HTTPStatus.OK:
                    raise RejectedError(f"Slack does not hand out {name} ({response.status}).")
                if response.content_type == "text/html" and mime != "text/html":
                    # Slack shows a login page, with 200, to whoever may not have the file.
                    raise RejectedError(f"Slack does not hand out {name}: the app lacks the scope files:read.")
                pieces = response.content.iter_chunked(files.CHUNK_BYTES)
                return await files.save(pieces, into, name, limit)
        except CUT as error:
            raise UnreachableError(f"Slack did not hand out {name} ({describe_failure(error)})") from None


def _refusal(method: str, error: SlackApiError) -> PlatformError:
    response: Any = error.response
    data = getattr(response, "data", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    # An answer that is not JSON comes as aiohttp's own response, which calls its status otherwise.
    status: int = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    body = data if isinstance(data, dict) else {}
    return wire.refusal(method, str(body.get("error") or ""), status, headers, str(body.get("needed") or ""))
