"""Rank tools for ``find_tools``, and read found names back from history."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from hermes.agent.compression import FOUND_BEFORE, OPENING, is_summary
from hermes.agent.toolkit.toolsets import GROUPS
from hermes.core.messages import ChatMessage, Role

FIND_TOOLS = "find_tools"
"""The tool that finds the others."""

MAX_FOUND = 6
_FOUND = re.compile(r"^- (\w+): ", re.MULTILINE)
_MIN_STEM_CHARS = 4
_IN_NAME, _IN_GROUP, _IN_DESCRIPTION = 4, 2, 1


class Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...


class Grouped(Named, Protocol):
    @property
    def group(self) -> str: ...


Found = TypeVar("Found", bound=Grouped)


def line_of(tool: Named) -> str:
    """Render one tool in a result of ``find_tools``; ``names_found`` parses it."""
    return f"- {tool.name}: {tool.description.partition(chr(10))[0]}"


def names_found(history: Iterable[ChatMessage]) -> list[str]:
    """Return the names in every result of ``find_tools``, and in the summary of what went before, in their order."""
    found: dict[str, None] = {}
    for message in history:  # the name first: it is empty in nearly every line, and a long talk passes here each turn
        if message.name == FIND_TOOLS and message.role is Role.TOOL:
            found.update(dict.fromkeys(_FOUND.findall(message.text)))
        elif message.text.startswith(OPENING) and is_summary(message):
            line = next((line for line in reversed(message.text.splitlines()) if line.startswith(FOUND_BEFORE)), "")
            found.update((name, None) for name in line.removeprefix(FOUND_BEFORE).split(", ") if name)
    return list(found)


def best_matches(need: str, tools: Sequence[Found]) -> list[Found]:
    """Return the tools that fit a need in words, the best first: a handful, and none where no word fits."""
    wanted = _words(need)
    scored = [(_score(wanted, tool), -place, tool) for place, tool in enumerate(tools)]
    best = max((score for score, _, _ in scored), default=0)
    chosen = [entry for entry in scored if entry[0] and entry[0] * 2 >= best]
    return [tool for _, _, tool in sorted(chosen, key=lambda entry: entry[:2], reverse=True)][:MAX_FOUND]


def _score(wanted: set[str], tool: Grouped) -> int:
    if tool.name in wanted:
        return 100
    group = GROUPS.get(tool.group)
    places = (
        (_IN_NAME, _words(tool.name.replace("_", " "))),
        (_IN_GROUP, _words(f"{tool.group} {group.about} {group.words}" if group else tool.group)),
        (_IN_DESCRIPTION, _words(tool.description)),
    )
    return sum(next((worth for worth, words in places if _is_in(word, words)), 0) for word in wanted)


def _is_in(word: str, words: set[str]) -> bool:
    """Tell whether a word occurs, or one with the same stem: search, searching, searches."""
    return word in words or any(
        min(len(word), len(other)) >= _MIN_STEM_CHARS and (word.startswith(other) or other.startswith(word))
        for other in words
    )


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{2,}", text.casefold())) - _EMPTY


_EMPTY_WORDS = (
    "an and are as at be by can do find for from have in into is it me my need not of on or some something that the "
    "then there they this to tool tools up use want what which with you your"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())
