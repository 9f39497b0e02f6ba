"""Build the built-in model's prompt and its hints. No I/O."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from hermes.core.i18n.catalogue import CATALOGUE, words_of
from hermes.core.messages import ChatMessage, Role

# One sentence: without it the model loops, and every further prompt token costs it 17 ms.
SYSTEM_PROMPT = "You are a helpful AI assistant named Hermes, and you keep your answers short."
# About 200 tokens of English. Counted in bytes, since a token is at least one byte: emoji cannot overflow it.
PROMPT_BYTES = 800
LAST_MESSAGE_BYTES = 600


class Language(StrEnum):
    ENGLISH = "en"
    CHINESE = "zh"
    JAPANESE = "ja"
    KOREAN = "ko"
    RUSSIAN = "ru"
    SPANISH = "es"
    FRENCH = "fr"
    GERMAN = "de"
    OTHER = "other"


_SENTENCES: Mapping[Language, str] = {
    Language.CHINESE: (
        "我是内置的小模型，只会一点英文。接入一个模型就能用中文和工具："
        "把 OPENAI_API_KEY 或 OPENROUTER_API_KEY 写进 {env}"
    ),
    Language.JAPANESE: (
        "私は内蔵の小さなモデルで、英語が少し話せるだけです。モデルをつなげば日本語とツールが使えます："
        "OPENAI_API_KEY か OPENROUTER_API_KEY を {env} に書いてください。"
    ),
    Language.KOREAN: (
        "저는 내장된 작은 모델이라 영어만 조금 할 수 있습니다. 모델을 연결하면 한국어와 도구를 쓸 수 있습니다: "
        "OPENAI_API_KEY 또는 OPENROUTER_API_KEY를 {env}에 적어 주세요."
    ),
    Language.RUSSIAN: (
        "Я маленькая встроенная модель и немного говорю только по-английски. "
        "Подключите модель, и заработают русский язык и инструменты: "
        "впишите OPENAI_API_KEY или OPENROUTER_API_KEY в {env}"
    ),
    Language.SPANISH: (
        "Soy el pequeño modelo integrado y solo hablo un poco de inglés. Con un modelo conectado tendrás español y "
        "herramientas: escribe OPENAI_API_KEY u OPENROUTER_API_KEY en {env}"
    ),
    Language.FRENCH: (
        "Je suis le petit modèle intégré et je ne parle qu'un peu d'anglais. Avec un modèle connecté, vous aurez le "
        "français et les outils : mettez OPENAI_API_KEY ou OPENROUTER_API_KEY dans {env}"
    ),
    Language.GERMAN: (
        "Ich bin das kleine eingebaute Modell und kann nur etwas Englisch. Mit einem angeschlossenen Modell gibt es "
        "Deutsch und Werkzeuge: OPENAI_API_KEY oder OPENROUTER_API_KEY in {env} eintragen."
    ),
    Language.OTHER: (
        "I am the small built-in model and speak only a little English. With a real model you get your language and "
        "tools: put OPENAI_API_KEY or OPENROUTER_API_KEY into {env}"
    ),
}
_HINT_IN_HISTORY = re.compile(r"(?:\(built-in model: [^()]*\)|（内置小模型：[^（）]*）)\s*$")

# What tells Latin-script languages apart in a short message: one word that only they have, or two small words that
# another language may have too ("die", "me").
_OWN_WORDS: Mapping[Language, str] = {
    Language.ENGLISH: "hello hi hey thanks thank you the please what how why where who could does did with this that",
    Language.SPANISH: "hola gracias buenos buenas días qué cómo estás eres quién dónde puedes hacer hablas español",
    Language.FRENCH: "bonjour bonsoir salut merci ça êtes vous où pourquoi parles parlez français peux pouvez plaît",
    Language.GERMAN: "hallo guten danke bitte bist sind ich kannst können sprichst deutsch nicht für heißt warum",
}
_SMALL_WORDS: Mapping[Language, str] = {
    Language.ENGLISH: "is are was i my me can do tell of to and in it for your good write read make give have not on",
    Language.SPANISH: "que como estas quien donde el la los las un una es por para puedo muy bien favor cual tu mi de",
    Language.FRENCH: "va est es le la les un une des je tu nous il elle qui que quoi quel comment et de en dans sur",
    Language.GERMAN: "tag morgen abend wie geht dir was wer wo ist der die das ein eine du wir sie kann und mit auf",
}
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
# A Chinese character or a syllable of Hangul says as much as two or three letters.
_WEIGHTS = {"CJK": 3, "HIRAGANA": 2, "KATAKANA": 2, "HANGUL": 2}
_OTHER_CYRILLIC = frozenset("іїєґўјљњћђџ")  # letters that Russian does not have


def language_of(text: str) -> Language:
    """Which language a message is mainly in; English when it cannot be told (``:)``, ``42``, ``ok``)."""
    letters = Counter(script for char in text if (script := _script(char)))
    weights = {script: count * _WEIGHTS.get(script, 1) for script, count in letters.items()}
    if not weights:
        return Language.ENGLISH
    match max(weights, key=lambda script: weights[script]):
        case "LATIN":
            return _latin_language(text)
        case "HIRAGANA" | "KATAKANA":
            return Language.JAPANESE
        case "CJK":
            return Language.JAPANESE if letters["HIRAGANA"] + letters["KATAKANA"] else Language.CHINESE
        case "HANGUL":
            return Language.KOREAN
        case "CYRILLIC":
            return Language.OTHER if _OTHER_CYRILLIC & set(text.lower()) else Language.RUSSIAN
        case _:
            return Language.OTHER


def _script(char: str) -> str:
    if char.isascii():
        return "LATIN" if char.isalpha() else ""
    return unicodedata.name(char, "").split(" ", 1)[0].split("-", 1)[0] if char.isalpha() else ""


def _latin_language(text: str) -> Language:
    words = set(_WORD.findall(text.lower()))
    scores = {
        language: 2 * len(words.intersection(own.split())) + len(words.intersection(_SMALL_WORDS[language].split()))
        for language, own in _OWN_WORDS.items()
    }
    best = max(scores, key=lambda language: scores[language])  # English is first, so it wins a tie
    return best if scores[best] >= 2 else Language.ENGLISH


def env_file(home: Path) -> str:
    """Return the file to write a key into, as a person would type it."""
    path, user = home / ".env", Path.home()
    return f"~/{path.relative_to(user)}" if path.is_relative_to(user) else str(path)


def only_english(language: Language, home: Path) -> str:
    """Return the answer to a message in a language that the built-in model cannot speak, in that language."""
    return _SENTENCES[language].format(env=env_file(home))


def hint(home: Path, language: str = "") -> str:
    """Return the line that the first reply of a conversation ends with."""
    return words_of(language).BUILT_IN_HINT.format(env=env_file(home))


def hint_in(text: str, home: Path) -> str:
    """Return the hint that a reply of this home ends with, in whichever language; '' where it ends without one."""
    hints = (hint(home, language) for language in CATALOGUE)
    return next((ending for ending in hints if text.endswith(ending)), "")


def last_user_text(messages: Sequence[ChatMessage]) -> str:
    return next((message.text for message in reversed(messages) if message.role is Role.USER), "")


def is_first_reply(messages: Sequence[ChatMessage]) -> bool:
    return all(message.role is not Role.ASSISTANT for message in messages)


def prompt_for(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    """Our one sentence, and as many of the last texts as fit; a caller's system prompt and tools stay out.

    So does what was said in another language, with our answer to it: after one 你好 it would go on in broken Chinese.
    """
    spoken = [message for message in messages if message.role in (Role.USER, Role.ASSISTANT) and message.text.strip()]
    chosen: list[dict[str, str]] = []
    left = PROMPT_BYTES
    for message in reversed(spoken):
        content = _HINT_IN_HISTORY.sub("", message.text).strip()
        if not chosen:
            content = content.encode("utf-8", "replace")[:LAST_MESSAGE_BYTES].decode("utf-8", "ignore")
        elif language_of(content) is not Language.ENGLISH:
            continue
        left -= len(content.encode("utf-8", "replace"))
        if left < 0:
            break
        chosen.append({"role": str(message.role), "content": content})
    while len(chosen) > 1 and chosen[-1]["role"] == Role.ASSISTANT:
        chosen.pop()  # a conversation that opens with an answer confuses it
    return [{"role": str(Role.SYSTEM), "content": SYSTEM_PROMPT}, *reversed(chosen)]
