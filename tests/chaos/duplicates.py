"""The same message again and again, before and after a restart: still one turn and one answer."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.inside import started
from tests.fakes.model import FakeModel, last_user_text
from tests.fakes.telegram import FakeTelegram

FIRST_CHAT = 5000
PER_CHAT = 10
TIMES = 3


@dataclass(frozen=True, slots=True)
class Counted:
    """What reached the fakes. ``deliveries`` counts every time that an update was offered."""

    messages: int
    deliveries: int
    asked_twice: int
    answered_twice: int
    unanswered: int


async def deliver_again(folder: Path, messages: int, *, deadline: float, seed: int = 1) -> Counted:
    """Each message three times, and a fourth time after a restart."""
    async with FakeTelegram() as telegram, FakeModel() as model:
        texts = [(FIRST_CHAT + index // PER_CHAT, f"m{index}") for index in range(messages)]
        said = [telegram.user_says(text, chat=chat) for chat, text in texts]
        again = said * (TIMES - 1)
        random.Random(seed).shuffle(again)
        for message in again:
            telegram.redeliver(message)
        async with started(folder, telegram, model):
            await telegram.wait_for(lambda: len(telegram.sent) >= messages and not telegram.unconfirmed, deadline)
        telegram.deliver_again_all()
        async with started(folder, telegram, model):
            telegram.user_says("the last", chat=FIRST_CHAT)
            await telegram.wait_for(lambda: "echo: the last" in telegram.texts(FIRST_CHAT), deadline)
            await telegram.wait_for(lambda: not telegram.unconfirmed, deadline)
        asked = Counter(last_user_text(request) for request in model.requests)
        answered = Counter((int(sent.chat), sent.text) for sent in telegram.sent)
    return Counted(
        messages,
        len(said) * (TIMES + 1),
        sum(asked[text] > 1 for _, text in texts),
        sum(answered[chat, f"echo: {text}"] > 1 for chat, text in texts),
        sum(answered[chat, f"echo: {text}"] == 0 for chat, text in texts),
    )
