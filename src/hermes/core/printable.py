"""Escape untrusted text for terminals and logs.

Imported by the supervisor too: standard library only, and little of it.
"""

from __future__ import annotations

import re

# What a terminal obeys instead of showing: C0 controls but for tab and line feed, DEL, C1 controls, marks that change
# the direction of text, line separators, interlinear marks, and halves of a surrogate pair. Joiners and variation
# selectors stay: emoji and many scripts are written with them.
_UNSAFE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff"
_IN_TEXT = re.compile(f"\r+\n|[{_UNSAFE}]")
_IN_JSON = re.compile(f"[{_UNSAFE}]")
_IN_LINE = re.compile(f"[\n\t{_UNSAFE}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Spell out every character a terminal would obey (``‹U+001B›``), one by one: split sequences are caught too."""
    if text.isprintable():
        return text
    return _IN_TEXT.sub(lambda found: "\n" if found[0].endswith("\n") else _spelled(found[0]), text)


def printable_line(text: str) -> str:
    """The same for a name, a title or a log line: no line break, so that no stranger adds a line of their own."""
    if text.isprintable():
        return text
    return _IN_LINE.sub(lambda found: _SHORT.get(found[0]) or _spelled(found[0]), text)


def printable_json(encoded: str) -> str:
    """Escape in a JSON document what ``json.dumps`` leaves as it is. Decoded, the document is still the same."""
    if encoded.isprintable():
        return encoded
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def _spelled(character: str) -> str:
    return f"‹U+{ord(character):04X}›"
