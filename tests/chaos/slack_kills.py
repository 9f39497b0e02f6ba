"""kill -9 over Slack: what was not acknowledged, or said to nobody, comes out of the history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.chaos.world import AnyWorld, Watching, opened_on, plain
from tests.fakes.slack import FakeSlack, _Event, _Socket

Json = dict[str, Any]


class WatchfulSlack(Watching, FakeSlack):
    """Knows of each send whether its answer had left. A direct chat is told of by the number of its person."""

    def __init__(self) -> None:
        super().__init__()
        self.retries = False  # harder than Slack: what a kill caught is in the history and nowhere else

    def _envelope(self, socket: _Socket, event: _Event) -> None:
        super()._envelope(socket, event)
        self.batches += 1

    def _show(self, channel: str, thread: str, text: str, blocks: Sequence[Json] = (), **more: Any) -> Json:
        answer = super()._show(channel, thread, text, blocks, **more)
        shown = self.sent[-1]
        shown.chat = _number(channel)
        self._flies(shown)
        return answer

    def _update(self, body: Json) -> Json:
        answer = super()._update(body)
        shown = next(each for each in self.sent if each.message_id == body["ts"])
        self.answered.add((shown.chat, plain(shown.text)))
        return answer


def _number(channel: str) -> str:
    return channel.lstrip("D").lstrip("0")


@asynccontextmanager
async def opened(folder: Path, seed: int) -> AsyncIterator[AnyWorld[WatchfulSlack]]:
    async with (
        WatchfulSlack() as slack,
        opened_on(slack, folder, seed, {**slack.environ, "SLACK_ALLOW_ALL_USERS": "true"}) as world,
    ):
        yield world
