"""Declare every setting of the gateway in one frozen snapshot; ``config/setting.py`` says how to add one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from hermes.config.agent_settings import (
    AgentConfig,
    ApprovalsConfig,
    CheckpointsConfig,
    CompressionConfig,
    ModelConfig,
    ProviderConfig,
    SkillsConfig,
    SttConfig,
    TerminalConfig,
    ToolChoice,
    TtsConfig,
    VisionConfig,
    WebConfig,
)
from hermes.config.automation import BackupConfig, CronConfig, DashboardConfig, KanbanConfig, WebhooksConfig
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
RESET = ResetPolicy()


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
        30, "days that outputs of jobs, old logs and damaged stores set aside are kept", low=1, high=36_500
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
        "who owns this gateway, as `telegram:5550142`: their commands run on this machine; `local`: only the person "
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
    personalities: Mapping[str, str] = by_name("description of the agent for `/personality NAME`", is_prose=True)
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
