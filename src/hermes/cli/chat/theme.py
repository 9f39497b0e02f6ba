"""The colours of the chat: names of styles as codes of the terminal, and as styles of the prompt.

Only the terminal's own palette is used, and neither its black, white nor yellow: all of it can be read on a light
ground and on a dark one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from hermes.cli.chat.lines import Line

_CODES = {
    "heading": "1;36",
    "subheading": "1",
    "strong": "1",
    "head": "1",
    "emphasis": "3",
    "struck": "9",
    "code": "36",
    "link": "4;34",
    "bullet": "36",
    "rule": "2",
    "quote": "2",
    "dim": "2",
    "comment": "2;3",
    "keyword": "35",
    "string": "32",
    "number": "36",
    "name": "34",
    "builtin": "36",
    "good": "32",
    "bad": "31",
    "warn": "1;35",
    "you": "1",
    "mark": "1;36",
    "chosen": "1;36",
}
_PROMPT = {
    "1": "bold",
    "2": "dim",
    "3": "italic",
    "4": "underline",
    "9": "strike",
    "31": "ansired",
    "32": "ansigreen",
    "34": "ansiblue",
    "35": "ansimagenta",
    "36": "ansicyan",
}


@lru_cache(maxsize=512)
def code_of(style: str) -> str:
    """The code for names parted by blanks; names without one (``block``) have none."""
    return ";".join(dict.fromkeys(code for name in style.split() if (code := _CODES.get(name))))


@lru_cache(maxsize=512)
def prompt_style(style: str) -> str:
    return " ".join(_PROMPT[part] for part in code_of(style).split(";") if part)


def coded(line: Line) -> list[tuple[str, str, str]]:
    """A line for ``write_styled``."""
    return [(piece.text, code_of(piece.style), piece.link) for piece in line]


def uncoloured(line: Line) -> list[tuple[str, str, str]]:
    return [(piece.text, "", "") for piece in line]


def fragments(line: Line) -> list[tuple[str, str]]:
    """A line for the prompt, which draws no hyperlinks."""
    return [(prompt_style(piece.style), piece.text) for piece in line]


def shows_links(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is one of those known to show hyperlinks."""
    if environ.get("TERM_PROGRAM") in {"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"}:
        return True
    if environ.get("TERM", "") in {"xterm-kitty", "alacritty", "foot", "xterm-ghostty", "contour"}:
        return True
    version = environ.get("VTE_VERSION", "")
    return bool(environ.get("WT_SESSION")) or (version.isdecimal() and int(version) >= 5000)
