"""Whatever a model or a stranger writes is read and rendered on the loop that serves everybody: none may take long."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from hermes.platforms.discord import markdown as discord
from hermes.platforms.discord import parse as discord_reading
from hermes.platforms.qq import markdown as qq
from hermes.platforms.slack import markdown as slack
from hermes.platforms.slack import parse as slack_reading
from hermes.platforms.telegram import markdown as telegram
from hermes.platforms.weixin import wire as weixin
from hermes.platforms.whatsapp import markdown as whatsapp
from tests.unit.cpu import cpu_seconds, only_own_garbage

SECONDS = 0.3  # of this processor; a hundredth of it is usual
PIECES = (
    *("`", "``a`", "` a ", "**a", "*a ", "***a", "*_a", "__a ", "_", "_a_", "~~a", "[", "](", "![", "[a](b", "[a](b)"),
    *('![a](b "c', "|a", "|a\n|-\n", "\\*", "> ", "- [ ] ", "#", "a.", "x.y-", "http://a ", "<http://", "<a", "```\n"),
    *("~~~\n", "1. ", "字*", "字", "- - ", "\t", " \n", "||", "-# ", "(", "`"),
)
RENDERERS: dict[str, tuple[Callable[[str], object], int]] = {
    "telegram": (telegram.render, 4094),
    "discord": (discord.render, 1998),
    "slack": (slack.render, 3998),
    "whatsapp": (whatsapp.render, 4096),
    "qq": (lambda text: (qq.plain(text), qq.without_addresses(text)), 3998),
    "weixin": (weixin.plainer, 1900),
}


@pytest.mark.parametrize("platform", RENDERERS)
def test_no_text_of_full_length_holds_up_the_loop(platform: str) -> None:
    render, limit = RENDERERS[platform]
    took = {}
    with only_own_garbage():
        for one, other in (*((piece, "") for piece in PIECES), *pairwise(PIECES), *pairwise(PIECES[::-3])):
            text = ((one + other) * limit)[:limit]
            took[one, other] = cpu_seconds(lambda: render(text))  # noqa: B023 - called at once
    slow = {pieces: seconds for pieces, seconds in took.items() if seconds > SECONDS}
    assert not slow


SLACK, DISCORD = slack_reading.Me("main", "T1", "UBOT", "hermes"), discord_reading.Me("main", "901", "hermes")
READERS: dict[str, tuple[Callable[[str], object], int]] = {
    "slack": (lambda text: slack_reading.readable(text, SLACK), 40_000),
    "discord": (lambda text: discord_reading.readable(text, {}, DISCORD), 4_000),
}


@pytest.mark.parametrize("platform", READERS)
@pytest.mark.parametrize(
    "piece", [" ", " \n", "<@UBOT>", "<@901> ", "<", "<@", "<a|", "<@UBOT|", "&lt;", " ,", "<@&1>"]
)
def test_no_text_of_a_stranger_holds_up_the_loop(platform: str, piece: str) -> None:
    read, limit = READERS[platform]
    text = (piece * limit)[: limit - 1] + "x"
    with only_own_garbage():
        assert cpu_seconds(lambda: read(text)) < SECONDS
