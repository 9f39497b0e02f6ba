"""Programs that a bare machine may lack: a test that needs one skips and says how to have it."""

from __future__ import annotations

import shutil

import pytest


def needs(program: str, package: str = "") -> pytest.MarkDecorator:
    """Mark a test that runs this program; ``package``: what brings it on Debian, where the name differs."""
    missing = shutil.which(program) is None
    return pytest.mark.skipif(missing, reason=f"{program} is not installed here (apt install {package or program})")
