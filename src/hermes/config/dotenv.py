"""Parse a `.env` file, without loading it into the process environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.config.schema import Problem
from hermes.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnvLine:
    value: str
    line: int


_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


def parse_dotenv(content: bytes, label: str) -> tuple[Mapping[str, EnvLine], list[Problem]]:
    """Read what can be read. A line that cannot is a Problem with its number, and the rest goes on.

    Of a name given twice the last one counts. Problems never repeat a line's text: it may be a secret.
    """
    text, problems = decode(content, label)
    found: dict[str, EnvLine] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        where = f"{label} line {number}"
        match = _ASSIGNMENT.fullmatch(stripped)
        if match is None:
            problems.append(Problem("error", where, "is not NAME=value, so it is skipped."))
            continue
        name = match[1]
        try:
            value = _value(match[2])
        except ValueError as error:
            problems.append(Problem("error", where, f"{name} {error}, so it is skipped."))
            continue
        if name in found:
            earlier = found[name].line
            problems.append(Problem("warning", where, f"{name} was already set in line {earlier}; this line counts."))
        found[name] = EnvLine(value, number)
    return found, problems


def decode(content: bytes, label: str) -> tuple[str, list[Problem]]:
    """Bytes to text with LF line ends; a byte that is no UTF-8 is a Problem, never the end."""
    problems: list[Problem] = []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = content.decode("utf-8-sig", "replace")
        line = content.count(b"\n", 0, error.start) + 1
        hint = "Save the file as UTF-8."
        problems.append(Problem("warning", f"{label} line {line}", "holds a byte that is not UTF-8.", hint))
    return text.replace("\r\n", "\n").replace("\r", "\n"), problems


def _value(rest: str) -> str:
    if rest[:1] in {'"', "'"}:
        return _quoted(rest)
    # Unquoted: a comment starts at a # after a blank; a # inside a password stays.
    return re.split(r"(?:^|\s)#", rest, maxsplit=1)[0].strip()


def _quoted(rest: str) -> str:
    quote, position = rest[0], 1
    letters: list[str] = []
    while position < len(rest):
        letter = rest[position]
        if letter == quote:
            after = rest[position + 1 :].strip()
            if after and not after.startswith("#"):
                raise ValueError("has text after its closing quote")
            return "".join(letters)
        if letter == "\\" and quote == '"' and rest[position + 1 : position + 2] in _ESCAPES:
            position += 1
            letter = _ESCAPES[rest[position]]
        letters.append(letter)
        position += 1
    raise ValueError("has no closing quote")
