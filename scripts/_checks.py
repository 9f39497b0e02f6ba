"""The checks behind ./scripts/check and ./scripts/test. All of them run even when an early one fails.

The static ones run side by side, and beside the first tests; pytest in parallel where tests do not mind company, and
two at a time for chaos, whose promises are about seconds. The second Python runs unit, contract and integration tests
and the story of one gateway, without those marked ``one_python`` and the middle of long tables. A few tests that failed
are tried once more, alone: a machine that stood still for half a minute says nothing about the code. The last lines
name those too, and say what failed, what was skipped, and why.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

PYTHON = sys.executable
WORKERS_SCRIPT = str(Path(__file__).with_name("_workers.py"))
CODE = ("src", "tests", "bench", "examples", "scripts/_venv.py", "scripts/_checks.py", "scripts/_workers.py")
STATIC: dict[str, list[str]] = {
    "format": [PYTHON, "-m", "ruff", "format", "--check", "--quiet", "--diff", *CODE],
    "lint": [PYTHON, "-m", "ruff", "check", "--quiet", *CODE],
    "types": [PYTHON, "-m", "mypy"],
    "imports": [PYTHON, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
}
FAILED_TESTS, NO_TESTS = 1, 5  # exit codes of pytest: some failed; nothing collected
# Python 3.11 may fail to parse a source while another thread does, and pytest parses one to show a failure its own way.
PLAIN_TRACES = ("--tb=native",)
MOST_NAMED_SLOW = 30
MOST_TRIED_AGAIN = 10  # more than these are no bad luck


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    folders: tuple[str, ...]
    workers: int = 1
    options: tuple[str, ...] = ()


# Two thirds of a test's time is waiting for sockets and processes, so two cores bear five workers. The folders stand in
# the order of how long their files take: the last file of a run is a short one then, and no worker ends alone.
WORKERS = max(5, os.cpu_count() or 1)
UNIT = Suite("unit tests", ("tests/unit",), WORKERS)
SECOND = Suite(
    "unit, contract, integration, the story",
    ("tests/e2e/test_story.py", "tests/integration", "tests/contract", "tests/unit"),
    WORKERS + 2,  # without the tests that start many processes the cores would idle
    ("-m", "not one_python", "--few-cases"),
)
BESIDE = Suite(
    "unit, contract, integration, redteam, e2e, clients, browser",
    (
        "tests/e2e",
        "tests/clients",
        "tests/browser",
        "tests/redteam",
        "tests/integration",
        "tests/contract",
        "tests/unit",
    ),
    WORKERS,
)
ALONE = Suite("chaos, short form", ("tests/chaos",), 2)
SUITES = {"fast": [UNIT], "all": [BESIDE, ALONE], "beside": [BESIDE], "chaos": [ALONE], "second": [SECOND]}
WITHOUT_STATIC_CHECKS = {"chaos", "second"}


@dataclass(slots=True)
class Told:
    """What the last lines tell beside the verdict."""

    skips: Counter[str] = field(default_factory=Counter)  # by their reason
    second_tries: list[str] = field(default_factory=list)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # by file of tests
    cpu: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # with the processes that ended


def main(which: str) -> int:
    """Run ``fast``, ``all``, its parts ``beside`` and ``chaos``, or ``second``: what may differ on another Python."""
    version = platform.python_version()
    print(f"Python {version}", flush=True)
    started = time.monotonic()
    statically = {} if which in WITHOUT_STATIC_CHECKS else start_static_checks()
    told = Told()
    failed: list[str] = []
    for suite in SUITES[which]:
        if not run_suite(suite, told):
            failed.append(suite.name)
        failed += read_static_checks(statically)  # they ended while the first tests ran, and disturb none of the others
        statically = {}
    tell("Skipped", told.skips.total(), [f"{count:>4}  {reason}" for reason, count in told.skips.most_common()])
    if told.second_tries:
        again = "Failed at first and tried again alone (each is worth a look)"
        tell(again, len(told.second_tries), told.second_tries)
    dearest = sorted(told.cpu, key=lambda name: -told.cpu[name])[:MOST_NAMED_SLOW]
    lines = [f"{told.seconds[name]:>4.0f} {told.cpu[name]:>4.0f}  {name}" for name in dearest]
    total = f"{sum(told.seconds.values()):.0f} and {sum(told.cpu.values()):.0f}"
    tell("Seconds of tests and of their CPU, and the dearest files", total, lines)
    verdict = f"✗ Failed: {', '.join(failed)}" if failed else "✓ All green"
    print(f"{verdict} on Python {version} in {time.monotonic() - started:.0f} s, {told.skips.total()} skipped.")
    return 1 if failed else 0


def start_static_checks() -> dict[str, subprocess.Popen[str]]:
    """Start them beside the tests: the types take one processor a minute, as long as one process collects tests."""
    return {
        name: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in STATIC.items()
    }


def read_static_checks(running: Mapping[str, subprocess.Popen[str]]) -> list[str]:
    failed = []
    for name, process in running.items():
        output, _ = process.communicate(timeout=300)
        print(f"{'✗' if process.returncode else '✓'} {name}", flush=True)
        if process.returncode:
            print(output)
            failed.append(name)
    return failed


def run_suite(suite: Suite, told: Told) -> bool:
    """Run it, and what failed of it once more. A folder without tests yet counts as green."""
    folders = [folder for folder in suite.folders if Path(folder).exists()]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        memory = ("-o", f"cache_dir={scratch}/cache", *suite.options)
        print(f"\n— {suite.name}", flush=True)
        code = run_pytest(suite.workers, *memory, *PLAIN_TRACES, f"--junitxml={report}", *folders)
        if report.exists():
            told.skips.update(reason for _, reason in read_outcomes(report, "skipped"))
            add_seconds(report, told)
        if code == FAILED_TESTS and (unlucky := read_failures(report)):
            print(f"\n— {suite.name}: those that failed, alone", flush=True)
            told.second_tries += unlucky
            code = run_pytest(1, "--last-failed", *memory, *files_of_failures(Path(scratch)))
    return code in {0, NO_TESTS}


def run_pytest(workers: int, *arguments: str) -> int:
    program = [PYTHON, WORKERS_SCRIPT, str(workers)] if workers > 1 else [PYTHON, "-m", "pytest"]
    return subprocess.run([*program, "-q", *arguments], check=False).returncode


def read_failures(report: Path) -> Sequence[str]:
    """What failed, if it is so little that it may be the machine's fault; else nothing."""
    outcomes = [*read_outcomes(report, "failure"), *read_outcomes(report, "error")]
    return [f"{test}: {reason}" for test, reason in outcomes] if len(outcomes) <= MOST_TRIED_AGAIN else []


def files_of_failures(scratch: Path) -> Sequence[str]:
    """Name the files to collect again: those of the failed tests instead of all."""
    failed: dict[str, bool] = json.loads((scratch / "cache/v/cache/lastfailed").read_text("utf-8"))
    return sorted({name.partition("::")[0] for name in failed})


def read_outcomes(report: Path, outcome: str) -> Sequence[tuple[str, str]]:
    """The tests that ended so, each with the first line of its reason."""
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - written by our own pytest a moment ago
    return [
        (f"{case.get('classname')}::{case.get('name')}", first_line(reason.get("message")))
        for case in cases
        for reason in case.findall(outcome)
    ]


def add_seconds(report: Path, told: Told) -> None:
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - written by our own pytest a moment ago
        name, seconds = case.get("classname", ""), case.get("time", "0")
        cpu = case.find("properties/property[@name='cpu']")
        told.seconds[name] += float(seconds)
        told.cpu[name] += float(seconds if cpu is None else cpu.get("value", seconds))


def first_line(message: str | None) -> str:
    return (message or "").partition("\n")[0]


def tell(title: str, count: object, lines: Sequence[str]) -> None:
    print(f"\n{title}: {count}")
    for line in lines:
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
