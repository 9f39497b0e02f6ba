"""Ctrl+C in the middle of a long command says what became of the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.cli.home.backup import _describe_interrupted
from hermes.cli.support.screen import telling_interruption


def test_an_interrupted_command_says_what_became_of_its_work(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), telling_interruption(lambda: "Nothing was changed."):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "! Interrupted. Nothing was changed.\n"


def test_a_command_that_ends_says_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with telling_interruption(lambda: "Nothing was changed."):
        pass
    assert capsys.readouterr().err == ""


def test_an_interrupted_restore_tells_how_far_it_came(tmp_path: Path) -> None:
    assert _describe_interrupted(tmp_path, []) == "Nothing was changed."
    (tmp_path / ".restore").mkdir()
    (tmp_path / ".restore" / "plan.json").write_text("{}")
    assert _describe_interrupted(tmp_path, []).startswith("The gateway completes the restore when it starts.")
    (tmp_path / ".restore" / "plan.json").unlink()
    (tmp_path / "backups" / "before-restore-20261116-102231").mkdir(parents=True)
    told = _describe_interrupted(tmp_path, [])
    assert told.startswith("The restore is complete. To undo: ")
    assert told.endswith("hermes backup restore --undo")
