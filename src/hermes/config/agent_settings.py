"""Declare the settings of the agent: models, tools, terminal, web, vision, speech."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from hermes.config.setting import by_name, proxy_address, section, setting, web_address
from hermes.config.values import Kind
from hermes.core.dataclasses import dataclass
from hermes.core.lane import BusyMode
from hermes.core.secret import Secret

API_MODES = ("chat_completions", "responses", "anthropic_messages")


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
class SkillsConfig:
    """Skills that are switched off, by name or ``category/name``."""

    disabled: tuple[str, ...] = setting((), "disabled skills")
    platform_disabled: Mapping[str, tuple[str, ...]] = by_name("skills that are disabled on this platform")


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
