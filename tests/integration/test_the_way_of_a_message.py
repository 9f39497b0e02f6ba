"""A message in, the agent's answer out: through intake, lane, turn and delivery."""

from __future__ import annotations

from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start


async def test_a_message_is_answered(start: Start, telegram: FakeTelegram) -> None:
    async with start():
        telegram.user_says("hello")
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"])
        assert telegram.texts(7) == ["echo: hello"]


async def test_two_hundred_chats_are_all_answered(start: Start, telegram: FakeTelegram) -> None:
    async with start(TELEGRAM_ALLOW_ALL_USERS="true"):
        for chat in range(100, 300):
            telegram.private_chat(chat)
            telegram.user_says(f"hi {chat}", chat=chat, user=chat)
        await telegram.wait_for(lambda: len(telegram.sent) >= 200, 20)
    assert {(sent.chat, sent.text) for sent in telegram.sent} == {(str(c), f"echo: hi {c}") for c in range(100, 300)}
