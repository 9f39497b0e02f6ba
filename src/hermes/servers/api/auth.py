"""Who asks: the Bearer key of a request, known or refused."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable

from aiohttp import web

from hermes.core.bounded import Throttle
from hermes.core.errors import StoreIsDownError
from hermes.core.ports import Clock
from hermes.core.roles import PersonRole
from hermes.core.secret import Secret
from hermes.servers.api.context import Caller
from hermes.servers.api.errors import ApiError, store_is_down
from hermes.store.api import api_keys
from hermes.store.api.api_keys import DEFAULT_NAME, hash_of
from hermes.store.db import Database

FRESH_SECONDS = 1.0
"""Another process on the same database may add or revoke a key; what this one does is known at once."""
TRUSTED_SECONDS = 60.0
"""Named keys that were read are accepted so long while the store does not answer: they may be revoked by now."""
LOG_SECONDS = 60.0
DASHBOARD_COOKIE = "hermes_dashboard"
"""How the name of the dashboard's cookie begins; the port follows, where the Host names one."""

log = logging.getLogger(__name__)


class ApiKeys:
    """Knows every key: the default one, which is the owner's, and the named ones of the store."""

    def __init__(self, db: Database, clock: Clock, default: Callable[[], Secret]) -> None:
        self._db = db
        self._clock = clock
        self._default = default
        self._named: dict[str, Caller] = {}
        self._asked_at: float | None = None
        self._read_at: float | None = None
        self._log_due = Throttle(LOG_SECONDS)
        self._reading = asyncio.Lock()

    def forget(self) -> None:
        """Read the store again before the next named key: one was made or revoked."""
        self._asked_at = self._read_at = None

    async def who(self, token: str) -> Caller | None:
        """Return the caller with this key, or None.

        Raises ApiError if the store has not answered for too long to trust a named key. The default key does not depend
        on the store.
        """
        if not token.isprintable():
            return None  # bytes that are no text: aiohttp hands them on as halves of characters
        if hmac.compare_digest(token.encode(), self._default().reveal().encode()):
            return Caller(DEFAULT_NAME, PersonRole.OWNER, DEFAULT_NAME)
        await self._look()
        # Looking up by hash tells nothing by its timing: whoever guesses cannot choose the hash.
        return self._named.get(hash_of(token))

    async def with_hash(self, key_hash: str) -> Caller | None:
        """Return the caller whose key has this hash, as ``who`` does: a sign-in of the dashboard keeps no key."""
        if hmac.compare_digest(key_hash, hash_of(self._default().reveal())):
            return Caller(DEFAULT_NAME, PersonRole.OWNER, DEFAULT_NAME)
        await self._look()
        return self._named.get(key_hash)

    async def _look(self) -> None:
        async with self._reading:
            now = self._clock.monotonic()
            if self._asked_at is not None and now - self._asked_at < FRESH_SECONDS:
                self._require_recent(now)
                return
            try:
                found = await self._db.read(api_keys.working)
            except StoreIsDownError as error:
                if self._log_due.is_due("", now):
                    log.warning("Store is down", extra={"while": "reading API keys", "reason": str(error)})
            else:
                self._named = {key.hash: Caller(key.name, PersonRole(key.role), key.id, key.tools) for key in found}
                self._read_at = now
            self._asked_at = now
            self._require_recent(now)

    def _require_recent(self, now: float) -> None:
        if self._read_at is None or now - self._read_at >= TRUSTED_SECONDS:
            raise store_is_down()


def bearer(request: web.Request) -> str:
    """The key a request shows, or "". Only headers count: a URL ends up in logs and histories.

    Clients for Azure write it as ``api-key``, those for Anthropic as ``x-api-key``.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return (request.headers.get("api-key") or request.headers.get("x-api-key") or "").strip()


def unauthorized(token: str) -> ApiError:
    words = (
        "This API key is not known here, or it was revoked."
        if token
        else "No API key was sent. Send it as `Authorization: Bearer KEY`, or in the header api-key or x-api-key."
    )
    return ApiError(
        401,
        f"{words} The default key is shown by: hermes api-key show",
        code="invalid_api_key" if token else "missing_api_key",
        kind="authentication_error",
        headers={"WWW-Authenticate": "Bearer"},
    )
