"""Open WebUI as its pages use it: chats that its server keeps, tools that it runs, tasks behind each message."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hermes.store.db import Tx
from tests.clients.cases import VERBS, Client, Row
from tests.clients.environment import python_with

PACKAGE = "open-webui==0.12.4"
START_SECONDS = 300.0
ANSWER_SECONDS = 60.0
TASKS = {"title_generation": True, "tags_generation": True, "follow_up_generation": True}
TOOL = '''
class Tools:
    def get_weather(self, town: str) -> str:
        """
        Tell the weather of a town.
        :param town: the town
        """
        with open("{log}", "a") as file:
            file.write(town + "\\n")
        return "rain, 9 degrees"
'''


@dataclass(frozen=True, slots=True)
class Page:
    """One person in one browser."""

    http: aiohttp.ClientSession

    async def post(self, path: str, body: Any) -> Any:
        async with self.http.post(path, json=body) as answer:
            found = await answer.json()
            assert answer.status == 200, found
            return found

    async def ask(self, text: str, *, chat: dict[str, Any] | None = None, again: bool = False) -> dict[str, Any]:
        """Send a message, in a new chat or in this one. ``again`` regenerates the last answer."""
        said: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "parentId": None,
            "childrenIds": [],
            "role": "user",
            "content": text,
        }
        messages = list(chat["messages"]) if chat else []
        if not again:
            messages.append({"role": "user", "content": text})
        body: dict[str, Any] = {
            "model": "hermes",
            "stream": True,
            "messages": messages,
            "id": str(uuid.uuid4()),
            "parent_id": chat["last"] if chat else None,
            "session_id": "page",
            "user_message": said,
            "tool_ids": ["weather"],
            "params": {"function_calling": "native"},
            "features": {},
            "background_tasks": TASKS,
        }
        if chat:
            body["chat_id"] = chat["id"]
        begun = await self.post("/api/chat/completions", body)
        return {"id": begun["chat_id"], "last": body["id"], "messages": messages, "task": begun}

    async def answer_of(self, chat: dict[str, Any]) -> str:
        """Wait until the answer is whole, and return its text or its error."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                async with self.http.get(f"/api/v1/chats/{chat['id']}") as answer:
                    kept = await answer.json()
                message = kept["chat"]["history"]["messages"].get(chat["last"], {})
                if message.get("done") or message.get("error"):
                    break
                await asyncio.sleep(0.2)
        chat["messages"].append({"role": "assistant", "content": message["content"]})
        if error := message.get("error"):
            return str(error)
        return str(message["content"]).rpartition("</details>")[2].strip()

    async def says(self, text: str) -> str:
        return await self.answer_of(await self.ask(text))

    async def choose_responses(self, client: Client) -> None:
        """Let the connection use `/v1/responses`, as its settings offer under *API Type*."""
        connection = {
            "ENABLE_OPENAI_API": True,
            "OPENAI_API_BASE_URLS": [client.environ["OPENAI_BASE_URL"]],
            "OPENAI_API_KEYS": [client.key],
            "OPENAI_API_CONFIGS": {"0": {"enable": True, "api_type": "responses"}},
        }
        await self.post("/openai/config/update", connection)


@asynccontextmanager
async def open_webui(client: Client, python: Path, folder: Path) -> AsyncIterator[Page]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "webui"
    data.mkdir()
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "DATA_DIR": str(data),
        "FROM_INIT_PY": "true",  # as `open-webui serve` sets it
        "WEBUI_SECRET_KEY": "secret",
        "WEBUI_AUTH": "False",
        "ENABLE_OLLAMA_API": "False",
        "OPENAI_API_BASE_URL": client.environ["OPENAI_BASE_URL"],
        "OPENAI_API_KEY": client.key,
        "RAG_EMBEDDING_ENGINE": "openai",  # else a model is fetched at the start
        "HF_HUB_OFFLINE": "1",
        "OFFLINE_MODE": "True",
        "ENABLE_VERSION_UPDATE_CHECK": "False",
        "NO_PROXY": "127.0.0.1",
    }
    with (folder / "webui.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(str(python), "-m", "uvicorn", "open_webui.main:app", "--host", "127.0.0.1", "--port", str(port)),
            env=environ,
            cwd=data,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
                await _healthy(http, process, folder / "webui.log")
                page = Page(http)
                person = await page.post("/api/v1/auths/signin", {"email": "", "password": ""})
                http.headers["Authorization"] = f"Bearer {person['token']}"
                content = TOOL.format(log=folder / "own.txt")
                tool = {"id": "weather", "name": "Weather", "content": content, "meta": {"description": "Weather."}}
                await page.post("/api/v1/tools/create", tool)
                async with http.get("/api/models") as models:
                    assert "hermes" in {model["id"] for model in (await models.json())["data"]}
                yield page
        finally:
            with contextlib.suppress(ProcessLookupError):  # it ended by itself, and the test says so
                process.terminate()
            await process.wait()


async def _healthy(http: aiohttp.ClientSession, process: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            assert process.returncode is None, await asyncio.to_thread(log.read_text)
            try:
                async with http.get("/health") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.5)


def _sessions(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM sessions"))


async def converse(page: Page, client: Client, variant: str) -> dict[str, object]:
    """Go through the cases but the stop, and return what was said under the names of the scenarios."""

    def text(case: str) -> str:
        return f"{VERBS[case]} {variant}".strip()

    said: dict[str, object] = {}
    before = await client.api.gateway.db.read(_sessions)
    said["chat"] = await page.says(text("chat"))
    await asyncio.sleep(2)  # its tasks come behind the answer
    assert await client.api.gateway.db.read(_sessions) == before + 1  # and are no messages
    for case in ("stream", "own_tools", "gateway_tool", "both"):
        said[case] = await page.says(text(case))
    asked = await page.ask(text("approval"))
    question = await page.answer_of(asked)
    code = question.partition("/approve ")[2].split()[0]
    said["approval"] = await page.answer_of(await page.ask(f"/approve {code}", chat=asked))
    failed = await page.ask(text("retry"))
    await page.answer_of(failed)
    failed["messages"].pop()
    said["retry"] = await page.answer_of(await page.ask(text("retry"), chat=failed, again=True))
    return {f"{case} {variant}".strip(): words for case, words in said.items()}


async def stop(page: Page, client: Client, text: str) -> int:
    """Press the button while the model writes. Return 3, as the scripts of clients say."""
    left = await page.ask(text)
    async with asyncio.timeout(ANSWER_SECONDS):
        while not client.model.open_now:  # noqa: ASYNC110 - the fake counts, and tells nobody
            await asyncio.sleep(0.05)
    await page.post(f"/api/tasks/chat/{left['id']}/stop", {})
    return 3


@pytest.mark.timeout(3000)
async def test_open_webui(client: Client, tmp_path: Path, record: Callable[[str, object], None]) -> None:
    python = await python_with(PACKAGE, is_long=True)
    async with open_webui(client, python, tmp_path) as page:
        said = await converse(page, client, "")
        said["stop"] = await stop(page, client, VERBS["stop"])
        await page.choose_responses(client)
        said |= await converse(page, client, "responses")
        said["stop stored"] = await stop(page, client, f"{VERBS['stop']} stored")
        row = Row("Open WebUI")
        ran = (tmp_path / "own.txt").read_text().splitlines()
        await row.check(client, {"said": said, "weather_calls": len(ran)})
    row.assert_passed(record)
