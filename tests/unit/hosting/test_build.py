"""Which code is installed, read from its files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import hermes
from hermes.hosting import build

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: apt-get install git")


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
    return subprocess.run(command, cwd=folder, check=True, timeout=60, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a package that calls itself ours."""
    folder = tmp_path / "clone"
    package = folder / "src" / "hermes"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Ours."""\n\n__version__ = "9.9"\n')
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    monkeypatch.setattr(hermes, "__file__", str(package / "__init__.py"))
    return folder


def test_the_version_and_the_commit_are_those_on_the_disk(clone: Path) -> None:
    found = build.installed()
    assert (found.version, found.commit) == ("9.9", git(clone, "rev-parse", "HEAD"))
    git(clone, "commit", "-q", "--allow-empty", "-m", "two")
    assert build.installed().commit == git(clone, "rev-parse", "HEAD") != found.commit


def test_a_packed_branch_and_a_detached_head_are_read_too(clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    git(clone, "pack-refs", "--all")
    assert build.installed().commit == commit
    git(clone, "checkout", "-q", "--detach")
    assert build.installed().commit == commit


def test_a_worktree_is_read_through_its_file(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    git(clone, "worktree", "add", "-q", "-b", "other", str(tree))
    git(tree, "commit", "-q", "--allow-empty", "-m", "two")
    (tree / "src" / "hermes").mkdir(parents=True)
    monkeypatch.setattr(hermes, "__file__", str(tree / "src" / "hermes" / "__init__.py"))
    assert build.installed().commit == git(tree, "rev-parse", "HEAD") != git(clone, "rev-parse", "HEAD")


def test_an_installation_that_is_no_clone_has_a_version_alone(clone: Path) -> None:
    shutil.rmtree(clone / ".git")
    assert str(build.installed()) == "9.9"
