"""A thousand failed connections, of every kind: no descriptor, task or thread is left behind by any of them."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from aiohttp import web

from hermes.config import Config, load
from hermes.core.keys import AccountKey
from hermes.core.manifest import AdapterParts, Manifest
from hermes.core.messages import Cursor, InboundEvent
from hermes.core.ports import Adapter, Clock, Emit
from hermes.platforms.telegram import MANIFEST
from hermes.services.adapters.account import Link
from hermes.services.adapters.supervisor import Supervisor, SupervisorTiming
from hermes.services.clock import SystemClock
from hermes.store.open import open_database
from tests.chaos.world import until
from tests.fakes.clock import FakeClock
from tests.fakes.holding import lasting_threads
from tests.fakes.site import Site
from tests.fakes.telegram import UNPACED, FakeTelegram

QUICK = SupervisorTiming(backoff_seconds=(0.0,), conflict_seconds=0.0, watch_seconds=0.005)
WAIT_SECONDS = 20.0
PUT_OFF_SECONDS = 0.05  # every other pause is shorter
STEADY = 15  # so many looks in a row saw the same
HALF_OPEN_SHARE = 10  # a half-open connection is waited for, so it gets every tenth part of the tries only


class Trouble(StrEnum):
    NONE = "none"
    REFUSED = "connection refused"
    BROKEN_SERVER = "500"
    DROPPED = "dropped in mid-answer"
    SIGNED_OUT = "401"
    GARBAGE = "garbage"
    HALF_OPEN = "half-open"


class TroubledSite(Site):
    """Takes every connection and then does the wrong thing with it; stands before the fake among the bases.

    ``beginning`` is that of a good answer. Whoever waits longer than ``patience_seconds`` is told so by the clock.
    """

    beginning = b""
    patience_seconds = 0.0

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.trouble = Trouble.NONE
        self.clock = clock

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match self.trouble:
            case Trouble.BROKEN_SERVER:
                return web.Response(status=500, text="<html>Internal Server Error</html>")
            case Trouble.SIGNED_OUT:
                return self._signed_out()
            case Trouble.GARBAGE:
                return web.Response(body=self.beginning + b"\xff", content_type="application/json")
            case Trouble.DROPPED:
                return await self._drop(request)
            case Trouble.HALF_OPEN:
                return await self._say_nothing(request)
            case _:
                return await super()._answer(request)

    def _signed_out(self) -> web.Response:
        raise NotImplementedError

    async def _drop(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(self.beginning)
        if request.transport is not None:
            request.transport.abort()
        return response

    async def _say_nothing(self, request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0.02)
        self.clock.advance(self.patience_seconds)
        await until(lambda: self.trouble is not Trouble.HALF_OPEN or is_over(request), WAIT_SECONDS)
        return web.Response()


class TroubledTelegram(TroubledSite, FakeTelegram):
    beginning = b'{"ok": true, "result"'
    patience_seconds = 60.0

    def _signed_out(self) -> web.Response:
        return web.json_response({"ok": False, "error_code": 401, "description": "Unauthorized"}, status=401)


def is_over(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


@dataclass(frozen=True, slots=True)
class Held:
    """What this process holds on to."""

    descriptors: int
    tasks: int
    threads: int

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        return cls(len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), lasting_threads())

    def is_within(self, other: Held) -> bool:
        return self.descriptors <= other.descriptors and self.tasks <= other.tasks and self.threads <= other.threads


@dataclass(frozen=True, slots=True)
class Grown:
    failures: int
    before: Held
    after: Held

    @property
    def is_good(self) -> bool:
        return self.after.is_within(self.before)


class Account:
    """One account under a real supervisor, whose attempts are counted."""

    def __init__(self, site: TroubledSite, configs: Sequence[Config], manifest: Manifest = MANIFEST) -> None:
        self.site = site
        self.attempts = 0
        self._seen, self._seen_at = 0, 0.0
        self._configs = configs
        self._which = 0
        self._manifest = manifest
        self.manifests = {manifest.id: replace(manifest, build=self._build)}
        self.supervisor: Supervisor | None = None

    def _build(self, parts: AdapterParts) -> Adapter:
        self.attempts += 1
        return self._manifest.build(parts)

    def config(self) -> Config:
        return self._configs[self._which]

    @property
    def state(self) -> str:
        assert self.supervisor is not None
        return str(self.supervisor.status()[0]["state"])

    def sign_in_again(self) -> None:
        """Another token: what an operator does about a 401."""
        assert self.supervisor is not None
        self._which = 1 - self._which
        self.supervisor.reconcile()

    def _take_care(self) -> None:
        """A platform that does not know us, or asked us to come back much later, is signed in to anew."""
        now = time.monotonic()
        if self.attempts != self._seen:
            self._seen, self._seen_at = self.attempts, now
        is_put_off = self.state == Link.UNREACHABLE and now - self._seen_at > PUT_OFF_SECONDS
        if self.state == Link.SIGNED_OUT or is_put_off:
            self._seen_at = now
            self.sign_in_again()

    async def fail(self, trouble: Trouble, times: int) -> int:
        """Let so many attempts fail; how many did."""
        before = self.attempts
        self.site.trouble = trouble
        if trouble is Trouble.REFUSED:
            await self.site.stop()
        self.site.drop_connection()
        async with asyncio.timeout(WAIT_SECONDS + times * 0.2):
            while self.attempts - before < times:
                self._take_care()
                self.site.clock.advance(0.05)  # a connection caught between two troubles may hang, but not for long
                await asyncio.sleep(0.002)
        if trouble is Trouble.REFUSED:
            await self.site.start()
        return self.attempts - before

    async def recover(self) -> None:
        self.site.trouble = Trouble.NONE
        async with asyncio.timeout(WAIT_SECONDS):
            while self.state != Link.CONNECTED:
                self._take_care()
                await asyncio.sleep(0.002)


def _nowhere(_account: AccountKey, _adapter: Adapter) -> Emit:
    async def emit(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        return

    return emit


async def _nobody(_account: str) -> None:
    return


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Account]:
    async with TroubledTelegram(FakeClock()) as telegram:
        account = Account(telegram, [_config(folder, telegram, name) for name in ("", "-again")])
        async with supervised(account, folder):
            yield account


@asynccontextmanager
async def supervised(account: Account, folder: Path) -> AsyncIterator[None]:
    """Kept up by a real supervisor, and connected at the beginning."""
    async with supervising(account.manifests, account.config, account.site.clock, folder) as account.supervisor:
        await until(lambda: account.state == Link.CONNECTED, WAIT_SECONDS)
        yield


@asynccontextmanager
async def supervising(
    manifests: Mapping[str, Manifest],
    config: Callable[[], Config],
    clock: Clock,
    folder: Path,
    *,
    emit_for: Callable[[AccountKey, Adapter], Emit] = _nowhere,
    pace: SupervisorTiming = QUICK,
) -> AsyncIterator[Supervisor]:
    """A real supervisor that has begun to connect. Whatever arrives is forgotten, where nobody else takes it."""
    db = await open_database(folder / "state.db")
    try:
        supervisor = Supervisor(manifests, db, config, clock, {}, pace=pace)
        supervisor.connect(emit_for, _nobody)
        supervisor.reconcile()
        try:
            yield supervisor
        finally:
            await supervisor.stop_intake()
            await supervisor.close()
    finally:
        await db.close()


def _config(folder: Path, telegram: FakeTelegram, path: str) -> Config:
    # The same server under two names: a change of the account, as a new token would be.
    url = telegram.url + ("/" if path else "")
    environ = {"TELEGRAM_BOT_TOKEN": telegram.token, "TELEGRAM_BASE_URL": url, **UNPACED}
    return load(folder, environ, folder, (MANIFEST,)).config


Connect = Callable[[Path], AbstractAsyncContextManager[Account]]


async def fail_again_and_again(folder: Path, failures: int, connect: Connect = connected) -> Grown:
    """Count what is held while all is well, fail, and count again when all is well."""
    kinds = [trouble for trouble in Trouble if trouble not in (Trouble.NONE, Trouble.HALF_OPEN)]
    half_open = failures // HALF_OPEN_SHARE
    async with connect(folder) as account:
        for trouble in (*kinds, Trouble.HALF_OPEN):  # whatever is made once and kept is made now
            await account.fail(trouble, 1)
            await account.recover()
        before = await steady()
        failed = await account.fail(Trouble.HALF_OPEN, half_open)
        for index, trouble in enumerate(kinds):
            left = failures - failed
            failed += await account.fail(trouble, left // (len(kinds) - index))
        await account.recover()
        after = await steady()
    return Grown(failed, before, after)


async def steady() -> Held:
    """What is held once that no longer changes: closing takes a moment, on both sides of a socket."""
    seen: list[Held] = []
    for _ in range(200):
        seen.append(Held.now())
        if len(seen) > STEADY and len(set(seen[-STEADY:])) == 1:
            break
        await asyncio.sleep(0.02)
    return seen[-1]


class Listening(Protocol):
    """A fake with a socket, on which it does what it suffers from; ``tries`` counts the connections it spoiled."""

    tries: int

    @property
    def sockets(self) -> int: ...
    @property
    def environ(self) -> dict[str, str]: ...

    def suffer(self, trouble: str) -> None:
        """From this on; '' ends it."""

    def drop_connection(self) -> None: ...


async def fail_each_way(
    site: Listening, manifest: Manifest, troubles: Sequence[str], folder: Path, failures: int
) -> Grown:
    """Count what is held while all is well, fail in each of these ways, and count again when all is well."""
    config = load(folder, site.environ, folder, (manifest,)).config
    async with supervising({manifest.id: manifest}, lambda: config, SystemClock(), folder) as supervisor:
        for trouble in troubles:  # whatever is made once and kept is made now
            await _fail(site, supervisor, trouble, 2)
        before, tried = await steady(), site.tries
        for trouble in troubles:
            await _fail(site, supervisor, trouble, -(-failures // len(troubles)))
        return Grown(site.tries - tried, before, await steady())


async def _fail(site: Listening, supervisor: Supervisor, trouble: str, times: int) -> None:
    site.suffer(trouble)
    enough = site.tries + times
    site.drop_connection()
    await until(lambda: site.tries >= enough, WAIT_SECONDS + times * 0.2)
    site.suffer("")
    site.drop_connection()
    await until(lambda: supervisor.status()[0]["state"] == Link.CONNECTED and site.sockets == 1, WAIT_SECONDS)
