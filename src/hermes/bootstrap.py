"""The only place where the services are put together. Its doors are opened in ``serving``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from hermes.agent.backends.terminals import end_leftovers
from hermes.agent.checkpoints import Checkpoints
from hermes.agent.hearing.ears import Ears
from hermes.agent.models.embedded import EmbeddedModel
from hermes.agent.models.fetch import Fetcher
from hermes.agent.post import ParcelPost
from hermes.agent.prompt import PromptBuilder
from hermes.agent.recall import Recall
from hermes.agent.sight import Sight
from hermes.agent.skills.showing import SkillCalls
from hermes.agent.skills.switches import SkillSwitches
from hermes.agent.todos import TodoLists
from hermes.agent.toolkit import Parts, Toolbox, tools_of
from hermes.agent.toolsets import Accesses, mistakes
from hermes.agent.web.guarded import GuardedWeb
from hermes.agent.web.readable import Reader
from hermes.agent.web.search import Search
from hermes.config import EMBEDDED, Config, ConfigWatch, EnvFiles, Loaded, secrets_of
from hermes.core.catalogue import words_of
from hermes.core.errors import GatewayError, StoreIsDownError
from hermes.core.keys import AccountKey, Target
from hermes.core.manifest import Manifest
from hermes.core.messages import OutboundMessage
from hermes.core.ports import Clock
from hermes.core.secret import Redactor
from hermes.core.values import dataclass
from hermes.equipment import COMMANDS, TOOLS, Equipment
from hermes.hosting import locks, paths
from hermes.platforms.local.hub import LocalHub
from hermes.services.alerts import Alerts, home_targets
from hermes.services.aloud import Aloud
from hermes.services.approvals import Approvals
from hermes.services.attachments import Attachments
from hermes.services.background import Background
from hermes.services.cards import Cards
from hermes.services.clock import SystemClock
from hermes.services.commands.base import CommandParts, Dispatcher, collect
from hermes.services.compression import Compression
from hermes.services.delivery import Delivery
from hermes.services.door import Door
from hermes.services.errands import Errands
from hermes.services.events import EventBus
from hermes.services.gateway import Gateway
from hermes.services.intake import Intake
from hermes.services.janitor import Janitor
from hermes.services.lanes import Lanes
from hermes.services.letters import Letters
from hermes.services.media import Media
from hermes.services.menus import Menus
from hermes.services.models import Models
from hermes.services.pacing import Pacer
from hermes.services.pairing import Pairings
from hermes.services.presenter import DEFAULT_PACE, Pace, Presenter
from hermes.services.processes import kill_group
from hermes.services.registry import find_platforms
from hermes.services.restarts import Restarts
from hermes.services.spool import Spool
from hermes.services.supervisor import Supervisor
from hermes.services.surroundings import surroundings_of, today
from hermes.services.turns import TurnParts, TurnRunner
from hermes.store import claims, outbox, turns
from hermes.store.db import PASSING, Database, Limits, Trouble, Tx, open_database
from hermes.store.home import make_home
from hermes.store.ids import new_id
from hermes.store.outbox import OutboxKind

log = logging.getLogger(__name__)

LOCK_WAIT_SECONDS = 3.0
GATEWAY_WAIT_SECONDS = 30.0
STORE_RETRY_SECONDS = 0.5
TURNS_DRAIN_SECONDS = 3.5
SENDS_DRAIN_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a gateway lives and what it may know. ``only`` names the platforms to start (None: all).

    ``store_is_down`` is asked, with the reason, whether to wait for a database that does not answer at the start.
    ``restart`` lets the supervisor start the gateway anew; None where there is none.
    ``doors_first``: whoever opens the gateway opens its doors and then tells it to ``begin``.
    """

    home: Path
    environ: Mapping[str, str]
    cwd: Path
    redactor: Redactor = field(default_factory=Redactor)
    only: frozenset[str] | None = None
    paused_because: str = ""
    tools: tuple[ModuleType | str, ...] = TOOLS
    clock: Clock = field(default_factory=SystemClock)
    model_wait_seconds: float = 20.0
    pace: Pace = DEFAULT_PACE
    on_owner_lost: Callable[[str], None] = lambda _: None
    restart: Callable[[str], None] | None = None
    store_is_down: Callable[[str], bool] = lambda _: False
    store_limits: Limits = field(default_factory=Limits)
    set_log_level: Callable[[str], None] = lambda _: None
    doors_first: bool = False


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
        await _kill_leftovers(db, now=setting.clock.now())
        gateway = builder.build(db, owner)
        stack.push_async_callback(builder.end_commands)
        await gateway.door.forget_gone_clients()  # before any lane is served
        await gateway.pairings.load()  # before any message is judged
        stack.push_async_callback(gateway.models.close)
        stack.push_async_callback(gateway.embedded.aclose)
        stack.push_async_callback(builder.fetcher.aclose)
        tasks = [asyncio.create_task(run(), name=name) for name, run in builder.background.items()]
        stack.push_async_callback(_end, tasks)
        if not setting.doors_first:
            gateway.begin()
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


async def _kill_leftovers(db: Database, *, now: float) -> None:
    """Processes of tools whose worker died."""
    for left in await db.read(turns.leftover_processes):
        if kill_group(left.process_group, left.process_started):
            log.warning("Killed a process left by a crash", extra={"group": left.process_group, "call": left.call_id})
    await end_leftovers(db, now=now)


class _Builder:
    """Puts the services together; lives only until they are."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.troubles: list[str] = []
        self._passing: set[str] = set()
        self._untold: list[str] = []
        self._alerts: Alerts | None = None
        self._gateway: Gateway | None = None
        self._menus: Menus | None = None
        self._manifests = self._platforms()
        self.watch = ConfigWatch(
            setting.home,
            setting.environ,
            setting.cwd,
            tuple(self._manifests.values()),
            on_change=self._config_changed,
        )
        self._equipment = Equipment(
            setting.home, setting.environ, setting.cwd, setting.redactor, setting.clock, self.watch
        )
        self._take_config(self.watch.current)
        self.fetcher = Fetcher(setting.home)
        self.background: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
        self.end_commands: Callable[[], Coroutine[Any, Any, None]]

    def _platforms(self) -> Mapping[str, Manifest]:
        found = find_platforms()
        self.troubles.extend(found.broken.values())
        for line in found.broken.values():
            log.error("%s", line)
        only = self._setting.only
        return {name: manifest for name, manifest in found.manifests.items() if only is None or name in only}

    def _config(self) -> Config:
        return self.watch.current

    def _take_config(self, config: Config) -> None:
        self._setting.redactor.learn(config.secrets())
        files = EnvFiles((self._setting.home / ".env", self._setting.cwd / ".env"))
        self._setting.redactor.learn(secrets_of({**files.all(), **self._setting.environ}))
        self._setting.set_log_level(config.logs.level)

    def _config_changed(self, loaded: Loaded) -> None:
        self._take_config(loaded.config)
        if self._gateway is not None:
            self._gateway.supervisor.reconcile()
            if self._menus is not None:
                self._menus.changed()
            if self._gateway.toolbox.are_made:  # else it is told when they are
                self._tell_mistakes(self._gateway.toolbox)
            if loaded.config.model.provider == EMBEDDED:
                self.fetcher.begin()

    async def _bring_in_tools(self, toolbox: Toolbox, may_begin: asyncio.Event) -> None:
        await may_begin.wait()
        await toolbox.ready()
        self._tell_mistakes(toolbox)

    def _tell_mistakes(self, toolbox: Toolbox) -> None:
        """A name that a setting of tools gets wrong, once for each configuration that has it."""
        for mistake in mistakes(self._config(), toolbox.tools()) if self._setting.only is None else ():
            log.warning("A setting names nothing", extra={"reason": mistake})

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

    def _tell_signed_out(self, account: AccountKey, reason: str) -> None:
        """Only another chat can tell of it."""
        if self._alerts is not None:
            words = words_of(self._config().language)
            self._alerts.tell(words.ACCOUNT_SIGNED_OUT.format(account=account, reason=reason), but=account)

    def build(self, db: Database, owner: str) -> Gateway:
        clock, config, home = self._setting.clock, self._config, self._setting.home
        bus, hub = EventBus(), LocalHub()
        embedded = EmbeddedModel(home, self.fetcher, wait_seconds=self._setting.model_wait_seconds)
        models = Models(config, embedded, clock)
        supervisor = Supervisor(
            self._manifests,
            db,
            config,
            clock,
            {"local": {"hub": hub}},
            self._setting.paused_because,
            on_signed_out=self._tell_signed_out,
        )
        pacer = Pacer(supervisor.capabilities)
        delivery = Delivery(
            db,
            supervisor.adapter_of,
            config,
            clock,
            owner,
            pacer,
            on_sent=supervisor.delivered,
            on_refused=supervisor.refused,
        )
        letters = Letters(supervisor.capabilities, config, clock, delivery)
        self._alerts = Alerts(db, letters, config, clock)
        for text in self._untold:
            self._alerts.tell(text)
        presenter = Presenter(db, bus, letters, supervisor.adapter_of, config, pacer, self._setting.pace)
        skills = self._equipment.skills()
        prompts = PromptBuilder(
            surroundings=lambda: surroundings_of(config()),
            today=lambda: today(config(), clock.now()),
            skills=lambda key, role: skills.index(key.platform, role),
        )
        toolbox = Toolbox(
            lambda: tools_of(*self._setting.tools),
            access=Accesses(config),
            redact=self._setting.redactor,
        )
        cards = Cards(supervisor.capabilities, lambda: config().language)
        reader, spool, voices = Reader(), Spool(home, db, clock), self._equipment.voices(db)
        media = Media(spool, letters, voices)
        compression = Compression(db, clock, config, models.named, self._teller(db, letters))
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
                self._equipment.context,
                Attachments(supervisor.adapter_of, Ears(config, self._equipment.open_http), reader),
                cards,
                compression.grown,
                media,
                Aloud(voices, media, letters),
            )
        )
        lanes = Lanes(db, runner, SkillCalls(skills, prompts.compose).compose, config, clock, owner, letters)
        approvals = Approvals(db, clock, lanes.wake, cards, letters.due_target)
        pairings = Pairings(db, clock, letters, home, lambda: home_targets(config()), lambda: config().language)
        parts = CommandParts(
            db,
            clock,
            lanes,
            approvals,
            letters,
            config,
            self._status,
            supervisor.adapter_of,
            lambda: self._equipment.parts,
            self._equipment.context,
            pairings,
            lambda: self.watch.loaded,
            self.watch.read_again,
        )
        commands = collect(COMMANDS)
        dispatcher = Dispatcher(parts, commands)
        door = Door(db, clock, bus, lanes, self._setting.redactor)
        recall = Recall(db, home, clock)
        checkpoints = Checkpoints(db, clock, home, lambda: config().checkpoints)
        terminals = self._equipment.terminals(db, skills)
        self.end_commands = terminals.close
        self._equipment.parts = Parts(
            toolbox,
            compression,
            recall,
            checkpoints,
            TodoLists(db, clock),
            self._equipment.post(letters, media),
            self._equipment.delegation(Errands(db, door, lanes)),
            GuardedWeb(lambda: config().web, self._equipment.open_proxied),
            reader,
            Search(lambda: config().web, self._equipment.open_http),
            voices,
            ParcelPost(letters.capabilities, media.pack, letters.due, clock.now),
            Sight(lambda key: models.named(config().vision.model, key)),
            terminals,
            skills,
            SkillSwitches(lambda: self.watch.loaded, self.watch.read_again),
            Restarts(self._setting.restart, clock.now()),
            presenter,
            Background(db, door, lanes),
        )
        intake = Intake(
            db,
            config,
            clock,
            lanes,
            letters,
            dispatcher,
            pairings,
            on_arrival=supervisor.arrived,
            calls_skill=lambda name, platform: name not in commands and skills.is_called(name, platform),
            redact=self._setting.redactor,
            told_after_seconds=self._setting.pace.told_it_waits_seconds,
        )
        menus = self._menus = Menus(db, config, supervisor.adapter_of, commands)

        async def connected(account: str) -> None:
            await delivery.connected(account)
            await menus.connected(account)

        supervisor.connect(intake.emit_for, connected)
        self.background = {
            "menus": menus.run,
            "config": self.watch.run,
            "lanes": lanes.run,
            "delivery": delivery.run,
            "presenter": presenter.run,
            "compression": compression.run,
            "janitor": Janitor(db, clock, checkpoints.sweep, spool.sweep).run,
            "alerts": self._alerts.run,
            "recall": recall.run,
            "terminals": terminals.run,
            "skills": skills.run,
            "tools": partial(self._bring_in_tools, toolbox, skills.may_begin),
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
            door,
            pairings,
            self.troubles,
            toolbox,
            skills,
        )
        return self._gateway

    def _teller(self, db: Database, letters: Letters) -> Callable[[Target, str], Coroutine[Any, Any, None]]:
        async def tell(target: Target, text: str) -> None:
            rows = letters.rows(OutboundMessage(target, text), OutboxKind.REPLY)
            await db.write(outbox.enqueue, rows, now=self._setting.clock.now())
            letters.due(rows)

        return tell

    async def _status(self) -> dict[str, Any]:
        assert self._gateway is not None  # noqa: S101 - commands run only when it is built
        return await self._gateway.status()
