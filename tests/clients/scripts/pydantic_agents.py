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


async def stream() -> str:
    async with agent().run_stream("deploy stream") as running:
        return await running.get_output()


async def approval() -> str:
    first = await agent().run("danger model")
    again = await agent().run(f"/approve {code_in(first.output)}", message_history=first.all_messages())
    return again.output


async def stop() -> int:
    seen = 0
    async with agent(chat_model).run_stream("slow model") as running:
        async for _ in running.stream_text(delta=True):
            seen += 1
            if seen == STOP_AFTER:
                break
    return seen


main(
    chat=lambda: ask("hello"),
    chat_api=lambda: ask("hello", chat_model),
    stream=stream,
    own_tools=lambda: ask("weather"),
    gateway_tool=lambda: ask("deploy response"),
    both=lambda: ask("both response"),
    both_chat=lambda: ask("both chat", chat_model),
    approval=approval,
    retry=lambda: ask("broken response"),
    retry_chat=lambda: ask("broken chat", chat_model),
    stop=stop,
)
