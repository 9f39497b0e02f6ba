"""A day on QQ, which ends every connection each half hour: nobody notices.

The loop's own clock jumps, so heartbeats, the token's 7,200 seconds and the expiry of approvals really happen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.jumping import JumpingLoop, LoopClock, run_in_jumps
from tests.fakes.qq import FakeQQ, openid
from tests.fakes.server import Sent
from tests.integration.qq_chat import AskingModel, gateway_on

pytestmark = pytest.mark.one_python

HALF_HOUR = 1800.0
GROUP = "group/G1"
DISCONNECTED = "WebSocket closed: code=4009 reason=Session timed out"


class Day:
    """What people do, and what they must see."""

    def __init__(self, qq: FakeQQ) -> None:
        self.qq = qq
        self.expected: list[tuple[str, str]] = []

    async def says(self, text: str, chat: str, answer: str = "") -> None:
        self.qq.user_says(text, chat=chat)
        await self.sees(chat, answer or f"echo: {text}")

    async def sees(self, chat: str, text: str) -> Sent:
        """The next thing that is shown in this chat."""
        self.expected.append((chat, text))
        count = sum(where == chat for where, _ in self.expected)
        await self.qq.wait_for(lambda: len(self.qq.texts(chat)) >= count, 30)
        shown = [sent for sent in self.qq.sent if sent.chat == chat][count - 1]
        assert text in shown.text, f"{shown.text!r} instead of {text!r}"
        return shown

    async def is_asked(self, text: str, chat: str) -> Sent:
        self.qq.user_says(text, chat=chat)
        return await self.sees(chat, f"May I note {text!r}?")

    async def times_out(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """What QQ does each half hour; what is said or pressed while nobody listens counts too."""
        resumed = self.qq.resumed
        await self.qq.time_out()
        assert not self.qq.is_listening
        meanwhile()
        await self.qq.wait_for(lambda: self.qq.resumed > resumed and self.qq.is_listening, 30)


async def half_hour(number: int, day: Day, loop: JumpingLoop) -> None:
    """One of four stories, then the 4009 in the middle of it or at its end."""
    ana = openid(7)
    text = f"note {number}"
    match number % 4:
        case 0:
            await day.says(f"hello {number}", ana)
            await day.says(f"hello all {number}", GROUP)
            await day.times_out(lambda: day.qq.user_says(f"still there {number}?", chat=ana))
            await day.sees(ana, f"echo: still there {number}?")
        case 1:
            asked = await day.is_asked(text, ana)
            await day.times_out()
            day.qq.user_presses(asked, "Approve", user=8)
            await day.sees(openid(8), "not yours")
            day.qq.user_presses(asked, "Approve")
            await day.sees(ana, "Approved")
            await day.sees(ana, f"echo: {text} (Noted {text!r}.)")
        case 2:
            asked = await day.is_asked(text, GROUP)
            await day.times_out(lambda: day.qq.user_presses(asked, "Approve", user=8))
            await day.sees(GROUP, "not yours")
            await day.times_out(lambda: day.qq.user_presses(asked, "Approve"))
            await day.sees(GROUP, "Approved")
            await day.sees(GROUP, f"echo: {text} (Noted {text!r}.)")
        case _:
            await day.is_asked(text, ana)
            await day.times_out()
            await loop.sleep(330)
            await day.sees(ana, "xpired")
            await day.sees(ana, f"echo: {text}")


async def live(folder: Path, half_hours: int, loop: JumpingLoop, clock: LoopClock) -> FakeQQ:
    async with FakeQQ(now=clock.now) as qq, AskingModel() as model, gateway_on(folder, qq, model, loop, clock):
        qq.unasked_left = 0  # each word of ours answers somebody's
        day = Day(qq)
        for number in range(half_hours):
            until = loop.time() + HALF_HOUR
            await half_hour(number, day, loop)
            await loop.sleep(until - loop.time())
        seen = [(sent.chat, sent.text) for sent in qq.sent]
        for chat in {chat for chat, _ in day.expected}:
            wanted = [text for where, text in day.expected if where == chat]
            shown = [text for where, text in seen if where == chat]
            assert len(shown) == len(wanted), "nothing more is shown than was expected"
        return qq


@pytest.mark.timeout(120)
def test_a_day_of_4009_is_not_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    half_hours = 48
    with caplog.at_level(logging.INFO, logger="hermes"):
        qq = run_in_jumps(lambda loop, clock: live(tmp_path, half_hours, loop, clock))
    ended = half_hours * 5 // 4  # one story in four has two of them
    assert (qq.identified, qq.resumed, qq.nowhere) == (1, ended, 0)
    assert qq.tokens_given >= half_hours * HALF_HOUR / 7200
    assert qq.heartbeats >= half_hours * HALF_HOUR / 51  # 36 s, and what a jump of the clock may add
    assert set(qq.acks.values()) == {0}
    assert (len(qq.acks), qq.late_acks) == (half_hours // 4 * 4, [])
    ends = [record for record in caplog.records if record.getMessage() == "Disconnected"]
    assert [getattr(record, "reason", "") for record in ends] == [DISCONNECTED] * ended
    assert all(0 < getattr(record, "reconnect_in", 0.0) < 10 for record in ends)
    refused = [record for record in caplog.records if "Rejected unauthorized approval click" in record.getMessage()]
    assert len(refused) == half_hours // 4 * 2, "only of those who were not asked"
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]
