"""LiteLLM, with its own retries around those of the SDK."""

from __future__ import annotations

from typing import Any

import litellm
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

litellm.telemetry = False
SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}


async def call(messages: list[Any], **more: Any) -> Any:
    return await litellm.acompletion(
        model=f"openai/{MODEL}", api_base=BASE_URL, api_key=KEY, messages=messages, timeout=60, **more
    )


async def ask(text: str, **more: Any) -> str:
    return str((await call([{"role": "user", "content": text}], **more)).choices[0].message.content)


async def stream(text: str) -> str:
    pieces = await call([{"role": "user", "content": text}], stream=True)
    return "".join([piece.choices[0].delta.content or "" async for piece in pieces])


async def loop(text: str, streams: bool = False) -> str:
    messages: list[Any] = [{"role": "user", "content": text}]
    for _ in range(4):
        answer = await call(messages, tools=[TOOL], stream=streams)
        if streams:
            answer = litellm.stream_chunk_builder([piece async for piece in answer], messages=messages)
        message = answer.choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message.model_dump())
        for one in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": one.id, "content": get_weather(one.function.arguments)})
    return "no end"


async def approval(text: str) -> str:
    question = await ask(text)
    talk = [("user", text), ("assistant", question), ("user", f"/approve {code_in(question)}")]
    messages = [{"role": role, "content": words} for role, words in talk]
    return str((await call(messages)).choices[0].message.content)


async def response(text: str) -> str:
    answer = await litellm.aresponses(model=f"openai/{MODEL}", api_base=BASE_URL, api_key=KEY, input=text, timeout=60)
    return str(answer.output_text)


async def stop(text: str) -> int:
    seen = 0
    pieces = await call([{"role": "user", "content": text}], stream=True)
    async for _ in pieces:
        seen += 1
        if seen == STOP_AFTER:
            await pieces.aclose()
            break
    return seen


main(
    {
        "chat": ask,
        "chat responses": response,
        "stream": stream,
        "own_tools": loop,
        "gateway_tool": ask,
        "gateway_tool responses": response,
        "both": loop,
        "approval": approval,
        "retry": lambda text: ask(text, num_retries=2),
        "stop": stop,
        "both streamed": lambda text: loop(text, streams=True),
        "retry streamed": stream,
    }
)
