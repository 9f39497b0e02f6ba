"""The suite stays as wide as it was promised: at least eighty attempts, from every role."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMISED = 80


def attacks(names: Iterable[str]) -> list[str]:
    return [
        name for name in names if name.startswith("tests/redteam/") and "::" in name and "test_count.py" not in name
    ]


def test_at_least_eighty_attacks_are_collected(request: pytest.FixtureRequest) -> None:
    found = attacks(item.nodeid for item in request.session.items)
    if len(found) < PROMISED:  # only a part was asked for
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/redteam"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
        found = attacks(done.stdout.splitlines())
    assert len(found) >= PROMISED
