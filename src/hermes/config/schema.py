"""The configuration as the rest of the gateway sees it: one frozen, typed snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from hermes.config.secrets import secrets_within
from hermes.core.access import AccessPolicy
from hermes.core.chat_pattern import ChatPattern
from hermes.core.dataclasses import dataclass
from hermes.core.keys import MAIN, ChatKind, SessionKey
from hermes.core.lane import DOORS
from hermes.core.lane import BusyMode as BusyMode
from hermes.core.secret import Secret
from hermes.core.session_reset import ResetMode as ResetMode
from hermes.core.session_reset import ResetPolicy as ResetPolicy


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class ToolProgressMode(StrEnum):
    OFF = "off"
    NEW = "new"  # one line when another tool starts to work
    ALL = "all"  # one line for every call
    VERBOSE = "verbose"  # with its arguments, and the first line of what came of it


@dataclass(frozen=True, slots=True)
class SessionsConfig:
    """``reset_notice``: people are told of a renewal. ``group_sessions_per_user``: each has their own in a group."""

    reset: ResetPolicy = field(default_factory=ResetPolicy)
    reset_by_platform: Mapping[str, ResetPolicy] = field(default_factory=_nothing)
    reset_by_kind: Mapping[str, ResetPolicy] = field(default_factory=_nothing)
    reset_notice: bool = True
    group_sessions_per_user: bool = True

    def reset_for(self, platform: str, kind: ChatKind) -> ResetPolicy:
        """The policy of a platform goes before that of a kind of chat, and both before the general one."""
        return self.reset_by_platform.get(platform) or self.reset_by_kind.get(kind) or self.reset


@dataclass(frozen=True, slots=True)
class AccountConfig:
    """One login on one platform. ``values`` holds every setting of its manifest, secrets as ``Secret``.

    ``missing`` names required settings without a value; ``is_mentioned`` says that somebody configured
    anything of it at all.
    """

    enabled: bool
    values: Mapping[str, Any]
    access: AccessPolicy = field(default_factory=AccessPolicy)
    home_channel: str = ""
    home_channel_name: str = ""
    proxy: str = field(default="", repr=False)  # it may hold a password
    busy_mode: BusyMode | None = None
    group_context_lines: int = 0
    missing: tuple[str, ...] = ()
    is_mentioned: bool = False

    @property
    def is_ready(self) -> bool:
        """Wanted, and complete enough to be started."""
        return self.enabled and not self.missing


@dataclass(frozen=True, slots=True)
class Persona:
    """A text that says who the agent is. ``name`` is that of a personality, '' where the text stands alone."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ChatConfig:
    """What the owner settled for some chats. An empty field leaves it as it is elsewhere."""

    model: str = ""
    persona: Persona | None = None
    toolsets: tuple[str, ...] = ()
    busy_mode: BusyMode | None = None
    reset: ResetPolicy | None = None
    group_sessions_per_user: bool | None = None

    def within(self, wider: ChatConfig) -> ChatConfig:
        """This one, with what it leaves open taken from a wider one."""
        own = self.group_sessions_per_user
        return ChatConfig(
            self.model or wider.model,
            self.persona or wider.persona,
            self.toolsets or wider.toolsets,
            self.busy_mode or wider.busy_mode,
            self.reset or wider.reset,
            wider.group_sessions_per_user if own is None else own,
        )


ANY_CHAT = ChatConfig()


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which model answers. ``default`` and ``provider`` are always filled in; ``base_url``, when set,
    takes the place of the provider's own. ``fallbacks`` are written ``provider/model``; ``context_window`` is
    in tokens."""

    default: str
    provider: str
    base_url: str = ""
    api_mode: str = ""
    fallbacks: tuple[str, ...] = ()
    users_may_choose: bool = False
    context_window: int = 64_000


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """An endpoint that serves models. ``api_key`` is the key as it was at load time; a caller that must
    see a key added since asks ``resolve_key``. ``api_keys`` are all of them, that one first."""

    name: str
    base_url: str = ""
    api_key: Secret | None = None
    api_key_env: str = ""
    api_mode: str = "chat_completions"
    default_model: str = ""
    proxy: str = field(default="", repr=False)
    api_keys: tuple[Secret, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """``workspace`` None means: the home folder of the owner, a folder of their own for everyone else."""

    max_iterations: int = 60
    busy_mode: BusyMode = BusyMode.INTERRUPT
    workspace: Path | None = None
    tool_progress: ToolProgressMode = ToolProgressMode.NEW
    persona: str = ""
    join_pause_seconds: float = 0.8
    turn_timeout_seconds: float = 1800.0
    identical_call_limit: int = 3


@dataclass(frozen=True, slots=True)
class DelegationConfig:
    max_tasks: int = 5
    max_depth: int = 2


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """What the owner chose for one platform: its toolset ('' the platform's own), and what is added or taken away."""

    toolset: str = ""
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


NO_CHOICE = ToolChoice()


@dataclass(frozen=True, slots=True)
class CompressionConfig:
    """``at`` is the share of the window at which a talk is made shorter; ``model`` '' is the one that answers."""

    enabled: bool = True
    at: float = 0.7
    model: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointsConfig:
    """How long, and in how much room, files are kept as they were before a tool changed them."""

    days: int = 30
    max_mb: int = 500


@dataclass(frozen=True, slots=True)
class ApprovalsConfig:
    """How long a question waits for its answer, and how often the same one may go without."""

    timeout_seconds: float = 300.0
    timeout_by_platform: Mapping[str, float] = field(default_factory=_nothing)
    identical_timeouts: int = 2

    def seconds_for(self, platform: str) -> float:
        return self.timeout_by_platform.get(platform) or self.timeout_seconds


@dataclass(frozen=True, slots=True)
class DeliveryConfig:
    answer_ttl_seconds: float = 6 * 3600.0
    parked_ttl_seconds: float = 7 * 86400.0
    notice_ttl_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class ApiConfig:
    """The HTTP port. The limits are for each key; 0 ``requests_per_minute`` is no limit.

    ``max_content_parts`` and ``max_text_bytes`` are for one message of a request.
    """

    enabled: bool = True
    host: str = "127.0.0.1"
    port: int = 8642
    key: Secret | None = None
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    max_request_bytes: int = 10 * 1024 * 1024
    max_content_parts: int = 1000
    max_text_bytes: int = 64 * 1024
    requests_per_minute: int = 0
    max_concurrent: int = 2000
    queue_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class SkillsConfig:
    """Skills that are switched off, by name or ``category/name``: everywhere, and on one platform."""

    disabled: tuple[str, ...] = ()
    platform_disabled: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class LogsConfig:
    level: str = "INFO"


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """The proxies for every outside call; ``no_proxy`` is a comma list of hosts that are reached directly."""

    https: str = field(default="", repr=False)
    http: str = field(default="", repr=False)
    all: str = field(default="", repr=False)
    no_proxy: str = ""


class OwnerTerminal(StrEnum):
    """Where the owner's commands run. ``auto`` is ``local``."""

    AUTO = "auto"
    LOCAL = "local"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    DOCKER = "docker"
    SSH = "ssh"


class OthersTerminal(StrEnum):
    """Where everybody else's run: always apart from the machine and from each other. ``auto`` is the best there is."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    DOCKER = "docker"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class TerminalConfig:
    """Where commands run. ``network`` is about sandboxes and containers; ``env_passthrough`` names variables that the
    commands of the owner and of admins see besides the harmless ones."""

    backend: OwnerTerminal = OwnerTerminal.AUTO
    others: OthersTerminal = OthersTerminal.AUTO
    network: bool = False
    timeout_seconds: float = 120.0
    env_passthrough: tuple[str, ...] = ()
    docker_image: str = ""
    ssh_host: str = ""
    ssh_user: str = ""
    ssh_port: int = 22
    ssh_key: str = ""
    ssh_folder: str = ""
    ssh_known_hosts: str = ""


@dataclass(frozen=True, slots=True)
class WebConfig:
    """What the web tools may reach. ``search_provider`` "" is the first one that is configured.

    ``allow_private_hosts`` counts in the owner's own turns alone.
    """

    search_provider: str = ""
    brave_api_key: Secret | None = None
    tavily_api_key: Secret | None = None
    searxng_url: str = field(default="", repr=False)  # it may hold a password
    allow_private_hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = (80, 443, 8080, 8443)
    max_bytes: int = 5 * 1024 * 1024
    timeout_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class VisionConfig:
    """``model`` is ``provider/model``; empty: the model of the chat. ``show``: ``auto``, ``always`` or ``never``."""

    model: str = ""
    show: str = "auto"


@dataclass(frozen=True, slots=True)
class TtsConfig:
    """Who speaks, and how. Empty is what the provider does by itself."""

    provider: str = "edge"
    voice: str = ""
    model: str = ""
    base_url: str = ""
    api_key: Secret | None = None
    elevenlabs_api_key: Secret | None = None
    command: str = ""
    timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class SttConfig:
    """Who writes down what is said. ``provider`` '' is openai where that is the model's provider, else nobody."""

    provider: str = ""
    model: str = "whisper-1"
    language: str = ""
    base_url: str = ""
    api_key: Secret | None = None
    command: str = ""
    timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Config:
    """Everything, at one moment. ``database_url`` "" is SQLite in the home folder; ``timezone`` "" is the machine's."""

    home: Path
    model: ModelConfig
    providers: Mapping[str, ProviderConfig]
    platforms: Mapping[str, Mapping[str, AccountConfig]] = field(default_factory=_nothing)
    database_url: str = field(default="", repr=False)  # it may hold a password
    language: str = ""
    timezone: str = ""
    agent: AgentConfig = field(default_factory=AgentConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    delivery: DeliveryConfig = field(default_factory=DeliveryConfig)
    approvals: ApprovalsConfig = field(default_factory=ApprovalsConfig)
    checkpoints: CheckpointsConfig = field(default_factory=CheckpointsConfig)
    delegation: DelegationConfig = field(default_factory=DelegationConfig)
    api: ApiConfig = field(default_factory=ApiConfig)
    skills: SkillsConfig = field(default_factory=SkillsConfig)
    logs: LogsConfig = field(default_factory=LogsConfig)
    proxies: ProxyConfig = field(default_factory=ProxyConfig)
    model_routes: Mapping[str, str] = field(default_factory=_nothing)
    terminal: TerminalConfig = field(default_factory=TerminalConfig)
    web: WebConfig = field(default_factory=WebConfig)
    vision: VisionConfig = field(default_factory=VisionConfig)
    tts: TtsConfig = field(default_factory=TtsConfig)
    stt: SttConfig = field(default_factory=SttConfig)
    tools: Mapping[str, ToolChoice] = field(default_factory=_nothing)
    toolsets: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    compression: CompressionConfig = field(default_factory=CompressionConfig)
    context_windows: Mapping[str, int] = field(default_factory=_nothing)
    always_log_local: bool = True
    personalities: Mapping[str, str] = field(default_factory=_nothing)
    chats: tuple[tuple[ChatPattern, ChatConfig], ...] = ()

    def chat(self, key: SessionKey) -> ChatConfig:
        """What is settled for this chat; a narrower pattern goes before a wider one, field by field."""
        found = ANY_CHAT
        for pattern, chat in self.chats:  # the widest first
            if pattern.is_about(key):
                found = chat.within(found)
        return found

    def reset_for(self, key: SessionKey) -> ResetPolicy:
        return self.chat(key).reset or self.sessions.reset_for(key.platform, key.kind)

    def persona_for(self, key: SessionKey, chosen: str = "") -> Persona:
        """Who the agent is in this chat; ``chosen`` is the personality it chose, if there still is one of that name."""
        if chosen in self.personalities:
            return Persona(self.personalities[chosen], chosen)
        return self.chat(key).persona or Persona(self.agent.persona)

    def busy_mode_for(self, key: SessionKey, chosen: str = "") -> BusyMode:
        """What a new message does while a turn runs; ``chosen`` is the chat's own choice, '' where it made none."""
        if key.platform in DOORS:
            return BusyMode.QUEUE
        if chosen in list(BusyMode):  # not a word of a newer version
            return BusyMode(chosen)
        account = self.account(key.platform, key.account)
        return self.chat(key).busy_mode or (account.busy_mode if account else None) or self.agent.busy_mode

    def has_session_per_person(self, key: SessionKey) -> bool:
        """Whether each person of this group has a conversation of their own."""
        own = self.chat(key).group_sessions_per_user
        return self.sessions.group_sessions_per_user if own is None else own

    def context_window(self, model: str = "") -> int:
        """How many tokens a model takes in, as far as the owner says. ``model`` as it is asked for; '' the default."""
        name = self.model_routes.get(model, model) or self.model.default
        known = (self.context_windows.get(each) for each in (model, name, name.partition("/")[2]))
        return next(filter(None, known), self.model.context_window)

    def account(self, platform: str, account: str = MAIN) -> AccountConfig | None:
        return self.platforms.get(platform, {}).get(account)

    def secrets(self) -> Iterator[Secret]:
        """Every secret of the configuration, those inside addresses included: what a Redactor must know.

        Found by looking at every value there is, so that a setting which is added later needs no line here.
        """
        yield from secrets_within(self)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the configuration that its owner should know. ``where`` names the file and line or key."""

    level: Literal["error", "warning"]
    where: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" + (f" {self.hint}" if self.hint else "")
