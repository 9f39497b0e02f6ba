"""Python clients as people use them, unpatched, with their own retries: a side effect happens exactly once."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tests.clients.cases import Client, Row
from tests.clients.environment import python_with

Record = Callable[[str, object], None]
LONG_FORM = {
    "pydantic-ai": ("pydantic-ai-slim[openai]==2.66.0", "pydantic_agents.py"),
    "langchain-openai": ("langchain-openai==1.7.3", "langchain_chat.py"),
    "litellm": ("litellm==1.83.0", "litellm_calls.py"),
    "llm": ("llm==0.36", "llm_prompts.py"),
}


async def test_openai(client: Client, record: Record) -> None:
    row = Row("openai (Python)")
    await row.check(client, await client.run(sys.executable, "openai_sdk.py"))
    row.assert_passed(record)


@pytest.mark.timeout(900)
async def test_openai_agents(client: Client, record: Record) -> None:
    python = await python_with("openai-agents==0.24.0", is_long=False)
    row = Row("openai-agents")
    await row.check(client, await client.run(python, "openai_agents.py"))
    row.assert_passed(record)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LONG_FORM)
async def test_long_form(client: Client, record: Record, name: str) -> None:
    package, script = LONG_FORM[name]
    python = await python_with(package, is_long=True)
    row = Row(name)
    await row.check(client, await client.run(python, script))
    row.assert_passed(record)
