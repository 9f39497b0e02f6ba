"""Write texts and skills of another gateway into our home. What is there stays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection
from pathlib import Path

from hermes.agent.skills.install import (
    DEFAULT_CATEGORY,
    WarningsError,
    install,
    looked_at,
    origins,
    place_for,
    skill_folders,
)
from hermes.agent.skills.parse import SkillError, same_name
from hermes.core.text import one_line
from hermes.hosting.importers.found import FoundHome, FoundSkillFolder
from hermes.hosting.importers.report import Fate, ImportReport
from hermes.store.home import make_private_folder
from hermes.store.private_files import write_private

MAX_CATEGORY_PARTS = 2


def import_files(found: FoundHome, home: Path, report: ImportReport, *, is_dry: bool) -> None:
    """Write texts that are not there yet. Blocks."""
    for file in found.files:
        path = home / file.name
        try:
            there = path.read_text("utf-8", "replace") if path.is_file() else None
        except OSError:
            there = ""
        if there is not None or os.path.lexists(path):
            if there == file.text:
                report.add("files", Fate.SAME)
            else:
                report.add("files", Fate.KEPT, file.name, "it already exists here, and stays")
            continue
        if not is_dry:
            make_private_folder(path.parent)
            write_private(path, file.text)
        report.add("files", Fate.CAME)
        if file.note:
            report.note("files", file.name, file.note)


def import_skills(
    found: FoundHome, folder: Path, taken: Collection[str], report: ImportReport, *, now: float, is_dry: bool
) -> None:
    """Install skills by the rules that hold for every skill from elsewhere. Blocks."""
    if not found.skills:
        return
    brought = set(origins(folder).values())
    there = {same_name(path.name) for path in skill_folders(folder)}
    for skill in found.skills:
        name = skill.folder.name
        if str(skill.folder) in brought:
            report.add("skills", Fate.SAME)
        elif same_name(name) in there:
            report.add("skills", Fate.KEPT, name, "a skill of this name already exists here, and stays")
        elif reason := _install(skill, folder, taken, now=now, is_dry=is_dry):
            report.add("skills", Fate.LEFT_OUT, name, reason)
        else:
            report.add("skills", Fate.CAME)
            there.add(same_name(name))


def _install(skill: FoundSkillFolder, folder: Path, taken: Collection[str], *, now: float, is_dry: bool) -> str:
    """Return why a skill cannot be installed; '' when it was, or would be."""
    source, names = str(skill.folder), frozenset(taken)
    try:
        if is_dry:
            with (
                tempfile.TemporaryDirectory(prefix="hermes-import-") as scratch,
                looked_at(source, Path(scratch), environ=os.environ, cwd=Path("/")) as candidate,
            ):
                if same_name(candidate.skill.name) in names:
                    return f"/{candidate.skill.name} is a command"
                if candidate.report.warnings:
                    raise WarningsError(candidate.skill.name, candidate.report.warnings)
            return ""
        install(
            source,
            folder,
            environ=os.environ,
            cwd=Path("/"),
            now=now,
            category=_category(folder, skill),
            taken=names,
        )
    except WarningsError as error:
        return f"read it first ({error.warnings[0]}), then: hermes skills install {source} --yes"
    except SkillError as error:
        return one_line(str(error), 200)
    except OSError as error:
        return error.strerror or "it cannot be read"
    return ""


def _category(folder: Path, skill: FoundSkillFolder) -> str:
    """The category that it had, where its name is usable here."""
    wanted = "/".join(skill.category.split("/")[:MAX_CATEGORY_PARTS])
    try:
        place_for(folder, wanted or DEFAULT_CATEGORY, skill.folder.name)
    except SkillError:
        return "imported"
    return wanted
