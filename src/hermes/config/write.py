"""Render settings as the text of a `config.yaml`."""

from __future__ import annotations

import json
import re

from hermes.config.trees import Items, Leaf, Table, Tree

_PLAIN = re.compile(r"[A-Za-z0-9_./][\w./+-]*")
_OTHER_MEANING = frozenset({"null", "~"})


def render_yaml(table: Table) -> str:
    """Render a tree. What is read back from it is the same tree: every scalar is the text that it was."""
    return "".join(f"{line}\n" for line in _lines(table, ""))


def _lines(table: Table, indent: str) -> list[str]:
    lines: list[str] = []
    for name, tree in table.entries.items():
        if isinstance(tree, Table) and tree.entries:
            lines += [f"{indent}{_scalar(name)}:", *_lines(tree, f"{indent}  ")]
        else:
            lines.append(f"{indent}{_scalar(name)}: {_value(tree)}")
    return lines


def _value(tree: Tree) -> str:
    match tree:
        case Leaf(None):
            return "null"
        case Leaf(str() as text):
            return _scalar(text)
        case Items(items):
            return "[" + ", ".join(map(_value, items)) + "]"
        case Table(entries):
            return "{" + ", ".join(f"{_scalar(name)}: {_value(value)}" for name, value in entries.items()) + "}"
        case _:
            raise TypeError(tree)


def _scalar(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) is not None and text.casefold() not in _OTHER_MEANING
    # A quoted text of JSON is one of YAML too, with the same escapes; YAML alone has no lone surrogates.
    return text if is_plain else json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
