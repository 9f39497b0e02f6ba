"""pydantic-ai, on both APIs."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=BASE_URL, api_key=KEY, timeout=60))
chat_model = OpenAIChatModel(MODEL, provider=provider)
responses_model = OpenAIResponsesModel(MODEL, provider=provider)


def agent(model: Any = responses_model) -> Agent[None, str]:
    return Agent(model, tools=[get_weather], retries=0)


async def ask(text: str, model: Any = responses_model) -> str:
    return (await agent(model).run(text)).output


async def ask_chat(text: str) -> str:
    return await ask(text, chat_model)


async def stream(text: str, model: Any = responses_model) -> str:
    async with agent(model).run_stream(text) as running:
        return await running.get_output()


async def approval(text: str, model: Any = responses_model) -> str:
    first = await agent(model).run(text)
    again = await agent(model).run(f"/approve {code_in(first.output)}", message_history=first.all_messages())
    return again.output


async def stop(text: str) -> int:
    seen = 0
    async with agent(chat_model).run_stream(text) as running:
        async for _ in running.stream_text(delta=True):
            seen += 1
            if seen == STOP_AFTER:
                break
    return seen


main(
    {
        "chat": ask_chat,
        "chat responses": ask,
        "stream": lambda text: stream(text, chat_model),
        "stream responses": stream,
        "own_tools": ask_chat,
        "own_tools responses": ask,
        "gateway_tool": ask_chat,
        "gateway_tool responses": ask,
        "both": ask_chat,
        "both responses": ask,
        "approval": lambda text: approval(text, chat_model),
        "approval responses": approval,
        "retry": ask_chat,
        "retry responses": ask,
        "stop": stop,
        "both streamed": lambda text: stream(text, chat_model),
        "both responses streamed": stream,
        "retry streamed": stream,
    }
)
