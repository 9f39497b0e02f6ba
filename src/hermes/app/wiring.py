"""Put the services together: the only place that says which gets what."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hermes.agent.backends.terminals import Terminals
from hermes.agent.board import BoardAccess
from hermes.agent.delegation import Delegation
from hermes.agent.messaging import FileSender
from hermes.agent.models.embedded.download import Fetcher, FetchProgress, FetchState
from hermes.agent.models.embedded.model import EmbeddedModel
from hermes.agent.prompt import PromptBuilder
from hermes.agent.scheduling import Scheduling
from hermes.agent.session_search import SessionSearch
from hermes.agent.skills.enable import SkillSwitches
from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.render import SkillCalls
from hermes.agent.speech.stt import Transcriber
from hermes.agent.speech.tts import Synthesizer
from hermes.agent.todos import TodoLists
from hermes.agent.toolkit.context import Parts
from hermes.agent.toolkit.schema import tools_of
from hermes.agent.toolkit.toolbox import Toolbox
from hermes.agent.toolkit.toolsets import Accesses, mistakes
from hermes.agent.vision import VisionModel
from hermes.agent.web.reader import DocumentReader
from hermes.agent.web.safe_http import GuardedWeb
from hermes.agent.web.search.service import WebSearch
from hermes.agent.workspace.checkpoints import Checkpoints
from hermes.app.tools import COMMANDS, TOOLS, ToolFactory
from hermes.config import EMBEDDED, Config, ConfigWatch, EnvFiles, Loaded, secrets_of
from hermes.core.dataclasses import dataclass
from hermes.core.durations import use_zone
from hermes.core.errors import StoreIsDownError
from hermes.core.i18n.catalogue import words_of
from hermes.core.keys import LOCAL, AccountKey, SessionKey, Target
from hermes.core.messages import OutboundMessage
from hermes.core.ports import Clock
from hermes.core.secret import Redactor
from hermes.platforms.local.hub import LocalHub
from hermes.services.adapters.registry import find_platforms
from hermes.services.adapters.supervisor import Supervisor
from hermes.services.approvals import Approvals
from hermes.services.clock import SystemClock, steady_clock
from hermes.services.commands.base import Commands, CommandServices, SlashCommand, collect
from hermes.services.commands.menus import Menus
from hermes.services.events import EventBus
from hermes.services.gateway import Gateway
from hermes.services.inbound.actions import Actions
from hermes.services.inbound.answers import Answers
from hermes.services.inbound.intake import Intake
from hermes.services.inbound.judge import EventJudge
from hermes.services.inbound.notices import Notices
from hermes.services.janitor import Janitor
from hermes.services.models import Models
from hermes.services.news import AccountChanged, ModelFetched, News
from hermes.services.outbound.alerts import Alerts, Troubles, home_targets
from hermes.services.outbound.approval_cards import ApprovalCards
from hermes.services.outbound.delivery import Delivery
from hermes.services.outbound.media import Media
from hermes.services.outbound.presenter import DEFAULT_PACE, Presenter, PresenterTiming
from hermes.services.outbound.rate_limits import RateLimiter
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.outbound.spool import Spool
from hermes.services.outbound.voice_reply import VoiceReply
from hermes.services.people.owners import Owners
from hermes.services.people.pairing import Pairings
from hermes.services.presses import Presses
from hermes.services.prompt_context import surroundings_of, today
from hermes.services.requests.background import Background
from hermes.services.requests.requests import Requests
from hermes.services.requests.subtasks import Subtasks
from hermes.services.restart import RestartRequest
from hermes.services.time_zone import zone_of
from hermes.services.turns import TurnRunner, TurnServices
from hermes.services.turns.attachments import Attachments
from hermes.services.turns.compression import Compression
from hermes.services.turns.lanes import Lanes
from hermes.store import outbox
from hermes.store.db import Database, StoreLimits
from hermes.store.outbox import OutboxKind

if TYPE_CHECKING:
    from hermes.agent.kanban import Board
    from hermes.services.cluster.node import ClusterNode
    from hermes.services.cluster.served import ServedTargets
    from hermes.services.cluster.services import ClusterServices
    from hermes.services.cron.for_tools import ToolJobs
    from hermes.services.cron.timer import CronTimer
    from hermes.services.deletion import SessionDeletion
    from hermes.services.kanban.dispatch import Dispatch
    from hermes.services.retention import Retention
    from hermes.services.webhooks.webhooks import Webhooks

log = logging.getLogger(__name__)

RETENTION_AFTER_SECONDS = 60.0  # the first look at what is too old
TRACING_LOOK_SECONDS = 10.0
HAND_OVER_SECONDS = 0.4  # for turns to finish, where another node can go on with them

Run = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Where a gateway lives and what it may know. ``only`` names the platforms to start (None: all).

    ``store_is_down`` is asked, with the reason, whether to wait for a database that does not answer at the start.
    ``on_gone``: other nodes of the cluster have taken over, and this process must end; told why.
    ``restart`` lets the supervisor start the gateway anew; None where there is none.
    ``doors_first``: whoever opens the gateway opens its doors and then tells it to ``begin``.
    ``owner_name`` is how the process calls itself to others that want the home; ``on_wait`` is told what the start
    waits for, and '' when that is over.
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
    pace: PresenterTiming = DEFAULT_PACE
    on_gone: Callable[[str], None] = lambda _: None
    restart: Callable[[str], None] | None = None
    store_is_down: Callable[[str], bool] = lambda _: False
    store_limits: StoreLimits = field(default_factory=StoreLimits)
    set_log_level: Callable[[str], None] = lambda _: None
    set_log_format: Callable[[str], None] = lambda _: None
    doors_first: bool = False
    owner_name: str = "gateway"
    on_wait: Callable[[str], None] = lambda _: None


class StartupContext:
    """What stands before the store is open: the platforms, the configuration as it changes, the troubles so far."""

    def __init__(self, setting: GatewayOptions) -> None:
        self.setting = setting
        self.clock = steady_clock(setting.clock)
        self.troubles = Troubles()
        found = find_platforms()
        for line in found.broken.values():
            self.troubles.texts.append(line)
            log.error("%s", line)
        only = self.setting.only
        self.manifests = {name: manifest for name, manifest in found.manifests.items() if only is None or name in only}
        self.news = News()
        self.fetcher = Fetcher(setting.home, on_progress=self._fetch_moved)
        self.watch = ConfigWatch(
            setting.home, setting.environ, setting.cwd, tuple(self.manifests.values()), on_change=self._config_changed
        )
        self.tool_factory = ToolFactory(setting.home, setting.environ, setting.redactor, self.clock, self.watch)
        self.tell_services: Callable[[Config], None] = lambda _: None
        self._take_config(self.watch.current)

    def config(self) -> Config:
        return self.watch.current

    def _take_config(self, config: Config) -> None:
        setting = self.setting
        setting.redactor.learn(config.secrets())
        files = EnvFiles.of(setting.home, setting.environ)
        setting.redactor.learn(secrets_of({**files.all(), **setting.environ}))
        setting.set_log_level(config.logs.level)
        setting.set_log_format(config.logs.format)
        zone = zone_of(config.timezone) if config.timezone else None
        use_zone(lambda: zone)

    def _fetch_moved(self, progress: FetchProgress) -> None:
        if progress.state in (FetchState.READY, FetchState.FAILED):
            self.news.publish(ModelFetched(progress.reason))

    def _config_changed(self, loaded: Loaded) -> None:
        self._take_config(loaded.config)
        self.tell_services(loaded.config)


class Wiring:
    """Every service of one gateway. Each says here what it is handed, and is made once: when it is first needed."""

    def __init__(self, ground: StartupContext, db: Database, owner: str, node: ClusterNode | None = None) -> None:
        self._ground = ground
        self._node = node
        self._cluster: ClusterServices | None = None
        self._setting = ground.setting
        self._tool_factory = ground.tool_factory
        self._watch = ground.watch
        self._config = ground.config
        self._home = ground.setting.home
        self._clock = ground.clock
        self._redact = ground.setting.redactor
        self._db = db
        self._owner = owner
        self._bus = EventBus()
        self._hub = LocalHub(ground.setting.home / "pictures")
        self._webhook_changes = asyncio.Event()
        self._response_stores: list[Callable[[], Awaitable[Database]]] = []
        self._board_used = asyncio.Event()

    def build(self) -> Gateway:
        """Make them all, and tie the knots that no order of making could."""
        self._ground.troubles.tell_through(self._alerts)
        self._tool_factory.parts = self._parts()
        self._supervisor.connect(self._intake.emit_for, self._connected)
        self._ground.tell_services = self._config_changed
        if self._node is not None:
            self._join(self._node)
        return self._gateway

    def _join(self, node: ClusterNode) -> None:
        """Connect the parts that another node can wake, and those that stop with the lease."""
        self._ground.troubles.tells_for_all = lambda: node.duties.is_held("task:alerts")
        node.on_lapse(self._supervisor.lapse)
        node.on_change(self._look)
        node.carry(self._hand_over, self._lanes.resume)
        node.wakeups.on("lane", self._lanes.hear)
        node.wakeups.on("target", self._hear_target)
        from hermes.services.cluster.services import ClusterServices  # only in a cluster

        self._cluster = ClusterServices(
            node,
            self._db,
            self._bus,
            self._lanes,
            str(self._home),
            self._supervisor.status,
            self._pairings,
            self.terminals,
        )

    async def _hand_over(self) -> None:
        """Let other nodes go on with what runs here: accounts at once, turns after a moment to finish."""
        self._supervisor.hand_over()
        await self._lanes.drain(HAND_OVER_SECONDS)

    def _hear_target(self, target: str) -> None:
        if self._served is not None and self._served.has(target):
            self._delivery.wake(target)

    def _look(self) -> None:
        """Work may have become free: look now, and not with the next slow poll."""
        for part in (self._lanes.look, self._delivery.look):
            self._actions.spawn(_unless_down(part))

    def background(self) -> dict[str, Run]:
        """What runs as long as the gateway does, by the names of its tasks."""
        of_cluster: dict[str, Run] = {}
        if self._node is not None and self._setting.only is None:  # a command does nothing for all
            of_cluster["duties"] = self._node.duties.keep
        if self._cluster is not None:
            of_cluster |= self._cluster.background()
        if self._setting.only is None:
            of_cluster["backups"] = self._run_backups
        return {
            **of_cluster,
            "menus": self._menus.run,
            "config": self._watch.run,
            "intake": self._actions.run,
            "lanes": self._lanes.run,
            "delivery": self._delivery.run,
            "presenter": self._presenter.run,
            "compression": self._compression.run,
            "janitor": self._janitor.run,
            "alerts": self._alerts.run,
            "owners": self._owners.run,
            "kanban": self._run_kanban,
            "recall": self._recall.run,
            "terminals": self.terminals.run,
            "skills": self._skills.run,
            "tools": self._bring_in_tools,
            "cron": self._run_cron,
            "retention": self._run_retention,
            "tracing": self._run_tracing,
        }

    async def _run_backups(self) -> None:
        await asyncio.sleep(60)  # what was said before is in the backup of the last life
        from hermes.services.backups import BackupTimer  # no start needs it

        await BackupTimer(self._home, lambda: self._watch.current).run()

    @cached_property
    def _janitor(self) -> Janitor:
        return Janitor(
            self._db,
            self._clock,
            self._checkpoints.sweep,
            self._spool.sweep,
            self._sweep_cron,
            on_clock_set=self._clock_set,
            is_mine=self._is_mine("task:janitor"),
        )

    @cached_property
    def _gateway(self) -> Gateway:
        return Gateway(
            home=self._home,
            db=self._db,
            clock=self._clock,
            bus=self._bus,
            watch=self._watch,
            manifests=self._ground.manifests,
            supervisor=self._supervisor,
            outbox_writer=self._outbox_writer,
            lanes=self._lanes,
            delivery=self._delivery,
            actions=self._actions,
            approvals=self._approvals,
            models=self._models,
            embedded=self._embedded,
            fetcher=self._ground.fetcher,
            hub=self._hub,
            requests=self._requests,
            pairings=self._pairings,
            deletion=lambda: self._deletion,
            response_stores=self._response_stores,
            board=lambda: self._board,
            dispatch=lambda: self._dispatch,
            troubles=self._ground.troubles.texts,
            note_trouble=self._ground.troubles.note,
            toolbox=self._toolbox,
            skills=self._skills,
            news=self._ground.news,
            last_output=lambda lane, count: self.terminals.last_output(lane, count),
            node=self._node,
            cron=lambda: self._cron,
            jobs=lambda: self._jobs,
            webhooks=lambda: self._webhooks,
            webhook_changes=self._webhook_changes,
        )

    # What goes

    @cached_property
    def _deletion(self) -> SessionDeletion:
        from hermes.services.deletion import SessionDeletion  # a start deletes nothing

        return SessionDeletion(self._db, self._home, self._clock, self._response_stores)

    async def _run_retention(self) -> None:
        """Prune what is too old, in a gateway that hears all platforms; the first look is a while after the start."""
        if self._setting.only is None:
            await asyncio.sleep(RETENTION_AFTER_SECONDS)
            await asyncio.to_thread(import_module, "hermes.services.retention")
            await self._retention.run()

    async def _run_tracing(self) -> None:
        """Send traces while ``tracing.endpoint`` names a collector; another one is found within a few seconds."""
        while True:
            wanted = self._config().tracing
            if not wanted.endpoint:
                await asyncio.sleep(TRACING_LOOK_SECONDS)
                continue
            await asyncio.to_thread(import_module, "hermes.services.tracing")
            from hermes.services.tracing import Tracing

            sending = asyncio.create_task(Tracing(self._bus, self._config, self._node_name()).run(), name="traces")
            try:
                while self._config().tracing == wanted and not sending.done():
                    await asyncio.wait([sending], timeout=TRACING_LOOK_SECONDS)
            finally:
                sending.cancel()
                await asyncio.wait([sending])
            if not sending.cancelled() and (error := sending.exception()) is not None:
                raise error

    def _node_name(self) -> str:
        return self._node.name if self._node is not None else ""

    @cached_property
    def _retention(self) -> Retention:
        from hermes.services.retention import Retention

        is_mine = self._is_mine("task:janitor")
        return Retention(self._db, self._home, self._clock, self._config, self._deletion, is_mine)

    def _is_mine(self, task: str) -> Callable[[], bool] | None:
        """Whether this node does what one node does for all; None where there are no others."""
        node = self._node
        return None if node is None else lambda: node.duties.is_held(task)

    async def _status(self) -> dict[str, Any]:
        return await self._gateway.status()

    # What changes while it runs

    def _config_changed(self, config: Config) -> None:
        self._supervisor.reconcile()
        self._menus.changed()
        self._owners.changed()
        if self._toolbox.are_made:  # else it is told when they are
            self._tell_mistakes()
        if config.model.provider == EMBEDDED:
            self._ground.fetcher.begin()

    async def _bring_in_tools(self) -> None:
        await self._skills.may_begin.wait()
        await self._toolbox.ready()
        self._tell_mistakes()

    def _tell_mistakes(self) -> None:
        """A name that a setting of tools gets wrong, once for each configuration that has it."""
        for mistake in mistakes(self._config(), self._toolbox.tools()) if self._setting.only is None else ():
            log.warning("Setting names an unknown tool", extra={"reason": mistake})

    async def _connected(self, account: str) -> None:
        await self._delivery.connected(account)
        await self._menus.connected(account)

    # The accounts, and what goes out to them

    @cached_property
    def _supervisor(self) -> Supervisor:
        return Supervisor(
            self._ground.manifests,
            self._db,
            self._config,
            self._clock,
            {LOCAL: {"hub": self._hub}},
            self._setting.paused_because,
            on_signed_out=self._tell_signed_out,
            on_change=lambda account, state: self._ground.news.publish(AccountChanged(str(account), state.value)),
            duties=self._node.duties if self._node is not None else None,
            check=self._node.check_request if self._node is not None else None,
        )

    def _tell_signed_out(self, account: AccountKey, reason: str) -> None:
        """Only another chat can tell of it."""
        words = words_of(self._config().language)
        self._alerts.tell(words.ACCOUNT_SIGNED_OUT.format(account=account, reason=reason), but=account)

    @cached_property
    def _rate_limiter(self) -> RateLimiter:
        return RateLimiter(self._supervisor.capabilities)

    @cached_property
    def _delivery(self) -> Delivery:
        supervisor = self._supervisor
        return Delivery(
            self._db,
            supervisor.adapter_of,
            self._config,
            self._clock,
            self._owner,
            self._rate_limiter,
            on_sent=supervisor.delivered,
            on_refused=supervisor.refused,
            bring_files=self._spool.bring,
            served=self._served,
        )

    @cached_property
    def _served(self) -> ServedTargets | None:
        if self._node is None:
            return None
        from hermes.services.cluster.served import ServedTargets  # only in a cluster

        return ServedTargets(self._node, self._supervisor, self._hub)

    @cached_property
    def _outbox_writer(self) -> OutboxWriter:
        return OutboxWriter(self._supervisor.capabilities, self._config, self._clock, self._delivery)

    @cached_property
    def _alerts(self) -> Alerts:
        return Alerts(self._db, self._outbox_writer, self._config, self._clock)

    @cached_property
    def _presenter(self) -> Presenter:
        adapter_of, pace = self._supervisor.adapter_of, self._setting.pace
        return Presenter(self._db, self._bus, self._outbox_writer, adapter_of, self._config, self._rate_limiter, pace)

    @cached_property
    def _cards(self) -> ApprovalCards:
        return ApprovalCards(self._supervisor.capabilities, lambda: self._config().language)

    @cached_property
    def _spool(self) -> Spool:
        return Spool(self._home, self._db, self._clock)

    @cached_property
    def _media(self) -> Media:
        return Media(self._spool, self._outbox_writer, self._synthesizer)

    # The agent

    @cached_property
    def _embedded(self) -> EmbeddedModel:
        return EmbeddedModel(self._home, self._ground.fetcher, wait_seconds=self._setting.model_wait_seconds)

    @cached_property
    def _models(self) -> Models:
        return Models(self._config, self._embedded, self._clock)

    @cached_property
    def _skills(self) -> SkillLibrary:
        return self._tool_factory.skills()

    @cached_property
    def _synthesizer(self) -> Synthesizer:
        return self._tool_factory.synthesizer(self._db)

    @cached_property
    def _reader(self) -> DocumentReader:
        return DocumentReader()

    @cached_property
    def _prompts(self) -> PromptBuilder:
        config, clock, skills = self._config, self._clock, self._skills
        return PromptBuilder(
            surroundings=lambda: surroundings_of(config()),
            today=lambda: today(config(), clock.now()),
            skills=lambda key, role: skills.index(key.platform, role),
        )

    @cached_property
    def _toolbox(self) -> Toolbox:
        modules = self._setting.tools
        return Toolbox(lambda: tools_of(*modules), access=Accesses(self._config), redact=self._redact)

    @cached_property
    def _compression(self) -> Compression:
        return Compression(self._db, self._clock, self._config, self._models.named, self._tell)

    async def _tell(self, target: Target, text: str) -> None:
        rows = self._outbox_writer.rows(OutboundMessage(target, text), OutboxKind.REPLY)
        await self._db.write(outbox.enqueue, rows, now=self._clock.now())
        self._outbox_writer.due(rows)

    # Jobs: imported when the gateway has begun, or when somebody asks for them

    @cached_property
    def _cron(self) -> CronTimer:
        from hermes.services.cron.timer import CronTimer

        return CronTimer(self._db, self._clock, self._config, self._bus, self._lanes, self._outbox_writer, self._home)

    @cached_property
    def _jobs(self) -> ToolJobs:
        from hermes.services.cron.for_tools import ToolJobs

        return ToolJobs(
            self._db,
            self._clock,
            lambda: self._watch.loaded,
            self._home,
            self._skills,
            changed=self._cron.changed,
            wake=self._lanes.wake,
            status=self._cron.status,
        )

    @cached_property
    def _webhooks(self) -> Webhooks:
        from hermes.services.webhooks.webhooks import Webhooks

        return Webhooks(
            self._db, self._clock, self._config, self._lanes, self._redact, changed=self._webhook_changes.set
        )

    async def _run_cron(self) -> None:
        """Fire jobs in a gateway that hears all platforms; a command that works alone leaves them to one."""
        await self._skills.may_begin.wait()
        if self._setting.only is None and self._config().cron.enabled:
            await asyncio.to_thread(import_module, "hermes.services.cron.timer")
            await self._cron.run()

    async def _sweep_cron(self) -> None:
        if "_cron" in vars(self):
            await self._cron.sweep()

    def _clock_set(self, by: float) -> None:
        if "_cron" in vars(self):
            self._cron.clock_set(by)

    def _skill_texts(self, names: Sequence[str]) -> str:
        from hermes.services.cron.for_tools import skill_texts

        return skill_texts(self._skills, names)

    # Turns

    @cached_property
    def _runner(self) -> TurnRunner:
        transcriber = Transcriber(self._config, self._tool_factory.open_http)
        return TurnRunner(
            TurnServices(
                self._db,
                self._clock,
                self._bus,
                self._outbox_writer,
                self._presenter,
                self._config,
                self._models.model_for,
                self._toolbox,
                self._prompts,
                self._tool_factory.context,
                Attachments(self._supervisor.reader_of, transcriber, self._reader),
                self._cards,
                self._compression.grown,
                self._media,
                VoiceReply(self._synthesizer, self._media, self._outbox_writer),
                self._spool,
                self._node.check if self._node is not None else None,
                self._node.name if self._node is not None else "",
                self._skill_texts,
            )
        )

    @cached_property
    def _lanes(self) -> Lanes:
        compose = SkillCalls(self._skills, self._prompts.compose).compose
        lanes = Lanes(self._db, self._runner, compose, self._config, self._clock, self._owner, self._outbox_writer)
        if self._node is not None:
            wakeups = self._node.wakeups
            takes_any = self._setting.only is None or not self._node.has_others()
            lanes.join(self._node.name, lambda lane: wakeups.send("lane", lane), takes_any=takes_any)
        return lanes

    @cached_property
    def _approvals(self) -> Approvals:
        return Approvals(self._db, self._clock, self._lanes.wake, self._cards, self._outbox_writer.due_target)

    @cached_property
    def _requests(self) -> Requests:
        return Requests(self._db, self._clock, self._bus, self._lanes, self._redact)

    # What tools work with

    @cached_property
    def _recall(self) -> SessionSearch:
        return SessionSearch(self._db, self._home, self._clock)

    @cached_property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self._db, self._clock, self._home, lambda: self._config().checkpoints)

    @cached_property
    def terminals(self) -> Terminals:
        return self._tool_factory.terminals(self._db, self._skills, self._node.name if self._node is not None else "")

    def _parts(self) -> Parts:
        """A tool asks for the one it needs by its class."""
        config, tool_factory, outbox_writer, media = self._config, self._tool_factory, self._outbox_writer, self._media
        return Parts(
            self._toolbox,
            self._compression,
            self._recall,
            self._checkpoints,
            TodoLists(self._db, self._clock),
            tool_factory.post(outbox_writer, media),
            Delegation(Subtasks(self._db, self._requests, self._lanes).run),
            GuardedWeb(lambda: config().web, tool_factory.open_proxied),
            self._reader,
            WebSearch(lambda: config().web, tool_factory.open_http),
            self._synthesizer,
            FileSender(outbox_writer.capabilities, media.pack, outbox_writer.due, self._clock.now),
            VisionModel(lambda key: self._models.named(config().vision.model, key)),
            self.terminals,
            self._skills,
            SkillSwitches(lambda: self._watch.loaded, self._watch.read_again),
            RestartRequest(self._setting.restart, self._clock.now()),
            self._supervisor,
            self._presenter,
            Background(self._db, self._requests, self._lanes),
            Scheduling(lambda: self._jobs),
            BoardAccess(lambda: self._board),
        )

    # The board of tasks

    @cached_property
    def _board(self) -> Board:
        from hermes.agent.kanban import Board

        self._board_used.set()
        return Board(self._db, self._home, self._clock, self._ground.troubles.note)

    @cached_property
    def _dispatch(self) -> Dispatch:
        from hermes.services.kanban.dispatch import Dispatch

        dispatch = Dispatch(self._board, self._db, self._requests, self._config, self._clock, self._bus)
        self._board.on_change = dispatch.wake
        return dispatch

    async def _run_kanban(self) -> None:
        """Run tasks in a gateway that hears all platforms; a command that works alone leaves them to one."""
        await self._skills.may_begin.wait()
        if self._setting.only is None:
            if self._db.dialect.name == "sqlite" and not (self._home / "kanban.db").exists():
                await self._board_used.wait()  # most gateways have no board, and load nothing of it
            await asyncio.to_thread(import_module, "hermes.services.kanban.dispatch")
            await self._dispatch.run()

    async def close_board(self) -> None:
        if "_board" in vars(self):
            await self._board.close()

    # What comes in

    @cached_property
    def _commands(self) -> dict[str, SlashCommand]:
        return collect(COMMANDS)

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self._db, self._clock, self._outbox_writer, self._lanes)

    @cached_property
    def _command_runner(self) -> Commands:
        services = CommandServices(
            db=self._db,
            clock=self._clock,
            lanes=self._lanes,
            approvals=self._approvals,
            owners=self._owners,
            config=self._config,
            loaded=lambda: self._watch.loaded,
            read_again=self._watch.read_again,
            status=self._status,
            tool_parts=lambda: self._tool_factory.parts,
            reach_of=self._tool_factory.context,
            jobs=lambda: self._jobs,
        )
        return Commands(services, self._commands, self._answers)

    @cached_property
    def _presses(self) -> Presses:
        adapter_of = self._supervisor.adapter_of
        return Presses(self._db, self._config, self._approvals, self._pairings, self._owners, self._answers, adapter_of)

    @cached_property
    def _menus(self) -> Menus:
        return Menus(self._db, self._config, self._supervisor.adapter_of, self._commands)

    @cached_property
    def _pairings(self) -> Pairings:
        config = self._config
        homes, language = lambda: home_targets(config()), lambda: config().language
        return Pairings(
            self._db, self._clock, self._outbox_writer, self._home, homes, language, self._ground.news.publish
        )

    @cached_property
    def _owners(self) -> Owners:
        return Owners(self._db, self._config, self._clock, self._outbox_writer, self._bus)

    @cached_property
    def _notices(self) -> Notices:
        return Notices(self._db, self._config, self._clock, self._outbox_writer, self._pairings)

    @cached_property
    def _actions(self) -> Actions:
        return Actions(
            self._db,
            self._clock,
            self._lanes,
            self._outbox_writer,
            self._notices,
            commands=self._command_runner,
            presses=self._presses,
            is_mine=self._is_mine_to_act if self._node is not None else None,
        )

    def _is_mine_to_act(self, key: SessionKey) -> bool:
        """Whether this node takes up what was left undone in a chat: it has the account, or does it for all."""
        if key.platform == LOCAL:
            return self._node is not None and self._node.duties.is_held("task:janitor")
        return self._supervisor.has(key.target)

    @cached_property
    def _intake(self) -> Intake:
        commands, skills = self._commands, self._skills
        judge = EventJudge(
            self._config,
            self._clock,
            self._notices,
            is_paired=self._pairings.is_paired,
            calls_skill=lambda name, platform: name not in commands and skills.is_called(name, platform),
            redact=self._redact,
        )
        return Intake(
            self._db,
            self._clock,
            self._lanes,
            self._outbox_writer,
            judge=judge,
            notices=self._notices,
            actions=self._actions,
            owners=lambda: self._config().owners,
            on_arrival=self._supervisor.arrived,
            notice_after_seconds=self._setting.pace.told_it_waits_seconds,
        )


async def _unless_down(look: Run) -> None:
    """Look; a store that is down is looked at again by the slow poll."""
    try:
        await look()
    except StoreIsDownError as error:
        log.warning("Store is down", extra={"while": "looking for work", "reason": str(error)})
