"""Declare every setting of the gateway in one frozen snapshot; ``config/setting.py`` says how to add one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from hermes.config.automation import BackupConfig, CronConfig, DashboardConfig, WebhooksConfig
from hermes.config.secrets import secrets_within
from hermes.config.setting import by_name, nothing, proxy_address, section, sections, setting, web_address
from hermes.config.values import Kind
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.languages import LANGUAGES
from hermes.core.keys import MAIN, ChatKind, SessionKey
from hermes.core.lane import DOORS
from hermes.core.lane import BusyMode as BusyMode
from hermes.core.people.access import AccessPolicy, DmPolicy, GroupPolicy, only_listed
from hermes.core.secret import Secret
from hermes.core.session_reset import ResetMode as ResetMode
from hermes.core.session_reset import ResetPolicy as ResetPolicy
from hermes.core.targets.patterns import ChatPattern

BUSY_MODES = tuple(BusyMode)
API_MODES = ("chat_completions", "responses", "anthropic_messages")
RESET = ResetPolicy()


class ToolProgressMode(StrEnum):
    OFF = "off"
    NEW = "new"  # one line when another tool starts to work
    ALL = "all"  # one line for every call
    VERBOSE = "verbose"  # with its arguments, and the first line of what came of it


class OwnerTerminal(StrEnum):
    """Where the owner's commands run. ``auto`` is ``local``."""

    AUTO = "auto"
    LOCAL = "local"
    GUARDED = "guarded"
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


class ResetSettings:
    """Declares the settings that make a ResetPolicy."""

    mode: ResetMode = setting(RESET.mode, "when to start a new session", env="SESSION_RESET_MODE")
    at_hour: int = setting(RESET.at_hour, "hour of `daily`", env="SESSION_RESET_HOUR", low=0, high=23)
    idle_minutes: int = setting(
        RESET.idle_minutes, "minutes without a message for `idle`", env="SESSION_IDLE_MINUTES", low=1, high=5_256_000
    )


@dataclass(frozen=True, slots=True)
class SessionsConfig:
    reset: ResetPolicy = section(ResetSettings, make=ResetPolicy)
    reset_by_platform: Mapping[str, ResetPolicy] = sections(ResetSettings, inherits=True)
    reset_by_kind: Mapping[str, ResetPolicy] = sections(ResetSettings, inherits=True)
    reset_notice: bool = setting(True, "whether people are notified of a new session", env="SESSION_RESET_NOTICE")
    group_sessions_per_user: bool = setting(True, "each person in a group has a session; `false`: all share one")

    def reset_for(self, platform: str, kind: ChatKind) -> ResetPolicy:
        """The policy of a platform goes before that of a kind of chat, and both before the general one."""
        return self.reset_by_platform.get(platform) or self.reset_by_kind.get(kind) or self.reset


class AccessSettings:
    """Declares the settings that make an AccessPolicy, together with the ids let in on every platform."""

    allowed_users: tuple[str, ...] = setting((), "ids that may write; `*`: everybody", env="<P>_ALLOWED_USERS")
    allow_all_users: bool = setting(False, "everybody may write", env="<P>_ALLOW_ALL_USERS")
    dm_policy: DmPolicy = setting(DmPolicy.PAIRING, "who may write in direct chats", env="<P>_DM_POLICY")
    group_policy: GroupPolicy = setting(
        GroupPolicy.DISABLED, "in which groups the agent answers", env="<P>_GROUP_POLICY"
    )
    group_allowed_chats: tuple[str, ...] = setting((), "groups of policy `allowlist`", env="<P>_GROUP_ALLOWED_CHATS")
    require_mention: bool = setting(True, "in groups, answer only when addressed", env="<P>_REQUIRE_MENTION")


@dataclass(frozen=True, slots=True)
class AccountConfig:
    """One login on one platform. ``values`` holds every setting of its manifest, secrets as ``Secret``.

    The settings declared here are those that every platform has. ``missing`` names required settings without a value;
    ``is_mentioned`` says that somebody configured anything of the account at all.
    """

    enabled: bool = setting(True, "`false` switches it off", env="<P>_ENABLED")
    values: Mapping[str, Any] = field(default_factory=nothing)
    access: AccessPolicy = section(AccessSettings, at="", make=AccessPolicy)
    home_channel: str = setting("", "chat for reminders and alerts", env="<P>_HOME_CHANNEL")
    home_channel_name: str = setting("", "name of that chat in texts", env="<P>_HOME_CHANNEL_NAME")
    proxy: str = proxy_address("proxy for this platform", env="<P>_PROXY")
    busy_mode: BusyMode | None = setting(None, "in place of `agent.busy_mode`", choices=BUSY_MODES)
    group_context_lines: int = setting(
        0, "earlier lines of a group that the model sees when addressed", env="<P>_GROUP_CONTEXT_LINES", low=0, high=50
    )
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
    """The owner's settings for some chats; an empty field inherits. ``persona`` is made from the two below it."""

    model: str = setting("", "the model that answers there")
    persona: Persona | None = None
    personality: str = setting("", "one of `personalities`, by name")
    persona_text: str = setting("", "the same as a text", at="persona", is_prose=True)
    toolsets: tuple[str, ...] = setting((), "toolsets, groups and tools it has, in place of the platform's")
    busy_mode: BusyMode | None = setting(None, "what a message does while a turn runs", choices=BUSY_MODES)
    reset: ResetPolicy | None = section(ResetSettings, make=lambda: None, inherits=True)
    group_sessions_per_user: bool | None = setting(None, "as `sessions.group_sessions_per_user`")

    def within(self, wider: ChatConfig) -> ChatConfig:
        """This one, with what it leaves open taken from a wider one."""
        own = self.group_sessions_per_user
        return ChatConfig(
            model=self.model or wider.model,
            persona=self.persona or wider.persona,
            toolsets=self.toolsets or wider.toolsets,
            busy_mode=self.busy_mode or wider.busy_mode,
            reset=self.reset or wider.reset,
            group_sessions_per_user=wider.group_sessions_per_user if own is None else own,
        )


ANY_CHAT = ChatConfig()


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which model answers. In a snapshot ``default`` and ``provider`` are always filled in."""

    default: str = setting("", "the model that answers", env="HERMES_MODEL")
    provider: str = setting("", "the provider that decides the endpoint", env="HERMES_INFERENCE_PROVIDER")
    base_url: str = web_address("in place of the provider's own address")
    api_mode: str = setting("", "the dialect of the provider's API", choices=API_MODES)
    fallbacks: tuple[str, ...] = setting((), "`provider/model` to try, in order, when the first fails")
    users_may_choose: bool = setting(False, "whether users, not only admins, may choose the model of their own chat")
    context_window: int = setting(
        64_000,
        "tokens that a model accepts, unless `context_windows` names the model",
        env="HERMES_CONTEXT_WINDOW",
        low=1000,
        high=100_000_000,
    )


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """An endpoint that serves models. ``api_key`` is the key as it was at load time; a caller that must
    see a key added since asks ``resolve_key``. ``api_keys`` are all of them, that one first."""

    name: str
    base_url: str = web_address("root of the provider's API", env="<NAME>_BASE_URL")
    api_key: Secret | None = setting(None, "its key", env="<NAME>_API_KEY")
    api_key_env: str = setting("", "name of the environment variable that holds the key", kind=Kind.VARIABLE)
    api_mode: str = setting("chat_completions", "the dialect of its API", choices=API_MODES)
    default_model: str = setting("", "the model if none is named")
    proxy: str = proxy_address("proxy for this provider", env="<NAME>_PROXY")
    api_keys: tuple[Secret, ...] = setting((), "further keys, used when one fails", env="<NAME>_API_KEYS")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    max_iterations: int = setting(
        60,
        "model calls in one turn; then the model is asked for a summary",
        env="HERMES_MAX_ITERATIONS",
        low=1,
        high=10_000,
    )
    busy_mode: BusyMode = setting(BusyMode.INTERRUPT, "what a message does while a turn runs", env="HERMES_BUSY_MODE")
    workspace: Path | None = setting(None, "folder the tools work in", env="MESSAGING_CWD", kind=Kind.TEXT)
    shows_tools: bool = setting(
        True, "show in the chat which tool runs", env="HERMES_TOOL_PROGRESS", at="tool_progress"
    )
    tool_progress_mode: ToolProgressMode = setting(
        ToolProgressMode.NEW,
        "a line for each new tool, each call, or with arguments and results; `/verbose` chooses for a chat",
        env="HERMES_TOOL_PROGRESS_MODE",
        choices=(ToolProgressMode.NEW, ToolProgressMode.ALL, ToolProgressMode.VERBOSE),
    )
    show_reasoning: bool = setting(
        False,
        "show the model's reasoning, dimmed, in the terminal chat; `/reasoning show` and `/reasoning hide` there too",
        env="HERMES_SHOW_REASONING",
    )
    persona: str = setting("", "text put before every conversation", is_prose=True)
    join_pause_seconds: float = setting(
        0.8, "how long to wait for the rest of a message that seems incomplete", high=60
    )
    turn_timeout_seconds: float = setting(1800.0, "how long a turn may take", low=1)
    identical_call_limit: int = setting(3, "equal tool calls in a row before the next one is refused", low=2, high=1000)

    @property
    def tool_progress(self) -> ToolProgressMode:
        return self.tool_progress_mode if self.shows_tools else ToolProgressMode.OFF


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """What the owner chose for one platform: its toolset ('' the platform's own), and what is added or taken away."""

    toolset: str = setting("", "the toolset of this platform, in place of its own")
    enabled: tuple[str, ...] = setting((), "groups, toolsets and tools in addition to its toolset")
    disabled: tuple[str, ...] = setting((), "groups, toolsets and tools that are taken away")


NO_CHOICE = ToolChoice()


@dataclass(frozen=True, slots=True)
class CompressionConfig:
    enabled: bool = setting(True, "whether long conversations are compressed automatically")
    at: float = setting(0.7, "share of the context window at which a conversation is compressed", low=0.1, high=0.95)
    model: str = setting("", "`provider/model` that writes the summary; empty: the chat's own")


@dataclass(frozen=True, slots=True)
class CheckpointsConfig:
    days: int = setting(30, "days for which `/rollback` can undo a change", low=1, high=3650)
    max_mb: int = setting(500, "megabytes for copies of changed files", low=1, high=1_000_000)
    person_max_mb: int = setting(250, "megabytes of copies for one person", low=1, high=1_000_000)
    person_max_changes: int = setting(5000, "number of changes kept for one person", low=1, high=1_000_000)


@dataclass(frozen=True, slots=True)
class RetentionConfig:
    """How long what is settled is kept, and how much of it."""

    days: int = setting(90, "days that finished messages, deliveries, turns and approvals are kept", low=2, high=36_500)
    refused_days: int = setting(1, "days that messages of refused strangers are kept", low=1, high=36_500)
    requests_days: int = setting(
        30,
        "days that sessions of single API requests and of subtasks are kept after their last use",
        low=1,
        high=36_500,
    )
    files_days: int = setting(
        30, "days that outputs of commands and jobs, old logs and damaged stores set aside are kept", low=1, high=36_500
    )
    max_mb: int = setting(
        4000, "megabytes of `state.db` above which finished rows are deleted early", low=50, high=10_000_000
    )
    files_max_mb: int = setting(
        1000,
        "megabytes for outputs, and for damaged stores set aside; the oldest are deleted first",
        low=10,
        high=10_000_000,
    )


@dataclass(frozen=True, slots=True)
class ApprovalsConfig:
    mode: str = setting(
        "dangerous",
        "which commands ask first: `dangerous`, `unknown` (all that are not known to only read), `all`, `off` "
        "(none of the owner's)",
        choices=("dangerous", "unknown", "all", "off"),
    )
    timeout_seconds: float = setting(
        300.0, "how long an approval request waits for an answer", env="HERMES_APPROVAL_TIMEOUT", low=5, high=30 * 86400
    )
    timeout_by_platform: Mapping[str, float] = by_name("on one platform", kind=Kind.DURATION, low=5, high=30 * 86400)
    identical_timeouts: int = setting(
        2, "how often the same approval request may expire before the turn ends", low=1, high=100
    )

    def seconds_for(self, platform: str) -> float:
        return self.timeout_by_platform.get(platform) or self.timeout_seconds


@dataclass(frozen=True, slots=True)
class DeliveryConfig:
    answer_ttl_seconds: float = setting(6 * 3600.0, "how long Hermes tries to send an answer", low=1)
    parked_ttl_seconds: float = setting(
        7 * 86400.0, "how long an answer waits for the person's next message, where the platform requires one", low=1
    )
    notice_ttl_seconds: float = setting(60.0, "how long Hermes tries to send a notice", low=1)


@dataclass(frozen=True, slots=True)
class ApiConfig:
    """The HTTP port. The limits on requests are for each key."""

    enabled: bool = setting(True, "whether the HTTP port opens", env="API_SERVER_ENABLED")
    host: str = setting("127.0.0.1", "address it listens on", env="API_SERVER_HOST")
    port: int = setting(8642, "port it listens on", env="API_SERVER_PORT", low=0, high=65535)
    key: Secret | None = setting(None, "Bearer key of the API", env="API_SERVER_KEY")
    allowed_hosts: tuple[str, ...] = setting((), "further host names of the port", env="API_SERVER_ALLOWED_HOSTS")
    cors_origins: tuple[str, ...] = setting((), "origins that may call from a browser", env="API_SERVER_CORS_ORIGINS")
    max_request_bytes: int = setting(
        50 * 1024 * 1024,
        "the largest request body",
        env="API_SERVER_MAX_REQUEST_BYTES",
        low=1024,
        high=1024**3,
        needs_restart=True,
    )
    max_content_parts: int = setting(1000, "parts of one message", low=1, high=100_000)
    max_text_bytes: int = setting(10 * 1024 * 1024, "text of one message", low=1024, high=1024**3)
    requests_per_minute: int = setting(
        0, "requests per minute of one key; 0: no limit", env="API_SERVER_REQUESTS_PER_MINUTE", low=0, high=10_000_000
    )
    max_concurrent: int = setting(
        2000, "requests of one key that run at the same time", env="API_SERVER_MAX_CONCURRENT", low=1, high=100_000
    )
    queue_seconds: float = setting(10.0, "how long a request over a limit waits", high=600)
    approval_wait_seconds: float = setting(
        10.0, "how long a stream stays open after an approval request", low=0, high=3600
    )


@dataclass(frozen=True, slots=True)
class SkillsConfig:
    """Skills that are switched off, by name or ``category/name``."""

    disabled: tuple[str, ...] = setting((), "disabled skills")
    platform_disabled: Mapping[str, tuple[str, ...]] = by_name("skills that are disabled on this platform")


@dataclass(frozen=True, slots=True)
class KanbanConfig:
    dispatch: bool = setting(True, "whether the agent runs its ready tasks")
    max_running: int = setting(2, "tasks that the agent works on at the same time", low=1, high=100)
    task_seconds: float = setting(3600.0, "how long one run of a task may take", low=1, high=604_800)
    review: bool = setting(False, "whether a finished task waits in `review` until a person completes it")


@dataclass(frozen=True, slots=True)
class LogsConfig:
    level: str = setting(
        "INFO", "lowest level that is logged", env="HERMES_LOG_LEVEL", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )
    format: str = setting(
        "text", "format of the log; `json`: one object per line", env="HERMES_LOG_FORMAT", choices=("text", "json")
    )


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """Where a trace of each turn is sent."""

    endpoint: str = web_address(
        "OpenTelemetry collector that traces are sent to; empty: none", env="OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    headers: Secret | None = setting(
        None, "headers for the collector: `name=value,other=value`", env="OTEL_EXPORTER_OTLP_HEADERS"
    )
    service_name: str = setting("hermes", "name of this gateway in the traces", env="OTEL_SERVICE_NAME")


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """The proxies for every outside call."""

    https: str = proxy_address("proxy for `https://` and `wss://` addresses", env="HTTPS_PROXY https_proxy")
    http: str = proxy_address("proxy for `http://` and `ws://` addresses", env="HTTP_PROXY http_proxy")
    all: str = proxy_address("proxy for all other addresses", env="ALL_PROXY all_proxy")
    no_proxy: str = setting("", "hosts reached without a proxy", env="NO_PROXY no_proxy", at="none")


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """What one command in a sandbox may use; 0: as much as there is."""

    processes: int = setting(512, "processes of one command at the same time", low=0, high=1_000_000)
    memory_mb: int = setting(2048, "memory of one command, all its processes together", low=0, high=10_000_000)
    cpu_seconds: float = setting(3600.0, "CPU time of one command, all its processes together", low=0, high=10_000_000)
    file_mb: int = setting(1024, "the largest file that a command may write", low=0, high=10_000_000)
    tmp_mb: int = setting(512, "size of `/tmp`, which is memory in bubblewrap and containers", low=1, high=10_000_000)
    workspace_mb: int = setting(5120, "all files of a personal workspace", low=0, high=1_000_000_000)


@dataclass(frozen=True, slots=True)
class TerminalConfig:
    backend: OwnerTerminal = setting(OwnerTerminal.AUTO, "where the owner's commands run", env="TERMINAL_BACKEND")
    others: OthersTerminal = setting(OthersTerminal.AUTO, "where everybody else's commands run")
    network: bool = setting(False, "whether sandboxes and containers have a network")
    timeout_seconds: float = setting(
        120.0, "how long a command may take if the agent sets no other limit", env="TERMINAL_TIMEOUT", low=1, high=3600
    )
    env_passthrough: tuple[str, ...] = setting((), "further variables for commands of the owner and of admins")
    docker_image: str = setting("", "image of the containers", env="TERMINAL_DOCKER_IMAGE")
    ssh_host: str = setting("", "machine of the ssh back end", env="TERMINAL_SSH_HOST")
    ssh_user: str = setting("", "account there; empty: as ssh decides", env="TERMINAL_SSH_USER")
    ssh_port: int = setting(22, "its port", env="TERMINAL_SSH_PORT", low=1, high=65535)
    ssh_key: str = setting("", "file of the private key", env="TERMINAL_SSH_KEY")
    ssh_folder: str = setting("", "folder on that machine in which commands start; empty: the home there")
    ssh_known_hosts: str = setting("", "file of known host keys; empty: ssh's own")
    limits: LimitsConfig = section(LimitsConfig)


@dataclass(frozen=True, slots=True)
class WebConfig:
    """What the web tools may reach."""

    search_provider: str = setting(
        "",
        "search service; empty: the first configured",
        env="WEB_SEARCH_PROVIDER",
        choices=("brave", "tavily", "searxng"),
    )
    brave_api_key: Secret | None = setting(None, "key of the Brave Search API", env="BRAVE_API_KEY")
    tavily_api_key: Secret | None = setting(None, "key of Tavily", env="TAVILY_API_KEY")
    searxng_url: str = web_address("root of a SearXNG server", env="SEARXNG_URL")
    allow_private_hosts: tuple[str, ...] = setting(
        (), "hosts of your own network that the web tools may read for you", env="WEB_ALLOW_PRIVATE_HOSTS"
    )
    ports: tuple[int, ...] = setting((80, 443, 8080, 8443), "ports the web tools may connect to", kind=Kind.LIST)
    max_bytes: int = setting(5 * 1024 * 1024, "how much of one page is read", low=10_000, high=100 * 1024 * 1024)
    timeout_seconds: float = setting(30.0, "how long one page may take", low=1, high=110)


@dataclass(frozen=True, slots=True)
class VisionConfig:
    model: str = setting("", "`provider/model` that looks at pictures; empty: the chat's own")
    show: str = setting(
        "auto",
        "whether the chat's model receives incoming pictures; `auto`: if its name is known to support them",
        choices=("auto", "always", "never"),
    )


@dataclass(frozen=True, slots=True)
class TtsConfig:
    provider: str = setting(
        "edge", "text-to-speech provider", env="TTS_PROVIDER", choices=("edge", "elevenlabs", "openai", "command")
    )
    voice: str = setting("", "the voice; empty: the provider's default", env="TTS_VOICE")
    model: str = setting("", "the provider's model; empty: its default")
    base_url: str = web_address("in place of the provider's own address", env="TTS_BASE_URL")
    api_key: Secret | None = setting(None, "key for text to speech", env="TTS_API_KEY")
    elevenlabs_api_key: Secret | None = setting(None, "key of ElevenLabs", env="ELEVENLABS_API_KEY")
    command: str = setting("", "program for `command`, with `{text_file}`, `{output}` and `{voice}`", env="TTS_COMMAND")
    timeout_seconds: float = setting(60.0, "how long speech synthesis may take", low=1, high=110)


@dataclass(frozen=True, slots=True)
class SttConfig:
    provider: str = setting(
        "",
        "speech-to-text provider; empty: `openai` if it can be used",
        env="STT_PROVIDER",
        choices=("openai", "command", "none"),
    )
    model: str = setting("whisper-1", "the provider's model")
    language: str = setting("", "spoken language; empty: detected", env="STT_LANGUAGE")
    base_url: str = web_address("in place of the provider's own address", env="STT_BASE_URL")
    api_key: Secret | None = setting(None, "key for speech to text", env="STT_API_KEY")
    command: str = setting("", "program for `command`, with `{audio}` and `{language}`", env="STT_COMMAND")
    timeout_seconds: float = setting(60.0, "how long a transcription may take", low=1, high=600)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything, at one moment."""

    home: Path
    model: ModelConfig = section(ModelConfig)
    providers: Mapping[str, ProviderConfig] = sections(ProviderConfig)
    platforms: Mapping[str, Mapping[str, AccountConfig]] = field(default_factory=nothing)
    database_url: str = setting(
        "",
        "PostgreSQL instead of SQLite in the home folder",
        env="HERMES_DATABASE_URL",
        kind=Kind.URL,
        choices=("sqlite", "postgresql", "postgres"),
        at="database.url",
        needs_restart=True,
    )
    node_name: str = setting(
        "",
        "name of this gateway among several on one PostgreSQL; empty: the name of the machine",
        env="HERMES_NODE_NAME",
        at="database.node_name",
        needs_restart=True,
    )
    language: str = setting(
        "", "language of the gateway's own texts; empty: each person's own", env="HERMES_LANGUAGE", choices=LANGUAGES
    )
    timezone: str = setting(
        "", "time zone of schedules, resets and logs; empty: the machine's", env="TZ", kind=Kind.TIMEZONE
    )
    allowed_users: tuple[str, ...] = setting(
        (),
        "ids with access on every platform; `telegram:42` has access on Telegram only",
        env="GATEWAY_ALLOWED_USERS",
        at="gateway.allowed_users",
    )
    allow_all_users: bool = setting(
        False, "everybody, on every platform", env="GATEWAY_ALLOW_ALL_USERS", at="gateway.allow_all_users"
    )
    owners: tuple[str, ...] = setting(
        (),
        "who owns this gateway, as `telegram:5550142`: their commands run on this machine; `local`: only whoever sits "
        "at it",
        env="GATEWAY_OWNERS",
    )
    agent: AgentConfig = section(AgentConfig)
    sessions: SessionsConfig = section(SessionsConfig)
    delivery: DeliveryConfig = section(DeliveryConfig)
    approvals: ApprovalsConfig = section(ApprovalsConfig)
    checkpoints: CheckpointsConfig = section(CheckpointsConfig)
    retention: RetentionConfig = section(RetentionConfig)
    api: ApiConfig = section(ApiConfig)
    dashboard: DashboardConfig = section(DashboardConfig)
    skills: SkillsConfig = section(SkillsConfig)
    kanban: KanbanConfig = section(KanbanConfig)
    logs: LogsConfig = section(LogsConfig)
    tracing: TracingConfig = section(TracingConfig)
    proxies: ProxyConfig = section(ProxyConfig, at="proxy")
    model_routes: Mapping[str, str] = by_name("`provider/model` that answers requests for this model name")
    terminal: TerminalConfig = section(TerminalConfig)
    web: WebConfig = section(WebConfig)
    vision: VisionConfig = section(VisionConfig)
    tts: TtsConfig = section(TtsConfig)
    stt: SttConfig = section(SttConfig)
    tools: Mapping[str, ToolChoice] = sections(ToolChoice)
    toolsets: Mapping[str, tuple[str, ...]] = by_name("a toolset of your own: the groups in it")
    compression: CompressionConfig = section(CompressionConfig)
    context_windows: Mapping[str, int] = by_name("tokens that this model takes in", low=1000, high=10**8)
    always_log_local: bool = setting(True, "also store the output of jobs in `cron/output`")
    cron: CronConfig = section(CronConfig)
    webhooks: WebhooksConfig = section(WebhooksConfig)
    backup: BackupConfig = section(BackupConfig)
    personalities: Mapping[str, str] = by_name("who the agent is when `/personality NAME` is said", is_prose=True)
    chats: tuple[tuple[ChatPattern, ChatConfig], ...] = sections(ChatConfig, make=tuple)

    def only_user(self) -> tuple[str, str] | None:
        """Return the platform and id of the only person whom the lists let in, while no owner is named."""
        accounts = (
            (platform, account.access)
            for platform, named in self.platforms.items()
            for account in named.values()
            if account.is_mentioned and account.is_ready
        )
        return only_listed(self.owners, accounts)

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
    """Something in the configuration that its owner should know. ``where`` names the file and line or key.

    ``repair``: what `hermes doctor --fix` does about it: ("rename", file, written, meant) or ("set", key, value).
    """

    level: Literal["error", "warning"]
    where: str
    text: str
    hint: str = ""
    repair: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" + (f" {self.hint}" if self.hint else "")
