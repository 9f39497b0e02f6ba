"""aider on chat completions. It edits files by what the model writes; functions are not offered to the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.cases import OUT, RAIN, VERBS, Client, Row
from tests.clients.environment import interrupt, python_with, run
from tests.fakes.model import FakeModel, calls_tools, paced

PACKAGE = "aider-chat==0.86.2"
RUN_SECONDS = 240.0
NO_APPROVAL = "a line with / is a command of aider, and it adds its own words to any other; answer somewhere else"
QUIET = [
    *("--model", "openai/hermes", "--edit-format", "whole", "--map-tokens", "0", "--no-git", "--yes-always"),
    *("--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--analytics-disable"),
    *("--no-pretty", "--no-fancy-input", "--no-detect-urls"),
]


def edit(name: str) -> str:
    return f"{RAIN}\n\n{name}\n```\nrain, 9 degrees\n```\n"


def prepare_for_aider(model: FakeModel) -> None:
    """The same words, with the reminder of its prompt behind them."""
    for case in ("stream", "gateway_tool", "retry", "both"):
        model.when(rf"^{VERBS[case]}\s", calls_tools(("deploy", {"name": VERBS[case]})))
    model.when(r"^danger\s", calls_tools(("danger", {"text": "danger"})))
    model.when(r"^hello\s", "echo: hello")
    model.when(r"^slow\s", paced(400, 20.0))
    model.when(r"^weather\s", edit("weather.txt"))
    model.when_told("^Deployed both", edit("both.txt"))


class Aider:
    def __init__(self, client: Client, python: Path, folder: Path) -> None:
        self._command = [str(python), "-m", "aider", *QUIET]
        self.project = folder / "project"
        self.project.mkdir()
        home = {"HOME": str(folder), "OPENAI_API_BASE": client.environ["OPENAI_BASE_URL"]}
        self.environ = {**client.environ, **home}

    async def says(self, text: str, *options: str) -> str:
        """Say something and return all that the program printed."""
        command = [*self._command, *options, "--message", text]
        _, printed = await run(command, self.environ, RUN_SECONDS, self.project)
        print(printed)  # shown where the test fails
        return printed

    async def leaves(self, client: Client, text: str) -> int:
        """Interrupt the program when the model writes."""
        command = [*self._command, "--message", text]
        return await interrupt(command, self.environ, RUN_SECONDS, self.project, lambda: client.model.open_now)


@pytest.mark.timeout(1800)
async def test_aider(client: Client, tmp_path: Path, record: Callable[[str, object], None]) -> None:
    aider = Aider(client, await python_with(PACKAGE, is_long=True), tmp_path)
    prepare_for_aider(client.model)
    printed = {
        "chat": await aider.says(VERBS["chat"], "--no-stream"),
        "stream": await aider.says(VERBS["stream"], "--stream"),
        "own_tools": await aider.says(VERBS["own_tools"]),
        "gateway_tool": await aider.says(VERBS["gateway_tool"]),
        "both": await aider.says(VERBS["both"]),
        "retry": await aider.says(VERBS["retry"]),
    }
    shown = {"chat": "echo: hello", "own_tools": RAIN, "both": RAIN, "retry": "does not accept the key"}
    said: dict[str, object] = {}
    for case, words in printed.items():
        wanted = shown.get(case, OUT)
        said[case] = wanted if wanted in words else words[-400:]
    said["stop"] = await aider.leaves(client, VERBS["stop"])
    edited = [file for file in ("weather.txt", "both.txt") if (aider.project / file).exists()]
    row = Row("aider", {"approval": NO_APPROVAL})
    await row.check(client, {"said": said, "weather_calls": len(edited)})
    row.assert_passed(record)
