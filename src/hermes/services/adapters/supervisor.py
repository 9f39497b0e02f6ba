"""Run the adapters of all platforms: start them, watch for silence, restart them with backoff, tell the operator."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import datetime, time
from enum import StrEnum
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
from hermes.core.keys import MAIN, AccountKey, Target
from hermes.core.manifest import AccountResource, AdapterParts, Manifest
from hermes.core.messages import Capabilities
from hermes.core.ports import Adapter, Clock, Emit
from hermes.services.adapters.registry import import_adapter, missing_package
from hermes.services.http import ProxyRules, make_session
from hermes.services.time_zone import zone_of
from hermes.store import inbox, outbox, people
from hermes.store.db import Database, Tx

log = logging.getLogger(__name__)

UNKNOWN_SILENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class SupervisorTiming:
    """How an account is kept up. An attempt at a dead network takes 20 s to fail; with the longest pause after it,
    an account hears again within 30 s of the network's return, however long that was away. A connection that ends
    within ``steady_seconds`` did not hold: the next one waits longer, though it was one."""

    backoff_seconds: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    steady_seconds: float = 10.0
    conflict_seconds: float = 30.0
    watch_seconds: float = 1.0


class Link(StrEnum):
    """The state of an account, as a person reads it."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    UNREACHABLE = "unreachable"
    SILENT = "silent"
    CONFLICT = "conflict"
    SIGNED_OUT = "signed out"
    BROKEN = "broken"
    PAUSED = "paused"
    INCOMPLETE = "not configured"
    ELSEWHERE = "elsewhere"  # another node has it; this one stands by


class AccountDuties(Protocol):
    """Which accounts this node has: see ``services.cluster.duties``. A gateway alone has them all."""

    def is_held(self, key: str) -> bool: ...
    def holder(self, key: str) -> str: ...
    async def hold(self, key: str) -> None: ...
    async def release(self, key: str) -> None: ...


@dataclass(slots=True)
class _SupervisedAccount:
    """One account and how it does. Touched only on the event loop."""

    key: AccountKey
    manifest: Manifest
    config: AccountConfig
    rules: ProxyRules
    state: Link = Link.CONNECTING
    since: float = 0.0
    reason: str = ""
    cure: str = ""  # of being signed out, where the platform knows a better one than to sign in again
    last_frame: float | None = None
    sends_are_refused: bool = False  # what comes in says nothing about that
    capabilities: Capabilities | None = None
    adapter: Adapter | None = None
    standby: Adapter | None = None  # of an account elsewhere: fetches files, and neither receives nor sends
    task: asyncio.Task[None] | None = None
    running: asyncio.Task[None] | None = None
    http: aiohttp.ClientSession | None = None
    kept: AccountResource = field(default_factory=AccountResource)
    failures: int = 0
    started_at: float = 0.0
    short_runs: int = 0
    reconnects: int = 0
    frames_this_run: int = 0


@dataclass(slots=True)
class _Traffic:
    """Count what an account received and sent: today, and since the start."""

    day: str = ""
    arrived: int = 0
    delivered: int = 0
    arrived_in_all: int = 0
    delivered_in_all: int = 0


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
        self._accounts: dict[AccountKey, _SupervisedAccount] = {}
        self._traffic: dict[AccountKey, _Traffic] = {}
        self._started_at = clock.now()
        self._earlier: dict[AccountKey, _Traffic] | None = None  # of the day on which this process began
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
            traffic = self._traffic_of(key)
            traffic.arrived += count
            traffic.arrived_in_all += count

    def delivered(self, target: Target) -> None:
        key = AccountKey(target.platform, target.account)
        account = self._accounts.get(key)
        if account is not None:
            traffic = self._traffic_of(key)
            traffic.delivered += 1
            traffic.delivered_in_all += 1
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

    def _status_of(self, account: _SupervisedAccount) -> dict[str, Any]:
        traffic = self._traffic_of(account.key)
        earlier = (self._earlier or {}).get(account.key, _Traffic())
        if earlier.day != traffic.day:
            earlier = _Traffic()
        age = None if account.last_frame is None else max(0.0, self._clock.monotonic() - account.last_frame)
        return {
            "account": str(account.key),
            "state": account.state.value,
            "since": account.since,
            "last_frame_age": age,
            "quiet_after": self._silence_of(account),
            "in_today": earlier.arrived + traffic.arrived,
            "out_today": earlier.delivered + traffic.delivered,
            "in_total": traffic.arrived_in_all,
            "out_total": traffic.delivered_in_all,
            "reconnects": account.reconnects,
            "note": account.reason or _routine(account),
            "cure": _cure(account),
        }

    def _silence_of(self, account: _SupervisedAccount) -> float:
        """Seconds without a frame that are allowed; a platform may change them any time."""
        return account.adapter.capabilities.silence_seconds if account.adapter else UNKNOWN_SILENCE_SECONDS

    async def recall_today(self) -> None:
        """Count today's traffic from before this process, once, when status is asked for."""
        if self._earlier is None:
            now = self._now()
            midnight = datetime.combine(now.date(), time.min, now.tzinfo).timestamp()
            found = await self._db.read(_traffic_between, since=midnight, before=self._started_at)
            for traffic in found.values():
                traffic.day = now.date().isoformat()
            self._earlier = found

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), zone_of(self._config().timezone))

    def _traffic_of(self, key: AccountKey) -> _Traffic:
        traffic = self._traffic.setdefault(key, _Traffic())
        today = self._now().date().isoformat()
        if traffic.day != today:
            traffic.day, traffic.arrived, traffic.delivered = today, 0, 0
        return traffic

    # Starting and stopping

    def reconcile(self) -> None:
        """Start, stop and restart accounts so that they match the configuration."""
        wanted = self._wanted()
        for key in [key for key in self._accounts if key not in wanted]:
            self._stop(self._accounts.pop(key))
        for key, (manifest, config) in wanted.items():
            known = self._accounts.get(key)
            if known is not None and _same(known.config, config) and known.rules == self._rules(manifest, config):
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

    def _start(self, key: AccountKey, manifest: Manifest, config: AccountConfig) -> _SupervisedAccount:
        account = _SupervisedAccount(key, manifest, config, self._rules(manifest, config), since=self._clock.now())
        if config.missing:
            self._change(account, Link.INCOMPLETE, f"missing: {', '.join(config.missing)}")
        elif self._paused_because and not manifest.always_on and key not in self._resumed:
            self._change(account, Link.PAUSED, self._paused_because)
        else:
            account.task = asyncio.create_task(self._keep_up(account), name=f"account {key}")
        return account

    def _is_shared(self, account: _SupervisedAccount) -> bool:
        """Whether one node of several has this account. Each node has its own terminal."""
        return self._duties is not None and not account.manifest.always_on

    def _may_run(self, account: _SupervisedAccount) -> bool:
        return self._duties is None or account.manifest.always_on or self._duties.is_held(_duty_of(account.key))

    def _stop(self, account: _SupervisedAccount) -> None:
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

    async def _keep_up(self, account: _SupervisedAccount) -> None:
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
                    await self._duties.release(_duty_of(account.key))

    async def _run_in_session(self, account: _SupervisedAccount, http: aiohttp.ClientSession) -> None:
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

    async def _stand_by(self, account: _SupervisedAccount, http: aiohttp.ClientSession) -> None:
        """Wait until this node has the account. Say who has it meanwhile, and know what its platform can do."""
        duties = self._duties
        assert duties is not None  # noqa: S101 - asked for in a cluster only
        duty = _duty_of(account.key)
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

    async def _run_once(self, account: _SupervisedAccount, http: aiohttp.ClientSession) -> float | None:
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

    async def _run_adapter(self, account: _SupervisedAccount, http: aiohttp.ClientSession) -> None:
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

    async def _build(self, account: _SupervisedAccount, http: aiohttp.ClientSession) -> Adapter:
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

    async def _watch(self, account: _SupervisedAccount, running: asyncio.Task[None]) -> None:
        """Wait for the adapter to end; end it when no frame came for too long."""
        started = self._clock.monotonic()
        while True:
            done, _ = await asyncio.wait({running}, timeout=self._pace.watch_seconds)
            if done:
                # A library that cancels its own task has ended it, and nothing of ours: that is no reason to end too.
                return None if self._is_stopping or running.cancelled() else running.result()
            heard = account.last_frame if account.frames_this_run else started
            silent = self._clock.monotonic() - (heard or started)
            if silent > self._silence_of(account):
                raise _SilentError(f"no frame for {silent:.0f} s")

    def _alive(self, account: _SupervisedAccount) -> None:
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
        assert self._on_connected is not None  # noqa: S101
        try:
            await self._on_connected(account)
        except StoreIsDownError as error:
            log.warning("Store is down", extra={"account": account, "reason": str(error)})

    def _broke(self, account: _SupervisedAccount, state: Link, reason: str, pause: float) -> float:
        account.failures += 1
        self._change(account, state, reason, reconnect_in=pause)
        return pause

    def _change(self, account: _SupervisedAccount, state: Link, reason: str, reconnect_in: float | None = None) -> None:
        """Log and publish a change of state, once."""
        was, account.state = account.state, state
        is_news = was is not state
        account.reason = reason
        if not is_news:
            return
        account.since = self._clock.now()
        about = {"platform": account.key.platform, "account": account.key.account}
        if state is Link.SIGNED_OUT and account.cure:
            about["cure"] = _cure(account)
        if state is Link.CONNECTED:
            log.info("Connected", extra=about)
        elif reconnect_in is not None:
            log.warning("Disconnected", extra={**about, "reason": reason, "reconnect_in": round(reconnect_in, 1)})
        else:
            log.warning("Not connected", extra={**about, "state": state.value, "reason": reason})
        if state is Link.SIGNED_OUT:
            self._on_signed_out(account.key, f"{reason} → {_cure(account)}" if account.cure else reason)
        self._on_change(account.key, state)

    def _backoff(self, account: _SupervisedAccount) -> float:
        steps = self._pace.backoff_seconds
        has_held = self._clock.monotonic() - account.started_at >= self._pace.steady_seconds
        account.short_runs = 0 if has_held and account.frames_this_run else account.short_runs + 1
        step = steps[min(max(account.failures, account.short_runs - 1), len(steps) - 1)]
        return step * random.uniform(0.75, 1.25)


def _duty_of(key: AccountKey) -> str:
    return f"account:{key}"


def _traffic_between(tx: Tx, *, since: float, before: float) -> dict[AccountKey, _Traffic]:
    found: dict[AccountKey, _Traffic] = {}
    for (platform, account), count in inbox.arrived_counts(tx, since=since, before=before).items():
        found.setdefault(AccountKey(platform, account), _Traffic()).arrived += count
    for text, count in outbox.sent_counts(tx, since=since, before=before).items():
        with suppress(ValueError):  # a damaged row
            target = Target.parse(text)
            found.setdefault(AccountKey(target.platform, target.account), _Traffic()).delivered += count
    return found


class _SilentError(UnreachableError):
    """No frame came for too long; the connection may look open."""


def _same(old: AccountConfig, new: AccountConfig) -> bool:
    """Compare what an adapter is built from: access rules change without a restart."""
    return (old.values, old.proxy, old.missing, old.enabled) == (new.values, new.proxy, new.missing, new.enabled)


def _routine(account: _SupervisedAccount) -> str:
    """Explain reconnects that the platform demands: they look like trouble in a log."""
    is_routine = account.capabilities is not None and account.capabilities.ends_connections
    if not is_routine or account.state is not Link.CONNECTED or not account.reconnects:
        return ""
    times = "once" if account.reconnects == 1 else f"{account.reconnects} times"
    return f"resumed {times}, as {account.manifest.title} makes everyone do"


def _cure(account: _SupervisedAccount) -> str:
    match account.state:
        case Link.SIGNED_OUT if account.cure:
            return f"{account.cure}; then hermes gateway restart"
        case Link.SIGNED_OUT if account.manifest.sign_in is not None:
            return _sign_in(account)
        case Link.SIGNED_OUT:
            names = " and ".join(setting.env for setting in account.manifest.settings if setting.required)
            return f"check {names} in ~/.hermes/.env ({account.key}); it is read again at once"
        case Link.CONFLICT:
            return account.cure or "stop the other program that uses this account"
        case Link.INCOMPLETE if account.config.missing and account.manifest.sign_in is not None:
            return _sign_in(account)
        case Link.INCOMPLETE:
            _, is_told, how = account.reason.partition("Install it: ")
            return " ".join(how.split()) if is_told else f"hermes config explain platforms.{account.key.platform}"
        case _:
            return ""


def _sign_in(account: _SupervisedAccount) -> str:
    """The login command of this account."""
    which = "" if account.key.account == MAIN else f" --account {account.key.account}"
    return f"hermes {account.key.platform} login{which}"
