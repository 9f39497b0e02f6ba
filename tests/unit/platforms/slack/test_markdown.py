"""Neutral Markdown as Slack's mrkdwn."""

from __future__ import annotations

import random

import pytest

from hermes.core.markdown.blocks import GAP
from hermes.platforms.slack.markdown import render


@pytest.mark.parametrize(
    "source, expected",
    [
        ("**bold** and *italic* and ~~gone~~", "*bold* and _italic_ and ~gone~"),
        ("***both***", "*_both_*"),
        ("__bold__ and _italic_", "*bold* and _italic_"),
        ("**a *b* c**", "*a _b_ c*"),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("[words](https://example.com/?a=1&b=2)", "<https://example.com/?a=1&amp;b=2|words>"),
        ("**[words](https://example.com)**", "*<https://example.com|words>*"),
        ("<https://example.com>", "<https://example.com>"),
        ("[here](./file.txt)", "here (./file.txt)"),
        ("run `a < **b**` now", "run `a &lt; **b**` now"),
        ("# Title", "*Title*"),
        ("## A **strong** title", "*A strong title*"),
        ("- one\n  - two\n- [x] done\n- [ ] open", "• one\n  • two\n☑ done\n☐ open"),
        ("1. first\n2. second", "1. first\n2. second"),
        ("> said *so*", "> said _so_"),
        ("---", "———"),
        ("```python\nif a < b: **x**\n```", "```\nif a &lt; b: **x**\n```"),
        ("~~~\n```\n~~~", f"```\n``{GAP}`\n```"),
        ("| a | b |\n|---|---|\n| 1 | 名字 |", "```\na  b\n─  ────\n1  名字\n```"),
        ("这是**重点**内容", f"这是{GAP}*重点*{GAP}内容"),
        (r"\*not bold\*", f"{GAP}*not bold{GAP}*"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_each_mark_becomes_that_of_slack(source: str, expected: str) -> None:
    assert render(source) == expected


def test_nobody_is_called_by_what_the_model_writes() -> None:
    for text in ("<!channel>", "<@U1>", "**<!here>**", "`<!channel>`", "[x](https://a.b)<!everyone>"):
        assert "<!" not in render(text)
        assert "<@" not in render(text)


def test_whatever_is_written_is_rendered_and_fits_with_all_signs_escaped() -> None:
    chance = random.Random(1)
    signs = [
        "*",
        "**",
        "_",
        "~~",
        "`",
        "```",
        "\n",
        " ",
        "[",
        "](",
        ")",
        "<",
        ">",
        "&",
        "|",
        "-",
        "#",
        "a",
        "字",
        "\ue000",
    ]
    for _ in range(1500):
        text = "".join(chance.choices(signs, k=chance.randrange(60)))
        assert len(render(text)) <= 5 * len(text) + 100
    for long in ("*" * 4000, "`" * 4000, "[" * 4000, "**a " * 1000, "_a" * 2000, "&" * 4000):
        assert len(render(long)) <= 40_000
