"""Load all skills; a broken one is a warning and stops no other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, field, replace
from itertools import islice
from pathlib import Path

from hermes.agent.real_path import real_path
from hermes.agent.skills import sync
from hermes.agent.skills.files import read_json
from hermes.agent.skills.parse import FILE_NAME, Skill, SkillError, Variable, read_bounded, read_skill, same_name
from hermes.agent.skills.reserved import is_reserved
from hermes.config.agent_settings import SkillsConfig
from hermes.config.watch import run_in_thread
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.failures import sentence
from hermes.core.roles import PersonRole, at_least
from hermes.core.secret import Secret
from hermes.core.slash_command import nearest
from hermes.core.text import one_line, storable
from hermes.store.private_files import write_private

log = logging.getLogger(__name__)

CACHE = ".index.json"
CACHE_VERSION = 1
LOOK_SECONDS = 2.0
MAX_SKILLS = 500
MAX_DEPTH = 3
MAX_FILE_BYTES = 256 * 1024
INDEX_HEAD = "Skills: know-how to read with skill_view before work it fits."
INDEX_LINE = 88
INDEX_CHARACTERS = 1600

_SYSTEMS = {"linux": "linux", "macos": "darwin", "darwin": "darwin", "windows": "win32"}

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """One SKILL.md as it was last read: the skill, or what is wrong with it."""

    stamp: Stamp
    skill: Skill | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Shelf:
    """All skills at one moment."""

    found: Mapping[str, FoundSkill] = field(default_factory=dict)
    skills: tuple[Skill, ...] = ()
    by_name: Mapping[str, Skill] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Index:
    """The lines for the prompts of one platform, good for as long as both are these."""

    shelf: Shelf
    settings: SkillsConfig
    text: str


class SkillLibrary:
    """The skills of one home. Reading from it never touches the disk, but for ``refresh``, ``read`` and ``files``.

    ``value_of`` looks a variable up, ``own_variables`` are those that hold secrets of Hermes itself, and ``learn`` is
    told each value that is handed out. It begins with what it knew when it was last open, so that a prompt is the same
    before and after a restart; ``run`` brings the shipped skills in and follows changes.
    """

    def __init__(
        self,
        home: Path,
        settings: Callable[[], SkillsConfig] = SkillsConfig,
        *,
        value_of: Callable[[str], str | None] = lambda _: None,
        own_variables: Callable[[], frozenset[str]] = frozenset,
        learn: Callable[[Iterable[Secret]], None] = lambda _: None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.folder = home / "skills"
        self.synced = sync.Synced()
        self.is_synced = asyncio.Event()
        self.may_begin = asyncio.Event()
        self._settings = settings
        self._value_of = value_of
        self._own_variables = own_variables
        self._learn = learn
        self.now = now
        self._lock = threading.Lock()
        self._logged: frozenset[str] = frozenset()
        self._indexes: dict[str, _Index] = {}
        self._shelf = self._shelve(self._remembered())

    # What there is

    def all(self) -> tuple[Skill, ...]:
        """Return every skill that can be read, switched off or not, by category and name."""
        return self._shelf.skills

    def offered(self, platform: str = "") -> tuple[Skill, ...]:
        """Return the skills that are on for a chat platform; '' is any."""
        return tuple(skill for skill in self._shelf.skills if self.why_off(skill, platform) == "")

    def why_off(self, skill: Skill, platform: str = "") -> str:
        """'' when the skill is offered there, else the reason."""
        settings = self._settings()
        if _names(settings.disabled, skill):
            return "switched off"
        if platform and _names(settings.platform_disabled.get(platform, ()), skill):
            return f"switched off on {platform}"
        systems = {_SYSTEMS[name] for name in skill.platforms if name in _SYSTEMS}
        if systems and sys.platform not in systems:
            return "made for another system"
        chats = {name for name in skill.platforms if name not in _SYSTEMS}
        if platform and chats and platform not in chats:
            return f"not made for {platform}"
        return ""

    def troubles(self) -> tuple[str, ...]:
        return self._shelf.troubles

    def find(self, name: str, platform: str | None = None) -> Skill | None:
        """By name or ``category/name``. With a platform, only what is offered there."""
        skill = self._shelf.by_name.get(same_name(name))
        if skill is not None and platform is not None and self.why_off(skill, platform):
            return None
        return skill

    def get(self, name: str, platform: str | None = None) -> Skill:
        """Return the skill, or a SkillError that names the nearest one, or why it is not offered."""
        skill = self.find(name)
        if skill is None:
            guess = nearest(same_name(name), [each.name for each in self._shelf.skills])
            hint = f" Did you mean {guess!r}?" if guess else ""
            raise SkillError(f"There is no skill {name[:80]!r}.{hint}")
        if platform is not None and (why := self.why_off(skill, platform)):
            raise SkillError(f"The skill {skill.name} is {why}.")
        return skill

    def is_called(self, name: str, platform: str) -> bool:
        """Tell whether ``/name`` in a chat there calls a skill."""
        return self.find(name, platform) is not None

    def index(self, platform: str, role: PersonRole | str) -> str:
        """Return the lines for the prompt: short, in a stable order; '' when there is nothing to offer."""
        if not at_least(PersonRole(role or PersonRole.GUEST), PersonRole.USER):
            return ""  # the tools that read skills are not for guests either
        shelf, settings = self._shelf, self._settings()
        known = self._indexes.get(platform)
        if known is None or known.shelf is not shelf or known.settings is not settings:
            known = self._indexes[platform] = _Index(shelf, settings, self._written(platform))
        return known.text

    def _written(self, platform: str) -> str:
        offered = self.offered(platform)
        if not offered:
            return ""
        lines = [INDEX_HEAD]
        room = INDEX_CHARACTERS
        for skill in offered:
            line = one_line(f"- {skill.name}: {skill.description}", INDEX_LINE)
            if len(line) + 1 > room:
                lines.append(f"- … and {len(offered) - len(lines) + 1} more: skills_list")
                break
            lines.append(line)
            room -= len(line) + 1
        return "\n".join(lines)

    # Environment

    def environment_variables(self) -> frozenset[str]:
        """Return the variables that commands may see since an offered skill needs them. Never one of Hermes' own."""
        wanted = {variable.name for skill in self.offered() for variable in skill.variables}
        return self._granted(wanted) if wanted else frozenset()

    def variables(self, skill: Skill) -> tuple[Variable, ...]:
        """Return what the skill asks for and may have."""
        granted = self._granted({variable.name for variable in skill.variables}) if skill.variables else frozenset()
        return tuple(variable for variable in skill.variables if variable.name in granted)

    def _granted(self, names: set[str]) -> frozenset[str]:
        own = self._own_variables()  # looks through every key of the configuration
        return frozenset(name for name in names if not is_reserved(name) and name not in own)

    def environment(self) -> dict[str, str]:
        """Those of them that are set, with their values; from now on the values are hidden in every output."""
        values = {name: value for name in sorted(self.environment_variables()) if (value := self._value_of(name))}
        self._learn(Secret(value) for value in values.values() if len(value) >= 8)  # shorter ones are words, not keys
        return values

    def missing(self, skill: Skill) -> tuple[Variable, ...]:
        return tuple(variable for variable in self.variables(skill) if not self._value_of(variable.name))

    # Reading

    def read(self, skill: Skill, file: str = "") -> str:
        """Return the text of a file of the skill: plain, inside its folder, of bounded size. Blocks."""
        root = skill.folder.resolve()
        try:
            target = real_path(root / (file or FILE_NAME))
        except (OSError, ValueError) as error:
            raise SkillError(f"{file!r} is not a usable path ({error}).") from None
        if not target.is_relative_to(root) or target == root:
            raise SkillError(f"{file!r} is outside the skill {skill.name}. Only its own files can be read.")
        try:
            content = read_bounded(target, MAX_FILE_BYTES)
        except SkillError as error:
            raise SkillError(
                f"{skill.name}: {sentence(str(error))} Its files: {', '.join(self.files(skill)) or FILE_NAME}."
            ) from None
        if b"\0" in content:
            raise SkillError(f"{file!r} of the skill {skill.name} is not a text file.")
        return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")

    def files(self, skill: Skill) -> tuple[str, ...]:
        """Return the further files of a skill, relative to it. Blocks."""
        found = []
        for folder, folders, names in os.walk(skill.folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            found += [os.path.relpath(os.path.join(folder, name), skill.folder) for name in sorted(names)]
            if len(found) > 100:
                break
        return tuple(name for name in found[:100] if name != FILE_NAME and not os.path.basename(name).startswith("."))

    # Following the disk

    def refresh(self) -> bool:
        """Look what is on the disk now; True when something changed. Blocks; safe from any thread."""
        with self._lock:
            before = self._shelf
            found = {
                address: self._read(address, stamp) for address, stamp in islice(_below(self.folder, "", 0), MAX_SKILLS)
            }
            if found == before.found:
                return False
            self._shelf = self._shelve(found)
            for trouble in self._shelf.troubles:
                if trouble not in self._logged:
                    log.warning("Skill left out: %s", trouble)
            self._logged = frozenset(self._shelf.troubles)
            self._remember(found)
            self.environment()  # a value that a new skill asks for is hidden before anything can print it
            return True

    def bring_in(self) -> sync.Synced:
        """Copy the shipped skills into the home, and see what is there then. Blocks."""
        try:
            self.synced = sync.sync(self.folder, now=self.now())
        except (OSError, SkillError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.synced = sync.Synced(trouble=f"The bundled skills could not be written to {self.folder}: {reason}")
            log.warning("Skills not synced", extra={"folder": str(self.folder), "reason": reason})
        else:
            log.info("Syncing bundled skills into %s/ ...  %s", self.folder, self.synced)
        self.refresh()
        return self.synced

    async def run(self) -> None:
        """Wait for ``may_begin``, install the shipped skills, then watch the disk from a thread until cancelled."""
        await self.may_begin.wait()
        loop = asyncio.get_running_loop()

        def follow(stop: threading.Event) -> None:
            self.bring_in()
            loop.call_soon_threadsafe(self.is_synced.set)
            while not stop.wait(LOOK_SECONDS):
                self.refresh()

        await run_in_thread(follow, "skills")

    def _read(self, address: str, stamp: Stamp) -> FoundSkill:
        known = self._shelf.found.get(address)
        if known is not None and known.stamp == stamp:
            return known
        category, _, _ = address.rpartition("/")
        try:
            return FoundSkill(stamp, read_skill(self.folder / address, category))
        except SkillError as error:
            return FoundSkill(stamp, trouble=storable(f"{self.folder / address / FILE_NAME}: {sentence(str(error))}"))

    def _shelve(self, found: Mapping[str, FoundSkill]) -> Shelf:
        bundled = sync.shipped(self.folder)
        troubles = [each.trouble for each in found.values() if each.trouble]
        # A skill of one's own goes before a shipped one of the same name.
        ordered = sorted(found.items(), key=lambda item: (item[0] in bundled, item[0]))
        by_name: dict[str, Skill] = {}
        for address, each in ordered:
            if each.skill is None:
                continue
            skill = replace(each.skill, is_bundled=address in bundled)
            other = by_name.setdefault(same_name(skill.name), skill)
            if other is not skill:
                troubles.append(f"{self.folder / address}: {other.folder} has the same name and counts instead.")
        skills = tuple(sorted(by_name.values(), key=lambda skill: (skill.category, skill.name)))
        return Shelf(found, skills, {**{same_name(each.address): each for each in skills}, **by_name}, tuple(troubles))

    # What was known before

    def _remember(self, found: Mapping[str, FoundSkill]) -> None:
        entries = {
            address: {
                "stamp": each.stamp,
                "skill": {**asdict(each.skill), "folder": ""} if each.skill is not None else None,
                "trouble": each.trouble,
            }
            for address, each in found.items()
        }
        with contextlib.suppress(OSError):  # without it the next start reads each skill itself
            write_private(self.folder / CACHE, json.dumps({"version": CACHE_VERSION, "skills": entries}))

    def _remembered(self) -> dict[str, FoundSkill]:
        cached = read_json(self.folder / CACHE)
        if cached.get("version") != CACHE_VERSION or not isinstance(cached.get("skills"), dict):
            return {}
        found: dict[str, FoundSkill] = {}
        try:
            for address, entry in cached["skills"].items():
                first, second, third = entry["stamp"]
                kept = entry["skill"]
                if kept is None:
                    found[address] = FoundSkill((first, second, third), trouble=str(entry["trouble"]))
                    continue
                lists = {name: tuple(kept[name]) for name in ("platforms", "related")}
                variables = tuple(Variable(**variable) for variable in kept["variables"])
                skill = Skill(**{**kept, **lists, "variables": variables, "folder": self.folder / address})
                found[address] = FoundSkill((first, second, third), skill)
        except (KeyError, TypeError, ValueError):
            return {}
        return found


def _names(names: Iterable[str], skill: Skill) -> bool:
    mine = {same_name(skill.name), same_name(skill.address)}
    return any(same_name(name) in mine for name in names)


def _below(folder: Path, address: str, depth: int) -> Iterator[tuple[str, Stamp]]:
    if address:
        with contextlib.suppress(OSError):
            seen = os.stat(folder / FILE_NAME, follow_symlinks=False)
            yield address, (seen.st_mtime_ns, seen.st_size, seen.st_ino)
            return
    if depth >= MAX_DEPTH:
        return
    try:
        # A folder that the owner linked here counts; how deep we look is bounded.
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return  # not there yet, or not readable: nothing in it
    for name in names:
        yield from _below(folder / name, f"{address}/{name}" if address else name, depth + 1)
