"""Install and remove skills: scan first, move in one step, allow undo."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hermes.agent.skills.files import alone_in, from_trash, move_in, read_json, staging_in, to_trash
from hermes.agent.skills.parse import FILE_NAME, Skill, SkillError, read_skill, same_name
from hermes.agent.skills.scan import RefusedError, ScanFinding, ScanReport, copy_checked, scan
from hermes.agent.skills.sources import bring, find_one
from hermes.core.dataclasses import dataclass
from hermes.core.text import one_line
from hermes.store.home import make_private_folder
from hermes.store.private_files import write_private

ORIGINS = ".installed.json"
DEFAULT_CATEGORY = "installed"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A skill that was brought in and looked at, but is not installed. Its folder is gone after the block."""

    skill: Skill
    report: ScanReport
    left_out: tuple[str, ...]
    source: str


class WarningsError(SkillError):
    """There is something to read before this is installed; saying yes goes on."""

    def __init__(self, name: str, warnings: tuple[ScanFinding, ...]) -> None:
        self.warnings = warnings
        shown = "\n".join(f"  {warning}" for warning in warnings)
        super().__init__(f"{name} is not installed yet. Read this first:\n{shown}\nTo install it all the same: --yes")


@contextmanager
def looked_at(
    source: str, folder: Path, *, environ: Mapping[str, str], cwd: Path, only: str = ""
) -> Iterator[Candidate]:
    """Bring a skill in and scan it. RefusedError says why it can never be installed. Blocks, for a minute at most."""
    make_private_folder(folder)
    with staging_in(folder) as staging:
        ready = staging / "ready"
        try:
            left_out = copy_checked(find_one(bring(source, staging, environ, cwd), only), ready)
        except OSError as error:
            raise SkillError(f"It cannot be read: {error.strerror} ({one_line(str(error.filename), 120)}).") from None
        report = scan(ready)
        if report.refusals:
            raise RefusedError(report.refusals)
        yield Candidate(read_skill(ready), report, left_out, source)


def install(
    source: str,
    folder: Path,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    now: float,
    category: str = "",
    only: str = "",
    is_agreed: bool = False,
    replaces: bool = False,
    taken: frozenset[str] = frozenset(),
) -> Candidate:
    """Install a skill in one step. ``is_agreed``: its warnings were read. ``taken`` are names no skill may have."""
    with looked_at(source, folder, environ=environ, cwd=cwd, only=only) as candidate:
        name = candidate.skill.name
        if same_name(name) in taken:
            raise SkillError(f"A skill cannot be called {name!r}: /{name} is a command.")
        if candidate.report.warnings and not is_agreed:
            raise WarningsError(name, candidate.report.warnings)
        with alone_in(folder):
            place = place_for(folder, category or DEFAULT_CATEGORY, name)
            _make_room(folder, place, name, now=now, replaces=replaces)
            move_in(candidate.skill.folder, place)
            record = {
                address: entry for address, entry in read_json(folder / ORIGINS).items() if (folder / address).is_dir()
            }
            record[str(place.relative_to(folder))] = {"from": source[:500], "at": now}
            write_private(folder / ORIGINS, json.dumps(record, sort_keys=True))
        return candidate


def place_for(folder: Path, category: str, name: str) -> Path:
    """Return where a skill of this name lies. The names were typed by somebody: neither may lead elsewhere."""
    parts = [part for part in category.strip("/").split("/") if part]
    for part in (*parts, name):
        if part.startswith(".") or not all(letter.isalnum() or letter in "-_." for letter in part) or len(part) > 64:
            raise SkillError(f"{part[:80]!r} is not usable as a name: take letters, figures, '-', '_' and '.'.")
    if len(parts) > 2:
        raise SkillError("A category has at most two parts.")
    place = folder.joinpath(*parts, name)
    for above in place.parents:
        if above == folder:
            break
        if above.is_symlink() or (above / FILE_NAME).exists():
            raise SkillError(f"{above.name!r} is a skill or a link itself, so no skill can lie in it.")
    return place


def skill_folders(folder: Path) -> list[Path]:
    """The folders that hold a skill. Not by ``glob``, which fails when another process moves a hidden one meanwhile."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if FILE_NAME in files:
            found.append(Path(place))
    return found


def _make_room(folder: Path, place: Path, name: str, *, now: float, replaces: bool) -> None:
    there = [path for path in skill_folders(folder) if same_name(path.name) == same_name(name)]
    if os.path.lexists(place) and place not in there:
        there.append(place)
    if there and not replaces:
        raise SkillError(f"There is a skill {name!r} already. To put this one in its place: --replace")
    for old in there:
        to_trash(folder, old, now=now)


def remove(folder: Path, skill: Skill, *, now: float) -> None:
    """Take a skill away; ``restore`` brings it back."""
    with alone_in(folder):
        if not skill.folder.is_relative_to(folder) or not skill.folder.is_dir():
            raise SkillError(f"{skill.name} is not in {folder}.")
        if skill.folder.is_symlink():
            skill.folder.unlink()  # what it leads to is not ours
        else:
            to_trash(folder, skill.folder, now=now)


def restore(folder: Path, name: str) -> Path:
    with alone_in(folder):
        place = from_trash(folder, name)
    if place is None:
        raise SkillError(f"No skill {name!r} is in the trash.")
    return place


# Where installed skills came from


def origins(folder: Path) -> Mapping[str, str]:
    """Return what each installed skill was installed from, by its address."""
    data = read_json(folder / ORIGINS)
    return {address: str(entry.get("from", "")) for address, entry in data.items() if isinstance(entry, dict)}
