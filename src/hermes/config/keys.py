"""Every setting there is, in one table, and the tree in which a file's keys are looked up."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from hermes.config.providers import env_prefix
from hermes.config.schema import BusyMode, OthersTerminal, OwnerTerminal, ResetMode
from hermes.config.values import Key, Kind, proxy_address, web_address
from hermes.core.access import DmPolicy, GroupPolicy
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.languages import LANGUAGES
from hermes.core.manifest import Manifest, Setting, SettingKind

Path = tuple[str, ...]

BUSY_MODES = tuple(BusyMode)
OWNER_TERMINALS = tuple(OwnerTerminal)
OTHERS_TERMINALS = tuple(OthersTerminal)
API_MODES = ("chat_completions", "responses", "anthropic_messages")

SEARCH_PROVIDERS = ("brave", "tavily", "searxng")
SPEAKERS = ("edge", "elevenlabs", "openai", "command")
HEARERS = ("openai", "command", "none")

GENERAL: tuple[Key, ...] = (
    Key(
        ("language",),
        Kind.CHOICE,
        "",
        ("HERMES_LANGUAGE",),
        choices=LANGUAGES,
        help="language of the gateway's own sentences, for everybody; empty: each person's own",
    ),
    Key(
        ("timezone",), Kind.TIMEZONE, "", ("TZ",), help="time zone of schedules, resets and logs; empty: the machine's"
    ),
    Key(
        ("database", "url"),
        Kind.URL,
        "",
        ("HERMES_DATABASE_URL",),
        ("sqlite", "postgresql", "postgres"),
        help="PostgreSQL instead of SQLite in the home folder",
    ),
    Key(("model", "default"), env=("HERMES_MODEL",), default="", help="the model that answers"),
    Key(
        ("model", "provider"),
        env=("HERMES_INFERENCE_PROVIDER",),
        default="",
        help="the provider that decides the endpoint",
    ),
    web_address(("model", "base_url"), default="", help="in place of the provider's own address"),
    Key(("model", "api_mode"), Kind.CHOICE, "", choices=API_MODES, help="how the provider is spoken to"),
    Key(
        ("model", "users_may_choose"),
        Kind.FLAG,
        False,
        help="whether users, besides admins and the owner, may choose the model of their own chat",
    ),
    Key(("model", "fallbacks"), Kind.LIST, (), help="`provider/model` to try, in order, when the first fails"),
    Key(
        ("model", "context_window"),
        Kind.WHOLE,
        64_000,
        ("HERMES_CONTEXT_WINDOW",),
        low=1000,
        high=100_000_000,
        help="tokens that a model takes in, where context_windows does not name it",
    ),
    Key(("compression", "enabled"), Kind.FLAG, True, help="whether a long talk is made shorter by itself"),
    Key(("compression", "at"), Kind.NUMBER, 0.7, low=0.1, high=0.95, help="share of the window at which it is"),
    Key(
        ("compression", "model"), default="", help="`provider/model` that writes the summary; empty: the answering one"
    ),
    Key(
        ("agent", "max_iterations"),
        Kind.WHOLE,
        60,
        ("HERMES_MAX_ITERATIONS",),
        low=1,
        high=10_000,
        help="model calls in one turn before it is asked for a summary",
    ),
    Key(
        ("agent", "busy_mode"),
        Kind.CHOICE,
        BusyMode.INTERRUPT.value,
        ("HERMES_BUSY_MODE",),
        BUSY_MODES,
        help="what a message does while a turn runs",
    ),
    Key(("agent", "workspace"), env=("MESSAGING_CWD",), default="", help="folder the tools work in"),
    Key(
        ("agent", "tool_progress"), Kind.FLAG, True, ("HERMES_TOOL_PROGRESS",), help="show in the chat which tool works"
    ),
    Key(
        ("agent", "tool_progress_mode"),
        Kind.CHOICE,
        "new",
        ("HERMES_TOOL_PROGRESS_MODE",),
        ("new", "all", "verbose"),
        help="one line for each new tool, for every call, or with arguments and results; a chat chooses with /verbose",
    ),
    Key(("agent", "persona"), default="", is_prose=True, help="text put before every conversation"),
    Key(
        ("agent", "join_pause_seconds"),
        Kind.DURATION,
        0.8,
        high=60,
        help="how long to wait for the rest of a message that is likely to go on",
    ),
    Key(("agent", "turn_timeout_seconds"), Kind.DURATION, 1800.0, low=1, help="the longest a turn may take"),
    Key(("agent", "identical_call_limit"), Kind.WHOLE, 3, low=2, high=1000, help="same tool call this often: stopped"),
    Key(("delegation", "max_tasks"), Kind.WHOLE, 5, low=1, high=50, help="tasks the agent may hand on with one call"),
    Key(
        ("delegation", "max_depth"),
        Kind.WHOLE,
        2,
        low=0,
        high=5,
        help="how deep tasks hand on tasks; 0: never",
    ),
    Key(("checkpoints", "days"), Kind.WHOLE, 30, low=1, high=3650, help="how long `/rollback` can take a change back"),
    Key(("checkpoints", "max_mb"), Kind.WHOLE, 500, low=1, high=1_000_000, help="room for files as they were before"),
    Key(
        ("approvals", "timeout_seconds"),
        Kind.DURATION,
        300.0,
        ("HERMES_APPROVAL_TIMEOUT",),
        low=5,
        high=30 * 86400,
        help="how long a question of the agent waits for an answer",
    ),
    Key(
        ("approvals", "identical_timeouts"),
        Kind.WHOLE,
        2,
        low=1,
        high=100,
        help="the same question unanswered this often ends the turn",
    ),
    Key(
        ("delivery", "answer_ttl_seconds"), Kind.DURATION, 6 * 3600.0, low=1, help="an unsent answer is dead after this"
    ),
    Key(("delivery", "parked_ttl_seconds"), Kind.DURATION, 7 * 86400.0, low=1, help="the same for a parked answer"),
    Key(("delivery", "notice_ttl_seconds"), Kind.DURATION, 60.0, low=1, help="the same for a notice"),
    Key(("api", "enabled"), Kind.FLAG, True, ("API_SERVER_ENABLED",), help="whether the HTTP port opens"),
    Key(("api", "host"), env=("API_SERVER_HOST",), default="127.0.0.1", help="address it listens on"),
    Key(("api", "port"), Kind.WHOLE, 8642, ("API_SERVER_PORT",), low=0, high=65535, help="port it listens on"),
    Key(("api", "key"), Kind.SECRET, None, ("API_SERVER_KEY",), help="Bearer key of the API"),
    Key(
        ("api", "allowed_hosts"),
        Kind.LIST,
        (),
        ("API_SERVER_ALLOWED_HOSTS",),
        help="names the port is reached by, besides its own",
    ),
    Key(
        ("api", "cors_origins"),
        Kind.LIST,
        (),
        ("API_SERVER_CORS_ORIGINS",),
        help="web pages that may call the API from a browser",
    ),
    Key(
        ("api", "max_request_bytes"),
        Kind.WHOLE,
        10 * 1024 * 1024,
        ("API_SERVER_MAX_REQUEST_BYTES",),
        low=1024,
        high=1024**3,
        help="the largest body of a request",
    ),
    Key(("api", "max_content_parts"), Kind.WHOLE, 1000, low=1, high=100_000, help="parts of one message"),
    Key(("api", "max_text_bytes"), Kind.WHOLE, 64 * 1024, low=1024, high=1024**3, help="text of one message"),
    Key(
        ("api", "requests_per_minute"),
        Kind.WHOLE,
        0,
        ("API_SERVER_REQUESTS_PER_MINUTE",),
        low=0,
        high=10_000_000,
        help="for each key; 0: as many as come",
    ),
    Key(
        ("api", "max_concurrent"),
        Kind.WHOLE,
        2000,
        ("API_SERVER_MAX_CONCURRENT",),
        low=1,
        high=100_000,
        help="requests of one key that the agent works on at the same time",
    ),
    Key(("api", "queue_seconds"), Kind.DURATION, 10.0, high=600, help="how long a request over a limit waits"),
    Key(
        ("terminal", "backend"),
        Kind.CHOICE,
        OwnerTerminal.AUTO.value,
        ("TERMINAL_BACKEND",),
        OWNER_TERMINALS,
        help="where the owner's commands run",
    ),
    Key(
        ("terminal", "others"),
        Kind.CHOICE,
        OthersTerminal.AUTO.value,
        (),
        OTHERS_TERMINALS,
        help="where everybody else's commands run",
    ),
    Key(("terminal", "network"), Kind.FLAG, False, help="whether sandboxes and containers have a network"),
    Key(
        ("terminal", "timeout_seconds"),
        Kind.DURATION,
        120.0,
        ("TERMINAL_TIMEOUT",),
        low=1,
        high=3600,
        help="how long a command may take when the agent says nothing else",
    ),
    Key(
        ("terminal", "env_passthrough"),
        Kind.LIST,
        (),
        help="environment variables that commands of the owner and of admins see too",
    ),
    Key(("terminal", "docker_image"), env=("TERMINAL_DOCKER_IMAGE",), default="", help="image of the containers"),
    Key(("terminal", "ssh_host"), env=("TERMINAL_SSH_HOST",), default="", help="machine of the ssh back end"),
    Key(("terminal", "ssh_user"), env=("TERMINAL_SSH_USER",), default="", help="account there; empty: as ssh decides"),
    Key(("terminal", "ssh_port"), Kind.WHOLE, 22, ("TERMINAL_SSH_PORT",), low=1, high=65535, help="its port"),
    Key(("terminal", "ssh_key"), env=("TERMINAL_SSH_KEY",), default="", help="file of the private key"),
    Key(("terminal", "ssh_folder"), default="", help="folder there in which commands start; empty: the home there"),
    Key(("terminal", "ssh_known_hosts"), default="", help="file of known host keys; empty: ssh's own"),
    Key(
        ("logs", "level"),
        Kind.CHOICE,
        "INFO",
        ("HERMES_LOG_LEVEL",),
        ("DEBUG", "INFO", "WARNING", "ERROR"),
        help="the least important line that is written",
    ),
    Key(
        ("gateway", "allowed_users"),
        Kind.LIST,
        (),
        ("GATEWAY_ALLOWED_USERS",),
        help="ids let in besides each platform's own list; `telegram:42` is let in on Telegram alone",
    ),
    Key(("gateway", "allow_all_users"), Kind.FLAG, False, ("GATEWAY_ALLOW_ALL_USERS",), help="let everybody in"),
    proxy_address(("proxy", "https"), default="", env=("HTTPS_PROXY", "https_proxy"), help="proxy for https addresses"),
    proxy_address(("proxy", "http"), default="", env=("HTTP_PROXY", "http_proxy"), help="proxy for http addresses"),
    proxy_address(("proxy", "all"), default="", env=("ALL_PROXY", "all_proxy"), help="proxy for every address"),
    Key(("proxy", "none"), default="", env=("NO_PROXY", "no_proxy"), help="hosts reached without a proxy"),
    Key(
        ("web", "search_provider"),
        Kind.CHOICE,
        "",
        ("WEB_SEARCH_PROVIDER",),
        SEARCH_PROVIDERS,
        help="who answers web_search; empty: the first that is configured",
    ),
    Key(("web", "brave_api_key"), Kind.SECRET, None, ("BRAVE_API_KEY",), help="key of the Brave Search API"),
    Key(("web", "tavily_api_key"), Kind.SECRET, None, ("TAVILY_API_KEY",), help="key of Tavily"),
    web_address(("web", "searxng_url"), default="", env=("SEARXNG_URL",), help="root of a SearXNG server"),
    Key(
        ("web", "allow_private_hosts"),
        Kind.LIST,
        (),
        ("WEB_ALLOW_PRIVATE_HOSTS",),
        help="hosts of your own network that the web tools may read for you",
    ),
    Key(("web", "ports"), Kind.LIST, ("80", "443", "8080", "8443"), help="ports the web tools may connect to"),
    Key(
        ("web", "max_bytes"),
        Kind.WHOLE,
        5 * 1024 * 1024,
        low=10_000,
        high=100 * 1024 * 1024,
        help="how much of one page is read",
    ),
    Key(("web", "timeout_seconds"), Kind.DURATION, 30.0, low=1, high=110, help="the longest one page may take"),
    Key(("vision", "model"), default="", help="`provider/model` that looks at pictures; empty: the chat's own"),
    Key(
        ("vision", "show"),
        Kind.CHOICE,
        "auto",
        (),
        ("auto", "always", "never"),
        help="whether a picture that comes in is shown to the chat's model; auto: when its name says that it can see",
    ),
    Key(("tts", "provider"), Kind.CHOICE, "edge", ("TTS_PROVIDER",), SPEAKERS, help="who speaks"),
    Key(("tts", "voice"), env=("TTS_VOICE",), default="", help="the voice; empty: the provider's usual one"),
    Key(("tts", "model"), default="", help="the provider's model; empty: its usual one"),
    web_address(("tts", "base_url"), default="", env=("TTS_BASE_URL",), help="in place of the provider's own address"),
    Key(
        ("tts", "api_key"),
        Kind.SECRET,
        None,
        ("TTS_API_KEY",),
        help="key of the provider, where it has none of its own",
    ),
    Key(("tts", "elevenlabs_api_key"), Kind.SECRET, None, ("ELEVENLABS_API_KEY",), help="key of ElevenLabs"),
    Key(
        ("tts", "command"),
        env=("TTS_COMMAND",),
        default="",
        help="what speaks for `command`, with {text_file}, {output} and {voice}; empty: espeak-ng or flite",
    ),
    Key(("tts", "timeout_seconds"), Kind.DURATION, 60.0, low=1, high=110, help="the longest that speaking may take"),
    Key(
        ("stt", "provider"),
        Kind.CHOICE,
        "",
        ("STT_PROVIDER",),
        HEARERS,
        help="who writes down voice messages; empty: openai where that answers, else nobody",
    ),
    Key(("stt", "model"), default="whisper-1", help="the provider's model"),
    Key(("stt", "language"), env=("STT_LANGUAGE",), default="", help="language that is spoken; empty: as heard"),
    web_address(("stt", "base_url"), default="", env=("STT_BASE_URL",), help="in place of the provider's own address"),
    Key(("stt", "api_key"), Kind.SECRET, None, ("STT_API_KEY",), help="its key, where it has none of its own"),
    Key(
        ("stt", "command"),
        env=("STT_COMMAND",),
        default="",
        help="what listens for `command`, with {audio} and {language}; it prints the words",
    ),
    Key(("stt", "timeout_seconds"), Kind.DURATION, 60.0, low=1, high=600, help="the longest that listening may take"),
    Key(
        ("always_log_local",),
        Kind.FLAG,
        True,
        help="for jobs, which come later: keep a local copy of what they deliver",
    ),
)


def reset_keys(prefix: Path, *, env: tuple[str, str, str] | None = None, is_general: bool = False) -> tuple[Key, ...]:
    mode, hour, idle = ((name,) for name in env) if env else ((), (), ())
    return (
        Key(
            (*prefix, "mode"), Kind.CHOICE, "both" if is_general else None, mode, tuple(ResetMode), help="when to renew"
        ),
        Key((*prefix, "at_hour"), Kind.WHOLE, 4 if is_general else None, hour, low=0, high=23, help="hour of `daily`"),
        Key(
            (*prefix, "idle_minutes"),
            Kind.WHOLE,
            120 if is_general else None,
            idle,
            low=1,
            high=5_256_000,
            help="silence of `idle`",
        ),
    )


GENERAL_RESET = reset_keys(
    ("sessions", "reset"),
    env=("SESSION_RESET_MODE", "SESSION_RESET_HOUR", "SESSION_IDLE_MINUTES"),
    is_general=True,
)
RESET_BY_PLATFORM = reset_keys(("sessions", "reset_by_platform", "*"))
RESET_BY_KIND = reset_keys(("sessions", "reset_by_kind", "*"))

PROVIDER: tuple[Key, ...] = (
    web_address(
        ("providers", "*", "base_url"), default="", env=("<NAME>_BASE_URL",), help="root of the provider's API"
    ),
    Key(("providers", "*", "api_key"), Kind.SECRET, None, ("<NAME>_API_KEY",), help="its key"),
    Key(
        ("providers", "*", "api_keys"), Kind.SECRETS, (), ("<NAME>_API_KEYS",), help="further keys, used when one fails"
    ),
    Key(
        ("providers", "*", "api_key_env"), Kind.VARIABLE, "", help="name of the environment variable that holds the key"
    ),
    Key(("providers", "*", "api_mode"), Kind.CHOICE, "chat_completions", choices=API_MODES, help="how it is spoken to"),
    Key(("providers", "*", "default_model"), default="", help="its model when none is named"),
    proxy_address(("providers", "*", "proxy"), default="", env=("<NAME>_PROXY",), help="proxy for this provider"),
)

SKILLS: tuple[Key, ...] = (
    Key(("skills", "disabled"), Kind.LIST, (), help="skills that are switched off"),
    Key(("skills", "platform_disabled", "*"), Kind.LIST, (), help="skills that are switched off on this platform"),
)

MODEL_ROUTES: tuple[Key, ...] = (
    Key(("model_routes", "*"), default="", help="`provider/model` that answers requests for this model name"),
)

APPROVALS: tuple[Key, ...] = (
    Key(
        ("approvals", "timeout_by_platform", "*"),
        Kind.DURATION,
        None,
        low=5,
        high=30 * 86400,
        help="the same for one platform",
    ),
)

TOOLS: tuple[Key, ...] = (
    Key(("tools", "*", "toolset"), default="", help="the toolset of this platform, in place of its own"),
    Key(("tools", "*", "enabled"), Kind.LIST, (), help="groups, toolsets and tools that it has besides"),
    Key(("tools", "*", "disabled"), Kind.LIST, (), help="groups, toolsets and tools that it has not"),
    Key(("toolsets", "*"), Kind.LIST, (), help="a toolset of your own: the groups in it"),
    Key(("context_windows", "*"), Kind.WHOLE, 0, low=1000, high=100_000_000, help="tokens that this model takes in"),
)

CHATS: tuple[Key, ...] = (
    Key(
        ("sessions", "reset_notice"),
        Kind.FLAG,
        True,
        ("SESSION_RESET_NOTICE",),
        help="whether people are told that a new session began by itself",
    ),
    Key(
        ("sessions", "group_sessions_per_user"),
        Kind.FLAG,
        True,
        help="in a group each person has a session of their own; `false`: all share one",
    ),
    Key(("personalities", "*"), default="", is_prose=True, help="who the agent is when `/personality NAME` is said"),
    Key(("chats", "*", "model"), default="", help="the model that answers there"),
    Key(("chats", "*", "personality"), default="", help="one of `personalities`, by name"),
    Key(("chats", "*", "persona"), default="", is_prose=True, help="the same as a text of its own"),
    Key(
        ("chats", "*", "toolsets"), Kind.LIST, (), help="toolsets, groups and tools it has, in place of the platform's"
    ),
    Key(("chats", "*", "busy_mode"), Kind.CHOICE, None, (), BUSY_MODES, help="what a message does while a turn runs"),
    Key(("chats", "*", "group_sessions_per_user"), Kind.FLAG, None, help="as `sessions.group_sessions_per_user`"),
    *reset_keys(("chats", "*", "reset")),
)

# What every platform takes besides the settings of its own manifest.
COMMON: tuple[Key, ...] = (
    Key(("enabled",), Kind.FLAG, True, ("<P>_ENABLED",), help="false switches it off"),
    Key(
        ("allowed_users",), Kind.LIST, (), ("<P>_ALLOWED_USERS",), help="ids that may talk to the agent; * is everybody"
    ),
    Key(("allow_all_users",), Kind.FLAG, False, ("<P>_ALLOW_ALL_USERS",), help="everybody may"),
    Key(
        ("dm_policy",),
        Kind.CHOICE,
        DmPolicy.PAIRING.value,
        ("<P>_DM_POLICY",),
        tuple(DmPolicy),
        help="who may write directly",
    ),
    Key(
        ("group_policy",),
        Kind.CHOICE,
        GroupPolicy.DISABLED.value,
        ("<P>_GROUP_POLICY",),
        tuple(GroupPolicy),
        help="which groups are answered",
    ),
    Key(("group_allowed_chats",), Kind.LIST, (), ("<P>_GROUP_ALLOWED_CHATS",), help="groups of the `allowlist` policy"),
    Key(("require_mention",), Kind.FLAG, True, ("<P>_REQUIRE_MENTION",), help="in groups, answer only when addressed"),
    Key(
        ("group_context_lines",),
        Kind.WHOLE,
        0,
        ("<P>_GROUP_CONTEXT_LINES",),
        low=0,
        high=50,
        help="lines said in a group before somebody addresses it that are shown to the model",
    ),
    Key(("home_channel",), default="", env=("<P>_HOME_CHANNEL",), help="chat for reminders and alerts"),
    Key(("home_channel_name",), default="", env=("<P>_HOME_CHANNEL_NAME",), help="its name in texts"),
    proxy_address(("proxy",), default="", env=("<P>_PROXY",), help="proxy for this platform"),
    Key(("busy_mode",), Kind.CHOICE, None, (), BUSY_MODES, help="in place of agent.busy_mode"),
)

# Read by other parts of the program or by the system; known here so that nobody is warned about them.
OTHER_ENV = ("HERMES_HOME", "HERMES_PROFILE", "HERMES_CONFIG", "HERMES_ENV")

_KINDS: Mapping[SettingKind, Kind] = {
    SettingKind.TEXT: Kind.TEXT,
    SettingKind.SECRET: Kind.SECRET,
    SettingKind.NUMBER: Kind.NUMBER,
    SettingKind.FLAG: Kind.FLAG,
    SettingKind.LIST: Kind.LIST,
}


def platform_keys(manifest: Manifest, prefix: Path | None = None) -> tuple[Key, ...]:
    """The keys of the account ``main``; with another prefix, those of a further account, which has no environment."""
    prefix = prefix or ("platforms", manifest.id)
    own = {setting.key for setting in manifest.settings}

    def env(key: str, names: Sequence[str]) -> tuple[str, ...]:
        if "accounts" in prefix:
            return ()
        return (*(name.replace("<P>", env_prefix(manifest.id)) for name in names), *manifest.older_env.get(key, ()))

    return (
        *(
            _of_setting(setting, prefix, env(setting.key, [setting.env] if setting.env else ()))
            for setting in manifest.settings
        ),
        *(
            replace(key, path=(*prefix, *key.path), env=env(key.path[-1], key.env))
            for key in COMMON
            if key.path[0] not in own
        ),
    )


def _of_setting(setting: Setting, prefix: Path, env: tuple[str, ...]) -> Key:
    path = (*prefix, setting.key)
    if setting.kind is SettingKind.TEXT and setting.key.endswith("url"):
        address = web_address(path, default=setting.default, env=env, help=setting.help)
        is_socket = str(setting.default).startswith(("ws://", "wss://"))
        return replace(address, choices=("ws", "wss")) if is_socket else address
    return Key(path, _KINDS[setting.kind], setting.default, env, help=setting.help)


def provider_keys(name: str, api_key_env: str = "") -> Iterator[Key]:
    """The keys of one provider. A variable named by ``api_key_env`` takes the place of ``<NAME>_API_KEY``."""
    for key in PROVIDER:
        env = tuple(variable.replace("<NAME>", env_prefix(name)) for variable in key.env)
        if key.path[2] == "api_key" and api_key_env:
            env = tuple(api_key_env.split(","))
        yield replace(key, path=("providers", name, *key.path[2:]), env=env)


@dataclass(slots=True)
class Node:
    """A place in the files: sections below it by name, one for names the owner chooses, and a key."""

    children: dict[str, Node] = field(default_factory=dict)
    any_name: Node | None = None
    key: Key | None = None
    is_alias: bool = False
    is_ignored: bool = False  # known and of no use to us


NAME = re.compile(r"[a-z0-9_-]+")
NAMES_UNDER: Mapping[Path, re.Pattern[str]] = {
    ("providers",): re.compile(r"[A-Za-z0-9._-]+"),
    ("model_routes",): re.compile(r"[A-Za-z0-9._:/@+-]+"),
    ("context_windows",): re.compile(r"[A-Za-z0-9._:/@+-]+"),
    ("chats",): re.compile(r"[a-z0-9_-]+(@([a-z0-9_-]+|\*))?(:[^:\s]+){0,2}"),
    ("personalities",): re.compile(r"[\w-]+"),
    ("agent", "personalities"): re.compile(r"[\w-]+"),
}
"""Where other names than the usual ones can be chosen."""


class Schema:
    """All keys for one set of platforms."""

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        self.manifests = tuple(manifests)
        self.root = Node()
        general = (
            *GENERAL,
            *GENERAL_RESET,
            *RESET_BY_PLATFORM,
            *RESET_BY_KIND,
            *PROVIDER,
            *MODEL_ROUTES,
            *SKILLS,
            *APPROVALS,
            *TOOLS,
            *CHATS,
        )
        self.keys: dict[Path, Key] = {}
        self.of_platform = {manifest.id: platform_keys(manifest) for manifest in self.manifests}
        for key in general:
            self._add(key)
        for manifest in self.manifests:
            self._add_platform(manifest)
        self._add_older_forms()

    def env_names(self, providers: Mapping[str, str]) -> dict[str, list[Key]]:
        """Every environment name and the keys it means, with those of the given providers and their ``api_key_env``."""
        names: dict[str, list[Key]] = {}
        of_providers = (key for item in providers.items() for key in provider_keys(*item))
        for key in (*of_providers, *(key for key in self.keys.values() if "*" not in key.path)):
            for name in key.env:
                names.setdefault(name, []).append(key)
        return names

    def at(self, key: Key, chosen: Path) -> Key:
        """The key with the names that its owner chose in place of the ``*``."""
        names = iter(chosen)
        path = tuple(next(names) if part == "*" else part for part in key.path)
        if path[2:4] == ("accounts", "main"):  # the account main stands directly under its platform
            return self.keys[(*path[:2], *path[4:])]
        if path[0] == "providers":
            return next(own for own in provider_keys(path[1]) if own.path == path)
        return replace(key, path=path)

    def _add(self, key: Key) -> None:
        self.keys[key.path] = key
        self._place(key.path).key = key

    def _place(self, path: Path) -> Node:
        node = self.root
        for part in path:
            if part == "*":
                node.any_name = node.any_name or Node()
                node = node.any_name
            else:
                node = node.children.get(part) or node.children.setdefault(part, Node())
        return node

    def _alias(self, path: Path, key: Key) -> None:
        node = self._place(path)
        node.key, node.is_alias = key, True

    def _add_platform(self, manifest: Manifest) -> None:
        prefix = ("platforms", manifest.id)
        of_others = (*prefix, "accounts", "*")
        for here, keys in ((prefix, self.of_platform[manifest.id]), (of_others, platform_keys(manifest, of_others))):
            for key in keys:
                self._add(key)
                self._alias((*here, "extra", key.path[-1]), key)
            # The older form: home_channel: {platform: …, chat_id: …, name: …}
            if (home := self.keys.get((*here, "home_channel"))) is not None:
                self._alias((*home.path, "chat_id"), home)
                self._alias((*home.path, "name"), self.keys[(*here, "home_channel_name")])
                self._place((*home.path, "platform")).is_ignored = True

    def _add_older_forms(self) -> None:
        self._place(("model",)).key = self.keys[("model", "default")]  # model: gpt-4o-mini
        self._alias(("agent", "personalities", "*"), self.keys[("personalities", "*")])
        self._alias(("group_sessions_per_user",), self.keys[("sessions", "group_sessions_per_user")])
        self._alias(("providers", "*", "model"), self.keys[("providers", "*", "default_model")])
        for general, by_platform in zip(GENERAL_RESET, RESET_BY_PLATFORM, strict=True):
            self._alias(("default_reset_policy", general.path[-1]), general)
            self._alias(("reset_by_platform", "*", general.path[-1]), by_platform)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """The known name that was probably meant, or an empty text."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return found[0] if found else ""
