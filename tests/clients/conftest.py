"""A gateway with a scripted model, and real client packages that talk to it over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from hermes.store.db import Tx
from tests.clients.environment import SCRIPTS, run
from tests.e2e.api.conftest import sdk, start_sdk
from tests.fakes.model import FakeModel, Refusal, calls_tools, paced
from tests.fakes.tools import DEPLOYED, DONE
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start, start

__all__ = ["sdk", "start", "start_sdk"]  # the gateway in this process, as the integration tests have it

RUN_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Client:
    """Runs the script of a client package against the gateway."""

    api: Served
    model: FakeModel
    folder: Path
    key: str

    async def run(self, python: Path | str, script: str, *scenarios: str) -> dict[str, Any]:
        """What each scenario said."""
        told = {
            "OPENAI_BASE_URL": f"{self.api.url}/v1",
            "OPENAI_API_KEY": self.key,
            "PYTHONPATH": str(SCRIPTS),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        code, words = await run([str(python), str(SCRIPTS / script), *scenarios], told, RUN_SECONDS)
        assert code == 0, words
        print(words)  # shown where the test fails
        said: dict[str, Any] = orjson.loads(words.strip().splitlines()[-1])
        return said

    def effects(self) -> list[str]:
        """What the gateway's tools did, each line once for every time."""
        files = [self.folder / "work" / name for name in (DEPLOYED, DONE)]
        return sorted(line for file in files if file.exists() for line in file.read_text().splitlines())

    async def turn_of(self, text: str) -> str:
        """The state of the newest turn that was asked this, once it has ended."""
        async with asyncio.timeout(20):
            while (state := await self.api.gateway.db.read(_state, text)) in ("running", "waiting"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return state


def _state(tx: Tx, text: str) -> str:
    found = tx.value(
        """
        SELECT turns.state FROM inbox JOIN turns ON turns.id = inbox.turn_id
        WHERE inbox.body LIKE :text ORDER BY inbox.received_at DESC LIMIT 1
        """,
        text=f'%"{text}"%',
    )
    return str(found or "")


def prepare(model: FakeModel) -> None:
    """Answer by what was asked: the names of tools are in the words of the scenarios."""
    names = "chat|stream|response|agents too|agents|unstored|typed|model"
    for name in names.split("|"):
        model.when(
            f"^both {name}$", calls_tools(("deploy", {"name": f"both {name}"}), ("get_weather", {"town": "Bern"}))
        )
        model.when(f"^deploy {name}$", calls_tools(("deploy", {"name": f"fine {name}"})))
        model.when(f"^broken {name}$", calls_tools(("deploy", {"name": f"broken {name}"})))
        model.when(f"^danger {name}$", calls_tools(("danger", {"text": f"danger {name}"})))
    model.when("^weather$", calls_tools(("get_weather", {"town": "Bern"})))
    model.when("^slow", paced(400, 20.0))
    model.when("^slow agents", paced(60, 20.0))  # it goes on to its end
    model.when_told("^rain", "It rains.")
    model.when_told("^Deployed fine", "It is out.")
    model.when_told("^Deployed broken", Refusal(401, "wrong key"))
    model.when_told("^Wrote", "Wrote it.")


@pytest.fixture
async def client(start: Start, model: FakeModel, tmp_path: Path) -> AsyncIterator[Client]:
    prepare(model)
    async with served(start) as api:
        key = (await api.new_key("clients", "owner"))["Authorization"].removeprefix("Bearer ")
        yield Client(api, model, tmp_path, key)
