"""The built-in model knows which languages it cannot speak, and keeps its prompt short."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.embedded.prompts import (
    PROMPT_BYTES,
    SYSTEM_PROMPT,
    Language,
    env_file,
    hint,
    language_of,
    only_english,
    prompt_for,
)
from hermes.core.messages import ChatMessage, Role, ToolCall


def home() -> Path:
    return Path.home() / ".hermes"  # asked anew: the tests run in a home of their own


@pytest.mark.parametrize(
    "text,language",
    [
        ("hello", Language.ENGLISH),
        ("Who are you and what can you do?", Language.ENGLISH),
        ("what does 你好 mean in English?", Language.ENGLISH),
        ("ok", Language.ENGLISH),
        (":) 42", Language.ENGLISH),
        ("", Language.ENGLISH),
        ("I met Élodie at the café in München", Language.ENGLISH),
        ("die hard is a good film", Language.ENGLISH),
        ("die", Language.ENGLISH),
        ("你好", Language.CHINESE),
        ("帮我写一个 Python 脚本", Language.CHINESE),
        ("こんにちは", Language.JAPANESE),
        ("今日の天気は？", Language.JAPANESE),
        ("안녕하세요", Language.KOREAN),
        ("Привет, как дела?", Language.RUSSIAN),
        ("Привіт, як справи? Що ти вмієш?", Language.OTHER),
        ("Hola, ¿cómo estás?", Language.SPANISH),
        ("Bonjour, qui es-tu ?", Language.FRENCH),
        ("Guten Tag, was kannst du?", Language.GERMAN),
        ("hallo", Language.GERMAN),
        ("مرحبا", Language.OTHER),
        ("สวัสดี", Language.OTHER),
    ],
)
def test_language_of_a_short_message_is_told(text: str, language: Language) -> None:
    assert language_of(text) is language


@pytest.mark.parametrize("language", [language for language in Language if language is not Language.ENGLISH])
def test_every_language_gets_a_sentence_that_names_the_cure(language: Language) -> None:
    sentence = only_english(language, home())
    assert "OPENAI_API_KEY" in sentence
    assert "OPENROUTER_API_KEY" in sentence
    assert "~/.hermes/.env" in sentence


def test_sentence_is_written_in_the_language_it_is_for() -> None:
    for language in Language:
        if language not in (Language.ENGLISH, Language.OTHER):
            words = only_english(language, home()).replace("OPENAI_API_KEY", "").replace("OPENROUTER_API_KEY", "")
            assert language_of(words) is language


def test_key_file_of_another_home_is_named_in_full() -> None:
    assert env_file(Path("/srv/hermes")) == "/srv/hermes/.env"


def test_prompt_holds_our_sentence_and_not_the_callers_system_prompt_or_tools() -> None:
    call = ToolCall("c1", "read_file", "{}")
    prompt = prompt_for(
        [
            ChatMessage(Role.SYSTEM, "A very long system prompt"),
            ChatMessage(Role.USER, "hi"),
            ChatMessage(Role.ASSISTANT, "", tool_calls=(call,)),
            ChatMessage(Role.TOOL, "secret file", tool_call_id="c1"),
            ChatMessage(Role.ASSISTANT, f"Hello!\n\n{hint(home())}"),
            ChatMessage(Role.USER, "who are you?"),
        ]
    )
    assert prompt == [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "who are you?"},
    ]


@pytest.mark.parametrize("said", ["你好", "Guten Tag, was kannst du?"])
def test_what_was_said_in_another_language_does_not_lead_the_next_answer_astray(said: str) -> None:
    refusal = ChatMessage(Role.ASSISTANT, only_english(language_of(said), home()))
    prompt = prompt_for([ChatMessage(Role.USER, said), refusal, ChatMessage(Role.USER, "hello")])
    assert prompt[1:] == [{"role": "user", "content": "hello"}]


def test_old_talk_is_left_out_when_it_does_not_fit() -> None:
    messages = [ChatMessage(Role.USER if turn % 2 == 0 else Role.ASSISTANT, f"{turn} " * 60) for turn in range(11)]
    prompt = prompt_for(messages)
    assert prompt[-1]["content"] == ("10 " * 60).strip()
    assert prompt[1]["role"] == "user"
    assert len(prompt) < 8


@pytest.mark.one_python
@given(st.lists(st.tuples(st.sampled_from(Role), st.text(max_size=400)), max_size=12))
def test_prompt_is_never_longer_than_the_budget(talk: list[tuple[Role, str]]) -> None:
    prompt = prompt_for([ChatMessage(role, text) for role, text in talk])
    assert sum(len(line["content"].encode("utf-8", "replace")) for line in prompt[1:]) <= PROMPT_BYTES


def test_a_message_of_blanks_without_end_holds_nothing_up() -> None:
    assert "hello" in str(prompt_for([ChatMessage(Role.USER, "\n" * 300_000 + "hello")]))
