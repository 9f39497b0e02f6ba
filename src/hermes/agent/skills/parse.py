"""Parse SKILL.md: YAML front matter and a Markdown body.

Reading is tolerant about form (a byte order mark, CRLF, unknown keys) and strict about what could act: the front
matter is data, so YAML tags and aliases are refused, and every size has a limit.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError

FILE_NAME = "SKILL.md"
MAX_BYTES = 64 * 1024
MAX_FRONT_CHARACTERS = 8 * 1024
MAX_DEPTH = 6
MAX_DESCRIPTION_CHARS = 1024
MAX_VARIABLES = 20

_NAME = re.compile(r"\w[\w.-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FENCE = re.compile(r"---[ \t]*")
_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "map", "seq", "timestamp")
)


class SkillError(GatewayError):
    """A skill cannot be used, found or installed; the text says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that a skill's commands need."""

    name: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Skill:
    """The front matter and place of a skill. ``category`` is the folders above; no ``platforms`` means all."""

    name: str
    description: str
    folder: Path
    category: str = ""
    variables: tuple[Variable, ...] = ()
    platforms: tuple[str, ...] = ()
    version: str = ""
    related: tuple[str, ...] = ()
    is_bundled: bool = False

    @property
    def address(self) -> str:
        """``devops/server-care``: how other skills name it."""
        return f"{self.category}/{self.name}" if self.category else self.name


@dataclass(frozen=True, slots=True)
class SkillDocument:
    """A SKILL.md taken apart. ``front`` holds texts, lists and tables of texts, as they were typed."""

    front: Mapping[str, Any]
    body: str


def same_name(name: str) -> str:
    """Return the form in which names are compared: some chats know no ``-``, and people type ``/Git_Work``."""
    return name.strip().strip("/").casefold().replace("_", "-")


def read_skill(folder: Path, category: str = "") -> Skill:
    """Read the front matter of the skill in this folder; SkillError says what is wrong with it."""
    document = parse(read_bounded(folder / FILE_NAME))
    front = document.front
    name = _text(front, "name") or folder.name
    if _NAME.fullmatch(name) is None:
        raise SkillError(f"its name {name[:80]!r} is not usable: take letters, figures, '-', '_' and '.', at most 64")
    description = " ".join(_text(front, "description").split())
    if not description:
        raise SkillError("its front matter has no description")
    return Skill(
        name=name,
        description=description[:MAX_DESCRIPTION_CHARS],
        folder=folder,
        category=category,
        variables=_variables(front.get("required_environment_variables")),
        platforms=tuple(item.casefold() for item in _texts(front.get("platforms"))),
        version=_text(front, "version")[:40],
        related=_texts(front.get("related_skills") or _hermes_part(front).get("related_skills")),
    )


def read_bounded(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a plain file of at most ``limit``. A link as its last part is refused; a pipe is not waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        reason = "it is a link" if path.is_symlink() else str(error.strerror).lower()
        raise SkillError(f"{path.name} cannot be read: {reason}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise SkillError(f"{path.name} is not a plain file")
    with os.fdopen(handle, "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise SkillError(f"{path.name} is longer than {limit:,} bytes")
    return content


def parse(content: bytes) -> SkillDocument:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillError(f"{FILE_NAME} is not UTF-8 (byte {error.start:,})") from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if _FENCE.fullmatch(lines[0]) is None:
        raise SkillError(f"{FILE_NAME} does not begin with front matter (a line of three dashes)")
    end = next((number for number, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), 0)
    if not end:
        raise SkillError("its front matter is not closed by a line of three dashes")
    front = "\n".join(lines[1:end])
    if len(front) > MAX_FRONT_CHARACTERS:
        raise SkillError(f"its front matter is longer than {MAX_FRONT_CHARACTERS:,} characters")
    return SkillDocument(read_front(front), "\n".join(lines[end + 1 :]).strip("\n") + "\n")


def read_front(text: str) -> Mapping[str, Any]:
    """Front matter as plain texts, lists and tables. Nothing is constructed from it: a tag or an alias is refused."""
    import yaml  # 29 ms, and only when a skill is new or was changed

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, Loader=loader)
        plain = {} if node is None else _plain(node, set(), 0)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 2})" if mark else ""  # the fence is line 1
        raise SkillError(f"its front matter is not valid YAML{where}") from None
    if not isinstance(plain, dict):
        raise SkillError("its front matter should hold `name: value` lines, and holds something else")
    return plain


def _plain(node: Any, seen: set[int], depth: int) -> Any:
    line = node.start_mark.line + 2
    if node.tag not in _PLAIN_TAGS:
        raise SkillError(
            f"its front matter uses the YAML tag {node.tag[:80]!r} (line {line}); only plain values may stand"
        )
    if id(node) in seen:
        raise SkillError(f"its front matter uses a YAML alias (line {line}); only plain values may stand there")
    if depth > MAX_DEPTH:
        raise SkillError("its front matter is nested too deeply")
    seen.add(id(node))
    if node.id == "mapping":
        return {_key(key, seen): _plain(value, seen, depth + 1) for key, value in node.value}
    if node.id == "sequence":
        return [_plain(item, seen, depth + 1) for item in node.value]
    return "" if node.tag.endswith(":null") else node.value


def _key(node: Any, seen: set[int]) -> str:
    if node.id != "scalar":
        raise SkillError(f"its front matter has a key that is no text (line {node.start_mark.line + 2})")
    return str(_plain(node, seen, 0))


def _text(front: Mapping[str, Any], key: str) -> str:
    value = front.get(key, "")
    if not isinstance(value, str):
        raise SkillError(f"`{key}` in its front matter should be one text")
    return value.strip()


def _texts(value: Any) -> tuple[str, ...]:
    """Return a list, or words with commas between them."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return ()
    return tuple(item.strip()[:200] for item in value[:50] if isinstance(item, str) and item.strip())


def _hermes_part(front: Mapping[str, Any]) -> Mapping[str, Any]:
    """``metadata: {hermes: {…}}``, where some skills keep what other agents do not know."""
    metadata = front.get("metadata")
    own = metadata.get("hermes") if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else {}


def _variables(value: Any) -> tuple[Variable, ...]:
    """``[NAME, …]`` or ``[{name: NAME, help: …}, …]``."""
    items = list(_texts(value)) if isinstance(value, str) else value
    found = []
    for item in items[:MAX_VARIABLES] if isinstance(items, list) else ():
        entry = item if isinstance(item, dict) else {"name": item}
        name = entry.get("name")
        if not isinstance(name, str) or _VARIABLE.fullmatch(name.strip()) is None:
            raise SkillError(f"{str(name)[:80]!r} in required_environment_variables is no name of a variable")
        help_ = next((text for key in ("help", "prompt") if isinstance(text := entry.get(key), str)), "")
        found.append(Variable(name.strip(), " ".join(help_.split())[:200]))
    return tuple(found)
