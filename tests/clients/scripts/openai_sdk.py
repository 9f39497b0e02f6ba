"""The official `openai` package on both APIs, with its ordinary retries."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

client = AsyncOpenAI(base_url=BASE_URL, api_key=KEY, timeout=60)
SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
FLAT: dict[str, Any] = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}


async def create(messages: list[Any], **more: Any) -> Any:
    return await client.chat.completions.create(model=MODEL, messages=messages, **more)


async def ask(text: str, **more: Any) -> Any:
    return await create([{"role": "user", "content": text}], **more)


async def answer(text: str) -> str:
    return str((await ask(text)).choices[0].message.content)


async def stream(text: str) -> str:
    return "".join([chunk.choices[0].delta.content or "" async for chunk in await ask(text, stream=True)])


async def loop(text: str) -> str:
    messages: list[Any] = [{"role": "user", "content": text}]
    for _ in range(4):
        message = (await create(messages, tools=[TOOL])).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message)
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": get_weather(call.function.arguments)})
    return "no end"


async def approval(text: str) -> str:
    question = await answer(text)
    talk = [("user", text), ("assistant", question), ("user", f"/approve {code_in(question)}")]
    again = await create([{"role": role, "content": words} for role, words in talk])
    return str(again.choices[0].message.content)


async def stop(text: str) -> int:
    seen = 0
    async with await ask(text, stream=True) as chunks:
        async for _ in chunks:
            seen += 1
            if seen == STOP_AFTER:
                break
    return seen


# /v1/responses


async def respond(given: Any, **more: Any) -> Any:
    return await client.responses.create(model=MODEL, input=given, **more)


async def respond_text(text: str) -> str:
    return str((await respond(text)).output_text)


async def response_stream(text: str) -> str:
    async with client.responses.stream(model=MODEL, input=text) as events:
        async for _ in events:
            pass
        return (await events.get_final_response()).output_text


async def response_loop(text: str) -> str:
    answer = await respond(text, tools=[FLAT])
    for _ in range(4):
        outputs = [
            {"type": "function_call_output", "call_id": item.call_id, "output": get_weather(item.arguments)}
            for item in answer.output
            if item.type == "function_call"
        ]
        if not outputs:
            return str(answer.output_text)
        answer = await respond(outputs, previous_response_id=answer.id, tools=[FLAT])
    return "no end"


async def response_approval(text: str) -> str:
    first = await respond(text)
    [asked] = [item for item in first.output if item.type == "mcp_approval_request"]
    approved = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": True}
    return str((await respond([approved], previous_response_id=first.id)).output_text)


async def response_stop(text: str) -> int:
    """A stored response goes on without its client, until it is cancelled."""
    seen, response_id = 0, ""
    async with await respond(text, stream=True) as events:
        async for event in events:
            if event.type == "response.created":
                response_id = event.response.id
            seen += event.type == "response.output_text.delta"
            if seen == STOP_AFTER:
                await client.responses.cancel(response_id)
                break
    return seen


main(
    {
        "chat": answer,
        "chat responses": respond_text,
        "stream": stream,
        "stream responses": response_stream,
        "own_tools": loop,
        "own_tools responses": response_loop,
        "gateway_tool": answer,
        "gateway_tool responses": respond_text,
        "both": loop,
        "both responses": response_loop,
        "approval": approval,
        "approval responses": response_approval,
        "retry": answer,
        "retry responses": respond_text,
        "stop": stop,
        "stop responses": response_stop,
    }
)
