"""The only place where everything is put together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from hermes.agent.models.embedded import EmbeddedModel
from hermes.agent.models.fetch import Fetcher
from hermes.agent.prompt import PromptBuilder
from hermes.agent.toolkit import Toolbox, ToolContext, tools_of
from hermes.agent.tools import read_file, search_files
from hermes.config import EMBEDDED, ApiConfig, Config, ConfigWatch, Loaded
from hermes.core.errors import GatewayError, PlatformError, StoreIsDownError
from hermes.core.keys import AccountKey, SessionKey, Target
from hermes.core.manifest import Manifest
from hermes.core.people import PersonRole
from hermes.core.ports import Clock, Describes
from hermes.core.secret import Redactor, Secret
from hermes.hosting import banner, lag, locks, paths
from hermes.hosting.control_server import ControlServer
from hermes.hosting.key_verbs import KeyVerbs
from hermes.hosting.restarts import RESTART_ASKED
from hermes.hosting.verbs import verbs_of
from hermes.hosting.worker import WorkerOptions, lifecycle_verbs, process_snapshot
from hermes.platforms.local.hub import LocalHub
from hermes.servers.api import guards
from hermes.servers.api.api import make_api
from hermes.servers.api.auth import KeyRing
from hermes.servers.api.parts import ApiParts
from hermes.servers.app import HttpServer
from hermes.services import words
from hermes.services.alerts import Alerts
from hermes.services.approvals import Approvals
from hermes.services.attachments import Attachments
from hermes.services.clock import SystemClock
from hermes.services.commands import about, approve, busy, session
from hermes.services.commands.base import CommandParts, Dispatcher, collect
from hermes.services.delivery import Delivery
from hermes.services.door import Door
from hermes.services.events import EventBus, TurnEnded, TurnEvent
from hermes.services.gateway import Gateway
from hermes.services.intake import Intake
from hermes.services.janitor import Janitor
from hermes.services.lanes import Lanes
from hermes.services.letters import Letters
from hermes.services.models import Models
from hermes.services.presenter import DEFAULT_PACE, Pace, Presenter
from hermes.services.processes import kill_group
from hermes.services.registry import find_platforms
from hermes.services.supervisor import Link, Supervisor
from hermes.services.turns import TurnParts, TurnRunner
from hermes.store import claims, outbox, turns
from hermes.store.api_keys import own_key
from hermes.store.db import PASSING, Database, Limits, Trouble, Tx, open_database
from hermes.store.home import Whose, make_home
from hermes.store.ids import new_id
from hermes.store.turns import TurnState

log = logging.getLogger(__name__)

LOCK_WAIT_SECONDS = 3.0
GATEWAY_WAIT_SECONDS = 30.0
STORE_RETRY_SECONDS = 0.5
SETTLE_SECONDS = 3.0
NAME_SECONDS = 1.0
PAUSED_SECONDS = 60.0
"""After a crash loop the platforms rest this long before they are tried again."""
TURNS_DRAIN_SECONDS = 3.5
SENDS_DRAIN_SECONDS = 1.5

NOBODY_ALLOWED = "No user allowlists configured. All unauthorized users will be denied."

TOOLS: tuple[ModuleType, ...] = (read_file, search_files)
COMMANDS: tuple[ModuleType, ...] = (about, approve, busy, session)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a gateway lives and what it may know. ``only`` names the platforms to start (None: all).

    ``store_is_down`` is asked, with the reason, whether to wait for a database that does not answer at the start.
    """

    home: Path
    environ: Mapping[str, str]
    cwd: Path
    redactor: Redactor = field(default_factory=Redactor)
    only: frozenset[str] | None = None
    paused_because: str = ""
    tools: tuple[ModuleType, ...] = TOOLS
    clock: Clock = field(default_factory=SystemClock)
    model_wait_seconds: float = 20.0
    pace: Pace = DEFAULT_PACE
    on_owner_lost: Callable[[str], None] = lambda _: None
    store_is_down: Callable[[str], bool] = lambda _: False
    store_limits: Limits = field(default_factory=Limits)
    set_log_level: Callable[[str], None] = lambda _: None


@asynccontextmanager
async def open_gateway(setting: Setting) -> AsyncIterator[Gateway]:
    """Own the home, open the store, build every service and run them until the end of the block."""
    make_home(setting.home)
    async with AsyncExitStack() as stack:
        stack.callback((await _own(setting)).release)
        builder = _Builder(setting)
        db = await _open_store(setting, builder)
        stack.push_async_callback(db.close)
        owner = new_id("inc")
        await db.write(_take_over, owner, now=setting.clock.now())
        await _kill_leftovers(db)
        gateway = builder.build(db, owner)
        await gateway.door.forget_gone_clients()  # before any lane is served
        stack.push_async_callback(gateway.models.close)
        stack.push_async_callback(gateway.embedded.aclose)
        stack.push_async_callback(builder.fetcher.aclose)
        tasks = [asyncio.create_task(run(), name=name) for name, run in builder.background.items()]
        stack.push_async_callback(_end, tasks)
        gateway.supervisor.reconcile()
        await gateway.intake.resume()
        try:
            yield gateway
        finally:
            await _drain(gateway)


async def _own(setting: Setting) -> locks.Lock:
    """Become the owner of the home. A gateway waits out a command that works there alone; a command waits less."""
    path = paths.owner_lock(str(setting.home))
    what, seconds = ("gateway", GATEWAY_WAIT_SECONDS) if setting.only is None else ("hermes command", LOCK_WAIT_SECONDS)
    lock = await asyncio.to_thread(locks.take, path, what, seconds)
    if lock is None:
        holder = locks.holder(path)
        who = f"process {holder.pid}" if holder is not None and holder.pid else "another process"
        raise GatewayError(f"{setting.home} is in use by {who}. One process at a time owns a home; end that one first.")
    return lock


async def _open_store(setting: Setting, builder: _Builder) -> Database:
    """Open the database and own it. A server that comes up after us is waited for: nothing is lost meanwhile."""
    while True:
        try:
            db = await open_database(
                builder.watch.current.database_url or setting.home / "state.db",
                on_trouble=builder.note_trouble,
                limits=setting.store_limits,
            )
            try:
                await db.own()
            except BaseException:
                await db.close()
                raise
            return db
        except StoreIsDownError as error:
            if not setting.store_is_down(str(error)):
                raise
            await asyncio.sleep(STORE_RETRY_SECONDS)


async def _drain(gateway: Gateway) -> None:
    """Stop intake, let turns finish or leave them for the next process, send what is in flight."""
    await gateway.supervisor.stop_intake()
    await gateway.intake.close()
    await gateway.lanes.drain(TURNS_DRAIN_SECONDS)
    await gateway.delivery.drain(SENDS_DRAIN_SECONDS)
    await gateway.supervisor.close()


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.error("A background task had failed", exc_info=result)


def _take_over(tx: Tx, owner: str, *, now: float) -> None:
    """Whatever an earlier incarnation held is free: it is dead, since we hold its lock."""
    claims.free_older(tx, "lanes", owner=owner, now=now)
    claims.free_older(tx, "targets", owner=owner, now=now)


async def _kill_leftovers(db: Database) -> None:
    """Processes of tools whose worker died."""
    for left in await db.read(turns.leftover_processes):
        if kill_group(left.process_group, left.process_started):
            log.warning("Killed a process left by a crash", extra={"group": left.process_group, "call": left.call_id})


class _Builder:
    """Puts the services together; lives only until they are."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.troubles: list[str] = []
        self._passing: set[str] = set()
        self._untold: list[str] = []
        self._alerts: Alerts | None = None
        self._gateway: Gateway | None = None
        self._manifests = self._platforms()
        self.watch = ConfigWatch(
            setting.home,
            setting.environ,
            setting.cwd,
            tuple(self._manifests.values()),
            on_change=self._config_changed,
        )
        self._take_config(self.watch.current)
        self.fetcher = Fetcher(setting.home)
        self.background: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}

    def _platforms(self) -> Mapping[str, Manifest]:
        found = find_platforms()
        self.troubles.extend(found.broken.values())
        only = self._setting.only
        return {name: manifest for name, manifest in found.manifests.items() if only is None or name in only}

    def _config(self) -> Config:
        return self.watch.current

    def _take_config(self, config: Config) -> None:
        self._setting.redactor.learn(config.secrets())
        self._setting.set_log_level(config.logs.level)

    def _config_changed(self, loaded: Loaded) -> None:
        self._take_config(loaded.config)
        if self._gateway is not None:
            self._gateway.supervisor.reconcile()
            if loaded.config.model.provider == EMBEDDED:
                self.fetcher.begin()

    def note_trouble(self, trouble: Trouble) -> None:
        """Keep it for status, and what passes only until it has passed; tell the owner as soon as there is a way."""
        if trouble.kind == "back":
            self.troubles[:] = [text for text in self.troubles if text not in self._passing]
            self._passing.clear()
        else:
            self.troubles.append(trouble.text)
        if trouble.kind in PASSING:
            self._passing.add(trouble.text)
        if trouble.kind == "owner":
            self._setting.on_owner_lost(trouble.text)
        if self._alerts is None:
            self._untold.append(trouble.text)
        else:
            self._alerts.tell(trouble.text)

    def build(self, db: Database, owner: str) -> Gateway:
        clock, config, home = self._setting.clock, self._config, self._setting.home
        bus, hub = EventBus(), LocalHub()
        embedded = EmbeddedModel(home, self.fetcher, wait_seconds=self._setting.model_wait_seconds)
        models = Models(config, embedded, clock)
        supervisor = Supervisor(
            self._manifests, db, config, clock, {"local": {"hub": hub}}, self._setting.paused_because
        )
        delivery = Delivery(
            db, supervisor.adapter_of, config, clock, owner, on_sent=supervisor.delivered, on_refused=supervisor.refused
        )
        letters = Letters(supervisor.capabilities, config, clock, delivery)
        self._alerts = Alerts(db, letters, config, clock)
        for text in self._untold:
            self._alerts.tell(text)
        presenter = Presenter(db, bus, letters, supervisor.adapter_of, config, self._setting.pace)
        prompts = PromptBuilder(lambda: config().agent.persona)
        toolbox = Toolbox(tools_of(*self._setting.tools), redact=self._setting.redactor)
        runner = TurnRunner(
            TurnParts(
                db,
                clock,
                bus,
                letters,
                presenter,
                config,
                models.model_for,
                toolbox,
                prompts,
                self._tool_context,
                Attachments(supervisor.adapter_of),
            )
        )
        lanes = Lanes(db, runner, prompts.compose, config, clock, owner)
        approvals = Approvals(db, clock, lanes.wake)
        parts = CommandParts(db, clock, lanes, approvals, letters, config, self._status, supervisor.adapter_of)
        dispatcher = Dispatcher(parts, collect(COMMANDS))
        intake = Intake(db, config, clock, lanes, letters, dispatcher, on_arrival=supervisor.arrived)
        supervisor.connect(intake.emit_for, delivery.connected)
        self.background = {
            "config": self.watch.run,
            "lanes": lanes.run,
            "delivery": delivery.run,
            "presenter": presenter.run,
            "janitor": Janitor(db, clock).run,
            "alerts": self._alerts.run,
        }
        self._gateway = Gateway(
            home,
            db,
            clock,
            bus,
            self.watch,
            self._manifests,
            supervisor,
            letters,
            lanes,
            delivery,
            intake,
            approvals,
            models,
            embedded,
            self.fetcher,
            hub,
            Door(db, clock, bus, lanes),
            self.troubles,
            toolbox,
        )
        return self._gateway

    async def _status(self) -> dict[str, Any]:
        assert self._gateway is not None  # noqa: S101 - commands run only when it is built
        return await self._gateway.status()

    def _tool_context(self, key: SessionKey, person_id: str, role: str, call_id: str) -> ToolContext:
        """Tools of the owner work in the home folder of whoever runs us, everybody else's in a folder of their own."""
        home = self._setting.home
        workspace = self._config().agent.workspace
        if workspace is None:
            own = home / "workspaces" / (person_id or "nobody").replace("/", "_")
            workspace = Path.home() if role == PersonRole.OWNER else own
        return ToolContext(call_id, key, person_id, workspace, forbidden=(home,))


# The worker


async def serve(options: WorkerOptions, ready: Callable[[], None]) -> int:
    """Be the gateway until asked to stop; returns the exit code. A home it cannot use raises at the start."""
    is_new = make_home(options.home).whose is Whose.NEW
    _print(banner.opening())
    setting = Setting(
        options.home,
        os.environ,
        Path.cwd(),
        redactor=options.redactor,
        paused_because=options.safe_reason,
        store_is_down=_Waiting(options).goes_on,
        set_log_level=logging.getLogger().setLevel,
        # Another gateway has the database: end here, and let the supervisor find out when it is free again.
        on_owner_lost=lambda reason: options.stop.ask(RESTART_ASKED, reason),
    )
    async with open_gateway(setting) as gateway, AsyncExitStack() as stack:
        if gateway.config.model.provider == EMBEDDED:
            gateway.fetcher.begin()
        http = await _listen(gateway, options, stack)
        options.heartbeat.describe = lambda: _describe(gateway)
        stack.enter_context(gateway.bus.watch(lambda event: _count(event, gateway, options)))
        await stack.enter_async_context(lag.sampling(os.environ))
        await _adapters_settled(gateway)
        ready()
        _print([options.redactor(line) for line in await _facts(gateway, http, options.command, is_new=is_new)])
        _print(
            banner.closing(
                seconds=gateway.clock.now() - options.started_at,
                command=options.command,
                is_terminal=sys.stdout.isatty(),
            )
        )
        if options.safe_reason:
            asyncio.get_running_loop().call_later(PAUSED_SECONDS, gateway.supervisor.resume_paused)
        code = await options.stop.wait()
        await say_goodbye(gateway)
        return code


class _Waiting:
    """Waits at the start for a database server, says so once, and gives up only when asked to stop."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._told = ""

    def goes_on(self, reason: str) -> bool:
        if self._options.stop.is_asked:
            return False
        if self._told != reason:
            self._told = reason
            log.error("Store is down", extra={"reason": reason, "while": "starting"})
            _print([f"Store    {reason}", "         I keep trying; HERMES_DATABASE_URL says where it is."])
            self._options.heartbeat.describe = lambda: (reason, 0)
        return True


async def _listen(gateway: Gateway, options: WorkerOptions, stack: AsyncExitStack) -> HttpServer | None:
    """Open the doors: the HTTP port, and the control socket."""
    http: HttpServer | None = None
    api = gateway.config.api
    keys = KeyRing(gateway.db, gateway.clock, await _default_key(gateway, options.redactor))
    if api.enabled:
        app = make_api(ApiParts(gateway, lambda: process_snapshot(options)), keys)
        http = HttpServer(app, api.host, api.port, lambda: guards.why_closed(_as_bound(gateway.config.api, api)))
        await stack.enter_async_context(http.listening())

    async def status(_args: Mapping[str, Any], _reply: Any) -> dict[str, Any]:
        told = {**process_snapshot(options), **await gateway.status()}
        told["safe_reason"] = gateway.supervisor.paused_because
        if http is not None and http.trouble:
            told["troubles"] = [*told["troubles"], http.trouble]
        return told

    key_verbs = KeyVerbs(gateway.db, gateway.clock, keys.forget).mapping()
    verbs = {**verbs_of(gateway), **lifecycle_verbs(options), **key_verbs, "status": status}
    await stack.enter_async_context(ControlServer(options.home, verbs).listening())
    return http


async def _default_key(gateway: Gateway, redactor: Redactor) -> Callable[[], Secret]:
    """The owner's key as it is at any moment: the configured one, else the one that the home keeps."""
    kept = await asyncio.to_thread(own_key, gateway.home)
    redactor.learn([kept])
    return lambda: gateway.config.api.key or kept


def _as_bound(now: ApiConfig, at_start: ApiConfig) -> ApiConfig:
    """The keys of the moment, and the host that was configured when the port was to open."""
    return replace(now, host=at_start.host)


async def _adapters_settled(gateway: Gateway) -> None:
    """Wait, not for long, until each account is either connected or known to be in trouble."""
    deadline = gateway.clock.monotonic() + SETTLE_SECONDS
    while gateway.clock.monotonic() < deadline:
        if all(account["state"] != Link.CONNECTING for account in gateway.supervisor.status()):
            return
        await asyncio.sleep(0.02)


async def _chat(gateway: Gateway, account: Mapping[str, Any]) -> str:
    """``telegram @ana_home_bot, connected``: by its name, if the platform tells it at once."""
    key, name = AccountKey.parse(account["account"]), ""
    adapter: object = gateway.supervisor.adapter_of(Target(key.platform, "", account=key.account))
    if account["state"] == Link.CONNECTED and isinstance(adapter, Describes):
        with contextlib.suppress(PlatformError, TimeoutError):  # a nicety; its state is what matters
            async with asyncio.timeout(NAME_SECONDS):
                name = f" {await adapter.describe()}"
    return f"{key}{name}, {account['state']}" + _because(account)


async def _facts(gateway: Gateway, http: HttpServer | None, command: str, *, is_new: bool) -> list[str]:
    config = gateway.config
    accounts = [account for account in gateway.supervisor.status() if account["account"] != "local"]
    chats = [await _chat(gateway, account) for account in accounts]
    model = str(gateway.fetcher.progress) if config.model.provider == EMBEDDED else gateway.models.model_for().label
    warnings = [str(problem) for problem in gateway.watch.loaded.problems] + gateway.troubles
    if accounts and not any(
        account.access.admits_somebody for of in config.platforms.values() for account in of.values()
    ):
        warnings.append(NOBODY_ALLOWED)
        log.warning(NOBODY_ALLOWED)
    return banner.facts(
        home=banner.short_home(str(gateway.home), str(Path.home())),
        is_new=is_new,
        model=model,
        api="off" if http is None else http.trouble or banner.api_line(http.url, command),
        chats=chats,
        warnings=warnings,
    )


def _because(account: Mapping[str, Any]) -> str:
    return f" ({account['note']})" if account["note"] else ""


def _describe(gateway: Gateway) -> tuple[str, int]:
    running = gateway.lanes.running()
    return (f"turn {running[0][1]}" if running else "", len(running))


def _count(event: TurnEvent, gateway: Gateway, options: WorkerOptions) -> None:
    if isinstance(event, TurnEnded):
        options.heartbeat.settle()
        if event.state == TurnState.DONE:
            gateway.models.answered()


async def say_goodbye(gateway: Gateway) -> None:
    """Tell the chats whose turn is running, once each; the note is gone after a minute if it cannot be sent."""
    rows = []
    for lane, turn_id in gateway.lanes.running():
        target: Target = SessionKey.parse(lane).target
        rows += gateway.letters.notice(target, words.SHUTTING_DOWN, turn_id=turn_id)
    if not rows:
        return
    try:
        await gateway.db.write(outbox.enqueue, rows, now=gateway.clock.now())
    except StoreIsDownError as error:
        log.warning("Store is down", extra={"while": "saying goodbye", "reason": str(error)})
    gateway.letters.due(rows)


def _print(lines: list[str]) -> None:
    with contextlib.suppress(OSError):  # the window is closed: the log has it all
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
