"""Who asks: the Bearer key of a request, known or refused."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable

from aiohttp import web

from hermes.core.errors import StoreIsDownError
from hermes.core.ports import Clock
from hermes.core.roles import PersonRole
from hermes.core.secret import Secret
from hermes.servers.api.context import Caller
from hermes.servers.api.errors import ApiError
from hermes.store.api import api_keys
from hermes.store.api.api_keys import DEFAULT_NAME, hash_of
from hermes.store.db import Database

FRESH_SECONDS = 1.0
"""Another process on the same database may add or revoke a key; what this one does is known at once."""

log = logging.getLogger(__name__)


class ApiKeys:
    """Knows every key: the default one, which is the owner's, and the named ones of the store."""

    def __init__(self, db: Database, clock: Clock, default: Callable[[], Secret]) -> None:
        self._db = db
        self._clock = clock
        self._default = default
        self._named: dict[str, Caller] = {}
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    def forget(self) -> None:
        """A key was made or revoked: look again at the next request."""
        self._read_at = None

    async def who(self, token: str) -> Caller | None:
        """The caller this key stands for, or None."""
        if not token.isprintable():
            return None  # bytes that are no text: aiohttp hands them on as halves of characters
        if hmac.compare_digest(token.encode(), self._default().reveal().encode()):
            return Caller(DEFAULT_NAME, PersonRole.OWNER)
        await self._look()
        # Looking up by hash tells nothing by its timing: whoever guesses cannot choose the hash.
        return self._named.get(hash_of(token))

    async def _look(self) -> None:
        async with self._reading:
            if self._read_at is not None and self._clock.monotonic() - self._read_at < FRESH_SECONDS:
                return
            began = self._clock.monotonic()
            try:
                found = await self._db.read(api_keys.working)
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "reading API keys", "reason": str(error)})
                return  # those known so far still work
            self._named = {key.hash: Caller(key.name, PersonRole(key.role)) for key in found}
            self._read_at = began


def bearer(request: web.Request) -> str:
    """The key a request shows, or "". Only the header counts: a URL ends up in logs and histories."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def unauthorized(token: str) -> ApiError:
    words = (
        "This API key is not known here, or it was revoked."
        if token
        else "No API key was sent. Send it as `Authorization: Bearer KEY`."
    )
    return ApiError(
        401,
        f"{words} The default key is shown by: hermes api-key show",
        code="invalid_api_key" if token else "missing_api_key",
        kind="authentication_error",
        headers={"WWW-Authenticate": "Bearer"},
    )
