"""The fake refuses what Telegram refuses, so that a test against it means something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.fakes import markdown_v2
from tests.fakes.telegram import FakeTelegram


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


@pytest_asyncio.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as http:
        yield http


async def ask(http: aiohttp.ClientSession, fake: FakeTelegram, method: str, **params: Any) -> dict[str, Any]:
    async with http.post(f"{fake.url}/bot{fake.token}/{method}", json=params) as response:
        answer: dict[str, Any] = await response.json()
        assert response.status == answer.get("error_code", 200)
        return answer


@pytest.mark.parametrize(
    "method,params,description",
    [
        ("sendMessage", {"chat_id": 7, "text": " "}, "message text is empty"),
        ("sendMessage", {"chat_id": 7, "text": "🙂" * 2049}, "message is too long"),
        ("sendMessage", {"chat_id": 8, "text": "x"}, "chat not found"),
        (
            "sendMessage",
            {"chat_id": 7, "text": "a.", "parse_mode": "MarkdownV2"},
            "can't parse entities: Character '.'",
        ),
        ("sendMessage", {"chat_id": 7, "text": "*a", "parse_mode": "MarkdownV2"}, "Can't find end of Bold entity"),
        ("sendMessage", {"chat_id": 7, "text": "a", "message_thread_id": 1}, "message thread not found"),
        ("sendMessage", {"chat_id": 7, "text": "a", "reply_parameters": {"message_id": 5}}, "replied not found"),
        ("editMessageText", {"chat_id": 7, "message_id": 5, "text": "a"}, "message to edit not found"),
        ("answerCallbackQuery", {"callback_query_id": "5"}, "query is too old"),
        ("getFile", {"file_id": "x"}, "wrong file_id"),
        ("fly", {}, "method not found"),
        (
            "sendMessage",
            {
                "chat_id": 7,
                "text": "a",
                "reply_markup": {"inline_keyboard": [[{"text": "b", "callback_data": "é" * 33}]]},
            },
            "BUTTON_DATA_INVALID",
        ),
    ],
)
async def test_it_refuses_what_telegram_refuses(
    fake: FakeTelegram, http: aiohttp.ClientSession, method: str, params: dict[str, Any], description: str
) -> None:
    assert description in (await ask(http, fake, method, **params))["description"]


async def test_markup_is_not_counted(fake: FakeTelegram, http: aiohttp.ClientSession) -> None:
    answer = await ask(http, fake, "sendMessage", chat_id=7, text=f"*{'x' * 4096}*", parse_mode="MarkdownV2")
    assert answer["ok"]


async def test_a_wrong_token_is_unauthorized(fake: FakeTelegram, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{fake.url}/bot42:wrong/getMe") as response:
        assert response.status == 401


async def test_forms_are_read_as_well_as_json(fake: FakeTelegram, http: aiohttp.ClientSession) -> None:
    form = {"chat_id": "7", "text": "hi", "reply_markup": '{"inline_keyboard":[[{"text":"b","callback_data":"c"}]]}'}
    async with http.post(f"{fake.url}/bot{fake.token}/sendMessage", data=form) as response:
        assert response.status == 200
    assert fake.sent[0].buttons[0][0].data == "c"


async def test_updates_stay_until_a_higher_offset_confirms_them(
    fake: FakeTelegram, http: aiohttp.ClientSession
) -> None:
    first, second, third = (fake.user_says(str(number)) for number in range(3))

    async def ids(**params: Any) -> list[int]:
        return [update["update_id"] for update in (await ask(http, fake, "getUpdates", **params))["result"]]

    assert await ids() == await ids() == [first.update_id, second.update_id, third.update_id]
    assert await ids(limit=1) == [first.update_id]
    assert await ids(offset=second.update_id) == [second.update_id, third.update_id]
    assert await ids(offset=-1) == [third.update_id]
    assert await ids() == [third.update_id]
    assert await ids(offset=third.update_id + 1) == []
    assert third.update_id == first.update_id + 2


async def test_a_waiting_poll_is_answered_by_news(fake: FakeTelegram, http: aiohttp.ClientSession) -> None:
    polling = asyncio.create_task(ask(http, fake, "getUpdates", timeout=20))
    await fake.wait_for(lambda: fake.polls == 1)
    said = fake.user_says("hello")
    assert [update["update_id"] for update in (await polling)["result"]] == [said.update_id]


async def test_a_second_poll_ends_the_first_with_a_conflict(fake: FakeTelegram, http: aiohttp.ClientSession) -> None:
    first = asyncio.create_task(ask(http, fake, "getUpdates", timeout=20))
    await fake.wait_for(lambda: fake.polls == 1)
    assert (await ask(http, fake, "getUpdates"))["ok"]
    assert (await first)["error_code"] == 409


async def test_a_held_answer_comes_after_the_deed(fake: FakeTelegram, http: aiohttp.ClientSession) -> None:
    hold = fake.hold("sendMessage")
    sending = asyncio.create_task(ask(http, fake, "sendMessage", chat_id=7, text="hi"))
    await hold.reached()
    assert fake.texts(7) == ["hi"]
    assert not sending.done()
    fake.release("sendMessage")
    assert (await sending)["ok"]


async def test_after_an_outage_it_is_back_on_its_port_with_what_was_pending(
    fake: FakeTelegram, http: aiohttp.ClientSession
) -> None:
    fake.user_says("hello")
    url = fake.url
    await fake.stop()
    with pytest.raises(aiohttp.ClientError):
        await ask(http, fake, "getUpdates")
    await fake.start()
    assert fake.url == url
    assert len((await ask(http, fake, "getUpdates"))["result"]) == 1


@pytest.mark.parametrize(
    "source,shown,kinds",
    [
        ("*b* _i_ __u__ ~s~ ||p||", "b i u s p", ["bold", "italic", "underline", "strikethrough", "spoiler"]),
        ("[a\\.b](http://x.y/\\))", "a.b", ["text_link"]),
        ("```py\nx = 1\n```", "x = 1", ["pre"]),
        (">q\n>r\nz", "q\nr\nz", ["blockquote"]),
        ("*a _b_*", "a b", ["bold", "italic"]),
    ],
)
def test_it_reads_markdown_v2(source: str, shown: str, kinds: list[str]) -> None:
    text, entities = markdown_v2.parse(source)
    assert (text, [entity["type"] for entity in entities]) == (shown, kinds)


@pytest.mark.parametrize("source", ["a.b", "*a", "_a*b_*", "`a", "```a", "[a](b", "[a]", "a|b", "#", "a)"])
def test_it_refuses_bad_markdown_v2(source: str) -> None:
    with pytest.raises(markdown_v2.CannotParse, match="can't parse entities"):
        markdown_v2.parse(source)
