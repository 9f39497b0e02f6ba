"""Map platforms to toolsets, toolsets to groups, groups to tools.

What a person may use of it is narrowed by the role that each tool asks for. The configuration can give a platform
another toolset, add to it and take away from it, and define toolsets of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from hermes.config.agent_settings import NO_CHOICE
from hermes.config.schema import Config
from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey

Where = SessionKey | str
"""A chat, or a platform as a whole by its id."""


@dataclass(frozen=True, slots=True)
class Group:
    """``about`` is for lists; ``words`` are what somebody in need of it may say besides."""

    about: str
    words: str = ""


GROUPS: Mapping[str, Group] = {
    "files": Group(
        "read, write, change and search files",
        "file folder directory document text code read open write save create edit change patch replace find grep",
    ),
    "terminal": Group(
        "run commands, also in the background",
        "shell bash command run execute process install build test git script server background job log kill",
    ),
    "code": Group("run Python", "python execute run program script calculate compute math data analyse plot"),
    "web": Group(
        "search the web and read pages",
        "internet online browse website page url link http download fetch news weather price look search pdf article",
    ),
    "vision": Group("look at pictures", "image picture photo screenshot see describe ocr camera diagram"),
    "kanban": Group("keep a board of tasks and have them done", "kanban board task ticket backlog assign todo project"),
    "planning": Group("keep a list of steps", "plan task todo list step progress track organise checklist"),
    "voice": Group("say things aloud", "voice speak speech say aloud read audio sound listen memo tts"),
    "talk": Group("ask the person a question", "ask question choose choice unclear option confirm clarify"),
    "delegation": Group("hand on parts of a task", "parallel subtask agent delegate helper split concurrently"),
    "messaging": Group("send messages to other chats", "send message notify tell forward chat channel telegram post"),
    "memory": Group(
        "search earlier conversations",
        "history past earlier remember said yesterday conversation recall memory note fact preference",
    ),
    "skills": Group("read how special tasks are done", "skill guide instructions howto recipe procedure"),
    "schedule": Group("schedule work for later", "cron schedule remind reminder later daily timer alarm job recurring"),
}
"""Every group that our own tools stand in."""

FINDING = "finding"
"""The group of the tool that finds the others: nobody can choose to be without it."""

_EVERY = tuple(GROUPS)

WEBHOOK = "hermes-webhook"
"""Has no groups of plugins either, unless the owner adds them."""

TOOLSETS: Mapping[str, tuple[str, ...]] = {
    "hermes-cli": _EVERY,
    "hermes-telegram": _EVERY,
    "hermes-discord": _EVERY,
    "hermes-whatsapp": _EVERY,
    "hermes-slack": _EVERY,
    "hermes-chat": _EVERY,
    # Behind an API there is often a program, which has no answer to a question.
    "hermes-api": tuple(group for group in _EVERY if group != "talk"),
    # A stranger writes what the model reads there.
    WEBHOOK: ("web", "planning"),
}

OF_PLATFORM: Mapping[str, str] = {
    "local": "hermes-cli",
    "telegram": "hermes-telegram",
    "discord": "hermes-discord",
    "whatsapp": "hermes-whatsapp",
    "slack": "hermes-slack",
    "api": "hermes-api",
    "webhook": WEBHOOK,
}
DEFAULT = "hermes-chat"


class NamedTool(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Access:
    """What one platform has. ``name`` is its toolset's; a single tool that was added or taken away counts most.

    ``unready`` tools work only after the owner has set something: they are told of when asked for, not before.
    """

    name: str
    groups: frozenset[str]
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    unready: frozenset[str] = frozenset()
    takes_unsorted: bool = True

    def has(self, group: str, tool: str) -> bool:
        if tool in self.removed or tool in self.added or group == FINDING:
            return tool not in self.removed
        if group in self.removed:
            return False
        return group in self.groups or group in self.added or (self.takes_unsorted and group not in GROUPS)


EVERYTHING = Access("all", frozenset(GROUPS))


def access_of(config: Config, where: Where) -> Access:
    """Return what the configuration gives a platform, or one chat of it.

    A group that none of our toolsets knows is a plugin's: it is in all of them, and in those of the owner's own
    making only when they name it. A name in ``enabled`` or ``disabled`` is a toolset, a group or a tool.
    """
    platform = where if isinstance(where, str) else where.platform
    own_of_chat = () if isinstance(where, str) else config.chat(where).toolsets
    choice = config.tools.get(platform, NO_CHOICE)
    if own_of_chat:
        # A chat's own toolsets replace its platform's; what the platform disables stays disabled.
        spread = frozenset(_spread(own_of_chat, config))
        removed = frozenset(_spread(choice.disabled, config))
        single = spread - frozenset(GROUPS)
        return Access(", ".join(own_of_chat), spread, single - removed, removed, unready(config), takes_unsorted=False)
    name = choice.toolset or OF_PLATFORM.get(platform, DEFAULT)
    own = config.toolsets.get(name)
    groups = TOOLSETS.get(name, ()) if own is None else own  # a toolset that does not exist has nothing in it
    return Access(
        name,
        frozenset(_spread(groups, config)),
        frozenset(_spread(choice.enabled, config)),
        frozenset(_spread(choice.disabled, config)),
        unready(config),
        takes_unsorted=own is None and name in TOOLSETS and name != WEBHOOK,
    )


class Accesses:
    """``access_of`` for a configuration that changes seldom and is asked about with every step."""

    def __init__(self, config: Callable[[], Config]) -> None:
        self._config = config
        self._known_for: Config | None = None
        self._known: dict[tuple[str, tuple[str, ...]], Access] = {}

    def __call__(self, where: Where) -> Access:
        config = self._config()
        if config is not self._known_for:
            self._known_for, self._known = config, {}
        own = () if isinstance(where, str) else config.chat(where).toolsets
        known = where if isinstance(where, str) else where.platform, own
        if known not in self._known:
            self._known[known] = access_of(config, where)
        return self._known[known]


def unready(config: Config) -> frozenset[str]:
    """Tools that cannot work before the owner sets something; each says what, when it is called."""
    web = config.web
    has_search = web.brave_api_key or web.tavily_api_key or web.searxng_url
    return frozenset() if has_search else frozenset({"web_search"})


def _spread(names: Iterable[str], config: Config) -> Iterable[str]:
    """Groups and tools as they are, a toolset as its groups."""
    for name in names:
        groups = config.toolsets.get(name) or TOOLSETS.get(name)
        yield from groups if groups is not None else (name,)


def known_names(config: Config, tools: Iterable[str]) -> list[str]:
    """Everything that may stand in ``enabled`` and ``disabled``."""
    return [*GROUPS, *TOOLSETS, *config.toolsets, *tools]


def mistakes(config: Config, tools: Sequence[NamedTool]) -> list[str]:
    """What the configuration says of tools that names nothing: a slip of the pen leaves on what was to be off."""
    known = {*known_names(config, (tool.name for tool in tools)), *(tool.group for tool in tools)}
    found = []
    for platform, choice in config.tools.items():
        where = f"tools.{platform}"
        if platform not in (*config.platforms, *OF_PLATFORM):
            found.append(f"{where}: there is no platform {platform}.")
        if choice.toolset and choice.toolset not in {*TOOLSETS, *config.toolsets}:
            found.append(f"{where}.toolset: there is no toolset {choice.toolset}, so {platform} has no tools.")
        for key, names in (("enabled", choice.enabled), ("disabled", choice.disabled)):
            found += [f"{where}.{key}: there is no {name}." for name in names if name not in known]
    for toolset, names in config.toolsets.items():
        found += [f"toolsets.{toolset}: there is no {name}." for name in names if name not in known]
    return found
