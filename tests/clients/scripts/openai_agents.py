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


async def chat() -> str:
    return str((await Runner.run(agent(), "hello")).final_output)


async def stream() -> str:
    running = Runner.run_streamed(agent(), "deploy agents")
    words = []
    async for event in running.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            words.append(event.data.delta)
    return "".join(words)


async def own_tools() -> str:
    return str((await Runner.run(agent(weather), "weather")).final_output)


async def gateway_tool() -> str:
    return str((await Runner.run(agent(weather), "deploy agents too")).final_output)


async def both() -> str:
    return str((await Runner.run(agent(weather), "both agents")).final_output)


async def both_unstored() -> str:
    return str((await Runner.run(agent(weather, store=False), "both unstored")).final_output)


async def approval() -> str:
    """With the gateway declared as an MCP server: the SDK asks a function of ours."""
    asked = []

    def decide(request: Any) -> Any:
        asked.append(request.data.name)
        return {"approve": True}

    config: Any = {"type": "mcp", "server_label": "hermes", "server_url": BASE_URL, "require_approval": "always"}
    hermes = HostedMCPTool(tool_config=config, on_approval_request=decide)
    done = await Runner.run(agent(hermes), "danger agents")
    return f"{asked} {done.final_output}"


async def approval_typed() -> str:
    """Without: the question is the answer, and is answered in the next message."""
    first = await Runner.run(agent(), "danger typed")
    answer: Any = [*first.to_input_list(), {"role": "user", "content": f"/approve {code_in(str(first.final_output))}"}]
    return str((await Runner.run(agent(), answer)).final_output)


async def retry() -> str:
    return str((await Runner.run(agent(weather), "broken agents")).final_output)


async def stop() -> int:
    running = Runner.run_streamed(agent(), "slow agents")
    seen = 0
    async for _ in running.stream_events():
        seen += 1
        if seen == STOP_AFTER:
            running.cancel()
            break
    return seen


main(
    chat=chat,
    stream=stream,
    own_tools=own_tools,
    gateway_tool=gateway_tool,
    both=both,
    both_unstored=both_unstored,
    approval=approval,
    approval_typed=approval_typed,
    retry=retry,
    stop=stop,
)
