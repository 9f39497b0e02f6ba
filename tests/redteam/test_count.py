"""The suite stays as wide as it was promised: at least eighty attempts, from every role."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROMISED = 80


def test_at_least_eighty_attacks_are_collected() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/redteam"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    ).stdout
    attacks = [line for line in listed.splitlines() if "::" in line and "test_count.py" not in line]
    assert len(attacks) >= PROMISED
