"""The OpenAI Agents SDK on /v1/responses, as its own examples write it."""

from __future__ import annotations

from typing import Any

from agents import Agent, HostedMCPTool, ModelSettings, Runner, function_tool, set_tracing_disabled
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

set_tracing_disabled(True)
model = OpenAIResponsesModel(model=MODEL, openai_client=AsyncOpenAI(base_url=BASE_URL, api_key=KEY, timeout=60))
weather = function_tool(get_weather)


def agent(*tools: Any, **settings: Any) -> Agent[Any]:
    return Agent(name="Assistant", model=model, tools=list(tools), model_settings=ModelSettings(**settings))


async def ask(text: str, *tools: Any, **settings: Any) -> str:
    return str((await Runner.run(agent(*tools, **settings), text)).final_output)


async def stream(text: str) -> str:
    running = Runner.run_streamed(agent(), text)
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


async def approval_typed(text: str) -> str:
    """Without that, the question is the answer, and the next message answers it."""
    first = await Runner.run(agent(), text)
    answer: Any = [*first.to_input_list(), {"role": "user", "content": f"/approve {code_in(str(first.final_output))}"}]
    return str((await Runner.run(agent(), answer)).final_output)


async def stop(text: str) -> int:
    running = Runner.run_streamed(agent(), text)
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
    }
)
