"""Expand the words of a command line as bash does: quotes, braces and variables.

Characters that were quoted are moved into a private range, so that later steps (braces, splitting, patterns) see only
those that mean something; ``plain`` moves them back. A part whose value is not known is one mark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from hermes.core.dataclasses import dataclass
from hermes.core.shell_safety.tree import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_BRACES = 64
MAX_WORD_DEPTH = 40

SPLITS = "\uf8ff"
"""A value that is not known and may become several words."""
UNKNOWN = "\uf8fe"
"""A value that is not known, but is one word or a part of one."""
TAME = "\uf8fd"
"""A value that is not known, but is no option and no way out of the folder: a number, a loop over plain names."""

_SPECIAL = "{},*?[]~ \t\n"
_HIDE = {ord(one): chr(0xE100 + number) for number, one in enumerate(_SPECIAL)}
_SHOW = {0xE100 + number: one for number, one in enumerate(_SPECIAL)}


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the program receives it.

    ``text`` may hold marks; ``globs``: it is a pattern for file names.
    """

    text: str
    globs: bool = False
    is_quoted: bool = False

    @property
    def is_known(self) -> bool:
        return not self.globs and not _MARKS.search(self.text)

    @property
    def is_tame(self) -> bool:
        """Tell whether the unknown parts are harmless: no option, no other folder."""
        return SPLITS not in self.text and UNKNOWN not in self.text

    def may_be_option(self) -> bool:
        """Tell whether the word may turn out to be an option."""
        if SPLITS in self.text:
            return True
        return self.text[:1] in ("-", UNKNOWN) or (self.globs and self.text[:1] in "*?[")

    def plain(self) -> str:
        """Return the text without marks, for patterns that look for names."""
        return _MARKS.sub("", self.text)


_MARKS = re.compile(f"[{SPLITS}{UNKNOWN}{TAME}]")
NAME = re.compile(r"(?<![\w$-])(?<!\$\{)[A-Za-z_]\w*|(?<!\w)-\w{2,40}")
NUMERIC = frozenset("?#$!")


def places(text: str) -> Counter[str]:
    """Count the places where each name could get a value.

    A name behind a ``$`` is not counted; one in ``printf -vNAME`` is.
    """
    found: Counter[str] = Counter()
    for name in NAME.findall(text):
        found.update([name] if name[0] != "-" else [name[at:] for at in range(2, min(len(name), 12))])
    for match in re.finditer(r"\$\{(\w+)(?:\[[^]]*\])?:?=", text):
        found[match[1]] += 2
    return found


class Variables:
    """The values of variables. A name that gets a value in two places is not known."""

    def __init__(self, text: str, home: str, folder: str, *, is_hopeful: bool = False) -> None:
        self._is_hopeful = is_hopeful
        self._places = places(text) if not is_hopeful else Counter[str]()
        self._values: dict[str, str] = {}
        self._fixed = {"HOME": home or "~", "PWD": folder, "IFS": " \t\n"}
        self.is_poisoned = False

    def get(self, name: str) -> str | None:
        if self.is_poisoned or self._places[name] > 1:
            return None
        if name in self._values:
            return self._values[name]
        if self._places[name] == 0 and self._fixed.get(name):
            return self._fixed[name]
        return None

    def set(self, name: str, value: str) -> None:
        self._values[name] = value

    def forget(self, name: str) -> None:
        self._values.pop(name, None)

    def copy(self) -> dict[str, str]:
        return dict(self._values)

    def leave(self, before: dict[str, str]) -> None:
        """Forget values set since ``before``: that part may run in another shell."""
        if self._is_hopeful:
            return
        for name in [name for name, value in self._values.items() if before.get(name) != value]:
            del self._values[name]
            self._places[name] += 2

    def reads(self, text: str) -> None:
        """Count the places of a text that is evaluated too."""
        self._places.update(places(text))


class Words:
    """Turns nodes of a tree into words. ``inside`` is called for every substitution."""

    def __init__(self, source: bytes, variables: Variables, inside: Callable[[Node], str]) -> None:
        self._source = source
        self._variables = variables
        self._inside = inside
        self.has_prompt = False
        """Whether a value is expanded as a prompt, in which commands run."""

    def words(self, node: Node) -> list[Word]:
        """Return the words that one word of the text becomes."""
        raw = self._raw(node, 0)
        if not raw:
            return [Word("", is_quoted=True)] if node.type != "expansion" and node.type != "simple_expansion" else []
        texts = [raw]
        if "{" in raw:
            spread = list(islice(braces(raw), MOST_BRACES + 1))
            texts = spread if len(spread) <= MOST_BRACES else [SPLITS]
        is_quoted = node.type in ("string", "raw_string", "ansi_c_string")
        return [
            Word(_show(piece), _globs(piece), is_quoted)
            for text in texts
            for piece in (text.split() if re.search(r"[ \t\n]", text) else [text])
        ]

    def value(self, node: Node) -> str:
        """Return the value of an assignment, which is never split and never a pattern."""
        raw = self._raw(node, 0)
        return _show(raw).replace(SPLITS, UNKNOWN)

    def arithmetic(self, node: Node) -> None:
        """Judge the substitutions in an expression."""
        self._raw(node, 0)

    def _raw(self, node: Node, depth: int) -> str:
        if depth > MAX_WORD_DEPTH:
            return SPLITS
        kind = node.type
        text = text_of(node, self._source)
        match kind:
            case (
                "word"
                | "number"
                | "variable_name"
                | "test_operator"
                | "special_variable_name"
                | "regex"
                | "extglob_pattern"
            ):
                if kind == "number" and node.children:
                    return "".join(self._raw(child, depth + 1) for child in node.children)
                return _unescape(text)
            case "raw_string":
                return text[1:-1].translate(_HIDE)
            case "ansi_c_string":
                return ansi_c(text[2:-1]).translate(_HIDE)
            case "string" | "translated_string":
                return self._string(node, depth)
            case "concatenation" | "command_name" | "brace_expression":
                if kind == "brace_expression":
                    return text
                return (
                    "".join(self._raw(child, depth + 1) for child in node.children)
                    if node.children
                    else _unescape(text)
                )
            case "simple_expansion":
                return self._variable(text[1:])
            case "expansion":
                return self._expansion(node, text, depth)
            case "command_substitution":
                return self._inside(node)
            case "process_substitution":
                self._inside(node)
                return "/dev/fd/63" + TAME
            case "arithmetic_expansion":
                for child in node.children:
                    self._raw(child, depth + 1)
                return TAME
            case "array":
                for child in node.children:
                    self._raw(child, depth + 1)
                return SPLITS
            case (
                "subscript"
                | "binary_expression"
                | "unary_expression"
                | "postfix_expression"
                | "ternary_expression"
                | "parenthesized_expression"
                | "variable_assignment"
            ):
                for child in node.children:
                    self._raw(child, depth + 1)
                return SPLITS
            case _ if not node.is_named:
                return _unescape(text) if node.type not in ("'", '"') else ""
            case _:
                for child in node.children:
                    self._raw(child, depth + 1)
                return SPLITS

    def _string(self, node: Node, depth: int) -> str:
        found: list[str] = []
        at = node.start_byte + (2 if text_of(node, self._source)[:1] == "$" else 1)
        for child in node.children:
            if child.type in ('"', "$", '$"'):
                continue
            if child.type == "string" and node.type == "translated_string":
                return self._string(child, depth)
            found.append(self._source[at : child.start_byte].decode("utf-8", "replace").translate(_HIDE))
            if child.type == "string_content":
                content = text_of(child, self._source)
                found.append(re.sub(r"\\([\"\\$`\n])", lambda one: one[1].strip("\n"), content).translate(_HIDE))
            else:
                found.append(self._raw(child, depth + 1).replace(SPLITS, UNKNOWN).translate(_HIDE))
            at = child.end_byte
        return "".join(found)

    def _variable(self, name: str) -> str:
        if name in NUMERIC:
            return TAME
        known = self._variables.get(name)
        return known if known is not None else SPLITS

    def _expansion(self, node: Node, text: str, depth: int) -> str:
        inside = text[2:-1]
        if "@P" in text or "@E" in text:
            self.has_prompt = True
        if re.fullmatch(r"\w+", inside):
            return self._variable(inside)
        if re.fullmatch(r"#\w+(\[[@*]\])?", inside):
            return TAME
        for child in node.children:
            if child.is_named and child.type not in ("variable_name", "special_variable_name"):
                self._raw(child, depth + 1)
        shortened = re.fullmatch(r"(\w+)%%?([^/$`]*)", inside)
        if (
            shortened
            and (known := self._variables.get(shortened[1])) is not None
            and not re.search(f"[{SPLITS}{UNKNOWN}]", known)
        ):
            is_plain = not known.startswith(("-", "/", "~")) and ".." not in known
            return TAME if is_plain else SPLITS
        return SPLITS


def _unescape(text: str) -> str:
    """Take escapes out of unquoted text."""
    if "\\" not in text:
        return text
    return re.sub(r"\\(.|\n)", lambda one: "" if one[1] == "\n" else one[1].translate(_HIDE), text)


def _show(text: str) -> str:
    return text.translate(_SHOW)


def _globs(text: str) -> bool:
    return any(mark in text for mark in "*?[")


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)


def ansi_c(text: str) -> str:
    """Return the value of ``$'…'``."""

    def one(match: re.Match[str]) -> str:
        found = match[1]
        if found[0] in "xuU" and len(found) > 1:
            return chr(min(int(found[1:], 16), 0x10FFFF))
        if found[0] in "01234567":
            return chr(int(found, 8) & 0xFF)
        if found[0] == "c" and len(found) > 1:
            return chr(ord(found[1]) & 0x1F)
        return _ESCAPES.get(found, found if found in "\\'\"?" else f"\\{found}")

    return _ANSI.sub(one, text).encode("utf-8", "replace").decode("utf-8", "replace")


_SEQUENCE = re.compile(r"(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.-?\d{1,9})?")


def braces(text: str, depth: int = 0) -> Iterator[str]:
    """Expand braces: ``{a{b,c},d}`` is three words, ``{1..9}`` nine."""
    found = _first_braces(text)
    if found is None or depth > 12:
        yield text
        return
    start, end, choices = found
    for choice in choices:
        for inner in braces(choice, depth + 1):
            for rest in braces(text[end + 1 :], depth + 1):
                yield f"{text[:start]}{inner}{rest}"


def _first_braces(text: str) -> tuple[int, int, list[str]] | None:
    """Return the leftmost braces that mean several words: start, end and choices."""
    found: tuple[int, int, list[int]] | None = None
    opened: list[tuple[int, list[int]]] = []
    for at, character in enumerate(text):
        if character == "{":
            opened.append((at, []))
        elif character == "," and opened:
            opened[-1][1].append(at)
        elif character == "}" and opened:
            start, commas = opened.pop()
            if (commas or _SEQUENCE.fullmatch(text, start + 1, at)) and (found is None or start < found[0]):
                found = (start, at, commas)
            if not opened and found is not None:
                break
    if found is None:
        return None
    start, end, commas = found
    if commas:
        return start, end, [text[before + 1 : after] for before, after in pairwise((start, *commas, end))]
    return start, end, _sequence(text[start + 1 : end])


def _sequence(text: str) -> list[str]:
    first, last = text.split("..")[:2]
    is_number = first.lstrip("-").isdigit()
    low, high = sorted((int(first), int(last)) if is_number else (ord(first), ord(last)))
    return [str(one) if is_number else chr(one) for one in range(low, min(high, low + MOST_BRACES) + 1)]


def find_starts(words: Sequence[Word]) -> list[Word]:
    """Return the folders that ``find`` starts from."""
    found = []
    for word in words:
        if word.text.startswith(("-", "(", "!")):
            if word.text in ("-H", "-L", "-P") or word.text.startswith(("-O", "-D")):
                continue
            break
        found.append(word)
    return found or [Word(".")]


def is_plain_name(word: Word) -> bool:
    """Tell whether a word is no option and stays below its folder.

    The same must hold for all that a pattern in it may match.
    """
    text = word.text
    if not word.is_tame or text.startswith(("-", "/", "~")) or ".." in text:
        return False
    if not word.globs:
        return True
    if re.search(r"(^|/)\.[*?\[]", text):
        return False
    return text[:1] not in "*?[" or "." in text or "/" in text


def option_text(words: Sequence[Word], *wanted: str) -> str:
    """Return the value of an option: the next word, or the rest of the same word."""
    for number, word in enumerate(words):
        if word.text in wanted and number + 1 < len(words):
            return words[number + 1].text
        for name in wanted:
            if word.text.startswith(f"{name}=") or (
                len(name) == 2 and word.text.startswith(name) and len(word.text) > 2
            ):
                return word.text[len(name) :].lstrip("=")
    return ""
