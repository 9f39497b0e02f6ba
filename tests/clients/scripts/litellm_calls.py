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


async def stream() -> str:
    pieces = await call([{"role": "user", "content": "deploy stream"}], stream=True)
    return "".join([piece.choices[0].delta.content or "" async for piece in pieces])


async def loop(text: str) -> str:
    messages: list[Any] = [{"role": "user", "content": text}]
    for _ in range(4):
        message = (await call(messages, tools=[TOOL])).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message.model_dump())
        for one in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": one.id, "content": get_weather(one.function.arguments)})
    return "no end"


async def approval() -> str:
    question = await ask("danger chat")
    talk = [("user", "danger chat"), ("assistant", question), ("user", f"/approve {code_in(question)}")]
    messages = [{"role": role, "content": text} for role, text in talk]
    return str((await call(messages)).choices[0].message.content)


async def response() -> str:
    answer = await litellm.aresponses(
        model=f"openai/{MODEL}", api_base=BASE_URL, api_key=KEY, input="deploy response", timeout=60
    )
    return str(answer.output_text)


async def stop() -> int:
    seen = 0
    pieces = await call([{"role": "user", "content": "slow chat"}], stream=True)
    async for _ in pieces:
        seen += 1
        if seen == STOP_AFTER:
            await pieces.aclose()
            break
    return seen


main(
    chat=lambda: ask("hello"),
    stream=stream,
    own_tools=lambda: loop("weather"),
    gateway_tool=lambda: ask("deploy chat"),
    both=lambda: loop("both chat"),
    approval=approval,
    retry=lambda: ask("broken chat", num_retries=2),
    response=response,
    stop=stop,
)
