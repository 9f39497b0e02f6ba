"""kill -9 over QQ: the session is resumed by whoever comes after, and nothing that was said is lost.

QQ takes no message here that answers nobody, and each message five times at most.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.chaos.world import AnyWorld, Watching, opened_on
from tests.fakes.qq import FakeQQ
from tests.fakes.server import Said

Json = dict[str, Any]


class WatchfulQQ(Watching, FakeQQ):
    """Knows of each send whether its answer had left. The openid of a person is the number of their chat."""

    def __init__(self) -> None:
        super().__init__()
        self.unasked_left = 0

    def user_says(self, text: str, *, chat: int | str = 7, user: int | str | None = None, **more: Any) -> Said:
        return super().user_says(text, chat=str(chat), user=user, **more)

    def _dispatch(self, text: Callable[[int], str]) -> None:
        super()._dispatch(text)
        self.batches += self.is_listening

    def _send(self, scene: str, chat_id: str, body: Json) -> tuple[int, Json]:
        count = len(self.sent)
        answer = super()._send(scene, chat_id, body)
        if len(self.sent) > count:
            self._flies(self.sent[-1])
        return answer


@asynccontextmanager
async def opened(folder: Path, seed: int) -> AsyncIterator[AnyWorld[WatchfulQQ]]:
    async with WatchfulQQ() as qq, opened_on(qq, folder, seed, {**qq.environ, "QQ_ALLOW_ALL_USERS": "true"}) as world:
        yield world
