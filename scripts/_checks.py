"""The checks behind ./scripts/check and ./scripts/test. All of them run even when an early one fails.

The static ones run side by side; then pytest in parallel where tests do not mind company, and alone for chaos, whose
promises are about seconds. The last lines say what failed and how many tests were skipped, and why.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

PYTHON = sys.executable
CODE = ("src", "tests", "bench", "examples", "scripts/_venv.py", "scripts/_checks.py")
STATIC: dict[str, list[str]] = {
    "format": [PYTHON, "-m", "ruff", "format", "--check", "--quiet", "--diff", *CODE],
    "lint": [PYTHON, "-m", "ruff", "check", "--quiet", *CODE],
    "types": [PYTHON, "-m", "mypy"],
    "imports": [PYTHON, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
}
NO_TESTS = 5  # pytest's exit code for "nothing collected"


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    folders: tuple[str, ...]
    options: tuple[str, ...] = ()


UNIT = Suite("unit tests", ("tests/unit",), ("-n", "auto", "--dist", "loadfile"))
BESIDE = Suite(
    "unit, contract, integration, e2e",
    ("tests/unit", "tests/contract", "tests/integration", "tests/e2e"),
    ("-n", "auto", "--dist", "loadfile"),
)
ALONE = Suite("chaos, short form", ("tests/chaos",))


def main(which: str) -> int:
    started = time.monotonic()
    failed = check_statically()
    skips: list[str] = []
    for suite in [UNIT] if which == "fast" else [BESIDE, ALONE]:
        if not run_suite(suite, skips):
            failed.append(suite.name)
    print(f"\nSkipped: {len(skips)}")
    for line in skips:
        print(f"  {line}")
    verdict = f"✗ Failed: {', '.join(failed)}" if failed else "✓ All green"
    print(f"{verdict} in {time.monotonic() - started:.0f} s.")
    return 1 if failed else 0


def check_statically() -> list[str]:
    running = {
        name: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in STATIC.items()
    }
    failed = []
    for name, process in running.items():
        output, _ = process.communicate(timeout=300)
        print(f"{'✗' if process.returncode else '✓'} {name}", flush=True)
        if process.returncode:
            print(output)
            failed.append(name)
    return failed


def run_suite(suite: Suite, skips: list[str]) -> bool:
    """Run it; what was skipped is added to ``skips``. A folder without tests yet counts as green."""
    folders = [folder for folder in suite.folders if Path(folder).is_dir()]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [PYTHON, "-m", "pytest", "-q", *suite.options, f"--junitxml={report}", *folders]
        print(f"\n— {suite.name}", flush=True)
        code = subprocess.run(command, check=False).returncode
        if report.exists():
            skips += read_skips(report)
    return code in {0, NO_TESTS}


def read_skips(report: Path) -> Sequence[str]:
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - written by our own pytest a moment ago
    return [
        f"{case.get('classname')}::{case.get('name')}: {skip.get('message')}"
        for case in cases
        for skip in case.findall("skipped")
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
