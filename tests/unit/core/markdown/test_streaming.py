"""A text that is still being written is shown whole in itself: nothing half-open in it."""

from __future__ import annotations

import random

import pytest

from hermes.core.markdown.streaming import CURSOR, preview
from hermes.core.messages import TextUnit
from hermes.core.text import length
from hermes.platforms.telegram import markdown
from tests.fakes import markdown_v2

WHOLE = """# Plan for *today*

First **one bold word**, then `code` and ~~nothing~~ a [link](https://example.org/a_b) and *one italic*.

- one
  - nested **bold**
    1. deeper `x_y`
- [ ] to do

| name | value |
|------|------:|
| a_b  | 1     |
| **c** | `2`  |

```python
def f(x: int) -> str:
    return f"{x}" * 2  # ``` is no end here
```

~~~
plain
~~~
> quoted *words*
A last line with 2 * 3 = 6 and snake_case_words, costs $5 (!) and "quotes".
"""


def shown(text: str, limit: int = 4096) -> str:
    return preview(text, limit, TextUnit.UTF16)


@pytest.mark.parametrize(
    "so_far, expected",
    [
        ("", ""),
        ("  \n", ""),
        ("Once upon", "Once upon ▌"),
        ("a **bold wo", "a **bold wo** ▌"),
        ("a **bold word*", "a **bold word** ▌"),
        ("a **", "a ▌"),
        ("an *italic wo", "an *italic wo* ▌"),
        ("say `ls -", "say `ls -` ▌"),
        ("say `", "say ▌"),
        ("see [the li", "see ▌"),
        ("see [the list](https://exa", "see ▌"),
        ("see [1] here", "see [1] here ▌"),
        ("2 * 3", "2 * 3 ▌"),
        ("* one\n* two", "* one\n* two ▌"),
        ("Look:\n```python", "Look: ▌"),
        ("```python", ""),
        ("```py\nx = 1", "```py\nx = 1 ▌\n```"),
        ("```py\nx = 1\n``", "```py\nx = 1 ▌\n```"),
        ("```py\nx = 1\n```", "```py\nx = 1\n```\n ▌"),
        ("````md\n```py\nx", "````md\n```py\nx ▌\n````"),
        ("Table:\n| a | b", "Table: ▌"),
        ("Table:\n| a | b |\n|--", "Table: ▌"),
        ("| a | b |\n|---|---|\n| 1 | 2", "| a | b |\n|---|---|\n ▌"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |\n ▌"),
    ],
)
def test_what_is_half_open_is_closed_or_left_out(so_far: str, expected: str) -> None:
    assert shown(so_far) == expected


def test_at_every_letter_telegram_takes_it_and_no_mark_is_seen() -> None:
    for end in range(len(WHOLE) + 1):
        text = shown(WHOLE[:end])
        if not text:
            continue
        rendered = markdown.render(text)
        seen, _ = markdown_v2.parse(rendered.text)
        assert seen.endswith(CURSOR.strip()), (end, seen)
        for mark in ("**", "~~~", "```py", "](", "|--"):
            assert mark not in seen.replace("# ``` is", ""), (end, mark, seen)


def test_it_keeps_to_the_limit_whatever_is_written() -> None:
    chance = random.Random(7)
    marks = ["**", "*", "`", "```", "\n", "\n\n", "|", "[", "](", "~~", "🙂", "word ", "_", "\\", "- ", "> "]
    for _ in range(800):
        text = "".join(chance.choice(marks) for _ in range(chance.randrange(60)))
        limit = chance.randrange(40, 200)
        kept = preview(text, limit, TextUnit.UTF16)
        assert length(kept, TextUnit.UTF16) <= limit
        markdown_v2.parse(markdown.render(kept).text)


def test_a_text_far_too_long_costs_little() -> None:
    assert length(shown("*`[|" * 100_000), TextUnit.UTF16) <= 4096
