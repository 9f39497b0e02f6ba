"""A schema fuzzer (schemathesis) over the API's own contract, as a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import orjson

PROGRAM = Path(sys.executable).with_name("schemathesis")
NO_SERVER_ERROR = "not_a_server_error"
LEFT_OUT = ("positive_data_acceptance", "negative_data_rejection")
"""What is refused though its shape is right, or taken though it is not, is for our own tests to say: a schema cannot
tell that a talk has to end with a person's words."""


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """``words`` is what the fuzzer printed; it names each failure and how to see it again."""

    cases: int
    failures: int
    operations: int
    words: str


ENDLESS = "^/api/(logs/)?events$"
"""Streams that go on until their client leaves."""


async def fuzz(
    url: str,
    key: str,
    *,
    examples: int,
    seed: int,
    phases: str = "examples,coverage,fuzzing,stateful",
    paths: str = "",
    may_fail: bool = False,
    seconds: float = 150.0,
) -> Fuzzed:
    """``paths`` is a pattern of those to take; ``may_fail``: the model is broken, so documented 5xx are right."""
    with tempfile.TemporaryDirectory(prefix="hermes-fuzz-") as folder:
        report = Path(folder) / "report.json"
        command = [str(PROGRAM), "run", f"{url}/openapi.json", "-H", f"Authorization: Bearer {key}"]
        command += ["--max-examples", str(examples), "--seed", str(seed), "--phases", phases, "--warnings", "off"]
        command += ["--exclude-checks", ",".join((*LEFT_OUT, NO_SERVER_ERROR) if may_fail else LEFT_OUT)]
        command += ["--report", "json", "--report-json-path", str(report), "--request-timeout", "20"]
        command += ["--include-path-regex", paths] if paths else ["--exclude-path-regex", ENDLESS]
        words = await _run(command, folder, seconds)
        told = orjson.loads(report.read_bytes()) if report.exists() else None
    if told is None or not told["complete"] or told["errors"]:
        raise AssertionError(f"The fuzzer did not do its work:\n{words}")
    cases = told["test_cases"]
    return Fuzzed(cases["generated"], cases["unique_failures"], told["operations"]["tested"], words)


async def _run(command: list[str], folder: str, seconds: float) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": folder, "NO_COLOR": "1", "COLUMNS": "120"}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(seconds):
            words, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return words.decode()
