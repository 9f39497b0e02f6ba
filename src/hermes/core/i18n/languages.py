"""Which language a person is spoken to in: what the owner set, else the person's own, else what can be seen."""

from __future__ import annotations

import unicodedata

ENGLISH = "en"
CHINESE = "zh"
LANGUAGES = (ENGLISH, CHINESE)
AUTO = "auto"
"""Chosen by a person: each message decides for itself."""

LOOKED_AT = 400
"""So many characters of a message tell its language."""
_WEIGHT = 3
"""A Chinese character says as much as so many Latin letters."""


def pick(configured: str, person: str, *, hint: str = "", text: str = "") -> str:
    """The language for what we say: the owner's choice for all, the person's own, or what this message shows."""
    return next(language for language in (configured, person, guess(hint, text), ENGLISH) if language in LANGUAGES)


def guess(hint: str, text: str) -> str:
    """Guess from the script of a message, else from what its platform says of the writer; '' when neither tells."""
    if _is_chinese(text[:LOOKED_AT]):
        return CHINESE
    if not hint:
        return ""
    return CHINESE if hint.lower().replace("_", "-").split("-")[0] == CHINESE else ENGLISH


def _is_chinese(text: str) -> bool:
    """Mainly Chinese characters, and nothing that only Japanese or Korean has."""
    if text.isascii():
        return False
    characters = letters = 0
    for char in text:
        if char.isascii():
            letters += char.isalpha()
            continue
        script = unicodedata.name(char, "").split(" ", 1)[0]
        if script in ("HIRAGANA", "KATAKANA", "HANGUL"):
            return False
        characters += script == "CJK"
    return characters * _WEIGHT > letters
