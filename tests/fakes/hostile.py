"""Forty texts that would take over a terminal, each with a mark by which it is found again on a screen."""

from __future__ import annotations

import re

_TEXTS = (
    # Escape sequences: screen, cursor, colours that hide, modes
    "\x1b[2J\x1b[H",
    "\x1b[3J",
    "\x1bc",
    "\x1b[1A\x1b[2K",
    "\x1b[8mhidden\x1b[0m",
    "\x1b[30;40m",
    "\x1b[?1049h",
    "\x1b[?1000h\x1b[?1006h",
    "\x1b[?2004h",
    "\x1b[20t\x1b[21t",
    "\x1b[6n\x1b[c",
    "\x1b#8",
    "\x1b(0lqqk\x1b(B",
    "\x1b[4h\x1b[12l",
    "\x1b[?25l",
    "\x1b[5;1H✓ Gateway is running",
    # Operating system commands: title, links, clipboard, colours; and the other strings of a terminal
    "\x1b]0;owned\x07",
    "\x1b]2;owned\x1b\\",
    "\x1b]8;;http://evil.example/\x1b\\docs\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJmIH4=\x07",
    "\x1b]4;0;rgb:ff/ff/ff\x07",
    "\x1b]1337;File=inline=1:AAAA\x07",
    '\x1bP$q"p\x1b\\',
    "\x1b_Gf=100;AAAA\x1b\\",
    "\x1b^private\x1b\\",
    "\x1bXstart\x1b\\",
    # C1: the same with one character
    "\x9b2J\x9bH",
    "\x9d0;owned\x9c",
    "\x90$q\x9c\x98\x9e\x9f",
    "one\x85two\x84\x8d",
    # C0
    "I read it.\rI sent it.",
    "safe\x08\x08\x08\x08evil",
    "\x07\x0b\x0c\x0e\x0f\x7f",
    "\x05\x11\x13\x1a\x1c\x1d\x1e",
    # Direction, and lines of their own
    "photo_\u202egpj.exe",
    "\u202aa\u202bb\u202dc\u202c",
    "\u2066a\u2067b\u2068c\u2069",
    "\u200ea\u200fb\u061cc",
    "one\u2028two\u2029three",
    "\x1b[2\u202eJ\x9b\x1b]0;\u2067mixed\x07",
)

HOSTILE = tuple(f"mark{number:02d} {text}" for number, text in enumerate(_TEXTS))
MARKS = tuple(f"mark{number:02d}" for number in range(len(_TEXTS)))

_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def raw_in(shown: str) -> list[str]:
    """What a terminal would obey, each with its surroundings. Nothing, where all is well."""
    return [repr(shown[max(0, found.start() - 20) : found.end() + 20]) for found in _RAW.finditer(shown)]


def marks_in(shown: str) -> set[str]:
    return set(re.findall(r"mark\d\d", shown))
