"""Which installation `hermes update` finds, and what it says of one that it does not update."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import hermes
from hermes.hosting.update.clone import CloneInstallation
from hermes.hosting.update.find import find_installation
from hermes.hosting.update.installation import UpdateFailedError


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources that this process seems to run from, in a folder that git knows nothing of yet."""
    package = tmp_path / "src" / "hermes"
    package.mkdir(parents=True)
    monkeypatch.setattr(hermes, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    return tmp_path


def test_a_clone_is_updated_by_git(clone: Path) -> None:
    (clone / ".git").mkdir()
    assert isinstance(find_installation(), CloneInstallation)


def test_a_git_worktree_is_called_one_and_the_command_that_updates_it_is_named(clone: Path) -> None:
    (clone / ".git").write_text("gitdir: /elsewhere/.git/worktrees/here\n")
    with pytest.raises(UpdateFailedError, match=rf"git worktree {clone}, .*\n.*git -C {clone} pull"):
        find_installation()


def test_other_sources_are_updated_the_way_they_were_installed(clone: Path) -> None:
    with pytest.raises(UpdateFailedError, match="neither a git clone nor installed in a virtual environment"):
        find_installation()


def test_without_an_earlier_update_there_is_no_way_back_and_no_fault_of_the_configuration(clone: Path) -> None:
    (clone / ".git").mkdir()
    with pytest.raises(UpdateFailedError, match="no update was made here"):
        find_installation().switch_back()
