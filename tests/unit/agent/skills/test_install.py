"""Installing puts a skill in place in one step, and removing is undone as easily."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from hermes.agent.skills import Skill, SkillLibrary
from hermes.agent.skills.files import MAX_IN_TRASH
from hermes.agent.skills.install import install, origins, remove, restore
from hermes.agent.skills.parse import SkillError
from tests.unit.agent.skills.samples import GOOD, write_skill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "skills"


def put_in(source: object, folder: Path, **more: object) -> Path:
    install(str(source), folder, environ=os.environ, cwd=folder.parent.parent, now=5.0, **more)  # type: ignore[arg-type]
    library = SkillLibrary(folder.parent)
    library.refresh()
    assert not list(folder.glob(".staging-*"))
    return library.all()[-1].folder


@pytest.mark.parametrize("kind", ["folder", "relative", "zip", "tar", "tar.gz", "tar.bz2"])
def test_a_skill_comes_from_a_folder_or_an_archive(tmp_path: Path, folder: Path, kind: str) -> None:
    place = write_skill(tmp_path / "from", "notes", references__x_md="more")
    source = tmp_path / f"notes.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(source, "w") as archive:
            for path in place.rglob("*"):
                archive.write(path, path.relative_to(place.parent))
    elif kind.startswith("tar"):
        with tarfile.open(source, "w:" + kind.removeprefix("tar").removeprefix(".")) as archive:  # type: ignore[call-overload]
            archive.add(place, "./notes")
    else:
        source = place if kind == "folder" else Path("from/notes")
    installed = put_in(source, folder)
    assert installed == folder / "installed/notes"
    assert (installed / "references/x.md").read_text() == "more"
    assert {path.stat().st_mode & 0o777 for path in installed.rglob("*") if path.is_file()} == {0o600}
    assert origins(folder) == {"installed/notes": str(source)}


def test_hidden_files_are_left_out(tmp_path: Path, folder: Path) -> None:
    place = write_skill(tmp_path / "from", "notes")
    (place / ".git").mkdir()
    (place / ".git/config").write_text("x")
    (place / ".env").write_text("KEY=1")
    candidate = install(str(place), folder, environ=os.environ, cwd=tmp_path, now=5.0)
    assert sorted(candidate.left_out) == [".env", ".git"]
    assert [path.name for path in (folder / "installed/notes").iterdir()] == ["SKILL.md"]


def test_of_several_skills_one_is_named(tmp_path: Path, folder: Path) -> None:
    for name in ("one", "two"):
        write_skill(tmp_path / "from/skills", name)
    with pytest.raises(SkillError, match=r"several skills: one, two\. Say which: --only NAME"):
        put_in(tmp_path / "from", folder)
    with pytest.raises(SkillError, match=r"no skill 'three' in it\. It holds: one, two"):
        put_in(tmp_path / "from", folder, only="three")
    assert put_in(tmp_path / "from", folder, only="two", category="mine").name == "two"
    assert (folder / "mine/two").is_dir()


def test_a_skill_of_the_same_name_is_replaced_only_when_asked(tmp_path: Path, folder: Path) -> None:
    write_skill(folder, "own/notes", GOOD.format(name="notes") + "old")
    place = write_skill(tmp_path / "from", "notes")
    with pytest.raises(SkillError, match="There is a skill 'notes' already"):
        put_in(place, folder)
    put_in(place, folder, replaces=True)
    assert not (folder / "own").exists()
    remove(folder, _one(folder), now=6.0)
    assert restore(folder, "notes") == folder / "installed/notes"
    remove(folder, _one(folder), now=7.0)
    assert restore(folder, "own/notes") == folder / "own/notes"
    assert "old" in (folder / "own/notes/SKILL.md").read_text()


def _one(folder: Path) -> Skill:
    library = SkillLibrary(folder.parent)
    library.refresh()
    return library.get("notes")


def test_a_command_keeps_its_name(tmp_path: Path, folder: Path) -> None:
    place = write_skill(tmp_path / "from", "stop")
    with pytest.raises(SkillError, match="/stop is a command"):
        put_in(place, folder, taken=frozenset({"stop"}))


def test_the_trash_does_not_grow_for_ever(folder: Path) -> None:
    for number in range(MAX_IN_TRASH + 3):
        write_skill(folder, "notes")
        remove(folder, _one(folder), now=float(number))
    assert len(list((folder / ".trash").iterdir())) == MAX_IN_TRASH
    with pytest.raises(SkillError, match="No skill 'other' is in the trash"):
        restore(folder, "other")


def test_a_source_without_a_skill_is_said_to_be_none(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SkillError, match=r"There is no SKILL\.md in it"):
        put_in(tmp_path / "empty", folder)
