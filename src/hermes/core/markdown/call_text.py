"""Write a tool call as text that a person can judge: nothing hidden, nothing out of sight."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.text import one_line, visible

MAX_LINES = 60
"""A card with more lines than this is not read to its end."""

_MAIN = {"terminal": "command", "execute_code": "code"}
_SHORT = 200
_DEEPEST = 8
_LABEL = 60
# Blanks that look like a space and are none to a shell, selectors without a shape, and marks that pile up on a letter.
_ODD = re.compile(
    "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\ufe00-\ufe0e]"
    "|[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3,}"
)
_BLANKS = re.compile(r"\t{9,}|[ \t\u3000]{41,}")
_BLANK_LINES = re.compile(r"\n(?:[ \t\u3000]*\n){4,}")
_TICKS = re.compile(r"`{3,}")
_MARKS = re.compile(r"([`*\\]|~~|\|\||(?<![^\W_])_|_(?![^\W_])|\]\()")


@dataclass(frozen=True, slots=True)
class CallPart:
    """A part of a call. ``label`` names the argument; '' for the command itself."""

    text: str
    label: str = ""


def blocks_of(tool: str, arguments: str) -> list[CallPart]:
    """Return what a call does, part by part: its command or code first, then every other argument by its name.

    Arguments that are no JSON object are returned as they are.
    """
    try:
        given = json.loads(arguments) if arguments.strip() else {}
        if not isinstance(given, dict):
            return [CallPart(arguments)]
        blocks = []
        main = _MAIN.get(tool, "")
        if isinstance(given.get(main), str):
            blocks.append(CallPart(given.pop(main)))
        if tool == "patch" and (edits := _edits(given.get("edits"))):
            del given["edits"]
            return [*blocks, *_joined(_parts("", given)), *edits]
        if given:
            blocks += _joined(_parts("", given))
        return blocks or [CallPart("")]
    except (ValueError, RecursionError):  # a model wrote it: shown as it is
        return [CallPart(arguments)]


def _parts(name: str, value: Any, depth: int = 0) -> Iterator[CallPart]:
    if depth > _DEEPEST:
        yield CallPart(json.dumps(value, ensure_ascii=False), name)
    elif isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _parts(f"{name}.{key}" if name else str(key), each, depth + 1)
    elif isinstance(value, list) and value:
        for number, each in enumerate(value, 1):
            yield from _parts(f"{name} {number}", each, depth + 1)
    else:
        yield CallPart(value if isinstance(value, str) else json.dumps(value), name)


def _joined(parts: Iterator[CallPart]) -> list[CallPart]:
    """Put short arguments on lines of one block; a text of several lines has a block of its own."""
    blocks: list[CallPart] = []
    lines: list[str] = []
    for part in parts:
        if "\n" in part.text or len(part.text) > _SHORT:
            blocks += [CallPart("\n".join(lines))] if lines else []
            lines = []
            blocks.append(part)
        else:
            lines.append(f"{one_line(part.label, _LABEL)}: {part.text}")
    return [*blocks, CallPart("\n".join(lines))] if lines else blocks


def _edits(edits: Any) -> list[CallPart]:
    """Return the edits of a patch as lines that go (-) and lines that come (+)."""
    if not isinstance(edits, list) or not edits:
        return []
    blocks = []
    for number, edit in enumerate(edits, 1):
        if not isinstance(edit, dict) or not isinstance(edit.get("old"), str) or not isinstance(edit.get("new"), str):
            return []
        old, new = edit.pop("old"), edit.pop("new")
        gone, come = [f"- {line}" for line in old.split("\n")], [f"+ {line}" for line in new.split("\n")]
        more = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in edit.items()]
        blocks.append(CallPart("\n".join([*gone, *come, *more]), f"edits {number}"))
    return blocks


def reveal(text: str) -> str:
    """Spell out what a person could not see, and count blanks that would push the rest out of sight."""
    text = visible(text)
    text = _ODD.sub(lambda odd: "".join(f"‹U+{ord(sign):04X}›" for sign in odd[0]), text)
    text = _BLANK_LINES.sub(lambda blank: f"\n‹{blank[0].count(chr(10)) - 1} blank lines›\n", text)
    return _BLANKS.sub(lambda blank: f"‹{len(blank[0])} blanks›", text)


def fewer_lines(text: str, most: int = 40) -> str:
    """Keep the first and the last lines of an excerpt, and count those between."""
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    first, last = most * 2 // 3, most - most * 2 // 3
    return "\n".join([*lines[:first], f"‹{len(lines) - most} lines›", *lines[-last:]])


def fenced(text: str) -> str:
    """Put a text into a code block that nothing in it can close, on any platform: backticks in a row are counted."""
    inside = _TICKS.sub(lambda run: f"‹{len(run[0])} backticks›", text)
    return f"```\n{inside}\n```"


def as_markdown(blocks: Sequence[CallPart]) -> str:
    """Write blocks as code blocks, each below its name."""
    parts = []
    for block in blocks:
        label = f"{literal(one_line(block.label, _LABEL))}:\n" if block.label else ""
        parts.append(f"{label}{fenced(reveal(block.text))}")
    return "\n".join(parts)


def as_plain_text(blocks: Sequence[CallPart]) -> str:
    """Write blocks as the lines of a text file."""
    return "\n\n".join(
        f"{block.label}:\n{reveal(block.text)}" if block.label else reveal(block.text) for block in blocks
    )


def literal(text: str) -> str:
    """Escape marks of Markdown, so that a sentence shows every sign of the names in it."""
    return _MARKS.sub(lambda mark: "".join(f"\\{sign}" for sign in mark[0]), text)
