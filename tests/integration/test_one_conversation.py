"""One conversation, begun in the terminal, continued on Telegram, finished in the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hermes.cli.chat.lines import text_of
from hermes.cli.chat.sessions import conversation, picker
from hermes.core.i18n.catalogue import ENGLISH
from hermes.hosting.control.handlers.gateway import verbs_of
from hermes.services.gateway import Gateway
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import answered


class _Unheard:
    async def event(self, told: Any) -> None:
        """Nobody looks at the events here."""


async def ask(gateway: Gateway, verb: str, **args: Any) -> Any:
    async with asyncio.timeout(30):
        return await verbs_of(gateway)[verb](args, _Unheard())


def spoken(request: Mapping[str, Any]) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] in ("user", "assistant")]


async def test_a_conversation_goes_on_from_the_terminal_to_telegram_and_back(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        await ask(gateway, "say", chat="cli", text="I am in the kitchen.")
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        await ask(gateway, "people.link", account="telegram:7", person="local:local")

        (session,) = [one for one in await ask(gateway, "chat.sessions") if "kitchen" in one["title"]]
        telegram.user_says(f"/resume {session['id']}")
        await telegram.wait_for(lambda: any(text.startswith("Taken up") for text in telegram.texts()))
        telegram.user_says("And on the balcony now.")
        await answered(telegram, "echo: And on the balcony now.")

        (again,) = [one for one in await ask(gateway, "chat.sessions") if one["id"] == session["id"]]
        rows = [text_of(row) for row in picker([again], ENGLISH, again["updated_at"]).rows(79)]
        assert any("telegram" in row for row in rows)
        await ask(gateway, "say", chat="cli", text=f"/resume {session['id']}")
        await ask(gateway, "say", chat="cli", text="Where was I?")
        told = await ask(gateway, "chat.history", chat="cli", limit=20)

    said = ["I am in the kitchen.", "And on the balcony now.", "Where was I?"]
    both = [text for each in said for text in (each, f"echo: {each}")]
    assert [message["text"] for message in told["messages"]] == both
    assert [text for text in spoken(model.last_request) if any(each in text for each in said)][:5] == both[:5]
    shown = "\n".join(text_of(line) for line in conversation(told, ENGLISH, 79))
    assert all(text in shown for text in both)
