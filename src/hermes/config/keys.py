"""Collect the keys of all settings, and build the tree in which the names of a file are looked up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from hermes.config.providers import ENV_FILE, env_prefix
from hermes.config.schema import AccountConfig, Config
from hermes.config.setting import Path, keys_of
from hermes.config.values import Key, Kind
from hermes.core.dataclasses import dataclass
from hermes.core.manifest import Manifest, Setting, SettingKind

GENERAL = tuple(keys_of(Config))
PROVIDER = tuple(key for key in GENERAL if key.path[0] == "providers")
COMMON = tuple(keys_of(AccountConfig))
"""What every platform takes besides the settings of its own manifest."""

# Read by other parts of the program or by the system; known here so that nobody is warned about them.
OTHER_ENV = ("HERMES_HOME", "HERMES_PROFILE", "HERMES_CONFIG", "HERMES_ENV", ENV_FILE)


def platform_keys(manifest: Manifest) -> tuple[Key, ...]:
    """The keys of a platform's account ``main``."""
    own = {setting.key: _key_of(setting) for setting in manifest.settings}
    prefix, capitals = ("platforms", manifest.id), env_prefix(manifest.id)

    def place(key: Key) -> Key:
        older = manifest.older_env.get(key.path[0], ())
        return key.at((*prefix, *key.path), (*[name.replace("<P>", capitals) for name in key.env], *older))

    return tuple(map(place, (*own.values(), *(key for key in COMMON if key.path[0] not in own))))


def _key_of(setting: Setting) -> Key:
    path, env = (setting.key,), (setting.env,) if setting.env else ()
    if setting.kind is SettingKind.TEXT and setting.key.endswith("url"):
        is_socket = str(setting.default).startswith(("ws://", "wss://"))
        schemes = ("ws", "wss") if is_socket else ("http", "https")
        return Key(path, Kind.URL, setting.default, env, schemes, help=setting.help)
    return Key(path, Kind(setting.kind), setting.default, env, help=setting.help)


def provider_keys(name: str, api_key_env: str = "") -> Iterator[Key]:
    """The keys of one provider. A variable named by ``api_key_env`` takes the place of ``<NAME>_API_KEY``."""
    capitals = env_prefix(name)
    for key in PROVIDER:
        env = tuple(variable.replace("<NAME>", capitals) for variable in key.env)
        if key.path[2] == "api_key" and api_key_env:
            env = tuple(api_key_env.split(","))
        yield key.at(("providers", name, *key.path[2:]), env)


@dataclass(slots=True)
class Node:
    """A place in the files: sections below it by name, one for names the owner chooses, and a key."""

    children: dict[str, Node] = field(default_factory=dict)
    any_name: Node | None = None
    key: Key | None = None
    is_alias: bool = False
    is_ignored: bool = False  # known and of no use to us


SURE_LIKENESS = 0.85
SURE_LEAD = 0.05

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
        self.keys: dict[Path, Key] = {}
        self.of_platform = {manifest.id: platform_keys(manifest) for manifest in self.manifests}
        for key in GENERAL:
            self.keys[key.path] = self._place(key.path).key = key
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
        return key.at(path, key.env)

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
        main = self.of_platform[manifest.id]
        for here in (prefix, (*prefix, "accounts", "*")):
            place, extra = self._place(here).children, self._place((*here, "extra")).children
            for key in main if here == prefix else [key.at((*here, key.path[-1])) for key in main]:
                name = key.path[-1]
                self.keys[key.path], place[name], extra[name] = key, Node({}, None, key), Node({}, None, key, True)
            # The older form: home_channel: {platform: …, chat_id: …, name: …}
            home = place["home_channel"].children
            home["chat_id"] = Node(key=place["home_channel"].key, is_alias=True)
            home["name"] = Node(key=place["home_channel_name"].key, is_alias=True)
            home["platform"] = Node(is_ignored=True)

    def _add_older_forms(self) -> None:
        self._place(("model",)).key = self.keys[("model", "default")]  # model: gpt-4o-mini
        self._alias(("agent", "personalities", "*"), self.keys[("personalities", "*")])
        self._alias(("logging", "level"), self.keys[("logs", "level")])
        self._alias(("logging", "format"), self.keys[("logs", "format")])
        self._alias(("group_sessions_per_user",), self.keys[("sessions", "group_sessions_per_user")])
        self._alias(("providers", "*", "model"), self.keys[("providers", "*", "default_model")])
        for name in ("mode", "at_hour", "idle_minutes"):
            self._alias(("default_reset_policy", name), self.keys[("sessions", "reset", name)])
            self._alias(("reset_by_platform", "*", name), self.keys[("sessions", "reset_by_platform", "*", name)])


_latest: list[Schema] = []


def schema_for(manifests: Sequence[Manifest]) -> Schema:
    """Return the schema of these platforms: the latest, unless the platforms are others. Nobody changes a schema."""
    if not _latest or _latest[0].manifests != tuple(manifests):
        _latest[:] = [Schema(manifests)]
    return _latest[0]


def nearest(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """The known name that was probably meant, or an empty text."""
    import difflib  # only for names that are not known

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return found[0] if found else ""


def only_meant(name: str, known: Iterable[str]) -> str:
    """The known name that was certainly meant: very near, and no other nearly as near; else an empty text."""
    import difflib  # only for names that are not known

    def likeness(other: str) -> float:
        return difflib.SequenceMatcher(None, other, name).ratio()

    near = sorted(((likeness(other), other) for other in known), reverse=True)[:2]
    if not near or near[0][0] < SURE_LIKENESS or (len(near) > 1 and near[0][0] - near[1][0] < SURE_LEAD):
        return ""
    return near[0][1]
