"""Find the skills of another gateway."""

from __future__ import annotations

from hermes.hosting.importers.found import FoundHome, FoundSkillFolder
from hermes.hosting.importers.source import SourceHome

MAX_SKILLS = 500
MAX_DEPTH = 4
FILE_NAME = "SKILL.md"


def find_skills(
    source: SourceHome, folder: tuple[str, ...], home: FoundHome, bundled: frozenset[str] = frozenset()
) -> list[FoundSkillFolder]:
    """The folders with a SKILL.md, their category the folders above. Those in ``bundled`` stay out."""
    found: list[FoundSkillFolder] = []
    waiting = [folder]
    others = 0
    while waiting and len(found) < MAX_SKILLS:
        place = waiting.pop(0)
        names = source.names(*place)
        if FILE_NAME in names and place != folder:
            if place[-1] in bundled:
                others += 1
            elif source.is_file(*place, FILE_NAME):
                found.append(FoundSkillFolder(source.path.joinpath(*place), "/".join(place[len(folder) : -1])))
            else:
                home.leave_out("skills", place[-1], "its SKILL.md is a link or not a regular file")
            continue
        if len(place) - len(folder) < MAX_DEPTH:
            for name in names:
                if name.startswith("."):
                    continue
                if source.is_folder(*place, name):
                    waiting.append((*place, name))
                elif source.path.joinpath(*place, name).is_symlink():
                    home.leave_out("skills", name, "it is a link, and links are not followed")
    if len(found) >= MAX_SKILLS:
        home.leave_out("skills", "the rest", f"there are more than {MAX_SKILLS}")
    if others:
        home.leave_out(
            "skills", f"{others} bundled with {home.kind}", "install those you miss: `hermes skills install`"
        )
    return found
