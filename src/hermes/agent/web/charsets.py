"""Accept only text charsets that a page may name."""

from __future__ import annotations

import codecs

# Python reads these too, and they are no charsets of pages: the first takes hours for a megabyte, the others read what
# stands in a text as its escapes, or nothing at all.
_NONE = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined"})


def known_charset(name: str) -> str:
    """Return the name of an encoding that pages are written in; '' for any other, which is as good as none."""
    try:
        found = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return ""
    return "" if found.replace("_", "-") in _NONE else found
