"""Requests through the door: the same inbox, lanes and turns as a chat, and a result for whoever asked."""

from __future__ import annotations

import asyncio

from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role, ToolSpec
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions
from hermes.services.requests.requests import Requests, RequestState
from tests.fakes.model import FakeModel, calls_tools
from tests.integration.conftest import Start

WEATHER = ToolSpec("weather", "The weather somewhere", {"type": "object", "properties": {"city": {"type": "string"}}})


def request(*texts: str, session: str = "one", kind: RequestKind = RequestKind.CHAT, **options: object) -> AgentRequest:
    messages = tuple(ChatMessage(Role.USER, text) for text in texts)
    key = SessionKey("api", ChatKind.DM, session)
    return AgentRequest(kind, key, "key:default", messages, TurnOptions(**options))  # type: ignore[arg-type]


async def until(requests: Requests, event_id: str, status: str) -> RequestState:
    for _ in range(500):
        state = await requests.state_of(event_id)
        if state is not None and state.status == status:
            return state
        await asyncio.sleep(0.01)
    raise AssertionError(f"{event_id} never became {status}: {state}")


async def test_a_request_is_answered_to_whoever_asked_and_sent_nowhere_else(start: Start) -> None:
    async with start() as gateway, asyncio.timeout(10):
        async with gateway.requests.ask(request("hello")) as handle:
            result = await handle.result()
        assert (result.state, result.text, result.finish_reason) == ("done", "echo: hello", "stop")
        assert (await gateway.status())["waiting"] == {"messages": 0, "approvals": 0, "answers": 0}


async def test_two_requests_of_one_session_neither_interrupt_nor_join(start: Start, model: FakeModel) -> None:
    model.hold()
    async with start() as gateway, asyncio.timeout(10):
        requests = gateway.requests
        async with requests.ask(request("first")) as one, requests.ask(request("second")) as two:
            await model.is_holding()
            model.release()
            assert (await one.result()).text == "echo: first"
            assert (await two.result()).text == "echo: second"


async def test_a_call_of_the_clients_own_tool_is_handed_back(start: Start, model: FakeModel) -> None:
    model.calls_tools([("weather", {"city": "Oslo"})])
    async with start() as gateway, asyncio.timeout(10):
        requests = gateway.requests
        async with requests.ask(request("how is it in Oslo?", tools=(WEATHER,))) as handle:
            result = await handle.result()
        assert (result.state, result.finish_reason) == ("done", "tool_calls")
        assert [(call.name, call.arguments) for call in result.tool_calls] == [("weather", '{"city":"Oslo"}')]
        back = ChatMessage(Role.TOOL, "rain", tool_call_id=result.tool_calls[0].id)
        again = AgentRequest(RequestKind.CHAT, SessionKey("api", ChatKind.DM, "one"), "key:default", (back,))
        async with requests.ask(again) as handle:
            assert (await handle.result()).state == "done"
    assert [message["role"] for message in model.last_request["messages"]] == ["system", "user", "assistant", "tool"]


async def test_in_a_mixed_batch_ours_run_first_and_theirs_are_handed_back(start: Start, model: FakeModel) -> None:
    model.script([calls_tools(("search_files", {"text": "x"}), ("weather", {"city": "Oslo"}))])
    async with start() as gateway, asyncio.timeout(10):
        async with gateway.requests.ask(request("both", tools=(WEATHER,))) as handle:
            result = await handle.result()
        assert [call.name for call in result.tool_calls] == ["weather"]
        assert len(model.requests) == 1


async def test_a_call_nobody_answered_does_not_spoil_the_session(start: Start, model: FakeModel) -> None:
    model.calls_tools([("weather", {"city": "Oslo"})])
    async with start() as gateway, asyncio.timeout(10):
        requests = gateway.requests
        async with requests.ask(request("how is it in Oslo?", tools=(WEATHER,))) as handle:
            await handle.result()
        async with requests.ask(request("never mind")) as handle:
            assert (await handle.result()).text == "echo: never mind"


async def test_a_run_goes_on_after_a_restart_and_a_chat_whose_client_is_gone_does_not(
    start: Start, model: FakeModel
) -> None:
    model.hold(silently=True)
    async with start() as gateway, asyncio.timeout(20):
        requests = gateway.requests
        run = await requests.submit(request("long work", session="run", kind=RequestKind.RUN))
        chat = await requests.submit(request("quick question", session="chat"))
        await model.is_holding()
    model.release()
    async with start() as gateway, asyncio.timeout(10):
        requests = gateway.requests
        await until(requests, run, "completed")
        gone = await requests.state_of(chat)
        assert gone is not None
        assert (gone.status, gone.row.reason) == ("cancelled", "client gone")


async def test_stopping_a_request_ends_it_wherever_it_is(start: Start, model: FakeModel) -> None:
    model.hold(silently=True)
    async with start() as gateway, asyncio.timeout(10):
        requests = gateway.requests
        running = await requests.submit(request("one", kind=RequestKind.RUN))
        queued = await requests.submit(request("two", kind=RequestKind.RUN))
        await model.is_holding()
        for event_id in (queued, running):
            await requests.stop(event_id)
            assert (await until(requests, event_id, "cancelled")).row.reason == "stopped"
