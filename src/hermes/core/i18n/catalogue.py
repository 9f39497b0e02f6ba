"""The languages we speak: each one's words, and sentences that can be said in any of them."""

from __future__ import annotations

from collections.abc import Callable

from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import CHINESE as ZH
from hermes.core.i18n.languages import ENGLISH as EN
from hermes.core.i18n.zh import Chinese

ENGLISH = Texts()
CHINESE: Texts = Chinese()
CATALOGUE = {EN: ENGLISH, ZH: CHINESE}


def words_of(language: str) -> Texts:
    """The sentences in this language; in English where there are none."""
    return CATALOGUE.get(language, ENGLISH)


class LocalizedText(str):
    """A sentence that logs get in English and a person in their own language, chosen when the reader is known."""

    __slots__ = ("_form",)

    _form: Callable[[Texts], str]

    def __new__(cls, form: Callable[[Texts], str]) -> LocalizedText:
        text = super().__new__(cls, form(ENGLISH))
        text._form = form
        return text

    def in_words(self, words: Texts) -> str:
        return self._form(words)


def localize(text: object, words: Texts) -> str:
    """A text as this reader gets it; an error's is its reason."""
    if isinstance(text, BaseException) and text.args:
        text = text.args[0]
    return text.in_words(words) if isinstance(text, LocalizedText) else str(text)
