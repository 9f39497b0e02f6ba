"""Neutral Markdown as Discord shows it."""

from __future__ import annotations

import random

import pytest

from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage, TextUnit
from hermes.core.text import length
from hermes.platforms.discord import wire
from hermes.platforms.discord.markdown import render

HERE = Target("discord", "1")


@pytest.mark.parametrize(
    "source, shown",
    [
        ("plain", "plain"),
        ("**bold** *slanted* ~~gone~~ `code`", "**bold** *slanted* ~~gone~~ `code`"),
        ("# One\n## Two\n### Three", "# One\n## Two\n### Three"),
        ("#### Four\n###### **Six**", "**Four**\n**Six**"),
        ("__bold__ and snake__case__name", "**bold** and snake__case__name"),
        ("a || b || c", "a \\|\\| b \\|\\| c"),
        ("`a || b`", "`a || b`"),
        ("---", "———"),
        ("- [ ] open\n- [x] done", "- ☐ open\n- ☑ done"),
        ("-# small", "\\-# small"),
        (">>> deep\n> quote", "> deep\n> quote"),
        ("[words](https://a.b/c_d)", "[words](https://a.b/c_d)"),
        ("[words](<https://a.b>)", "[words](https://a.b)"),
        ("<https://a.b>", "<https://a.b>"),
        ("[here](/etc/passwd)", "here (/etc/passwd)"),
        ("[https://a.b](https://a.b)", "https://a.b"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (https://evil.example)"),
        ("![a cat](https://a.b/cat.png)", "[a cat](https://a.b/cat.png)"),
        ("![](https://a.b/cat.png)", "https://a.b/cat.png"),
        ("```python\nx = '||'\n```", "```python\nx = '||'\n```"),
        ("~~~\ncode\n~~~", "```\ncode\n```"),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("```c++\nx\n```", "```c++\nx\n```"),
        ("```a file.py\nx\n```", "```\na file.py\nx\n```"),
        ("````\n```\n````", "```\n``\u200b`\n```"),
    ],
)
def test_what_discord_reads_otherwise_is_written_so_that_it_means_the_same(source: str, shown: str) -> None:
    assert render(source) == shown


def test_a_table_is_shown_as_aligned_text() -> None:
    table = "| a | **long** |\n|---|:--:|\n| 名 | [x](https://a.b) |"
    assert render(table) == "```\na   long\n──  ────\n名  x\n```"


def test_what_grows_over_the_limit_by_being_rendered_is_shown_as_it_was_written() -> None:
    source = "\n".join(["|a|b|", "|-|-|", "|" + "w" * 30 + "|z|", *["|x|y|"] * 200])
    assert len(source) <= 1998 < len(render(source))
    assert wire.text_of(OutboundMessage(HERE, source)) == source


def test_whatever_is_written_fits_and_is_not_lost() -> None:
    chance = random.Random(5)
    signs = ["*", "_", "`", "~", "|", "#", ">", "-", "\n", " ", "a", "```", "**", "||", "[a](https://b.c)", "🙂", "\\"]
    for _ in range(3000):
        source = "".join(chance.choice(signs) for _ in range(chance.randint(0, 60)))
        shown = wire.text_of(OutboundMessage(HERE, source, is_repeat=True))
        assert length(shown, TextUnit.UTF16) <= 2000
        assert shown.count("🙂") == source.count("🙂")
