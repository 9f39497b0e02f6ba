"""Whose a home is, and who may read it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.core.errors import ForeignHomeError
from hermes.store.home import HomeState, Whose, inspect_home, make_home, narrow
from hermes.store.open import open_database
from hermes.store.private_files import write_private
from tests.fixtures.homes import snapshot, unpack_hermes_agent_home


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder."""
    made = tmp_path / "mine"
    made.mkdir()
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_that_is_not_there_is_new_and_made_private(folder: Path) -> None:
    home = folder / "deep" / "er" / ".hermes"
    assert make_home(home).whose is Whose.NEW
    assert inspect_home(home).whose is Whose.OURS
    assert mode(home) == mode(home.parent) == 0o700
    assert mode(home / ".hermes-home") == 0o600
    assert make_home(home).whose is Whose.OURS


def test_configuration_written_before_the_first_start_does_not_make_a_home_foreign(folder: Path) -> None:
    (folder / ".env").write_text("TELEGRAM_BOT_TOKEN=1:x\n")
    (folder / "config.yaml").write_text("model: x\n")
    (folder / "logs").mkdir()
    assert make_home(folder).whose is Whose.NEW
    assert mode(folder / ".env") == 0o600
    assert mode(folder / "logs") == 0o700


def test_a_new_volume_of_a_container_is_a_new_home(folder: Path) -> None:
    (folder / "lost+found").mkdir(parents=True)
    (folder / "agent-home").mkdir()
    assert make_home(folder).whose is Whose.NEW


def test_a_damaged_marker_is_still_ours(folder: Path) -> None:
    make_home(folder)
    (folder / ".hermes-home").write_text("{torn")
    assert inspect_home(folder).whose is Whose.OURS


async def test_a_home_of_hermes_agent_is_described_and_not_touched_by_a_byte(folder: Path) -> None:
    home = unpack_hermes_agent_home(folder / ".hermes")
    before = snapshot(home)
    assert inspect_home(home).description == "hermes-agent 0.19 (1 session, 1 task, telegram)"
    with pytest.raises(ForeignHomeError, match="I have changed nothing there"):
        make_home(home)
    for name in ("state.db", "kanban.db"):
        with pytest.raises(ForeignHomeError, match="I have changed nothing there"):
            await open_database(home / name)
    assert snapshot(home) == before


def test_a_home_where_hermes_agent_only_told_its_version_is_its_home_too(folder: Path) -> None:
    (folder / ".update_check").write_text('{"ts": 1, "ver": "0.19.0"}')
    (folder / "logs").mkdir()
    assert inspect_home(folder) == HomeState(Whose.FOREIGN, "hermes-agent 0.19 (.update_check, logs)")


def test_a_folder_of_something_else_is_foreign_too(folder: Path) -> None:
    (folder / "thesis.tex").write_text("x")
    (folder / "config.yaml").write_text("x")
    state = inspect_home(folder)
    assert (state.whose, state.description) == (Whose.FOREIGN, "another program (config.yaml, thesis.tex)")


def test_files_that_were_open_to_others_are_narrowed_and_links_are_not_followed(folder: Path) -> None:
    outside = folder / "outside"
    outside.write_text("x")
    outside.chmod(0o644)
    home = folder / "home"
    make_home(home)
    (home / "run").mkdir(0o755)
    (home / "run" / "webhook_subscriptions.json").write_text("{}")
    (home / "link").symlink_to(outside)
    (home / "workspaces").mkdir(0o700)
    (home / "workspaces" / "script.sh").write_text("")
    (home / "workspaces" / "script.sh").chmod(0o755)
    narrow(home)
    assert mode(home / "run") == 0o700
    assert mode(home / "run" / "webhook_subscriptions.json") == 0o600
    assert mode(outside) == 0o644
    assert mode(home / "workspaces" / "script.sh") == 0o755


def test_a_secret_is_replaced_in_one_step_and_a_failure_leaves_the_old_one(folder: Path) -> None:
    path = folder / "token"
    write_private(path, "old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)
    with pytest.raises(UnicodeEncodeError):
        write_private(path, "\ud800")
    assert path.read_text() == "new"
    assert [entry.name for entry in folder.iterdir()] == ["token"]
