"""The line at the bottom of the chat."""

from __future__ import annotations

import pytest

from hermes.cli.chat.lines import text_of
from hermes.cli.chat.status_line import StatusLine, format_cost
from hermes.core.i18n.catalogue import ENGLISH


def test_tokens_and_cost_add_up_over_the_messages_of_a_chat() -> None:
    status = StatusLine(ENGLISH)
    for cost in (0.002, 0.0011):
        tokens = {"prompt": 1000, "completion": 50, "cached": 0}
        status.spent({"state": "done", "model": "m-1", "tokens": tokens, "cost": cost})
    status.take({"title": "Plans", "used": 900, "window": 1000})
    assert text_of(status.line(2)) == "m-1 · 2,100 tokens · $0.0031 · context 90 % · 2 waiting · Plans"


def test_a_cost_that_nobody_tells_is_not_shown() -> None:
    status = StatusLine(ENGLISH)
    status.spent({"model": "m-1", "tokens": {"prompt": 1, "completion": 1, "cached": 0}})
    status.spent({"state": "answered"})
    assert text_of(status.line(0)) == "m-1 · 2 tokens"


@pytest.mark.parametrize(
    "dollars, shown", [(0.00001, "<$0.0001"), (0.0031, "$0.0031"), (0.5, "$0.5000"), (1234.5, "$1,234.50")]
)
def test_a_cost_has_the_digits_that_say_something(dollars: float, shown: str) -> None:
    assert format_cost(dollars) == shown
