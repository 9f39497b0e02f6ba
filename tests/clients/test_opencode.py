"""opencode on chat completions. It asks for a title at the same time as it sends a message, with the message in it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import orjson
import pytest

from hermes.store.db import Tx
from tests.clients import npm
from tests.clients.cases import OUT, RAIN, VERBS, Client
from tests.clients.environment import interrupt, run
from tests.fakes.model import calls_tools

MACHINE = {"aarch64": "arm64", "x86_64": "x64"}.get(platform.machine(), platform.machine())
PACKAGE = f"opencode-linux-{MACHINE}"
VERSION = "1.18.18"
RUN_SECONDS = 120.0
OWN = "own.txt"
SHELL = ("bash", {"command": f"echo ran >> {OWN}; echo rain, 9 degrees", "description": "Tells the weather"})


def _sessions(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM sessions"))


class Opencode:
    """One project and one home of the program."""

    def __init__(self, client: Client, packages: Path, folder: Path) -> None:
        self._program = str(packages / "node_modules" / PACKAGE / "bin" / "opencode")
        self.project = folder / "project"
        home = folder / "opencode"
        for made in (self.project, home):
            made.mkdir()
        options = {"baseURL": client.environ["OPENAI_BASE_URL"], "apiKey": "{env:OPENAI_API_KEY}"}
        adapter = {"npm": "@ai-sdk/openai-compatible", "name": "Hermes", "options": options}
        config = {"provider": {"hermes": {**adapter, "models": {"hermes": {"name": "Hermes"}}}}}
        (self.project / "opencode.json").write_bytes(orjson.dumps(config))
        alone = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        self.environ = {**client.environ, **alone, "HOME": str(home), "PATH": os.environ["PATH"]}

    async def says(self, *words: str) -> str:
        """Say something and return all that the program printed. It puts quotes around a word with a space in it."""
        command = [self._program, "run", "--model", "hermes/hermes", *words]
        code, printed = await run(command, self.environ, RUN_SECONDS, self.project)
        print(printed)  # shown where the test fails
        assert code == 0, printed
        return printed.strip()

    async def leaves(self, client: Client, text: str) -> int:
        """Interrupt the program when the model writes the answer and the title."""
        command = [self._program, "run", "--model", "hermes/hermes", text]
        return await interrupt(command, self.environ, RUN_SECONDS, self.project, lambda: client.model.open_now >= 2)


@pytest.mark.timeout(1200)
async def test_message_acts_once_although_a_title_is_asked_for_beside_it(client: Client, tmp_path: Path) -> None:
    opencode = Opencode(client, await npm.installed(f"{PACKAGE}@{VERSION}", is_long=True), tmp_path)
    client.model.when("^weather$", calls_tools(SHELL))
    client.model.when("^both$", calls_tools(("deploy", {"name": "both"}), SHELL))
    before = await client.api.gateway.db.read(_sessions)
    assert (await opencode.says(VERBS["chat"])).endswith("echo: hello")
    assert await client.api.gateway.db.read(_sessions) == before + 1
    for case, wanted in (("gateway_tool", OUT), ("stream", OUT), ("own_tools", RAIN), ("both", RAIN)):
        assert (await opencode.says(VERBS[case])).endswith(wanted)
    question = await opencode.says(VERBS["approval"])
    code = question.partition("/approve ")[2].split()[0]
    assert (await opencode.says("--continue", "/approve", code)).endswith("Wrote it.")
    assert client.effects() == sorted(VERBS[case] for case in ("gateway_tool", "stream", "both", "approval"))
    assert await opencode.leaves(client, VERBS["stop"]) == 3
    assert await client.turn_of(VERBS["stop"]) == "stopped"
    assert len((opencode.project / OWN).read_text().splitlines()) == 2
