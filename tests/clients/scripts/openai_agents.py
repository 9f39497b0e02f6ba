"""The OpenAI Agents SDK on responses and on chat completions, as its own examples write it."""

from __future__ import annotations

from typing import Any

from agents import (
    Agent,
    HostedMCPTool,
    Model,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=BASE_URL, api_key=KEY, timeout=60)
responses = OpenAIResponsesModel(model=MODEL, openai_client=client)
completions = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
weather = function_tool(get_weather)


def agent(*tools: Any, model: Model = responses, **settings: Any) -> Agent[Any]:
    return Agent(name="Assistant", model=model, tools=list(tools), model_settings=ModelSettings(**settings))


async def ask(text: str, *tools: Any, model: Model = responses, **settings: Any) -> str:
    return str((await Runner.run(agent(*tools, model=model, **settings), text)).final_output)


async def stream(text: str, model: Model = responses, *tools: Any) -> str:
    running = Runner.run_streamed(agent(*tools, model=model), text)
    words = []
    async for event in running.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            words.append(event.data.delta)
    return "".join(words)


async def approval(text: str) -> str:
    """With the gateway declared as an MCP server, the SDK calls a function of the program."""
    asked = []

    def decide(request: Any) -> Any:
        asked.append(request.data.name)
        return {"approve": True}

    config: Any = {"type": "mcp", "server_label": "hermes", "server_url": BASE_URL, "require_approval": "always"}
    done = await ask(text, HostedMCPTool(tool_config=config, on_approval_request=decide))
    return done if asked == ["danger"] else f"{asked} {done}"


async def approval_typed(text: str, model: Model = responses) -> str:
    """Without that, the question is the answer, and the next message answers it."""
    first = await Runner.run(agent(model=model), text)
    answer: Any = [*first.to_input_list(), {"role": "user", "content": f"/approve {code_in(str(first.final_output))}"}]
    return str((await Runner.run(agent(model=model), answer)).final_output)


async def stop(text: str, model: Model = responses) -> int:
    running = Runner.run_streamed(agent(model=model), text)
    seen = 0
    async for _ in running.stream_events():
        seen += 1
        if seen == STOP_AFTER:
            running.cancel()
            break
    return seen


main(
    {
        "chat": ask,
        "stream": stream,
        "own_tools": lambda text: ask(text, weather),
        "gateway_tool": lambda text: ask(text, weather),
        "both": lambda text: ask(text, weather),
        "both unstored": lambda text: ask(text, weather, store=False),
        "approval": approval,
        "approval typed": approval_typed,
        "retry": lambda text: ask(text, weather),
        "stop stored": stop,
        "both streamed": lambda text: stream(text, responses, weather),
        "retry streamed": stream,
        "chat completions": lambda text: ask(text, model=completions),
        "stream completions": lambda text: stream(text, completions),
        "own_tools completions": lambda text: ask(text, weather, model=completions),
        "gateway_tool completions": lambda text: ask(text, weather, model=completions),
        "both completions": lambda text: stream(text, completions, weather),
        "approval completions": lambda text: approval_typed(text, completions),
        "retry completions": lambda text: ask(text, weather, model=completions),
        "stop completions": lambda text: stop(text, completions),
    }
)
