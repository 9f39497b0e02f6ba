"""The catalogue's languages, and which of them one is spoken to in."""

from __future__ import annotations

from hermes.core.languages import CHINESE as ZH
from hermes.core.languages import ENGLISH as EN
from hermes.services.words import Words
from hermes.services.words_zh import Chinese

ENGLISH = Words()
CHINESE: Words = Chinese()
CATALOGUE = {EN: ENGLISH, ZH: CHINESE}


def words_of(language: str) -> Words:
    """The sentences in this language; in English where there are none."""
    return CATALOGUE.get(language, ENGLISH)
