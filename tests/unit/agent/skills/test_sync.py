"""The shipped skills come and follow the product; whatever the owner did to them stays."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from hermes.agent.skills import sync as syncing
from hermes.agent.skills.install import restore
from hermes.agent.skills.parse import SkillError
from hermes.agent.skills.sync import MANIFEST, Synced, sync
from tests.unit.agent.skills.samples import GOOD, write_skill


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    for name in ("a/one", "a/two", "b/three"):
        write_skill(package, name, references__more_md="more")
    return package


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "skills"


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def rewrite(package: Path, name: str, text: str) -> None:
    (package / name / "SKILL.md").write_text(GOOD.format(name=name.rpartition("/")[2]) + text)


def test_the_first_sync_brings_all_and_the_second_nothing(folder: Path, bundled: Path) -> None:
    first = sync(folder, bundled, now=1.0)
    assert str(first) == "Done: 3 new, 0 updated, 0 unchanged. 3 total bundled."
    assert content(folder) == content(bundled)
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")] if path.is_dir()} == {0o700}
    second = sync(folder, bundled, now=2.0)
    assert str(second) == "Done: 0 new, 0 updated, 3 unchanged. 3 total bundled."


def test_when_nothing_changed_no_file_is_read_or_written(
    folder: Path, bundled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync(folder, bundled, now=1.0)
    manifest = (folder / MANIFEST).stat()
    read: list[str] = []
    real = Path.read_bytes

    def noted(path: Path) -> bytes:
        read.append(path.name)
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    assert len(sync(folder, bundled, now=2.0).unchanged) == 3
    assert read == [MANIFEST]
    assert (folder / MANIFEST).stat().st_mtime_ns == manifest.st_mtime_ns


def test_an_update_comes_where_nobody_touched_the_old_text(folder: Path, bundled: Path) -> None:
    sync(folder, bundled, now=1.0)
    rewrite(bundled, "a/one", "newer")
    (bundled / "a/one/references/more.md").unlink()
    (bundled / "a/one/references").rmdir()
    (folder / "a/one/mine.md").write_text("a note of the owner's")
    assert sync(folder, bundled, now=2.0).updated == ("a/one",)
    assert "newer" in (folder / "a/one/SKILL.md").read_text()
    assert not (folder / "a/one/references").exists()
    assert (folder / "a/one/mine.md").read_text() == "a note of the owner's"


def test_a_users_edit_survives_a_sync(folder: Path, bundled: Path) -> None:
    sync(folder, bundled, now=1.0)
    (folder / "a/one/SKILL.md").write_text("mine")
    (folder / "a/two/references/more.md").unlink()
    rewrite(bundled, "a/one", "newer")
    rewrite(bundled, "a/two", "newer")
    for now in (2.0, 3.0):
        synced = sync(folder, bundled, now=now)
        assert (synced.kept, synced.unchanged) == (("a/one", "a/two"), ("b/three",))
    assert "2 kept as you have them (a/one, a/two)" in str(synced)
    assert (folder / "a/one/SKILL.md").read_text() == "mine"
    assert "newer" not in (folder / "a/two/SKILL.md").read_text()


def test_an_edit_that_was_taken_back_follows_again(folder: Path, bundled: Path) -> None:
    sync(folder, bundled, now=1.0)
    was = (folder / "a/one/SKILL.md").read_bytes()
    (folder / "a/one/SKILL.md").write_text("mine")
    rewrite(bundled, "a/one", "newer")
    sync(folder, bundled, now=2.0)
    (folder / "a/one/SKILL.md").write_bytes(was)
    assert sync(folder, bundled, now=3.0).updated == ("a/one",)


def test_a_deleted_skill_stays_deleted(folder: Path, bundled: Path) -> None:
    sync(folder, bundled, now=1.0)
    shutil.rmtree(folder / "a/one")
    rewrite(bundled, "a/one", "newer")
    for now in (2.0, 3.0):
        synced = sync(folder, bundled, now=now)
        assert (synced.deleted, synced.new) == (("a/one",), ())
    assert not (folder / "a/one").exists()
    assert "1 left out since you removed them" in str(synced)


def test_a_users_own_skill_is_never_touched(folder: Path, bundled: Path) -> None:
    write_skill(folder, "a/one", "my own text under that name")
    write_skill(folder, "mine/four")
    before = content(folder)
    for now in (1.0, 2.0):
        assert sync(folder, bundled, now=now).kept == ("a/one",)
    assert {name: text for name, text in content(folder).items() if name in before} == before
    rewrite(bundled, "a/one", "newer")
    sync(folder, bundled, now=3.0)
    assert (folder / "a/one/SKILL.md").read_text() == "my own text under that name"


def test_a_link_of_the_owners_is_not_written_through(folder: Path, bundled: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles"
    elsewhere.mkdir()
    folder.mkdir(parents=True)
    (folder / "a").symlink_to(elsewhere)
    assert sync(folder, bundled, now=1.0).new == ("b/three",)
    assert not list(elsewhere.iterdir())


def test_what_is_no_longer_shipped_goes_to_the_trash_unless_it_was_edited(folder: Path, bundled: Path) -> None:
    sync(folder, bundled, now=1.0)
    (folder / "a/two/SKILL.md").write_text("mine")
    for name in ("a/one", "a/two"):
        shutil.rmtree(bundled / name)
    synced = sync(folder, bundled, now=2.0)
    assert (synced.retired, synced.total) == (("a/one",), 1)
    assert not (folder / "a/one").exists()
    assert (folder / "a/two/SKILL.md").read_text() == "mine"
    assert restore(folder, "one") == folder / "a/one"


@pytest.mark.parametrize("when", ["before the manifest", "in the middle of an update"])
def test_a_sync_that_was_killed_is_finished_by_the_next(folder: Path, bundled: Path, when: str) -> None:
    sync(folder, bundled, now=1.0)
    if when == "before the manifest":
        (folder / MANIFEST).unlink()
    else:
        rewrite(bundled, "a/one", "newer")
        (bundled / "a/one/references/more.md").write_text("newer")
        shutil.copy(bundled / "a/one/SKILL.md", folder / "a/one/SKILL.md")
    synced = sync(folder, bundled, now=2.0)
    assert not synced.kept
    assert content(folder) == content(bundled)
    assert sync(folder, bundled, now=3.0).unchanged == ("a/one", "a/two", "b/three")


def test_a_damaged_manifest_is_taken_as_none(folder: Path, bundled: Path) -> None:
    sync(folder, bundled, now=1.0)
    (folder / "a/one/SKILL.md").write_text("mine")
    for text in ("{", "[]", json.dumps({"written": {"a/one": {"SKILL.md": 5}}})):
        (folder / MANIFEST).write_text(text)
        assert sync(folder, bundled, now=2.0).kept == ("a/one",)


def test_reset_puts_a_skill_back_as_shipped_and_keeps_the_edit_in_the_trash(folder: Path, bundled: Path) -> None:
    sync(folder, bundled, now=1.0)
    (folder / "a/one/SKILL.md").write_text("mine")
    shutil.rmtree(folder / "a/two")
    assert sync(folder, bundled, now=2.0, reset="one").new == ("a/one",)
    assert "mine" in next((folder / ".trash").rglob("SKILL.md")).read_text()
    assert sync(folder, bundled, now=3.0, reset="all").new == ("a/two",)
    with pytest.raises(SkillError, match="No bundled skill is called 'x'"):
        sync(folder, bundled, now=4.0, reset="x")


def test_what_a_killed_process_left_is_swept_away(folder: Path, bundled: Path) -> None:
    for name, age in ((".staging-old", 7200.0), (".staging-new", 10.0)):
        (folder / name).mkdir(parents=True)
        os.utime(folder / name, (10_000.0 - age, 10_000.0 - age))
    sync(folder, bundled, now=10_000.0)
    assert [path.name for path in folder.glob(".staging-*")] == [".staging-new"]


def test_the_line_of_the_start_is_the_one_people_know() -> None:
    assert str(Synced(unchanged=tuple("abc"))) == "Done: 0 new, 0 updated, 3 unchanged. 3 total bundled."
    assert syncing.BUNDLED.is_dir()
