"""Loading: from the environment and four files to one Config, with a Problem for everything odd."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hermes.config import build
from hermes.config.dotenv import EnvLine, parse_dotenv
from hermes.config.keys import NAME, OTHER_ENV, PROVIDER_NAME, Node, Schema, nearest
from hermes.config.keys import Path as KeyPath
from hermes.config.providers import KNOWN, env_prefix
from hermes.config.schema import Config, Problem
from hermes.config.trees import Items, Leaf, Table, Tree, read_json, read_yaml
from hermes.config.values import Key, Kind, Raw, looks_unfilled, parse
from hermes.core.manifest import Manifest


class Rank(IntEnum):
    """Who is heard first."""

    ENVIRONMENT = 0
    HOME_ENV = 1
    FOLDER_ENV = 2
    YAML = 3
    JSON = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value stands. ``written`` is its name there."""

    rank: Rank
    label: str
    written: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.label} line {self.line}" if self.line else self.label


@dataclass(frozen=True, slots=True)
class Entry:
    """A value that somebody wrote for a key. An alias (an older place of a key) is heard after the key itself."""

    key: Key
    raw: Raw
    source: Source
    is_alias: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a key became. ``winner`` is None when a bad value left us with the last good one or the default."""

    key: Key
    value: Any
    winner: Source | None
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Layers:
    """The files as they were last understood; what a broken edit falls back on."""

    home_env: Mapping[str, EnvLine] = field(default_factory=dict)
    folder_env: Mapping[str, EnvLine] = field(default_factory=dict)
    yaml: Table = field(default_factory=Table)
    json: Table = field(default_factory=Table)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot with what was odd about it and where each value came from."""

    config: Config
    problems: tuple[Problem, ...]
    sources: Mapping[KeyPath, Resolved]
    schema: Schema = field(repr=False)
    layers: Layers = field(repr=False)


def load(
    home: Path,
    environ: Mapping[str, str],
    cwd: Path,
    manifests: Sequence[Manifest],
    previous: Loaded | None = None,
) -> Loaded:
    """Read everything there is. Never raises for what a file or a variable holds.

    A bad value is a Problem and leaves its key at the value it had in ``previous``, else at its default;
    all other keys are as if nothing had happened.
    """
    schema = Schema(manifests)
    problems: list[Problem] = []
    layers = _read_files(home, cwd, previous.layers if previous else Layers(), problems)
    entries = _TreeWalk(schema, problems).entries(layers)
    names = schema.env_names(_providers_named(entries))
    entries += _from_environment(names, environ, layers)
    problems += _differing(names, environ, layers)
    problems += _unknown_names(schema, names, environ, layers)
    resolved = _resolve(entries, previous.sources if previous else {}, problems)
    config = build.config(home, environ, _lookup(environ, layers), schema, resolved, problems)
    return Loaded(config, tuple(dict.fromkeys(problems)), MappingProxyType(resolved), schema, layers)


def watched_files(home: Path, cwd: Path) -> tuple[Path, ...]:
    """The files that a configuration is read from, each once."""
    return tuple(dict.fromkeys((home / ".env", cwd / ".env", home / "config.yaml", home / "gateway.json")))


def _read_files(home: Path, cwd: Path, last: Layers, problems: list[Problem]) -> Layers:
    def read_env(path: Path, label: str, good: Mapping[str, EnvLine]) -> Mapping[str, EnvLine]:
        content = _content(path, label, problems)
        if content is None:
            return good
        lines, found = parse_dotenv(content, label)
        problems.extend(found)
        return lines

    def read_tree(name: str, reader: Callable[[bytes, str], tuple[Table | None, list[Problem]]], good: Table) -> Table:
        content = _content(home / name, name, problems)
        if content is None:
            return good
        table, found = reader(content, name)
        problems.extend(found)
        return good if table is None else table

    is_same_folder = os.path.realpath(home) == os.path.realpath(cwd)
    return Layers(
        home_env=read_env(home / ".env", ".env", last.home_env),
        folder_env={} if is_same_folder else read_env(cwd / ".env", "./.env", last.folder_env),
        yaml=read_tree("config.yaml", read_yaml, last.yaml),
        json=read_tree("gateway.json", read_json, last.json),
    )


def _content(path: Path, label: str, problems: list[Problem]) -> bytes | None:
    """The bytes of a file, nothing for one that is not there, None for one that cannot be read."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        problems.append(Problem("error", label, f"cannot be read: {error.strerror}."))
        return None


class _TreeWalk:
    """Finds the keys of the two trees, and says which names it does not know."""

    def __init__(self, schema: Schema, problems: list[Problem]) -> None:
        self._schema = schema
        self._problems = problems
        self._entries: list[Entry] = []

    def entries(self, layers: Layers) -> list[Entry]:
        for rank, label, table in ((Rank.YAML, "config.yaml", layers.yaml), (Rank.JSON, "gateway.json", layers.json)):
            self._rank, self._label = rank, label
            self._section(self._schema.root, table, (), ())
        return self._entries

    def _walk(self, node: Node, tree: Tree, path: KeyPath, chosen: KeyPath) -> None:
        if isinstance(tree, Table) and (node.children or node.any_name):
            self._section(node, tree, path, chosen)
        elif node.is_ignored or (isinstance(tree, Leaf) and tree.text is None):
            return
        elif node.key is None:
            self._say("error", path, tree.line, "is a section: write `name: value` lines under it.")
        elif isinstance(tree, Table) and node.key.path != ("model", "fallbacks"):
            self._say("error", path, tree.line, "takes one value, not a section.")
        else:
            self._leaf(node.key, node.is_alias, tree, path, chosen)

    def _section(self, node: Node, table: Table, path: KeyPath, chosen: KeyPath) -> None:
        for name, line in table.repeated:
            self._say("warning", (*path, name), line, "stands here for the second time; this one counts.")
        for name, tree in table.entries.items():
            here = (*path, name)
            if name in node.children:
                self._walk(node.children[name], tree, here, chosen)
            elif node.any_name is None:
                self._unknown(node, here, tree.line)
            elif self._is_good_name(path, name):
                self._walk(node.any_name, tree, here, (*chosen, name))
            else:
                self._say("error", here, tree.line, "is not a usable name: take a-z, 0-9, _ and -.")

    def _leaf(self, key: Key, is_alias: bool, tree: Tree, path: KeyPath, chosen: KeyPath) -> None:
        raw = _raw(tree)
        if raw is None:
            self._say("error", path, tree.line, "takes plain values, not sections or lists inside a list.")
            return
        source = Source(self._rank, self._label, ".".join(path), tree.line)
        self._entries.append(Entry(self._schema.at(key, chosen), raw, source, is_alias))

    def _is_good_name(self, path: KeyPath, name: str) -> bool:
        pattern = PROVIDER_NAME if path == ("providers",) else NAME
        return pattern.fullmatch(name) is not None

    def _unknown(self, node: Node, path: KeyPath, line: int) -> None:
        meant = nearest(path[-1], node.children)
        hint = f"→ {'.'.join((*path[:-1], meant))}?" if meant else ""
        what = "names no platform that is installed here." if path[:-1] == ("platforms",) else "is unknown."
        self._say("warning", path, line, what, hint)

    def _say(self, level: Any, path: KeyPath, line: int, text: str, hint: str = "") -> None:
        where = f"{self._label} line {line}" if line else self._label
        self._problems.append(Problem(level, f"{where}: {'.'.join(path)}", text, hint))


def _raw(tree: Tree) -> Raw | None:
    """The typed text of a leaf. In a list, `{provider: p, model: m}` is the long form of `p/m`."""
    if isinstance(tree, Leaf):
        return tree.text
    items: list[str] = []
    for item in tree.items if isinstance(tree, Items) else [tree]:
        if isinstance(item, Table):
            item = _provider_and_model(item)
        if not isinstance(item, Leaf):
            return None
        if item.text is not None:
            items.append(item.text)
    return tuple(items)


def _provider_and_model(table: Table) -> Tree:
    parts = [table.entries.get(name) for name in ("provider", "model")]
    texts = [part.text for part in parts if isinstance(part, Leaf) and part.text]
    return Leaf("/".join(texts), table.line) if len(texts) == 2 and len(table.entries) == 2 else table


def _providers_named(entries: Iterable[Entry]) -> list[str]:
    named = (entry.key.path[1] for entry in entries if entry.key.path[0] == "providers")
    return list(dict.fromkeys((*KNOWN, *named)))


def _environments(environ: Mapping[str, str], layers: Layers) -> Iterator[tuple[Rank, str, Mapping[str, EnvLine]]]:
    yield Rank.ENVIRONMENT, "environment", {name: EnvLine(value, 0) for name, value in environ.items()}
    yield Rank.HOME_ENV, ".env", layers.home_env
    yield Rank.FOLDER_ENV, "./.env", layers.folder_env


def _from_environment(names: Mapping[str, Key], environ: Mapping[str, str], layers: Layers) -> list[Entry]:
    found = []
    for rank, label, values in _environments(environ, layers):
        for name, key in names.items():
            if name in values:
                is_second_name = key.env.index(name) > 0 if name in key.env else False
                source = Source(rank, label, name, values[name].line)
                found.append(Entry(key, values[name].value, source, is_second_name))
    return found


def _lookup(environ: Mapping[str, str], layers: Layers) -> Callable[[str], tuple[str, Source] | None]:
    """Find any environment name, known or not, as `api_key_env` needs it."""

    def find(name: str) -> tuple[str, Source] | None:
        for rank, label, values in _environments(environ, layers):
            if values.get(name, EnvLine("", 0)).value.strip():
                return values[name].value, Source(rank, label, name, values[name].line)
        return None

    return find


def _differing(names: Mapping[str, Key], environ: Mapping[str, str], layers: Layers) -> Iterator[Problem]:
    for label, lines in ((".env", layers.home_env), ("./.env", layers.folder_env)):
        for name, line in lines.items():
            inherited = environ.get(name, "")
            if name in names and inherited.strip() and line.value.strip() and inherited.strip() != line.value.strip():
                yield Problem(
                    "warning",
                    f"{label} line {line.line}",
                    f"{name} has another value in the process environment, and that one counts.",
                    f"Run `unset {name}` before the start, or remove the line.",
                )


def _unknown_names(
    schema: Schema, names: Mapping[str, Key], environ: Mapping[str, str], layers: Layers
) -> Iterator[Problem]:
    """Names that were probably meant for us: any with a platform's prefix, and near misses of all others."""
    known = {*names, *OTHER_ENV}
    prefixes = tuple(f"{env_prefix(manifest.id)}_" for manifest in schema.manifests if not manifest.always_on)
    for rank, label, lines in _environments(environ, layers):
        for name, line in lines.items():
            if name in known or not name.isupper():
                continue
            is_ours = name.startswith(prefixes)
            meant = nearest(name, known, cutoff=0.75 if is_ours else 0.92)
            # The process environment holds other programs' names too, so there only a near miss counts.
            if meant or (is_ours and rank is not Rank.ENVIRONMENT):
                where = f"{label} line {line.line}" if line.line else label
                yield Problem("warning", where, f"{name} is unknown.", f"→ {meant}?" if meant else "")


def _resolve(
    entries: Iterable[Entry], last: Mapping[KeyPath, Resolved], problems: list[Problem]
) -> dict[KeyPath, Resolved]:
    by_path: dict[KeyPath, list[Entry]] = {}
    for entry in entries:
        by_path.setdefault(entry.key.path, []).append(entry)
    resolved = {}
    for path, candidates in by_path.items():
        candidates.sort(key=lambda entry: (entry.source.rank, entry.is_alias))
        found = _choose(candidates, last.get(path), problems)
        if found is not None:
            resolved[path] = found
    return resolved


def _choose(candidates: Sequence[Entry], last: Resolved | None, problems: list[Problem]) -> Resolved | None:
    key = candidates[0].key
    for entry in candidates:
        where = f"{entry.source}: {entry.source.written}"
        if looks_unfilled(key, entry.raw):
            if key.kind is Kind.SECRET or (isinstance(entry.raw, str) and entry.raw.strip()):
                text = "is empty." if not entry.raw else "still holds an example value, so it is not used."
                problems.append(Problem("error" if entry.raw else "warning", where, text))
            continue
        if isinstance(entry.raw, str) and not entry.raw.strip():
            continue  # an empty line sets nothing
        try:
            return Resolved(key, parse(key, entry.raw), entry.source, tuple(candidates))
        except ValueError as error:
            hint = "The last good value stays." if last else f"The default stays: {_default(key)}."
            problems.append(Problem("error", where, str(error), hint))
            # Not the next layer's value: whoever wrote this one meant to replace it.
            return Resolved(key, last.value if last else key.default, None, tuple(candidates))
    return None


def _default(key: Key) -> str:
    return "not set" if key.default in (None, "", ()) else str(key.default)
