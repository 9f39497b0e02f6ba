"""The official `openai` package, with its ordinary retries."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

client = AsyncOpenAI(base_url=BASE_URL, api_key=KEY, timeout=60)
SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
FLAT: dict[str, Any] = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}


async def ask(text: str, **more: Any) -> Any:
    return await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}], **more)


async def chat() -> str:
    return (await ask("hello")).choices[0].message.content


async def stream() -> str:
    return "".join([chunk.choices[0].delta.content or "" async for chunk in await ask("hello", stream=True)])


async def loop(text: str) -> str:
    messages: list[Any] = [{"role": "user", "content": text}]
    for _ in range(4):
        answer = await client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
        message = answer.choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message)
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": get_weather(call.function.arguments)})
    return "no end"


async def own_tools() -> str:
    return await loop("weather")


async def gateway_tool() -> str:
    return (await ask("deploy chat")).choices[0].message.content


async def both() -> str:
    return await loop("both chat")


async def approval() -> str:
    question = (await ask("danger chat")).choices[0].message.content
    talk: list[Any] = [
        {"role": "user", "content": "danger chat"},
        {"role": "assistant", "content": question},
        {"role": "user", "content": f"/approve {code_in(question)}"},
    ]
    answer = await client.chat.completions.create(model=MODEL, messages=talk)
    return str(answer.choices[0].message.content)


async def retry() -> str:
    return (await ask("broken chat")).choices[0].message.content


async def stop() -> int:
    seen = 0
    async with await ask("slow chat", stream=True) as chunks:
        async for _ in chunks:
            seen += 1
            if seen == STOP_AFTER:
                break
    return seen


# /v1/responses


async def response() -> str:
    return (await client.responses.create(model=MODEL, input="hello")).output_text


async def response_stream() -> str:
    async with client.responses.stream(model=MODEL, input="deploy stream") as events:
        async for _ in events:
            pass
        return (await events.get_final_response()).output_text


async def response_tools() -> str:
    first = await client.responses.create(model=MODEL, input="both response", tools=[FLAT])
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": item.call_id, "output": get_weather(item.arguments)}
        for item in first.output
        if item.type == "function_call"
    ]
    more = await client.responses.create(model=MODEL, input=outputs, previous_response_id=first.id, tools=[FLAT])
    return f"{[item.type for item in first.output]} {more.output_text}"


async def response_approval() -> str:
    first = await client.responses.create(model=MODEL, input="danger response")
    [asked] = [item for item in first.output if item.type == "mcp_approval_request"]
    answer: Any = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": True}
    more = await client.responses.create(model=MODEL, input=[answer], previous_response_id=first.id)
    return more.output_text


async def response_retry() -> str:
    return (await client.responses.create(model=MODEL, input="broken response")).output_text


main(
    chat=chat,
    stream=stream,
    own_tools=own_tools,
    gateway_tool=gateway_tool,
    both=both,
    approval=approval,
    retry=retry,
    stop=stop,
    response=response,
    response_stream=response_stream,
    response_tools=response_tools,
    response_approval=response_approval,
    response_retry=response_retry,
)
