"""Codex CLI on `/v1/responses`: every request is streamed, and its own shell runs beside the tools of the gateway."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.clients import npm
from tests.clients.cases import VERBS, Client, Row
from tests.clients.environment import interrupt, run
from tests.fakes.model import calls_tools

PACKAGE = "@openai/codex@0.166.0"
RUN_SECONDS = 120.0
ALONE = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
OWN = "own.txt"
SHELL = ("exec_command", {"cmd": f"echo ran >> {OWN}; echo rain, 9 degrees"})
CONFIG = """
model = "hermes"
model_provider = "hermes"

[model_providers.hermes]
name = "Hermes"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""


class Codex:
    """One project and one home of the program."""

    def __init__(self, client: Client, packages: Path, folder: Path) -> None:
        self._command = str(packages / "node_modules" / ".bin" / "codex")
        self.project = folder / "project"
        home = folder / "codex"
        for made in (self.project, home):
            made.mkdir()
        (home / "config.toml").write_text(CONFIG.format(url=client.api.url))
        self.environ = {**client.environ, "CODEX_HOME": str(home), "HOME": str(home)}

    async def says(self, text: str, *, resumes: bool = False) -> str:
        """Say something and return the last message, or the error, of the answer."""
        words = ["exec", *(["resume", "--last"] if resumes else []), *ALONE, text]
        _, printed = await run([self._command, *words], self.environ, RUN_SECONDS, self.project)
        events = [orjson.loads(line) for line in printed.splitlines() if line.startswith("{")]
        print(printed)  # shown where the test fails
        texts = [event["item"]["text"] for event in events if event.get("item", {}).get("type") == "agent_message"]
        failed = [event["error"]["message"] for event in events if event["type"] == "turn.failed"]
        return str([*texts, *failed][-1])

    async def leaves(self, client: Client, text: str) -> int:
        """Interrupt the program when the model writes."""
        command = [self._command, "exec", *ALONE, text]
        return await interrupt(command, self.environ, RUN_SECONDS, self.project, lambda: client.model.open_now)


@pytest.mark.timeout(1200)
async def test_codex(client: Client, tmp_path: Path, record: Callable[[str, object], None]) -> None:
    codex = Codex(client, await npm.installed(PACKAGE, is_long=True), tmp_path)
    client.model.when("^weather$", calls_tools(SHELL))
    client.model.when("^both$", calls_tools(("deploy", {"name": "both"}), SHELL))
    said: dict[str, object] = {
        case: await codex.says(VERBS[case]) for case in ("chat", "stream", "own_tools", "gateway_tool", "both", "retry")
    }
    question = await codex.says(VERBS["approval"])
    code = question.partition("/approve ")[2].split()[0]
    said["approval"] = await codex.says(f"/approve {code}", resumes=True)
    said["stop"] = await codex.leaves(client, VERBS["stop"])
    row = Row("Codex CLI")
    ran = (codex.project / OWN).read_text().splitlines()
    await row.check(client, {"said": said, "weather_calls": len(ran)})
    row.assert_passed(record)
