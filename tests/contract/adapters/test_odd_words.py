"""Words that nobody expects come and go letter for letter."""

from __future__ import annotations

import pytest

from hermes.core.text import length, split
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.fakes.server import FakeServer

ODD = {
    "emoji alone": "👩‍👩‍👧‍👦🏳️‍🌈👍🏽",
    "right to left": "שלום \u202eעולם\u202c، مرحبا",
    "marks upon marks": "Z" + "\u0301\u0327\u0338" * 30 + "algo",
    "separators": "one\u2028two\u2029three\u0085four\u00a0five",
    "invisible in between": "a\u2060b\u00adc\u200ed",
    "all planes": "a\U0001f600\U00020000\U000e0041\U0010ffffz",
    "many lines": "\n".join(["x"] * 500),
}


@pytest.mark.parametrize("text", [*ODD.values(), "字母 " * 33_000 + "end"], ids=[*ODD, "a hundred thousand letters"])
async def test_odd_words_arrive_letter_for_letter(server: FakeServer, inbox: Inbox, text: str) -> None:
    server.user_says(text)
    server.user_says("and on")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        first, second = await inbox.message(), await inbox.message()
    assert (first.text, second.text) == (text, "and on")


@pytest.mark.parametrize("text", ["\u200b", "\u2060\ufeff", " ", "\n\n"], ids=["gap", "joiners", "space", "lines"])
async def test_words_that_nobody_can_see_do_no_harm(server: FakeServer, inbox: Inbox, text: str) -> None:
    server.user_says(text)
    said = server.user_says("hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await server.wait_for(lambda: said.key in inbox.keys)
        assert list(inbox.keys).count(said.key) == 1


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
async def test_odd_words_are_shown_letter_for_letter(server: FakeServer, text: str) -> None:
    limits = server.capabilities
    parts = split(text, limits.text_limit, limits.text_unit)
    assert (parts == [text]) == (length(text, limits.text_unit) <= limits.text_limit)
    assert "\n".join(parts) == text
    async with server.adapter() as adapter:
        for part in parts:
            await adapter.send(saying(server, part))
        await server.wait_for(lambda: len(server.sent) >= len(parts))
    assert [sent.text for sent in server.sent] == parts
