"""langchain-openai, on both APIs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

weather = tool(get_weather)


def model(**more: Any) -> Any:
    return ChatOpenAI(model=MODEL, base_url=BASE_URL, api_key=KEY, timeout=60, **more)


async def ask(text: str, **more: Any) -> str:
    return (await model(**more).ainvoke(text)).text


async def stream(text: str, **more: Any) -> str:
    return "".join([piece.text async for piece in model(**more).astream(text)])


async def gathered(pieces: AsyncIterator[Any]) -> Any:
    """Add the pieces of a stream up to one message, as its documentation does."""
    whole = None
    async for piece in pieces:
        whole = piece if whole is None else whole + piece
    return whole


async def loop(text: str, streams: bool = False, **more: Any) -> str:
    bound = model(**more).bind_tools([weather])
    talk: list[Any] = [HumanMessage(text)]
    for _ in range(4):
        message = await gathered(bound.astream(talk)) if streams else await bound.ainvoke(talk)
        talk.append(message)
        if not message.tool_calls:
            return str(message.text)
        for call in message.tool_calls:
            talk.append(ToolMessage(get_weather(**call["args"]), tool_call_id=call["id"]))
    return "no end"


async def approval(text: str, **more: Any) -> str:
    asking = model(**more)
    first = await asking.ainvoke(text)
    again = await asking.ainvoke([HumanMessage(text), first, HumanMessage(f"/approve {code_in(first.text)}")])
    return str(again.text)


async def stop(text: str) -> int:
    seen = 0
    async for _ in model().astream(text):
        seen += 1
        if seen == STOP_AFTER:
            break
    return seen


def responses(scenario: Any) -> Any:
    return partial(scenario, use_responses_api=True)


main(
    {
        "chat": ask,
        "chat responses": responses(ask),
        "stream": stream,
        "stream responses": responses(stream),
        "own_tools": loop,
        "own_tools responses": responses(loop),
        "gateway_tool": ask,
        "gateway_tool responses": responses(ask),
        "both": loop,
        "both responses": responses(loop),
        "approval": approval,
        "approval responses": responses(approval),
        "retry": ask,
        "retry responses": responses(ask),
        "stop": stop,
        "both streamed": partial(loop, streams=True),
        "both responses streamed": responses(partial(loop, streams=True)),
        "retry streamed": stream,
    }
)
