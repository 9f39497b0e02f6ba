"""What every client goes through, what it must have said, and the table of clients and cases."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from hermes.store.db import Tx
from tests.clients.environment import SCRIPTS, run
from tests.fakes.model import FakeModel, Refusal, calls_tools, paced
from tests.fakes.tools import DEPLOYED, DONE
from tests.integration.api.serving import Served

OUT, RAIN, WROTE = "It is out.", "It rains.", "Wrote it."
CASES = ("chat", "stream", "own_tools", "gateway_tool", "both", "approval", "retry", "stop")
VERBS = dict(zip(CASES, ("hello", "publish", "weather", "deploy", "both", "danger", "broken", "slow"), strict=True))
"""The first word that a client sends. A variant of a case adds its own name."""
EFFECTS = ("stream", "gateway_tool", "both", "approval", "retry")
"""Cases in which a tool of the gateway writes a line: the text that was sent."""
VARIANTS = (
    *("", "responses", "completions", "streamed", "responses streamed", "compatible"),
    *("messages", "typed", "unstored", "stored"),
)
PROPERTY = "clients"
RUN_SECONDS = 240.0


def prepare(model: FakeModel) -> None:
    """Let the model act by what was said."""
    for variant in VARIANTS:

        def said(case: str, variant: str = variant) -> str:
            return f"{VERBS[case]} {variant}".strip()

        both = said("both")
        model.when(f"^{both}$", calls_tools(("deploy", {"name": both}), ("get_weather", {"town": "Bern"})))
        for case in ("stream", "gateway_tool", "retry"):
            model.when(f"^{said(case)}$", calls_tools(("deploy", {"name": said(case)})))
        model.when(f"^{said('approval')}$", calls_tools(("danger", {"text": said("approval")})))
    model.when("^weather", calls_tools(("get_weather", {"town": "Bern"})))
    model.when("^slow", paced(400, 20.0))
    model.when("^slow stored", paced(30, 20.0))  # it goes on to its end
    model.when_told("rain", RAIN)
    model.when_told("^Deployed (publish|deploy)", OUT)
    model.when_told("^Deployed broken", Refusal(401, "wrong key"))
    model.when_told("^Wrote", WROTE)


@dataclass(frozen=True, slots=True)
class Client:
    """Runs programs against the gateway and knows what its tools did."""

    api: Served
    model: FakeModel
    folder: Path
    key: str

    @property
    def environ(self) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{self.api.url}/v1",
            "OPENAI_API_KEY": self.key,
            "CLIENT_VERBS": orjson.dumps(VERBS).decode(),
        }

    async def run(self, python: Path | str, script: str) -> dict[str, Any]:
        """Run a script of Python and return what it printed last."""
        command = [str(python), str(SCRIPTS / script)]
        code, words = await run(command, {**self.environ, "PYTHONPATH": str(SCRIPTS)}, RUN_SECONDS)
        assert code == 0, words
        print(words)  # shown where the test fails
        said: dict[str, Any] = orjson.loads(words.strip().splitlines()[-1])
        return said

    def effects(self) -> list[str]:
        """Every line that the gateway's tools wrote."""
        files = [self.folder / "work" / name for name in (DEPLOYED, DONE)]
        return sorted(line for file in files if file.exists() for line in file.read_text().splitlines())

    async def turn_of(self, text: str) -> str:
        """Wait for the end of the newest turn with this text and return its state."""
        async with asyncio.timeout(20):
            while (state := await self.api.gateway.db.read(_state, text)) in ("running", "waiting"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return state


def _state(tx: Tx, text: str) -> str:
    found = tx.value(
        """
        SELECT turns.state FROM inbox JOIN turns ON turns.id = inbox.turn_id
        WHERE inbox.body LIKE :text OR inbox.body LIKE :begins ORDER BY inbox.received_at DESC LIMIT 1
        """,
        text=f'%"{text}"%',
        begins=f'%"{text}\\n%',  # aider adds words of its own
    )
    return str(found or "")


@dataclass(slots=True)
class Row:
    """One client in the table. Scenarios are named as in ``scripts/scenarios.py``."""

    client: str
    not_offered: Mapping[str, str] = field(default_factory=dict)
    """Cases that the client has no way to do, each with the reason."""
    failures: dict[str, str] = field(default_factory=dict)
    passed: dict[str, list[str]] = field(default_factory=dict)

    def note(self, name: str, failure: str) -> None:
        case, _, variant = name.partition(" ")
        if failure:
            self.failures[name] = failure
        else:
            self.passed.setdefault(case, []).append(variant)

    async def check(self, client: Client, found: Mapping[str, Any]) -> None:
        """Compare what the scenarios said, what the tools wrote, and how the turns that were left ended."""
        said: Mapping[str, Any] = found["said"]
        effects = client.effects()
        for name, words in said.items():
            case, _, variant = name.partition(" ")
            text = f"{VERBS[case]} {variant}".strip()
            written = effects.count(text)
            state = await client.turn_of(text) if case == "stop" else ""
            if case in EFFECTS and written != 1:
                self.note(name, f"its side effect happened {written} times; it said {words!r}")
            elif case == "stop":
                wanted = "done" if variant == "stored" else "stopped"
                self.note(name, "" if (words, state) == (3, wanted) else f"{words!r}, and the turn is {state!r}")
            else:
                self.note(name, "" if _is_expected(case, text, str(words)) else repr(words))
        stray = set(effects) - {f"{VERBS[case]} {variant}".strip() for case in EFFECTS for variant in VARIANTS}
        tools = sum(name.startswith(("own_tools", "both")) for name in said)
        if found["weather_calls"] != tools or stray:
            self.failures["own_tools"] = f"{found['weather_calls']} calls of its own tool, lines of nobody: {stray}"

    def assert_passed(self, record: Any) -> None:
        """Hand the row to the table, and fail where a case failed or is missing."""
        missing = set(CASES) - set(self.passed) - set(self.not_offered)
        row = {"client": self.client, "passed": self.passed, "not_offered": dict(self.not_offered)}
        record(PROPERTY, {**row, "failures": self.failures})
        assert not self.failures
        assert not missing


def _is_expected(case: str, text: str, words: str) -> bool:
    if case == "retry":
        return re.search(r"502|does not accept the key", words) is not None
    wanted = {"chat": f"echo: {text}", "own_tools": RAIN, "both": RAIN, "approval": WROTE}
    return words.strip() == wanted.get(case, OUT)


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of the table clients by cases, and below it the reasons."""
    wide = max((len(row["client"]) for row in rows), default=0)
    lines = ["  ".join([" " * wide, *(f"{case.replace('_', ' '):<12}" for case in CASES)]).rstrip()]
    reasons: list[str] = []
    for row in rows:
        cells = []
        for case in CASES:
            if any(name.split()[0] == case for name in row["failures"]):
                cells.append("FAILED")
            elif case in row["passed"]:
                cells.append(f"passed ({len(row['passed'][case])})" if len(row["passed"][case]) > 1 else "passed")
            else:
                cells.append("not offered" if case in row["not_offered"] else "missing")
        lines.append("  ".join([f"{row['client']:<{wide}}", *(f"{cell:<12}" for cell in cells)]).rstrip())
        reasons += [f"{row['client']}, {case}: {why}" for case, why in row["not_offered"].items()]
        reasons += [f"{row['client']}, {name}: FAILED: {why}" for name, why in row["failures"].items()]
    return [*lines, "passed (n): in n variants, such as chat completions and responses", *reasons]
