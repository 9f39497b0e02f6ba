"""The committed pages are what a build of their sources makes, byte by byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.browser.conftest import whole
from tests.fakes.programs import needs

pytestmark = [whole, needs("npm"), pytest.mark.timeout(900)]

WEB = Path(__file__).resolve().parents[2] / "scripts" / "web"
BUILD_SECONDS = 840.0


def test_committed_pages_are_what_a_build_makes() -> None:
    checked = subprocess.run([WEB, "check"], capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
