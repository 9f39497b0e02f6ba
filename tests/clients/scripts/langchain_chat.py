"""langchain-openai, on both APIs."""

from __future__ import annotations

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


async def stream() -> str:
    return "".join([piece.text async for piece in model(use_responses_api=True).astream("deploy stream")])


async def loop(text: str, **more: Any) -> str:
    bound = model(**more).bind_tools([weather])
    talk: list[Any] = [HumanMessage(text)]
    for _ in range(4):
        message = await bound.ainvoke(talk)
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


async def stop() -> int:
    seen = 0
    async for _ in model().astream("slow chat"):
        seen += 1
        if seen == STOP_AFTER:
            break
    return seen


main(
    chat=lambda: ask("hello"),
    response=lambda: ask("hello", use_responses_api=True),
    stream=stream,
    own_tools=lambda: loop("weather", use_responses_api=True),
    gateway_tool=lambda: ask("deploy response", use_responses_api=True),
    both=lambda: loop("both response", use_responses_api=True),
    both_chat=lambda: loop("both chat"),
    approval=lambda: approval("danger response", use_responses_api=True),
    approval_chat=lambda: approval("danger chat"),
    retry=lambda: ask("broken chat"),
    retry_response=lambda: ask("broken response", use_responses_api=True),
    stop=stop,
)
