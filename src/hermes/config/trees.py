"""Parse `config.yaml` and `gateway.json` into one plain tree that remembers its lines.

Scalars stay the text that was typed. YAML would make a number of ``+4912345`` and of ``0123``, and
both may be somebody's id; what a value means is the schema's business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from hermes.config.dotenv import decode
from hermes.config.schema import Problem
from hermes.core.dataclasses import dataclass

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 1_000_000
MAX_DEPTH = 40


@dataclass(slots=True)
class Leaf:
    """One value; None is YAML's null, which means: not set here."""

    text: str | None
    line: int = 0


@dataclass(slots=True)
class Items:
    items: list[Tree]
    line: int = 0


@dataclass(slots=True)
class Table:
    """A section. ``repeated`` names keys that stood in it twice; the last one counts."""

    entries: dict[str, Tree] = field(default_factory=dict)
    line: int = 0
    repeated: list[tuple[str, int]] = field(default_factory=list)


Tree = Leaf | Items | Table


def read_yaml(content: bytes, label: str) -> tuple[Table | None, list[Problem]]:
    """The tree, or None when the file as a whole cannot be understood; the Problem names line and column."""
    return _read(content, label, _parse_yaml)


def read_json(content: bytes, label: str) -> tuple[Table | None, list[Problem]]:
    return _read(content, label, _parse_json)


def _read(
    content: bytes, label: str, parse: Callable[[str, str], Tree | Problem]
) -> tuple[Table | None, list[Problem]]:
    if len(content) > MAX_BYTES:
        text = f"is {len(content):,} bytes long; at most {MAX_BYTES:,} are read."
        return None, [Problem("error", label, text)]
    text, problems = decode(content, label)
    try:
        tree = parse(text, label) if text.strip() else Table()
    except RecursionError:
        tree = Problem("error", label, "is nested too deeply to be read.")
    if isinstance(tree, Leaf) and tree.text is None:
        tree = Table()
    if isinstance(tree, Leaf | Items):
        tree = Problem("error", label, "should hold settings as `name: value`, and holds something else.")
    return (None, [*problems, tree]) if isinstance(tree, Problem) else (tree, problems)


def _parse_yaml(text: str, label: str) -> Tree | Problem:
    import yaml  # only when there is such a file: 29 ms

    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return Table() if node is None else _YamlReader().read(node)
    except yaml.YAMLError as error:
        return _broken_yaml(error, label)


def _parse_json(text: str, label: str) -> Tree | Problem:
    try:
        return _from_json(json.loads(text, parse_int=str, parse_float=str, parse_constant=str))
    except json.JSONDecodeError as error:
        where = f"{label} line {error.lineno}, column {error.colno}"
        return Problem("error", where, f"is not valid JSON: {error.msg}.")


def _broken_yaml(error: yaml.YAMLError, label: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f"{label} line {mark.line + 1}, column {mark.column + 1}" if mark else label
    reason = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read")
    # A password that starts with * or & is quoted in the parser's own message.
    reason = re.sub(r"'[^']{2,}'", "…", reason)
    return Problem("error", where, f"is not valid YAML: {reason}.", "Nothing of this file is used until it is mended.")


class _YamlReader:
    """Turns YAML nodes into a Tree. An anchor is read once however often it is used, so that a file of
    nested aliases cannot grow; one that holds itself ends as null."""

    def __init__(self) -> None:
        self._seen: dict[int, Tree] = {}

    def read(self, node: yaml.Node, depth: int = 0) -> Tree:
        known = self._seen.get(id(node))
        if known is not None:
            return known
        if depth > MAX_DEPTH:
            raise RecursionError
        line = node.start_mark.line + 1
        self._seen[id(node)] = Leaf(None, line)
        tree = self._read(node, line, depth)
        self._seen[id(node)] = tree
        return tree

    def _read(self, node: Any, line: int, depth: int) -> Tree:
        if node.id == "mapping":
            return self._table(node, line, depth)
        if node.id == "sequence":
            return Items([self.read(item, depth + 1) for item in node.value], line)
        is_null = node.tag == "tag:yaml.org,2002:null"
        return Leaf(None if is_null else node.value, line)

    def _table(self, node: Any, line: int, depth: int) -> Table:
        table = Table(line=line)
        merged: dict[str, Tree] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                for source in value.value if value.id == "sequence" else [value]:
                    other = self.read(source, depth + 1)
                    if isinstance(other, Table):
                        merged = {**other.entries, **merged}
                continue
            name = key.value if key.id == "scalar" else f"(line {key.start_mark.line + 1})"
            if name in table.entries:
                table.repeated.append((name, key.start_mark.line + 1))
            table.entries[name] = self.read(value, depth + 1)
        table.entries = {**merged, **table.entries}
        return table


def _from_json(value: Any, depth: int = 0) -> Tree:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        return Table({name: _from_json(item, depth + 1) for name, item in value.items()})
    if isinstance(value, list):
        return Items([_from_json(item, depth + 1) for item in value])
    if isinstance(value, bool):
        return Leaf("true" if value else "false")
    return Leaf(value)
