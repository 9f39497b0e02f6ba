"""A workspace with a folder of Hermes in it, as the owner's has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.todos import TodoLists
from hermes.agent.toolkit.context import Parts, ToolContext
from hermes.agent.workspace.checkpoints import Checkpoints
from hermes.config.agent_settings import CheckpointsConfig
from hermes.core.keys import ChatKind, SessionKey
from hermes.store.db import Database
from hermes.store.open import open_database
from tests.fakes.clock import FakeClock
from tests.fakes.started_home import copy_store


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
    return ToolContext("t_1:1:0", key, "local", workspace, forbidden=(workspace / "hermes",), session_id="s_1")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(copy_store(tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
def checkpoints(db: Database, clock: FakeClock, workspace: Path) -> Checkpoints:
    return Checkpoints(db, clock, workspace / "hermes", CheckpointsConfig)


@pytest.fixture
def equipped(context: ToolContext, checkpoints: Checkpoints, db: Database, clock: FakeClock) -> ToolContext:
    """The context of a call that may change files and lists."""
    return replace(context, parts=Parts(checkpoints, TodoLists(db, clock)))
