"""Python clients as people use them, unpatched, with their own retries: a side effect happens exactly once."""

from __future__ import annotations

import sys

import pytest

from tests.clients.conftest import Client
from tests.clients.environment import python_with

OUT, RAIN, WROTE = "It is out.", "It rains.", "Wrote it."


async def test_openai(client: Client) -> None:
    said = await client.run(sys.executable, "openai_sdk.py")
    assert (said["chat"], said["stream"], said["response"]) == ("echo: hello",) * 3
    assert (said["own_tools"], said["gateway_tool"], said["both"]) == (RAIN, OUT, RAIN)
    assert (said["approval"], said["response_approval"]) == (WROTE, WROTE)
    assert said["response_stream"] == OUT
    assert said["response_tools"] == f"['mcp_call', 'function_call'] {RAIN}"
    assert said["retry"].startswith("InternalServerError")
    assert said["response_retry"].startswith("InternalServerError")
    assert said["weather_calls"] == 3
    assert await client.turn_of("slow chat") == "stopped"
    assert client.effects() == sorted(
        [
            "fine chat",
            "both chat",
            "broken chat",
            "danger chat",
            "fine stream",
            "both response",
            "danger response",
            "broken response",
        ]
    )


@pytest.mark.timeout(900)
async def test_openai_agents(client: Client) -> None:
    python = await python_with("openai-agents==0.24.0", is_long=False)
    said = await client.run(python, "openai_agents.py")
    assert (said["chat"], said["stream"]) == ("echo: hello", OUT)
    assert (said["own_tools"], said["gateway_tool"]) == (RAIN, OUT)
    assert (said["both"], said["both_unstored"]) == (RAIN, RAIN)
    assert (said["approval"], said["approval_typed"]) == (f"['danger'] {WROTE}", WROTE)
    assert "502" in said["retry"]
    assert said["weather_calls"] == 3
    assert await client.turn_of("slow agents") == "done"  # a stored response goes on
    assert client.effects() == sorted(
        [
            "fine agents",
            "fine agents too",
            "both agents",
            "both unstored",
            "danger agents",
            "danger typed",
            "broken agents",
        ]
    )


@pytest.mark.timeout(900)
async def test_pydantic_ai(client: Client) -> None:
    python = await python_with("pydantic-ai-slim[openai]==2.66.0", is_long=True)
    said = await client.run(python, "pydantic_agents.py")
    assert (said["chat"], said["chat_api"], said["stream"]) == ("echo: hello", "echo: hello", OUT)
    assert (said["own_tools"], said["gateway_tool"]) == (RAIN, OUT)
    assert (said["both"], said["both_chat"], said["approval"]) == (RAIN, RAIN, WROTE)
    assert "502" in said["retry"]
    assert "502" in said["retry_chat"]
    assert said["weather_calls"] == 3
    assert await client.turn_of("slow model") == "stopped"
    assert client.effects() == sorted(
        [
            "fine stream",
            "fine response",
            "both response",
            "both chat",
            "danger model",
            "broken response",
            "broken chat",
        ]
    )


@pytest.mark.timeout(900)
async def test_langchain_openai(client: Client) -> None:
    python = await python_with("langchain-openai==1.7.3", is_long=True)
    said = await client.run(python, "langchain_chat.py")
    assert (said["chat"], said["response"], said["stream"]) == ("echo: hello", "echo: hello", OUT)
    assert (said["own_tools"], said["gateway_tool"]) == (RAIN, OUT)
    assert (said["both"], said["both_chat"]) == (RAIN, RAIN)
    assert (said["approval"], said["approval_chat"]) == (WROTE, WROTE)
    assert "502" in said["retry"]
    assert "502" in said["retry_response"]
    assert said["weather_calls"] == 3
    assert await client.turn_of("slow chat") == "stopped"
    assert client.effects() == sorted(
        [
            "fine stream",
            "fine response",
            "both response",
            "both chat",
            "danger response",
            "danger chat",
            "broken response",
            "broken chat",
        ]
    )


@pytest.mark.timeout(900)
async def test_litellm(client: Client) -> None:
    python = await python_with("litellm==1.83.0", is_long=True)
    said = await client.run(python, "litellm_calls.py")
    assert (said["chat"], said["stream"], said["response"]) == ("echo: hello", OUT, OUT)
    assert (said["own_tools"], said["gateway_tool"], said["both"]) == (RAIN, OUT, RAIN)
    assert said["approval"] == WROTE
    assert "does not accept the key" in said["retry"]
    assert said["weather_calls"] == 2
    assert await client.turn_of("slow chat") == "stopped"
    assert client.effects() == sorted(
        ["fine stream", "fine chat", "fine response", "both chat", "danger chat", "broken chat"]
    )


@pytest.mark.timeout(900)
async def test_llm(client: Client) -> None:
    python = await python_with("llm==0.36", is_long=True)
    said = await client.run(python, "llm_prompts.py")
    assert (said["chat"], said["stream"]) == ("echo: hello", OUT)
    assert (said["own_tools"], said["gateway_tool"], said["both"]) == (RAIN, OUT, RAIN)
    assert said["approval"] == WROTE
    assert "502" in said["retry"]
    assert said["weather_calls"] == 2
    assert await client.turn_of("slow chat") == "stopped"
    assert client.effects() == sorted(["fine stream", "fine chat", "both chat", "danger chat", "broken chat"])
