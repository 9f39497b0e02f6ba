"""kill -9 over Weixin, which hands each message out once: only what a kill caught before its commit may be missing.

The fake knows which batch that was: place and messages are stored together, so whoever comes after the kill asks from
before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.chaos.kills import Series
from tests.chaos.ledger import Said, Verdict
from tests.chaos.world import MARK, AnyWorld, Watching, opened_on, plain
from tests.fakes.server import Said as Told
from tests.fakes.server import Sent
from tests.fakes.weixin import FakeWeixin

PEOPLE = "@im.wechat"


class WatchfulWeixin(Watching, FakeWeixin):
    """Knows of each send whether its answer had left. A bubble of joined answers is a flight for each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.latency_seconds = 0.05  # so that what is said to a process that was just killed is not handed out to it
        self.on_send: Callable[[], None] = lambda: None

    def user_says(self, text: str, *, chat: int = 7, **more: Any) -> Told:
        return super().user_says(text, user=f"{chat}{PEOPLE}", **more)

    def on_batch(self) -> None:
        self.batches += 1

    def on_sent(self, sent: Sent) -> None:
        self.on_send()
        mark = MARK if sent.text.startswith(MARK) else ""
        parts = [part for part in plain(sent.text).split("\n\n") if part.startswith("echo: ")]
        chat = sent.chat.removesuffix(PEOPLE)
        self._flies(*(replace(sent, chat=chat, text=mark + part) for part in parts))

    @property
    def caught(self) -> set[tuple[str, str]]:
        """Chat and text of what was handed out to a gateway that died before it was stored."""
        return {
            (str(message["from_user_id"]).removesuffix(PEOPLE), str(message["item_list"][0]["text_item"]["text"]))
            for batch in self.uncommitted
            for message in batch
        }

    def has_answered(self, chat: int, text: str) -> bool:
        """Nothing more is to be waited for."""
        return super().has_answered(chat, text) or (str(chat), text.removeprefix("echo: ")) in self.caught


def verdict(series: Series) -> tuple[Verdict, list[Said]]:
    """The verdict without what was caught, and what was."""
    weixin = series.world.platform
    assert isinstance(weixin, WatchfulWeixin)
    judged = series.verdict()
    caught = [said for said in judged.lost if (str(said.chat), said.text) in weixin.caught]
    judged.lost = [said for said in judged.lost if said not in caught]
    return judged, caught


@asynccontextmanager
async def opened(folder: Path, seed: int) -> AsyncIterator[AnyWorld[WatchfulWeixin]]:
    async with WatchfulWeixin() as weixin:
        environ = {**weixin.environ, "WEIXIN_ALLOW_ALL_USERS": "true", "WEIXIN_DM_POLICY": "open"}
        async with opened_on(weixin, folder, seed, environ) as world:
            yield world
