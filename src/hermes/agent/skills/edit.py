"""Write the owner's own skills: scanned, atomic, undone by ``restore``."""

from __future__ import annotations

from pathlib import Path

from hermes.agent.real_path import real_path
from hermes.agent.skills import install
from hermes.agent.skills.files import alone_in, move_in, staging_in
from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import FILE_NAME, MAX_BYTES, Skill, SkillError, read_skill, same_name
from hermes.agent.skills.scan import MAX_FILE_BYTES, MAX_FILES, RefusedError, bad_path, is_left_out, scan
from hermes.store.home import make_private_folder
from hermes.store.private_files import write_private


class SkillWriter:
    """Every method says in a sentence what it did, or raises SkillError. All of them block."""

    def __init__(self, library: SkillLibrary) -> None:
        self._library = library
        self._folder = library.folder

    def create(self, name: str, content: str, category: str) -> str:
        """A second call with the same text is taken for the first one, repeated after a crash."""
        self._library.refresh()
        known = self._library.find(name)
        if known is not None:
            if self._library.read(known) == content:
                return self._describe("Created", known.name)
            raise SkillError(f"There is a skill {known.name!r} already; edit that one.")
        with alone_in(self._folder), staging_in(self._folder) as staging:
            ready = staging / "skill"
            self._write_checked(ready, name, content)
            move_in(ready, install.place_for(self._folder, category or "own", name))
        self._library.refresh()
        return self._describe("Created", name)

    def edit(self, name: str, content: str) -> str:
        skill = self._one_of_ours(name)
        with alone_in(self._folder), staging_in(self._folder) as staging:
            self._write_checked(staging / "skill", skill.name, content)
            write_private(skill.folder / FILE_NAME, content)
        self._library.refresh()
        return self._describe("Changed", skill.name)

    def write_file(self, name: str, file: str, content: str) -> str:
        skill = self._one_of_ours(name)
        if not file or same_name(file) == same_name(FILE_NAME):
            raise SkillError(f"Name the file to write, such as references/limits.md; {FILE_NAME} is changed by edit.")
        if (reason := bad_path(file)) or any(is_left_out(part) for part in file.split("/")):
            raise SkillError(f"{file[:80]!r} {reason or 'would be hidden'}.")
        if len(content.encode()) > MAX_FILE_BYTES or len(self._library.files(skill)) >= MAX_FILES:
            raise SkillError(f"A skill has at most {MAX_FILES} files of {MAX_FILE_BYTES:,} bytes.")
        root = skill.folder.resolve()
        target = root / file
        try:
            leads_out = not real_path(target.parent).is_relative_to(root) or target.is_symlink()
        except OSError as error:  # a loop of links
            raise SkillError(f"{file[:80]!r} is not a usable path ({error.strerror}).") from None
        if leads_out:
            raise SkillError(f"{file[:80]!r} leads out of the skill.")
        with alone_in(self._folder):
            make_private_folder(target.parent)
            write_private(target, content)
        return f"Wrote {file} of the skill {skill.name}."

    def delete(self, name: str) -> str:
        skill = self._one_of_ours(name)
        install.remove(self._folder, skill, now=self._library.now())
        self._library.refresh()
        return f"Removed the skill {skill.name}. The action restore brings it back."

    def restore(self, name: str) -> str:
        place = install.restore(self._folder, name)
        self._library.refresh()
        return self._describe("Restored", place.name)

    def _one_of_ours(self, name: str) -> Skill:
        self._library.refresh()
        skill = self._library.get(name)
        if not skill.folder.resolve().is_relative_to(self._folder.resolve()):
            raise SkillError(f"{skill.name} lies elsewhere and is only linked here, so it is not changed.")
        return skill

    def _write_checked(self, ready: Path, name: str, content: str) -> None:
        if len(content.encode()) > MAX_BYTES:
            raise SkillError(f"{FILE_NAME} has at most {MAX_BYTES:,} bytes; put the rest into references/.")
        make_private_folder(ready)
        write_private(ready / FILE_NAME, content)
        if refusals := scan(ready).refusals:
            raise RefusedError(refusals)
        if (written := read_skill(ready).name) != name:
            raise SkillError(f"The front matter names it {written!r}, not {name!r}.")

    def _describe(self, did: str, name: str) -> str:
        return f"{did} the skill {name}. It is offered from the next message on; people call it with /{name}."
