"""The verbs behind the command line, on a whole gateway in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.app.tools import TOOLS
from hermes.core.errors import GatewayError
from hermes.hosting.control.handlers.gateway import verbs_of
from hermes.services.gateway import Gateway
from hermes.store import inbox, outbox_sending
from tests.fakes import tools
from tests.fakes.model import FakeModel

Told = list[dict[str, Any]]


class Client:
    """Asks as the CLI does, and keeps what it is told."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._verbs = verbs_of(gateway)

    async def ask(self, verb: str, **args: Any) -> Any:
        result, _ = await self.hear(verb, **args)
        return result

    async def hear(self, verb: str, **args: Any) -> tuple[Any, Told]:
        reply = _Told()
        async with asyncio.timeout(10):
            return await self._verbs[verb](args, reply), reply.events

    async def say(self, text: str, **args: Any) -> tuple[Mapping[str, Any], Told]:
        return await self.hear("say", chat="cli", text=text, **args)


class _Told:
    def __init__(self) -> None:
        self.events: Told = []

    async def event(self, told: Any) -> None:
        self.events.append(told)


def kinds(events: Told, *wanted: str) -> list[str]:
    return [event["text"] for event in events if event["kind"] in wanted]


@asynccontextmanager
async def opened(folder: Path, environ: Mapping[str, str]) -> AsyncIterator[Client]:
    (folder / "work").mkdir(exist_ok=True)
    setting = GatewayOptions(
        folder / "hermes-home",
        {"MESSAGING_CWD": str(folder / "work"), **environ},
        folder,
        only=frozenset({"local"}),
        tools=(*TOOLS, tools),
    )
    async with open_gateway(setting) as gateway:
        yield Client(gateway)


@pytest.fixture
async def client(model: FakeModel, tmp_path: Path) -> AsyncIterator[Client]:
    async with opened(tmp_path, {"OPENAI_API_KEY": "sk-test-0123456789", "OPENAI_BASE_URL": model.url}) as client:
        yield client


async def test_words_are_told_as_they_come_and_the_answer_once(client: Client, model: FakeModel) -> None:
    model.says("", tokens=("Hel", "lo."))
    result, events = await client.say("hi")
    assert "".join(kinds(events, "delta")) == "Hello."
    assert kinds(events, "reply") == ["Hello."]
    assert result["state"] == "done"
    assert result["turn"].startswith("t_")


async def test_a_command_is_answered_without_a_turn(client: Client) -> None:
    result, events = await client.say("/version")
    assert kinds(events, "reply")[0].startswith("Hermes ")
    assert (result["state"], result["turn"]) == ("answered", "")


async def test_the_same_message_again_tells_how_it_ended_and_makes_no_second_turn(
    client: Client, model: FakeModel
) -> None:
    first, _ = await client.say("hi", key="k1")
    again, events = await client.say("hi", key="k1")
    assert (again["turn"], again["state"]) == (first["turn"], "done")
    assert kinds(events, "delta") == []
    assert len(model.requests) == 1


async def test_a_client_that_goes_away_does_not_stop_the_turn(client: Client, model: FakeModel) -> None:
    model.hold()
    gone = asyncio.create_task(client.say("hi", key="k2"))
    await model.is_holding()
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    model.release()
    result, events = await client.say("hi", key="k2")
    assert result["state"] == "done"
    # It was parked, since nobody was looking, and comes with the next message.
    if "echo: hi" not in kinds(events, "reply"):
        _, later = await client.say("are you there?")
        assert kinds(later, "reply") == ["echo: hi", "echo: are you there?"]


async def test_an_approval_is_asked_answered_and_followed_to_its_end(
    client: Client, model: FakeModel, tmp_path: Path
) -> None:
    model.calls_tools([("danger", {"text": "boom"})])
    model.says("Done.")
    result, events = await client.say("do it")
    (asked,) = [event for event in events if event["kind"] == "approval"]
    assert result["state"] == "waiting"
    assert result["approvals"] == [{"code": asked["code"], "question": asked["question"]}]
    waits, _ = await client.say("and then?")
    assert waits["state"] == "queued"
    model.says("Then nothing.")
    answered, events = await client.say(f"/approve {asked['code']}")
    assert kinds(events, "reply") == ["Approved, going on.", "Done.", "Then nothing."]
    assert answered["state"] == "answered"
    assert (tmp_path / "work" / "danger.txt").read_text() == "boom\n"
    life = await client.ask("trace", id=result["turn"])
    assert [call["outcome"] for call in life["calls"]] == ["ok"]
    assert [approval["state"] for approval in life["approvals"]] == ["allowed"]


async def test_a_model_that_fails_is_told_as_the_answer(client: Client, model: FakeModel) -> None:
    model.fails_next(401, "bad key")
    result, events = await client.say("hi")
    assert result["state"] == "failed"
    assert len(kinds(events, "reply")) == 1


async def test_a_life_is_found_by_every_id_that_belongs_to_it(client: Client) -> None:
    result, _ = await client.say("hi", key="k3")
    await client.say("/version")  # in order: by now the answer before it is recorded as sent
    life = await client.ask("trace", id=result["turn"])
    letter = life["letters"][-1]
    for name in (result["event"], letter["id"], letter["message_id"], "local/local/k3"):
        assert await client.ask("trace", id=name) == life
    with pytest.raises(GatewayError, match="no message, turn or delivery"):
        await client.ask("trace", id="ev_nobody")


async def test_a_letter_sent_twice_with_one_key_is_one_letter(client: Client) -> None:
    first = await client.ask("send", target="local:cli", text="hello", key="once")
    again = await client.ask("send", target="local:cli", text="hello", key="once")
    assert [letter["id"] for letter in first["letters"]] == [letter["id"] for letter in again["letters"]]
    _, events = await client.say("/version")
    assert kinds(events, "reply")[0] == "hello"


async def test_a_dead_letter_is_listed_and_offered_again(client: Client) -> None:
    sent = await client.ask("send", target="local:cli", text="late", wait_seconds=5)
    letter_id = sent["letters"][0]["id"]
    now = client.gateway.clock.now()
    await client.gateway.db.write(outbox_sending.record_rejected, letter_id, reason="too long", now=now)
    (dead,) = await client.ask("outbox.dead")
    assert (dead["id"], dead["reason"], dead["text"]) == (letter_id, "too long", "late")
    async with client.gateway.hub.listen("cli") as heard:
        assert (await client.ask("outbox.retry", id=letter_id))["id"] == letter_id
        async with asyncio.timeout(20):
            assert (await heard.get()).text == "late"
    with pytest.raises(GatewayError, match="no undelivered message"):
        await client.ask("outbox.retry", id="ob_nobody")


async def test_a_session_with_a_running_turn_is_not_deleted(client: Client, model: FakeModel) -> None:
    model.hold()
    saying = asyncio.create_task(client.say("hi"))
    await model.is_holding()
    (session,) = await client.ask("sessions.list")
    with pytest.raises(GatewayError, match="A turn is running"):
        await client.ask("sessions.delete", id=session["id"])
    model.release()
    await saying
    assert (await client.ask("sessions.delete", id=session["id"]))["id"] == session["id"]


async def test_a_message_the_built_in_model_needs_no_weights_for_does_not_wait_for_them(tmp_path: Path) -> None:
    async with opened(tmp_path, {}) as client:
        assert await client.ask("model.ready", text="你好") == {"label": "built-in"}


@pytest.mark.parametrize("args", [{}, {"chat": "cli"}, {"chat": "cli", "text": "  "}, {"chat": 3, "text": "hi"}])
async def test_a_request_that_lacks_something_is_refused_in_words(client: Client, args: dict[str, Any]) -> None:
    with pytest.raises(GatewayError, match="say needs a"):
        await client.hear("say", **args)


async def test_tools_are_told_with_their_call_their_output_and_their_end(client: Client, model: FakeModel) -> None:
    model.calls_tools([("terminal", {"command": "echo working; sleep 1.5"})])
    model.says("Done.")
    result, events = await client.say("do it")
    told = {event["kind"]: event for event in events}
    assert json.loads(told["tool"]["arguments"]) == {"command": "echo working; sleep 1.5"}
    assert told["tool_output"]["text"] == "working"
    assert (told["tool_end"]["call"], told["tool_end"]["outcome"]) == (told["tool"]["call"], "ok")
    assert result["tokens"] == {"prompt": 24, "completion": 14, "cached": 0}
    assert result["model"]


async def test_an_approval_is_told_with_its_command_its_place_and_its_reach(client: Client, model: FakeModel) -> None:
    model.calls_tools([("terminal", {"command": "rm -rf build"})])
    _, events = await client.say("do it")
    (asked,) = [event for event in events if event["kind"] == "approval"]
    assert (asked["tool"], json.loads(asked["arguments"])) == ("terminal", {"command": "rm -rf build"})
    assert asked["where"]
    assert (asked["has_scopes"], asked["touches_host"]) == (True, True)


async def test_a_turn_is_told_as_the_own_one_only_to_the_message_it_answers(client: Client, model: FakeModel) -> None:
    await client.say("/busy queue")
    model.hold(silently=True)
    first = asyncio.create_task(client.say("one", key="first"))
    await model.is_holding()
    second = asyncio.create_task(client.say("two", key="second"))
    async with asyncio.timeout(10):
        while not await client.gateway.db.read(inbox.has_queued, "agent:main:local:dm:cli"):  # noqa: ASYNC110 - a row
            await asyncio.sleep(0.01)
    model.release()
    (_, of_first), (_, of_second) = await first, await second
    own_first = [event["id"] for event in of_first if event["kind"] == "turn" and event["is_mine"]]
    own_second = [event["id"] for event in of_second if event["kind"] == "turn" and event["is_mine"]]
    assert len(own_first) == len(own_second) == 1
    assert own_first != own_second


async def test_the_history_of_a_chat_leaves_out_what_was_taken_back(client: Client) -> None:
    await client.say("one")
    await client.say("two")
    await client.say("/undo")
    told = await client.ask("chat.history", chat="cli", limit=10)
    assert [message["text"] for message in told["messages"]] == ["one", "echo: one"]
    assert told["used"] > 0
    assert told["window"] > 0


async def test_the_owners_conversations_are_listed_with_their_last_words(client: Client) -> None:
    await client.say("What do I buy?")
    await client.say("/new")
    await client.say("When does the train leave?")
    found = await client.ask("chat.sessions")
    assert [session["title"] for session in found] == ["When does the train leave?", "What do I buy?"]
    assert found[1]["preview"][-1]["text"] == "echo: What do I buy?"
