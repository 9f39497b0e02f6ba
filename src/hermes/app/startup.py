"""What a gateway is started with, and what stands before its services: platforms, configuration, store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from hermes.agent.models.embedded.download import Fetcher, FetchProgress, FetchState
from hermes.app.tools import TOOLS, ToolFactory
from hermes.config import Config, ConfigWatch, EnvFiles, Loaded, secrets_of
from hermes.core.dataclasses import dataclass
from hermes.core.durations import use_zone
from hermes.core.ports import Clock
from hermes.core.secret import Redactor
from hermes.platforms.local.hub import LocalHub
from hermes.services.adapters.registry import find_platforms
from hermes.services.clock import SystemClock, steady_clock
from hermes.services.events import EventBus
from hermes.services.news import ModelFetched, News
from hermes.services.outbound.alerts import Troubles
from hermes.services.outbound.presenter import DEFAULT_PACE, PresenterTiming
from hermes.services.time_zone import zone_of
from hermes.store.db import Database, StoreLimits

if TYPE_CHECKING:
    from hermes.services.cluster.node import ClusterNode

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Where a gateway lives and what it may know. ``only`` names the platforms to start (None: all).

    ``store_is_down`` is asked, with the reason, whether to wait for a database that does not answer at the start.
    ``on_gone`` is called with the reason when other nodes of the cluster have taken over: this process must end.
    ``restart`` lets the supervisor start the gateway anew; None where there is none.
    ``doors_first``: the caller of ``open_gateway`` opens the ports and then calls ``begin``.
    ``owner_name`` names the process to others that want the home; ``on_wait`` is called with what the start waits
    for, and with '' when that is over.
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

    @property
    def serves_all(self) -> bool:
        """Whether this is a gateway with all its platforms, and not a command that works alone."""
        return self.only is None


class StartupContext:
    """What stands before the store is open: the platforms, the configuration as it changes, the troubles so far."""

    def __init__(self, options: GatewayOptions) -> None:
        self.options = options
        self.clock = steady_clock(options.clock)
        self.troubles = Troubles()
        found = find_platforms()
        for line in found.broken.values():
            self.troubles.texts.append(line)
            log.error("%s", line)
        only = options.only
        self.manifests = {name: manifest for name, manifest in found.manifests.items() if only is None or name in only}
        self.news = News()
        self.fetcher = Fetcher(options.home, on_progress=self._fetch_moved)
        self.watch = ConfigWatch(
            options.home, options.environ, options.cwd, tuple(self.manifests.values()), on_change=self._config_changed
        )
        self.tool_factory = ToolFactory(options.home, options.environ, options.redactor, self.clock, self.watch)
        self.on_config: Callable[[Config], None] = lambda _: None
        self._apply_config(self.watch.current)

    def config(self) -> Config:
        return self.watch.current

    def _apply_config(self, config: Config) -> None:
        options = self.options
        options.redactor.learn(config.secrets())
        files = EnvFiles.of(options.home, options.environ)
        options.redactor.learn(secrets_of({**files.all(), **options.environ}))
        options.set_log_level(config.logs.level)
        options.set_log_format(config.logs.format)
        zone = zone_of(config.timezone) if config.timezone else None
        use_zone(lambda: zone)

    def _fetch_moved(self, progress: FetchProgress) -> None:
        if progress.state in (FetchState.READY, FetchState.FAILED):
            self.news.publish(ModelFetched(progress.reason))

    def _config_changed(self, loaded: Loaded) -> None:
        self._apply_config(loaded.config)
        self.on_config(loaded.config)


class ServiceContext:
    """What every service may be made from: the startup context, the open store and, in a cluster, this node.

    ``owner`` is the name under which lanes and targets are claimed.
    """

    def __init__(self, startup: StartupContext, db: Database, owner: str, node: ClusterNode | None) -> None:
        self.startup = startup
        self.options = startup.options
        self.db = db
        self.owner = owner
        self.node = node
        self.clock = startup.clock
        self.config = startup.config
        self.watch = startup.watch
        self.home = startup.options.home
        self.tool_factory = startup.tool_factory
        self.redact = startup.options.redactor
        self.bus = EventBus()
        self.hub = LocalHub(self.home / "pictures")

    @property
    def node_name(self) -> str:
        """The name of this node; '' where there are no others."""
        return self.node.name if self.node is not None else ""

    def is_mine(self, task: str) -> Callable[[], bool] | None:
        """Return what tells whether this node does a task for all nodes; None where there are no others."""
        node = self.node
        return None if node is None else lambda: node.duties.is_held(task)
