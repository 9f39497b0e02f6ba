"""Every file that a repair changed is as it was before when the repair is taken back."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from hermes.cli.repairs import undo
from hermes.cli.repairs.undo import UndoRecord, undo_last
from hermes.core.errors import GatewayError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def changed(home: Path) -> UndoRecord:
    (home / ".env").write_text("A=1\n")
    (home / ".env").chmod(0o644)
    (home / "old.tmp").write_text("rest")
    record = UndoRecord(home)
    record.chmod(home / ".env", 0o600)
    record.rewrite(home / ".env", b"B=1\n")
    record.set_aside(home / "old.tmp")
    return record


def test_modes_contents_and_moved_files_come_back(tmp_path: Path) -> None:
    record = changed(tmp_path)
    assert (tmp_path / ".env").read_text() == "B=1\n"
    assert (mode(tmp_path / ".env"), (tmp_path / "old.tmp").exists()) == (0o600, False)
    name, done, left = undo_last(tmp_path)
    assert (name, left) == (record.name, [])
    assert len(done) == 3
    assert ((tmp_path / ".env").read_text(), mode(tmp_path / ".env")) == ("A=1\n", 0o644)
    assert (tmp_path / "old.tmp").read_text() == "rest"
    with pytest.raises(GatewayError, match="nothing to undo"):
        undo_last(tmp_path)


def test_a_file_that_was_changed_since_is_left_alone_and_named_with_its_older_form(tmp_path: Path) -> None:
    changed(tmp_path)
    (tmp_path / ".env").write_text("C=1\n")
    (tmp_path / "old.tmp").write_text("new")
    name, _, left = undo_last(tmp_path)
    assert (tmp_path / ".env").read_text() == "C=1\n"
    assert (tmp_path / "old.tmp").read_text() == "new"
    assert any(str(tmp_path / "undo" / name / "1-.env") in line for line in left)
    assert any("there is a new one" in line for line in left)
    assert undo_last(tmp_path)[2] == left, "what could not be taken back can be tried again"


def test_a_step_that_was_noted_and_never_done_is_passed_over(tmp_path: Path) -> None:
    changed(tmp_path)
    folder = next((tmp_path / "undo").iterdir())
    steps = json.loads((folder / undo.RECORD).read_text())["steps"]
    steps.append({"kind": "moved", "path": "never.tmp", "kept": "9-never.tmp"})
    (folder / undo.RECORD).write_text(json.dumps({"steps": steps}))
    assert undo_last(tmp_path)[2] == []


def test_a_record_that_names_a_file_outside_the_home_changes_nothing_there(tmp_path: Path) -> None:
    home = tmp_path / "undone"
    home.mkdir()
    changed(home)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    outside.chmod(0o600)
    folder = next((home / "undo").iterdir())
    step = {"kind": "mode", "path": "../outside", "before": 0o666, "after": 0o600}
    (folder / undo.RECORD).write_text(json.dumps({"steps": [step]}))
    assert undo_last(home)[2] == ["../outside: it leads out of the home"]
    assert mode(outside) == 0o600


def test_the_newest_records_are_kept_and_nothing_is_written_without_a_change(tmp_path: Path) -> None:
    UndoRecord(tmp_path).close()
    assert "undo" not in os.listdir(tmp_path)
    (tmp_path / "a").write_text("1")
    for number in range(8):
        record = UndoRecord(tmp_path)
        record.chmod(tmp_path / "a", 0o600 + number % 2)
        record.close()
    assert len(list((tmp_path / "undo").iterdir())) == undo.MAX_RECORDS
    assert mode(tmp_path / "undo") == 0o700
