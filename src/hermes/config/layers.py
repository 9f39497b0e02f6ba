"""Load one Config from the environment and its files, with a Problem for everything odd."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from hermes.config.build import Builder
from hermes.config.dotenv import EnvLine, decode, parse_dotenv
from hermes.config.files import ENV, SOUL, SettingFiles, setting_files
from hermes.config.keys import NAME, NAMES_UNDER, OTHER_ENV, Node, Schema, nearest, only_meant, schema_for
from hermes.config.providers import ENV_FILE, KNOWN, env_prefix, named_env_file
from hermes.config.resolved import Entry, Rank, Resolved, Source
from hermes.config.schema import Config, Problem
from hermes.config.setting import Path as KeyPath
from hermes.config.trees import Items, Leaf, Table, Tree, read_json, read_yaml
from hermes.config.values import Key, Kind, Raw, looks_unfilled, parse
from hermes.core.dataclasses import dataclass
from hermes.core.manifest import Manifest

MAX_IGNORED_BYTES = 64 * 1024
MAX_SOUL_BYTES = 100_000

Names = Mapping[str, list[Key]]
"""The keys that each environment name means."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The files as they were last understood, which is what a broken edit falls back on; None for never."""

    home_env: Mapping[str, EnvLine] | None = None
    named_env: Mapping[str, EnvLine] | None = None
    yaml: Table | None = None
    json: Table | None = None
    soul: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot with what was odd about it and where each value came from."""

    config: Config
    problems: tuple[Problem, ...]
    sources: Mapping[KeyPath, Resolved]
    schema: Schema = field(repr=False)
    layers: Layers = field(repr=False)
    files: SettingFiles = field(repr=False)


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
    schema = schema_for(manifests)
    problems: list[Problem] = []
    files = setting_files(home, environ)
    layers = _read_files(files, environ, previous.layers if previous else Layers(), problems)
    entries = _TreeWalk(schema, problems, files.config_label).entries(layers)
    if layers.soul:
        entries.append(Entry(schema.keys["agent", "persona"], layers.soul, Source(Rank.SOUL, SOUL, SOUL)))
    names = schema.env_names(_providers_named(entries))
    entries += _from_environment(names, environ, layers)
    problems += _differing(names, environ, layers)
    problems += _unknown_names(schema, names, environ, layers)
    problems += _ignored_file(home, environ, cwd, names)
    resolved = _resolve(entries, previous.sources if previous else {}, problems)
    config = Builder(home, environ, schema, resolved, problems).config()
    return Loaded(config, tuple(dict.fromkeys(problems)), MappingProxyType(resolved), schema, layers, files)


def watched_files(home: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files that a configuration is read from, each once."""
    named, files = named_env_file(environ), setting_files(home, environ)
    ours = (files.env, files.config, files.json, files.soul)
    return tuple(dict.fromkeys((*([named] if named is not None else []), *ours)))


def _read_files(files: SettingFiles, environ: Mapping[str, str], last: Layers, problems: list[Problem]) -> Layers:
    named = named_env_file(environ)
    for variable, path in (*([(ENV_FILE, named)] if named is not None else []), *files.named):
        if not path.exists():
            problems.append(Problem("error", variable, f"names {path}, and there is no such file.", "Name another."))
    return Layers(
        home_env=_read(files.env, files.env_label, parse_dotenv, last.home_env, problems),
        named_env=_read(named, str(named), parse_dotenv, last.named_env, problems) if named is not None else None,
        yaml=_read(files.config, files.config_label, read_yaml, last.yaml, problems),
        json=_read(files.json, "gateway.json", read_json, last.json, problems),
        soul=_read(files.soul, SOUL, _read_soul, last.soul, problems),
    )


def _read_soul(content: bytes, label: str) -> tuple[str | None, list[Problem]]:
    """Who the agent is, in the owner's words; comments of Markdown are not part of it."""
    if len(content) > MAX_SOUL_BYTES:
        return None, [Problem("error", label, f"is {len(content):,} bytes long; at most {MAX_SOUL_BYTES:,} are read.")]
    text, problems = decode(content, label)
    return re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL).strip(), problems


T = TypeVar("T")
Reader = Callable[[bytes, str], tuple[T | None, list[Problem]]]


def _read(path: Path, label: str, reader: Reader[T], good: T | None, problems: list[Problem]) -> T | None:
    """What the file says, or what it last said when it cannot be understood now."""
    content = b""
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # a file that is not there says nothing
            content = path.read_bytes()
        found, complaints = reader(content, label)
    except OSError as error:
        found, complaints = None, [Problem("error", label, f"cannot be read: {error.strerror}.", _how_to_read(path))]
        if good is not None:
            complaints[-1] = replace(complaints[-1], hint=f"What it said before stays in force. {complaints[-1].hint}")
    else:
        if found is None and good is not None:
            complaints[-1] = replace(complaints[-1], hint="What it said before stays in force.")
    problems.extend(complaints)
    return good if found is None else found


def _how_to_read(path: Path) -> str:
    """The command that makes a file readable for us; where its owner cannot be seen, the one that shows it."""
    try:
        is_ours = path.stat().st_uid == os.geteuid()
    except OSError:
        return f"See who may read it: ls -ld {path.parent}"
    where = shlex.quote(str(path))
    return f"Make it readable: {f'chmod 600 {where}' if is_ours else f'sudo chown {os.geteuid()} {where}'}"


def entries_of(schema: Schema, table: Table, label: str) -> tuple[list[Entry], list[Problem]]:
    """The settings that a tree from elsewhere holds, and what is odd about it."""
    problems: list[Problem] = []
    return _TreeWalk(schema, problems, label).entries(Layers(yaml=table)), problems


class _TreeWalk:
    """Finds the keys of the two trees, and says which names it does not know."""

    def __init__(self, schema: Schema, problems: list[Problem], config_label: str) -> None:
        self._schema = schema
        self._problems = problems
        self._config_label = config_label
        self._entries: list[Entry] = []

    def entries(self, layers: Layers) -> list[Entry]:
        trees = ((Rank.YAML, self._config_label, layers.yaml), (Rank.JSON, "gateway.json", layers.json))
        for rank, label, table in trees:
            self._rank, self._label = rank, label
            self._section(self._schema.root, table or Table(), (), ())
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
            elif NAMES_UNDER.get(path, NAME).fullmatch(name):
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

    def _unknown(self, node: Node, path: KeyPath, line: int) -> None:
        suggestion = nearest(path[-1], node.children)
        hint = f"→ {'.'.join((*path[:-1], suggestion))}?" if suggestion else ""
        complaint = "is unknown."
        if path[:-1] == ("platforms",):
            complaint = "names no platform that is installed here."
            hint = hint or "→ install the package that brings it, or take this out"
        sure = only_meant(path[-1], node.children) if suggestion else ""
        repair = ("rename", self._label, path[-1], sure) if sure else ()
        self._say("warning", path, line, complaint, hint, repair)

    def _say(
        self, level: Any, path: KeyPath, line: int, text: str, hint: str = "", repair: tuple[str, ...] = ()
    ) -> None:
        where = f"{self._label} line {line}" if line else self._label
        self._problems.append(Problem(level, f"{where}: {'.'.join(path)}", text, hint, repair))


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


def _providers_named(entries: Iterable[Entry]) -> dict[str, str]:
    """Every provider, each with the variable that its ``api_key_env`` names."""
    providers = dict.fromkeys(KNOWN, "")
    for entry in entries:
        if entry.key.path == ("model", "provider") and isinstance(entry.raw, str):
            providers.setdefault(entry.raw.strip(), "")
        if entry.key.path[0] == "providers":
            variable = providers.setdefault(entry.key.path[1], "")
            if entry.key.path[2] == "api_key_env" and not variable:
                with contextlib.suppress(ValueError):  # told when the key itself is resolved
                    providers[entry.key.path[1]] = parse(entry.key, entry.raw)
    return providers


def _environments(environ: Mapping[str, str], layers: Layers) -> Iterator[tuple[Rank, str, Mapping[str, EnvLine]]]:
    yield Rank.ENVIRONMENT, "environment", {name: EnvLine(value, 0) for name, value in environ.items()}
    yield Rank.ENV_FILE, str(named_env_file(environ)), layers.named_env or {}
    yield Rank.HOME_ENV, environ.get(ENV, "").strip() or ".env", layers.home_env or {}


def _from_environment(names: Names, environ: Mapping[str, str], layers: Layers) -> Iterator[Entry]:
    for rank, label, values in _environments(environ, layers):
        for name, keys in names.items():
            if name in values:
                source = Source(rank, label, name, values[name].line)
                for key in keys:
                    yield Entry(key, values[name].value, source, is_alias=name != key.env[0])


def _differing(names: Names, environ: Mapping[str, str], layers: Layers) -> Iterator[Problem]:
    for rank, label, lines in _environments(environ, layers):
        for name, line in lines.items() if rank is not Rank.ENVIRONMENT else ():
            inherited = environ.get(name, "")
            if name in names and inherited.strip() and line.value.strip() and inherited.strip() != line.value.strip():
                yield Problem(
                    "warning",
                    f"{label} line {line.line}",
                    f"{name} has another value in the process environment, and that one counts.",
                    f"Run `unset {name}` before the start, or remove the line.",
                )


def _unknown_names(schema: Schema, names: Names, environ: Mapping[str, str], layers: Layers) -> Iterator[Problem]:
    """Names that were probably meant for us: any with a platform's prefix, and near misses of all others."""
    known = {*names, *OTHER_ENV}
    prefixes = tuple(f"{env_prefix(manifest.id)}_" for manifest in schema.manifests if not manifest.always_on)
    for rank, label, lines in _environments(environ, layers):
        for name, line in lines.items():
            if name in known or not name.isupper():
                continue
            is_ours = name.startswith(prefixes)
            suggestion = nearest(name, known, cutoff=0.75) if is_ours else _slip_of(name, known)
            # The process environment holds other programs' names too, so there only a near miss counts.
            if suggestion or (is_ours and rank is not Rank.ENVIRONMENT):
                where = f"{label} line {line.line}" if line.line else label
                sure = only_meant(name, known) if suggestion and label == ".env" else ""
                repair = ("rename", label, name, sure) if sure else ()
                yield Problem("warning", where, f"{name} is unknown.", f"→ {suggestion}?" if suggestion else "", repair)


def _ignored_file(home: Path, environ: Mapping[str, str], cwd: Path, names: Names) -> Iterator[Problem]:
    """Report a `.env` in the working folder that sets names of ours: it is not read.

    The author of that folder would otherwise choose model, keys and owner. The file may be a pipe, a device or huge, so
    only its first bytes are read.
    """
    path = cwd / ".env"
    try:
        if any(path.samefile(read) for read in watched_files(home, environ) if read.exists()):
            return
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            is_plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read(MAX_IGNORED_BYTES) if is_plain else b""
    except OSError:  # there is none, as a rule
        return
    lines, _ = parse_dotenv(content, "./.env")
    ours = sorted(lines.keys() & {*names, *OTHER_ENV})
    if ours:
        shown = ", ".join(ours[:3]) + (f" and {len(ours) - 3} more" if len(ours) > 3 else "")
        hint = f"To use it: --env-file {shlex.quote(str(path))}"
        yield Problem("warning", "./.env", f"is ignored, though it sets {shown}: a folder does not configure us.", hint)


def _slip_of(name: str, known: Iterable[str]) -> str:
    """The name of ours that this one misses by a letter or so. The environment holds dozens of others' names."""
    alike = [candidate for candidate in known if candidate[0] == name[0] and abs(len(candidate) - len(name)) <= 2]
    return nearest(name, alike, cutoff=0.92) if alike else ""


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
                hint = "Write your own there; it is used at once."
                problems.append(Problem("error" if entry.raw else "warning", where, text, hint))
            continue
        if isinstance(entry.raw, str) and not entry.raw.strip():
            continue  # an empty line sets nothing
        try:
            return Resolved(key, parse(key, entry.raw), entry.source, tuple(candidates))
        except ValueError as error:
            has_last = last is not None and (last.winner is not None or last.is_kept)
            value = last.value if last is not None and has_last else key.default
            default = "not set" if key.default in (None, "", ()) else key.default
            hint = "The last good value stays." if has_last else f"The default stays: {default}."
            problems.append(Problem("error", where, str(error), hint))
            # Not the next layer's value: whoever wrote this one meant to replace it.
            return Resolved(key, value, None, tuple(candidates), is_kept=has_last)
    return None
