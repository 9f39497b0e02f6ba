"""Whatever a platform sends, it is accounted for, the next message is answered, and nothing stops."""

from __future__ import annotations

import asyncio
import copy
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.services.gateway import Gateway
from hermes.store.db import Tx
from tests.fakes.model import FakeModel
from tests.fakes.telegram import UNPACED, FakeTelegram
from tests.integration.conftest import Start

Json = dict[str, Any]
Step = str | int

WITNESS = 8  # a person in a chat of their own, whom nothing odd ever reaches
ENDED = {"answered", "refused", "set_aside"}


def inbox_rows(tx: Tx) -> list[tuple[str, str, str]]:
    return tx.all("SELECT kind, state, reason FROM inbox ORDER BY received_at", lambda *row: row)


async def all_ended(gateway: Gateway, seconds: float = 30.0) -> list[tuple[str, str, str]]:
    """Every stored event, once each has come to its end."""
    deadline = time.monotonic() + seconds
    while True:
        rows = await gateway.db.read(inbox_rows)
        stuck = [row for row in rows if row[1] not in ENDED]
        if not stuck:
            return rows
        assert time.monotonic() < deadline, f"stuck: {stuck}"
        await asyncio.sleep(0.02)


async def still_answers(telegram: FakeTelegram, seconds: float = 30.0) -> None:
    text = f"still there {telegram.polls}?"
    telegram.user_says(text, chat=WITNESS, user=WITNESS)
    await telegram.wait_for(lambda: f"echo: {text}" in telegram.texts(WITNESS), seconds)


@asynccontextmanager
async def a_gateway(telegram: FakeTelegram, model: FakeModel) -> AsyncIterator[Gateway]:
    """One on a home of its own that lets everybody in, so that odd updates come as far as they can."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_BASE_URL": telegram.url,
            **UNPACED,
            "TELEGRAM_ALLOW_ALL_USERS": "true",
            "TELEGRAM_GROUP_POLICY": "open",
            "TELEGRAM_REQUIRE_MENTION": "false",
            "OPENAI_API_KEY": "sk-test-0123456789",
            "OPENAI_BASE_URL": model.url,
            "MESSAGING_CWD": folder,
        }
        async with open_gateway(GatewayOptions(Path(folder) / "home", environ, Path(folder))) as gateway:
            yield gateway


# Mutated updates

PERSON = {"id": 7, "is_bot": False, "first_name": "Ana", "last_name": "B", "username": "ana", "language_code": "en"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Ana"}
GROUP = {"id": -100123, "type": "supergroup", "title": "Family", "is_forum": True}
FILE = {"file_id": "FILE1", "file_unique_id": "U1", "file_size": 12, "file_name": "a.txt", "mime_type": "text/plain"}


def _message(**content: Any) -> Json:
    return {"message_id": 5, "date": 1_700_000_000, "chat": PRIVATE, "from": PERSON, **content}


SAMPLES: list[tuple[str, Json]] = [
    ("message", _message(text="hello")),
    ("message", _message(text="/status now", entities=[{"type": "bot_command", "offset": 0, "length": 7}])),
    ("message", _message(text="/stop")),
    (
        "message",
        _message(
            text="@test_bot what?",
            chat=GROUP,
            message_thread_id=3,
            is_topic_message=True,
            entities=[{"type": "mention", "offset": 0, "length": 9}],
        ),
    ),
    (
        "message",
        _message(
            text="and this",
            quote={"text": "hello", "position": 0},
            reply_to_message=_message(text="hello", **{"from": {**PERSON, "id": 42, "is_bot": True}}),
        ),
    ),
    ("message", _message(document=FILE, caption="read it", media_group_id="99")),
    ("message", _message(photo=[{**FILE, "width": 90, "height": 90}])),
    ("message", _message(voice={**FILE, "duration": 1})),
    ("message", _message(sticker={**FILE, "emoji": "x", "is_animated": False})),
    ("message", _message(location={"latitude": 1.5, "longitude": 2.5})),
    ("message", _message(contact={"phone_number": "1", "first_name": "Ben"})),
    ("message", _message(poll={"question": "Tea?", "options": [{"text": "yes"}]})),
    ("edited_message", _message(text="hello!", edit_date=1_700_000_100)),
    ("channel_post", _message(text="news", chat={"id": -100555, "type": "channel", "title": "News"})),
    (
        "callback_query",
        {"id": "999", "from": PERSON, "message": _message(text="May I?"), "data": "approve:ap_x", "chat_instance": "1"},
    ),
]

ODD: list[Any] = [
    None, True, 0, -1, 2**53 + 1, 2**63, 2**70, -(2**70), 1.5, 1e300, "", "x", "7", "\0", "\ud800", "a\udfffb\0",
    "é" * 5000, [], {}, [[]], [None], {"id": "x"}, {"": {}},
]  # fmt: skip


def _paths(value: object, prefix: tuple[Step, ...] = ()) -> list[tuple[Step, ...]]:
    inner: list[tuple[Step, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [found for step, child in inner for found in ((*prefix, step), *_paths(child, (*prefix, step)))]


def _at(value: Any, path: tuple[Step, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@st.composite
def mutated_updates(draw: st.DrawFn) -> Json:
    kind, content = draw(st.sampled_from(SAMPLES))
    update: Json = copy.deepcopy({kind: content})
    for _ in range(draw(st.integers(1, 3))):
        if not (paths := _paths(update)):
            break
        path = draw(st.sampled_from(paths))
        holder, step = _at(update, path[:-1]), path[-1]
        match draw(st.sampled_from(["drop", "replace", "wrap in a list", "wrap in an object"])):
            case "drop":
                del holder[step]
            case "replace":
                holder[step] = copy.deepcopy(draw(st.sampled_from(ODD)))
            case "wrap in a list":
                holder[step] = [holder[step]]
            case _:
                holder[step] = {"value": holder[step]}
    return update


def deliver(telegram: FakeTelegram, update: Json) -> None:
    """As JSON that may hold what orjson would not write: half a surrogate pair, a number of seventy bits."""
    kind = next(iter(update), "message")
    telegram.deliver_raw(lambda number: json.dumps({"update_id": number, **update}).encode(), kind)


@given(st.lists(mutated_updates(), min_size=20, max_size=40))
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_mutated_updates_are_accounted_for_and_the_next_message_is_answered(updates: list[Json]) -> None:
    async def body() -> None:
        async with FakeTelegram() as telegram, FakeModel() as model, a_gateway(telegram, model) as gateway:
            telegram.any_chat = True
            for update in updates:
                deliver(telegram, update)
            await still_answers(telegram)
            await all_ended(gateway)
            assert {link["state"]: link["reconnects"] for link in gateway.supervisor.status()} == {"connected": 0}

    asyncio.run(body())


# Single oddities, over the wire


async def test_a_message_of_ten_megabytes_is_answered_and_cut_in_words(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.when("long", "That was long.")
    async with start(TELEGRAM_ALLOW_ALL_USERS="true") as gateway:
        telegram.user_says("so long " * 1_250_000)
        await still_answers(telegram)
        await telegram.wait_for(lambda: "That was long." in telegram.texts(7), 20)
        rows = await all_ended(gateway)
    assert {state for _, state, _ in rows} == {"answered"}
    told = max((request["messages"][-1]["content"] for request in model.requests), key=len)
    assert told.endswith("[cut: 9000000 more characters]")


async def test_an_answer_of_fifty_messages_is_delivered_in_parts(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.when("tell me everything", "word " * 40_000)
    async with start(TELEGRAM_ALLOW_ALL_USERS="true") as gateway:
        telegram.user_says("tell me everything")
        await telegram.wait_for(lambda: sum(map(len, telegram.texts(7))) >= 199_000, 20)
        await still_answers(telegram)
        await all_ended(gateway)
        assert len(telegram.texts(7)) >= 40


async def test_bytes_that_are_no_utf_8_spoil_a_letter_and_not_the_message(start: Start, telegram: FakeTelegram) -> None:
    body = (
        b'{"update_id":%d,"message":{"message_id":5,"date":1700000000,"chat":{"id":7,"type":"private"},'
        b'"from":{"id":7,"first_name":"An\xff"},"text":"caf\xe9 \xc3"}}'
    )
    async with start(TELEGRAM_ALLOW_ALL_USERS="true") as gateway:
        telegram.deliver_raw(lambda number: body % number)
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: caf\ufffd \ufffd"])
        await still_answers(telegram)
        assert {state for _, state, _ in await all_ended(gateway)} == {"answered"}


@pytest.mark.parametrize("odd", ["\0", "\ud83d", "\udc00 \ud83d", "a\0b\ud800c"])
async def test_nul_and_half_surrogates_are_stored_and_answered_wherever_they_stand(
    start: Start, telegram: FakeTelegram, model: FakeModel, odd: str
) -> None:
    author = {**PERSON, "id": 9, "first_name": odd}
    async with start(TELEGRAM_ALLOW_ALL_USERS="true") as gateway:
        message = _message(
            text=f"one {odd}",
            quote={"text": odd},
            reply_to_message=_message(text=odd, **{"from": author}),
            **{"from": {**PERSON, "first_name": odd, "username": odd}},
        )
        deliver(telegram, {"message": message})
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 1)
        named = {**FILE, "file_name": f"{odd}.txt", "mime_type": odd, "file_id": odd}
        deliver(telegram, {"message": {**_message(document=named, caption=f"two {odd}"), "message_id": 6}})
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 2)  # a file that did not come is told besides
        press = {"id": odd, "from": PERSON, "message": _message(text=odd), "data": f"approve:{odd}"}
        deliver(telegram, {"callback_query": press})
        deliver(telegram, {"message": {**_message(text=f"/model {odd}"), "message_id": 7}})
        await still_answers(telegram)
        rows = await all_ended(gateway)
    assert [(kind, state) for kind, state, _ in rows if kind == "message"] == [("message", "answered")] * 3
    assert {state for _, state, _ in rows} <= {"answered", "set_aside"}


async def test_each_absurd_id_sets_one_event_aside_with_its_reason(start: Start, telegram: FakeTelegram) -> None:
    absurd: list[Any] = ["abc", "7", 2**70, -(2**70), 1.0, True, None, [], {"id": 7}]
    async with start(TELEGRAM_ALLOW_ALL_USERS="true") as gateway:
        for path in [("chat", "id"), ("from", "id"), ("message_id",)]:
            for value in absurd:
                message = copy.deepcopy(_message(text="hello"))
                _at(message, path[:-1])[path[-1]] = value
                deliver(telegram, {"message": message})
        await still_answers(telegram)
        rows = await all_ended(gateway)
    odd = [row for row in rows if row[0] == "unreadable"]
    assert len(odd) == 27
    assert all(state == "set_aside" and reason for _, state, reason in odd)


async def test_a_huge_batch_is_stored_and_every_message_in_it_answered(start: Start, telegram: FakeTelegram) -> None:
    for number in range(300):
        chat = 1000 + number % 30
        telegram.private_chat(chat)
        telegram.user_says(f"message {number}", chat=chat, user=chat)
        if number % 10 == 0:
            telegram.something_broken_arrives()
    async with start(TELEGRAM_ALLOW_ALL_USERS="true", HERMES_BUSY_MODE="queue") as gateway:
        await telegram.wait_for(lambda: len(telegram.sent) >= 300, 20)
        rows = await all_ended(gateway)
    assert sorted(telegram.texts()) == sorted(f"echo: message {number}" for number in range(300))
    assert sum(kind == "unreadable" for kind, _, _ in rows) == 30


def nested(depth: int) -> Callable[[int], bytes]:
    return lambda number: (
        b'{"update_id":%d,"message":{"message_id":5,"text":' % number + b"[" * depth + b"]" * depth + b"}}"
    )


@pytest.mark.parametrize("depth", [900, 1000, 5000, 200_000])
async def test_an_update_nested_without_end_is_set_aside(start: Start, telegram: FakeTelegram, depth: int) -> None:
    async with start(TELEGRAM_ALLOW_ALL_USERS="true") as gateway:
        telegram.deliver_raw(nested(depth))
        await still_answers(telegram)
        rows = await all_ended(gateway)
    assert rows[0][:2] == ("unreadable", "set_aside")


async def test_an_update_that_is_no_json_is_set_aside_raw_and_the_others_are_answered(
    start: Start, telegram: FakeTelegram
) -> None:
    async with start(TELEGRAM_ALLOW_ALL_USERS="true") as gateway:
        telegram.user_says("before")
        telegram.deliver_raw(lambda number: b'{"update_id":%d,"message":{"text":"never ends' % number)
        await still_answers(telegram)
        rows = await all_ended(gateway)
    assert sorted(row[:2] for row in rows) == [
        ("message", "answered"),
        ("message", "answered"),
        ("unreadable", "set_aside"),
    ]


# Settings that one part cannot use


async def test_a_bad_model_address_is_told_and_the_key_goes_nowhere_else(start: Start, telegram: FakeTelegram) -> None:
    # The guard of the test suite fails this test if api.openai.com is even looked up.
    async with start(OPENAI_BASE_URL="not an address") as gateway:
        telegram.user_says("hello")
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 1)
        problems = [str(problem) for problem in gateway.watch.loaded.problems]
    assert any("OPENAI_BASE_URL: is an address with a blank" in problem for problem in problems)
    assert "base_url" in telegram.texts(7)[0]
    assert "hermes doctor" in telegram.texts(7)[0]


async def test_a_wrong_model_name_is_told_in_the_chat_with_its_cure(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.fails_next(404, {"error": {"code": "model_not_found", "message": "The model `gpt-9` does not exist"}})
    async with start(HERMES_MODEL="gpt-9") as gateway:
        telegram.user_says("hello")
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 1)
        telegram.user_says("again")
        await telegram.wait_for(lambda: telegram.texts(7)[-1] == "echo: again")
        await all_ended(gateway)
    assert "gpt-9" in telegram.texts(7)[0]
    assert "model.default" in telegram.texts(7)[0]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_proxy_that_is_down_is_named_and_a_local_chat_is_still_answered(start: Start, scheme: str) -> None:
    async with start(
        TELEGRAM_PROXY=f"{scheme}://ana:pass-word-17@127.0.0.1:9", NO_PROXY="elsewhere.example"
    ) as gateway:
        async with gateway.hub.listen("cli") as heard:
            await gateway.hub.submit("cli", "hello", "k1")
            assert (await asyncio.wait_for(heard.get(), 5)).text == "echo: hello"
        told = next(link for link in gateway.supervisor.status() if link["account"] == "telegram")
    assert told["state"] == "unreachable"
    assert "TELEGRAM_PROXY" in told["note"]
    assert "pass-word-17" not in told["note"]
