"""Run the adapters of all platforms: start them, watch for silence, restart them with backoff, tell the operator."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import aiohttp

from hermes.config import AccountConfig, Config
from hermes.core.dataclasses import dataclass
from hermes.core.errors import (
    ConfigError,
    ConflictError,
    CredentialsError,
    PlatformError,
    RateLimitedError,
    StoreIsDownError,
    UnreachableError,
)
from hermes.core.keys import AccountKey, Target
from hermes.core.manifest import AdapterParts, Manifest
from hermes.core.messages import Capabilities
from hermes.core.ports import Adapter, Clock, Emit
from hermes.services.adapters.account import Link, SupervisedAccount, same_settings
from hermes.services.adapters.registry import import_adapter, missing_package
from hermes.services.adapters.traffic import Traffic
from hermes.services.http import ProxyRules, make_session
from hermes.store import people
from hermes.store.db import Database

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SupervisorTiming:
    """How an account is kept up. An attempt at a dead network takes 20 s to fail; with the longest pause after it,
    an account hears again within 30 s of the network's return, however long that was away. A connection that ends
    within ``steady_seconds`` did not hold: the next one waits longer, though it was one."""

    backoff_seconds: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    steady_seconds: float = 10.0
    conflict_seconds: float = 30.0
    watch_seconds: float = 1.0


class AccountDuties(Protocol):
    """Which accounts this node has: see ``services.cluster.duties``. A gateway alone has them all."""

    def is_held(self, key: str) -> bool: ...
    def holder(self, key: str) -> str: ...
    async def hold(self, key: str) -> None: ...
    async def release(self, key: str) -> None: ...


class Supervisor:
    def __init__(
        self,
        manifests: Mapping[str, Manifest],
        db: Database,
        config: Callable[[], Config],
        clock: Clock,
        extras: Mapping[str, Mapping[str, Any]],
        paused_because: str = "",
        pace: SupervisorTiming = SupervisorTiming(),  # noqa: B008 - frozen
        on_signed_out: Callable[[AccountKey, str], None] = lambda *_: None,
        on_change: Callable[[AccountKey, Link], None] = lambda *_: None,
        duties: AccountDuties | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        """``extras`` are values that come from us and not from the configuration (the local hub).

        ``on_signed_out`` is told once, with the reason, when a platform does not know an account any more;
        ``on_change`` whenever an account is in another state than before. In a cluster an account runs only while its
        duty is held here, and ``check`` raises where a request may not leave any more.
        """
        self._manifests = manifests
        self._db = db
        self._config = config
        self._clock = clock
        self._extras = extras
        self._paused_because = paused_because
        self._pace = pace
        self._on_signed_out = on_signed_out
        self._on_change = on_change
        self._duties = duties
        self._check = check
        self._accounts: dict[AccountKey, SupervisedAccount] = {}
        self._traffic = Traffic(db, config, clock)
        self._closing: set[asyncio.Future[None]] = set()  # sessions that were cut
        self._resumed: set[AccountKey] = set()  # by hand, while the others are held back
        self._emit_for: Callable[[AccountKey, Adapter], Emit] | None = None
        self._on_connected: Callable[[str], Awaitable[None]] | None = None
        self._notifying: set[asyncio.Future[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._imported: set[str] = set()
        self._is_stopping = False

    def connect(
        self, emit_for: Callable[[AccountKey, Adapter], Emit], on_connected: Callable[[str], Awaitable[None]]
    ) -> None:
        """Set the receivers of events and of connections. Once, before ``reconcile``."""
        self._emit_for = emit_for
        self._on_connected = on_connected

    # What others ask

    @property
    def paused_because(self) -> str:
        """Why platforms are held back; '' when they are not."""
        return self._paused_because

    def adapter_of(self, target: Target) -> Adapter | None:
        account = self._accounts.get(AccountKey(target.platform, target.account))
        return account.adapter if account is not None else None

    def reader_of(self, target: Target) -> Adapter | None:
        """Whoever can fetch a file of this account: its adapter, or the one that stands by."""
        account = self._accounts.get(AccountKey(target.platform, target.account))
        return (account.adapter or account.standby) if account is not None else None

    def capabilities(self, target: Target) -> Capabilities | None:
        account = self._accounts.get(AccountKey(target.platform, target.account))
        return account.capabilities if account is not None else None

    def arrived(self, key: AccountKey, count: int) -> None:
        if key in self._accounts:
            self._traffic.arrived(key, count)

    def delivered(self, target: Target) -> None:
        key = AccountKey(target.platform, target.account)
        account = self._accounts.get(key)
        if account is not None:
            self._traffic.delivered(key)
            if account.sends_are_refused:
                account.sends_are_refused = False
                self._change(account, Link.CONNECTED, "")

    def refused(self, target: Target, error: PlatformError) -> None:
        """A send was refused because the platform does not know us. Whatever still comes in, the account counts as
        signed out until something goes out again or a new connection is made."""
        account = self._accounts.get(AccountKey(target.platform, target.account))
        if account is not None and isinstance(error, CredentialsError):
            account.sends_are_refused = True
            account.cure = error.cure
            self._change(account, Link.SIGNED_OUT, str(error))

    def has(self, target: Target) -> bool:
        """Whether this node, and no other one, sends to this account."""
        account = self._accounts.get(AccountKey(target.platform, target.account))
        return account is not None and self._may_run(account)

    def here(self) -> list[AccountKey]:
        """The accounts that this node has."""
        return [key for key, account in self._accounts.items() if self._may_run(account)]

    def hand_over(self) -> None:
        """Stop receiving and sending: other nodes have the accounts from now on. Resumed with their duties."""
        for account in self._accounts.values():
            if self._is_shared(account):
                account.adapter = None
                if account.running is not None:
                    account.running.cancel()

    def lapse(self) -> None:
        """Hand over at once, and cut the connections of the accounts.

        An adapter that stores a batch in a database out of reach is cancelled late, with its socket open until then.
        """
        for account in self._accounts.values():
            is_running = account.running is not None and not account.running.done()
            if self._is_shared(account) and is_running and account.http is not None:
                closing = asyncio.ensure_future(account.http.close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        self.hand_over()

    def status(self) -> list[dict[str, Any]]:
        return [self._status_of(account) for account in self._accounts.values()]

    def _status_of(self, account: SupervisedAccount) -> dict[str, Any]:
        age = None if account.last_frame is None else max(0.0, self._clock.monotonic() - account.last_frame)
        return {
            "account": str(account.key),
            "state": account.state.value,
            "since": account.since,
            "last_frame_age": age,
            "quiet_after": account.silence_seconds,
            **self._traffic.to_dict(account.key),
            "reconnects": account.reconnects,
            "note": account.note(),
            "cure": account.how_to_fix(),
        }

    async def recall_today(self) -> None:
        """Count today's traffic from before this process, once, when status is asked for."""
        await self._traffic.recall_today()

    # Starting and stopping

    def reconcile(self) -> None:
        """Start, stop and restart accounts so that they match the configuration."""
        wanted = self._wanted()
        for key in [key for key in self._accounts if key not in wanted]:
            self._stop(self._accounts.pop(key))
        for key, (manifest, config) in wanted.items():
            known, rules = self._accounts.get(key), self._rules(manifest, config)
            if known is not None and same_settings(known.config, config) and known.rules == rules:
                known.config = config
                continue
            if known is not None:
                self._stop(known)
            self._accounts[key] = self._start(key, manifest, config)

    def _wanted(self) -> dict[AccountKey, tuple[Manifest, AccountConfig]]:
        wanted: dict[AccountKey, tuple[Manifest, AccountConfig]] = {}
        for platform, manifest in self._manifests.items():
            accounts = self._config().platforms.get(platform, {})
            if manifest.always_on and not accounts:
                wanted[AccountKey(platform)] = (manifest, AccountConfig(enabled=True, values={}))
            for name, config in accounts.items():
                if config.enabled and (config.is_mentioned or manifest.always_on):
                    wanted[AccountKey(platform, name)] = (manifest, config)
        return wanted

    def _rules(self, manifest: Manifest, config: AccountConfig) -> ProxyRules:
        return ProxyRules() if manifest.always_on else ProxyRules.of(self._config().proxies, config.proxy)

    def _start(self, key: AccountKey, manifest: Manifest, config: AccountConfig) -> SupervisedAccount:
        account = SupervisedAccount(key, manifest, config, self._rules(manifest, config), since=self._clock.now())
        if config.missing:
            self._change(account, Link.INCOMPLETE, f"missing: {', '.join(config.missing)}")
        elif self._paused_because and not manifest.always_on and key not in self._resumed:
            self._change(account, Link.PAUSED, self._paused_because)
        else:
            account.task = asyncio.create_task(self._keep_up(account), name=f"account {key}")
        return account

    def _is_shared(self, account: SupervisedAccount) -> bool:
        """Whether one node of several has this account. Each node has its own terminal."""
        return self._duties is not None and not account.manifest.always_on

    def _may_run(self, account: SupervisedAccount) -> bool:
        return self._duties is None or account.manifest.always_on or self._duties.is_held(account.duty)

    def _stop(self, account: SupervisedAccount) -> None:
        account.adapter = None
        if account.task is not None:
            account.task.cancel()
            self._leaving.add(account.task)
            account.task.add_done_callback(self._leaving.discard)

    async def stop_intake(self) -> None:
        """End every ``run``; adapters can still send until ``close``."""
        self._is_stopping = True
        running = [account.running for account in self._accounts.values() if account.running is not None]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=3)

    async def close(self) -> None:
        """Close every account's connections."""
        tasks = {account.task for account in self._accounts.values() if account.task is not None}
        for task in tasks:
            task.cancel()
        if tasks | self._leaving:
            await asyncio.wait(tasks | self._leaving, timeout=3)

    def resume_paused(self) -> None:
        """Try the paused platforms again."""
        self._paused_because = ""
        for account in list(self._accounts.values()):
            if account.state is Link.PAUSED:
                self._accounts[account.key] = self._start(account.key, account.manifest, account.config)

    def resume(self, key: AccountKey) -> None:
        """Try this account now because a person asked; a connected one stays as it is."""
        self._resumed.add(key)
        account = self._accounts.get(key)
        if account is not None and account.state not in (Link.CONNECTED, Link.CONNECTING):
            self._stop(account)
            self._accounts[key] = self._start(key, account.manifest, account.config)
        if not any(each.state is Link.PAUSED for each in self._accounts.values()):
            self._paused_because = ""

    # Keeping one account up

    async def _keep_up(self, account: SupervisedAccount) -> None:
        """Run the adapter again and again until cancelled. What is kept outlives the adapter's restarts."""
        try:
            check = self._check if self._is_shared(account) else None
            while True:
                account.standby = None
                async with make_session(account.rules, check=check) as http:
                    account.http = http
                    await self._run_in_session(account, http)
        finally:
            await account.kept.close()
            if self._duties is not None and account.key not in self._accounts and self._is_shared(account):
                # Not configured here any more: another node may have it.
                with suppress(StoreIsDownError):
                    await self._duties.release(account.duty)

    async def _run_in_session(self, account: SupervisedAccount, http: aiohttp.ClientSession) -> None:
        """Run the adapter until the session is cut. A broken poll never cuts a send in flight: both outlive it."""
        while not self._is_stopping:
            if not self._may_run(account):
                await self._stand_by(account, http)
            pause = await self._run_once(account, http)
            if http.closed:
                return
            if isinstance(http.connector, aiohttp.TCPConnector):
                http.connector.clear_dns_cache()  # the name may lead elsewhere when the network is back
            if pause is None or self._is_stopping:
                break
            await asyncio.sleep(pause)
        # Signed out or stopping: nothing is received any more, and what is in flight may still be sent.
        await asyncio.Event().wait()

    async def _stand_by(self, account: SupervisedAccount, http: aiohttp.ClientSession) -> None:
        """Wait until this node has the account. Say who has it meanwhile, and know what its platform can do."""
        duties = self._duties
        assert duties is not None  # noqa: S101 - asked for in a cluster only
        duty = account.duty
        taking = asyncio.ensure_future(duties.hold(duty))
        try:
            while not taking.done():
                holder = duties.holder(duty)
                if holder:
                    account.failures = 0
                    self._change(account, Link.ELSEWHERE, f"on node {holder}")
                    if account.standby is None:
                        with suppress(ConfigError, StoreIsDownError):  # told when this node is to run it
                            account.standby = await self._build(account, http)
                            account.capabilities = account.standby.capabilities
                await asyncio.wait({taking}, timeout=self._pace.watch_seconds)
            taking.result()
        finally:
            taking.cancel()
        if account.state is Link.ELSEWHERE:
            self._change(account, Link.CONNECTING, "")

    async def _run_once(self, account: SupervisedAccount, http: aiohttp.ClientSession) -> float | None:
        """Run an adapter until it ends. Return the pause before the next run, or None."""
        account.frames_this_run = 0
        account.sends_are_refused = False
        account.started_at = self._clock.monotonic()
        try:
            await self._run_adapter(account, http)
            if self._is_stopping:
                return None
            if not self._may_run(account):
                self._change(account, Link.CONNECTING, "the database is not reached; other nodes may have this account")
                return 0.0
            return self._broke(account, Link.BROKEN, "run() ended by itself", self._backoff(account))
        except ConfigError as error:
            self._change(account, Link.INCOMPLETE, str(error))
            return None
        except CredentialsError as error:
            account.cure = error.cure
            self._broke(account, Link.SIGNED_OUT, str(error), 0.0)
            return None
        except ConflictError as error:
            account.cure = error.cure
            return self._broke(account, Link.CONFLICT, str(error), self._pace.conflict_seconds)
        except RateLimitedError as error:
            # Whoever says "at once" again and again is not asked in a tight loop.
            pause = max(error.retry_after, self._backoff(account))
            return self._broke(account, Link.UNREACHABLE, str(error), pause)
        except (PlatformError, StoreIsDownError) as error:
            state = Link.SILENT if isinstance(error, _SilentError) else Link.UNREACHABLE
            return self._broke(account, state, str(error), self._backoff(account))
        except Exception as error:
            log.exception("Adapter broke", extra={"platform": account.key.platform, "account": account.key.account})
            return self._broke(account, Link.BROKEN, f"the adapter failed: {error}", self._backoff(account))

    async def _run_adapter(self, account: SupervisedAccount, http: aiohttp.ClientSession) -> None:
        adapter = await self._build(account, http)
        account.adapter, account.capabilities = adapter, adapter.capabilities
        assert self._emit_for is not None  # noqa: S101 - connect() comes first
        running = asyncio.create_task(adapter.run(self._emit_for(account.key, adapter)), name=f"run {account.key}")
        account.running = running
        try:
            await self._watch(account, running)
        finally:
            running.cancel()
            await asyncio.wait({running}, timeout=5)

    async def _build(self, account: SupervisedAccount, http: aiohttp.ClientSession) -> Adapter:
        values = {**account.config.values, **self._extras.get(account.key.platform, {})}
        cursor = await self._db.read(people.cursor, account.key.platform, account.key.account)
        parts = AdapterParts(
            account.key.account,
            values,
            http,
            lambda: self._alive(account),
            cursor,
            self._clock.now,
            folder=self._config().home / account.key.platform,
            kept=account.kept,
            proxy_for=lambda url: account.rules.proxy_for(url) or "",
        )
        # An SDK would hold up the loop for long; one that another account has begun to import would do so too.
        platform = account.manifest.id
        if platform not in self._imported and await asyncio.to_thread(import_adapter, account.manifest):
            self._imported.add(platform)
        try:
            return account.manifest.build(parts)
        except ImportError as error:
            raise ConfigError(missing_package(account.manifest, error)) from error

    async def _watch(self, account: SupervisedAccount, running: asyncio.Task[None]) -> None:
        """Wait for the adapter to end; end it when no frame came for too long."""
        started = self._clock.monotonic()
        while True:
            done, _ = await asyncio.wait({running}, timeout=self._pace.watch_seconds)
            if done:
                # A library that cancels its own task has ended it, and nothing of ours: that is no reason to end too.
                return None if self._is_stopping or running.cancelled() else running.result()
            heard = account.last_frame if account.frames_this_run else started
            silent = self._clock.monotonic() - (heard or started)
            if silent > account.silence_seconds:
                raise _SilentError(f"no frame for {silent:.0f} s")

    def _alive(self, account: SupervisedAccount) -> None:
        account.last_frame = self._clock.monotonic()
        account.frames_this_run += 1
        if account.state is not Link.CONNECTED and not account.sends_are_refused:
            account.reconnects += account.failures > 0
            account.failures = 0
            self._change(account, Link.CONNECTED, "")
            if self._on_connected is not None:
                task = asyncio.ensure_future(self._notify_connected(str(account.key)))
                self._notifying.add(task)
                task.add_done_callback(self._notifying.discard)

    async def _notify_connected(self, account: str) -> None:
        assert self._on_connected is not None  # noqa: S101 - the caller has looked
        try:
            await self._on_connected(account)
        except StoreIsDownError as error:
            log.warning("Store is down", extra={"account": account, "reason": str(error)})

    def _broke(self, account: SupervisedAccount, state: Link, reason: str, pause: float) -> float:
        account.failures += 1
        self._change(account, state, reason, reconnect_in=pause)
        return pause

    def _change(self, account: SupervisedAccount, state: Link, reason: str, reconnect_in: float | None = None) -> None:
        """Log and publish a change of state, once."""
        was, account.state = account.state, state
        is_news = was is not state
        account.reason = reason
        if not is_news:
            return
        account.since = self._clock.now()
        about = {"platform": account.key.platform, "account": account.key.account}
        if state is Link.SIGNED_OUT and account.cure:
            about["cure"] = account.how_to_fix()
        if state is Link.CONNECTED:
            log.info("Connected", extra=about)
        elif reconnect_in is not None:
            log.warning("Disconnected", extra={**about, "reason": reason, "reconnect_in": round(reconnect_in, 1)})
        else:
            log.warning("Not connected", extra={**about, "state": state.value, "reason": reason})
        if state is Link.SIGNED_OUT:
            self._on_signed_out(account.key, f"{reason} → {account.how_to_fix()}" if account.cure else reason)
        self._on_change(account.key, state)

    def _backoff(self, account: SupervisedAccount) -> float:
        steps = self._pace.backoff_seconds
        has_held = self._clock.monotonic() - account.started_at >= self._pace.steady_seconds
        account.short_runs = 0 if has_held and account.frames_this_run else account.short_runs + 1
        step = steps[min(max(account.failures, account.short_runs - 1), len(steps) - 1)]
        return step * random.uniform(0.75, 1.25)


class _SilentError(UnreachableError):
    """No frame came for too long; the connection may look open."""
