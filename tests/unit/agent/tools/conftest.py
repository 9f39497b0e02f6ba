"""A workspace with a folder of Hermes in it, as the owner's has."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.toolkit import ToolContext
from hermes.core.keys import ChatKind, SessionKey


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "plan.txt").write_text("first\nsecond\nthird\n")
    (folder / "hermes").mkdir()
    (folder / "hermes" / ".env").write_text("OPENAI_API_KEY=sk-secret\n")
    (folder / "hermes" / "state.txt").write_text("plan of a stranger\n")
    (tmp_path / "outside.txt").write_text("plan of the neighbour\n")
    return folder


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    key = SessionKey("local", ChatKind.DM, "me")
    return ToolContext("t_1:1:0", key, "local", workspace, forbidden=(workspace / "hermes",))
