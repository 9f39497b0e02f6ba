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
from tests.integration.api.serving import served
from tests.integration.conftest import Start
from tests.integration.watching import answered


class _Unheard:
    async def event(self, told: Any) -> None:
        """Nobody looks at the events here."""


class _Heard:
    def __init__(self) -> None:
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def event(self, told: dict[str, Any]) -> None:
        self.events.put_nowait(told)

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            return await self.events.get()


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
        await telegram.wait_for(lambda: any(text.startswith("Continued here") for text in telegram.texts()))
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


async def test_what_is_said_on_telegram_appears_in_the_open_terminal_with_its_origin(
    start: Start, telegram: FakeTelegram
) -> None:
    async with start() as gateway:
        await ask(gateway, "say", chat="cli", text="I am in the kitchen.")
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        await ask(gateway, "people.link", account="telegram:7", person="local:local")
        session = (await ask(gateway, "chat.history", chat="cli"))["session"]
        heard = _Heard()
        following = asyncio.create_task(_follow(gateway, heard, chat="cli"))
        assert await heard.next() == {"kind": "place", "session": session, "seq": 2, "platform": ""}

        telegram.user_says(f"/resume {session}")
        moved = await heard.next()
        assert (moved["kind"], moved["session"], moved["platform"]) == ("place", session, "Telegram")
        telegram.user_says("And on the balcony now.")
        said = [await heard.next(), await heard.next()]
        assert [(one["role"], one["text"]) for one in said] == [
            ("user", "And on the balcony now."),
            ("assistant", "echo: And on the balcony now."),
        ]
        assert {(one["platform"], one["name"]) for one in said} == {("Telegram", "Ana")}

        await ask(gateway, "say", chat="cli", text=f"/resume {session}")
        assert (await heard.next())["platform"] == ""
        await ask(gateway, "say", chat="cli", text="Back here.")
        shown = await ask(gateway, "chat.history", chat="cli", limit=20)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert heard.events.empty()  # what is said here is not told a second time

    origins = [message.get("platform", "") for message in shown["messages"]]
    assert origins == ["", "", "Telegram", "Telegram", "", ""]
    lines = [text_of(line) for line in conversation(shown, ENGLISH, 79)]
    assert lines[lines.index("> And on the balcony now.") - 1] == "via Telegram · Ana"
    assert sum(line.startswith("via ") for line in lines) == 1


async def test_a_follower_that_comes_back_is_told_what_it_missed_and_nothing_twice(
    start: Start, telegram: FakeTelegram
) -> None:
    async with start() as gateway:
        await ask(gateway, "say", chat="cli", text="hi")
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        await ask(gateway, "people.link", account="telegram:7", person="local:local")
        telegram.user_says("/new")
        await telegram.wait_for(lambda: any(text.startswith("Fresh session") for text in telegram.texts()))
        telegram.user_says("zero")
        await answered(telegram, "echo: zero")
        (session,) = [one for one in await ask(gateway, "chat.sessions") if "zero" in one["title"]]
        telegram.user_says("one")
        await answered(telegram, "echo: one")
        heard = _Heard()
        following = asyncio.create_task(_follow(gateway, heard, chat="other", session=session["id"], seq=2))
        assert (await heard.next())["kind"] == "place"
        assert [(await heard.next())["text"] for _ in range(2)] == ["one", "echo: one"]
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _follow(gateway: Gateway, heard: _Heard, **args: Any) -> None:
    await verbs_of(gateway)["chat.follow"](args, heard)


async def test_what_is_written_in_the_browser_appears_in_the_open_terminal(start: Start) -> None:
    async with asyncio.timeout(60), served(start) as api:
        await ask(api.gateway, "say", chat="cli", text="I am in the kitchen.")
        [session] = (await api.get("/api/sessions?platform=local")).json["data"]
        heard = _Heard()
        following = asyncio.create_task(_follow(api.gateway, heard, chat="cli"))
        assert (await heard.next())["kind"] == "place"
        owner = await api.new_key("desk", "owner")
        path, body = f"/api/sessions/{session['id']}/chat", {"message": "And at the desk."}
        async with api.stranger.post(path, json=body, headers=owner) as answer:
            assert (answer.status, (await answer.json())["message"]["content"]) == (200, "echo: And at the desk.")
        said = [await heard.next(), await heard.next()]
        assert [one["text"] for one in said] == ["And at the desk.", "echo: And at the desk."]
        assert {(one["platform"], one["name"]) for one in said} == {("dashboard", "key:desk")}
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        told = await ask(api.gateway, "say", chat="cli", text="Back here.")
        assert told["state"] == "done"
