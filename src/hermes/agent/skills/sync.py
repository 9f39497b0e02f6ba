"""Copy shipped skills into the home; update those the owner did not edit.

A manifest in the skills folder holds what we wrote. A file that differs from it is somebody's edit, and the whole skill
is left alone; a skill that is gone was deleted and stays so; what we never wrote is never touched. When neither side
changed, a sync is one look at each file and reads none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import hermes
from hermes.agent.skills.files import alone_in, move_in, read_json, staging_in, sweep, to_trash
from hermes.agent.skills.parse import FILE_NAME, SkillError
from hermes.core.dataclasses import dataclass
from hermes.store.home import make_private_folder
from hermes.store.private_files import write_private

BUNDLED = Path(hermes.__file__).parent / "bundled_skills"
MANIFEST = ".bundled.json"


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did, by the addresses of the skills. ``trouble`` is '' unless it could not be done."""

    new: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def total(self) -> int:
        return sum(map(len, (self.new, self.updated, self.unchanged, self.kept, self.deleted)))

    def __str__(self) -> str:
        if self.trouble:
            return self.trouble
        summary = f"Done: {len(self.new)} new, {len(self.updated)} updated, {len(self.unchanged)} unchanged."
        if self.kept:
            summary += f" {len(self.kept)} kept as you have them ({', '.join(self.kept)})."
        if self.deleted:
            summary += f" {len(self.deleted)} left out since you removed them."
        if self.retired:
            summary += f" {len(self.retired)} no longer shipped and moved to the trash."
        return f"{summary} {self.total} total bundled."


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was: its hash, and the size and time that tell whether it must be hashed again."""

    digest: str
    size: int = -1
    time: int = -1


Files = dict[str, Known]


@dataclass(slots=True)
class SyncManifest:
    """``shipped`` is the package as we last read it, ``written`` what we put into the home, both by skill and file."""

    shipped: dict[str, Files] = field(default_factory=dict)
    written: dict[str, Files] = field(default_factory=dict)


def shipped(folder: Path) -> frozenset[str]:
    """Return the addresses of the skills here that came with the product."""
    return frozenset(_tables(read_json(folder / MANIFEST).get("written")))


def sync(folder: Path, bundled: Path = BUNDLED, *, now: float, reset: str = "") -> Synced:
    """Copy the shipped skills to the folder; ``reset`` restores one (or 'all'). Safe to repeat after a crash."""
    with alone_in(folder):
        sweep(folder, now=now)
        return _Sync(folder, bundled, now).run(reset)


class _Sync:
    def __init__(self, folder: Path, bundled: Path, now: float) -> None:
        self._folder = folder
        self._bundled = bundled
        self._now = now
        self._before = _load(folder / MANIFEST)
        self._after = SyncManifest()
        self._did: dict[str, list[str]] = {name: [] for name in Synced.__dataclass_fields__ if name != "trouble"}

    def run(self, reset: str) -> Synced:
        skills = sorted(str(path.parent.relative_to(self._bundled)) for path in self._bundled.rglob(FILE_NAME))
        self._after.shipped = {
            address: _hashed(self._bundled / address, self._before.shipped.get(address, {})) for address in skills
        }
        if reset:
            self._put_away(reset)
        for address, files in self._after.shipped.items():
            self._did[self._one(address, files)].append(address)
        for address in self._before.written.keys() - self._after.shipped.keys():
            # No longer shipped: an unchanged copy goes to the trash, an edited one belongs to the owner.
            written, place = self._before.written[address], self._folder / address
            if written and place.is_dir() and not self._is_linked(place) and _is_same(_hashed(place, written), written):
                to_trash(self._folder, place, now=self._now)
                self._did["retired"].append(address)
        if (self._after.shipped, self._after.written) != (self._before.shipped, self._before.written):
            _save(self._folder / MANIFEST, self._after)
        did = {name: tuple(addresses) for name, addresses in self._did.items()}
        return Synced(did["new"], did["updated"], did["unchanged"], did["kept"], did["deleted"], did["retired"])

    def _one(self, address: str, theirs: Files) -> str:
        """Do what one skill needs; returns what that was."""
        place = self._folder / address
        written = self._before.written.get(address)
        if not os.path.lexists(place) and written is None and not self._is_linked(place):
            with staging_in(self._folder) as staging:
                ready = staging / "skill"
                self._copy(address, theirs, ready)
                move_in(ready, place)
            self._after.written[address] = _hashed(place, {})
            return "new"
        if not place.is_dir() or self._is_linked(place):
            if written is not None:
                self._after.written[address] = written
            return "kept" if os.path.lexists(place) else "deleted"
        mine = _hashed(place, written or {})
        if _is_same(mine, theirs):
            # Also: a sync that was killed between writing the skill and writing the manifest.
            self._after.written[address] = {name: mine[name] for name in theirs}
            return "unchanged"
        if written is None:
            return "kept"  # a skill of the owner's own that has this address
        if not _is_as_written(mine, written, theirs):
            self._after.written[address] = written
            return "kept"
        self._update(address, theirs, gone=written.keys() - theirs.keys())
        return "updated"

    def _is_linked(self, place: Path) -> bool:
        """Tell whether the owner put a link there, or above it: what it leads to is not ours to write into."""
        path = str(self._folder)
        return any(os.path.islink(path := os.path.join(path, name)) for name in place.relative_to(self._folder).parts)

    def _update(self, address: str, theirs: Files, gone: set[str]) -> None:
        place = self._folder / address
        self._copy(address, theirs, place)
        for name in gone:
            (place / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it may hold a file of the owner's
                (place / name).parent.rmdir()
        mine = _hashed(place, {})
        self._after.written[address] = {name: mine[name] for name in theirs}

    def _copy(self, address: str, files: Files, place: Path) -> None:
        for name in files:
            make_private_folder((place / name).parent)
            write_private(place / name, (self._bundled / address / name).read_bytes())

    def _put_away(self, name: str) -> None:
        chosen = [each for each in self._after.shipped if name in {"all", each, each.rpartition("/")[2]}]
        if not chosen:
            raise SkillError(f"No bundled skill is called {name!r}. Bundled: {', '.join(self._after.shipped)}.")
        for address in chosen:
            place = self._folder / address
            if place.is_dir() and not self._is_linked(place):
                if _is_same(_hashed(place, {}), self._after.shipped[address]):
                    continue
                to_trash(self._folder, place, now=self._now)
            self._before.written.pop(address, None)


def _is_same(mine: Files, theirs: Files) -> bool:
    """Tell whether every file of theirs is here as it is there. Further files are the owner's own and do not count."""
    return all(name in mine and mine[name].digest == known.digest for name, known in theirs.items())


def _is_as_written(mine: Files, written: Files, theirs: Files) -> bool:
    """Tell whether nobody but us changed it. A file that is new already was written by a sync that was killed."""
    for name in written.keys() | theirs.keys():
        ours = {known[name].digest for known in (written, theirs) if name in known}
        if name in mine and mine[name].digest not in ours:
            return False
        if name not in mine and name in written and name in theirs:
            return False
    return True


def _hashed(folder: Path, known: Mapping[str, Known]) -> Files:
    """Return every plain file below, hashed; one whose size and time are as known is not read."""
    found: Files = {}
    for path, _, names in os.walk(folder):
        for name in sorted(names):
            file = os.path.join(path, name)
            relative = os.path.relpath(file, folder)
            if name.startswith(".") or os.path.islink(file):
                continue
            seen = os.stat(file)
            before = known.get(relative)
            if before is not None and (before.size, before.time) == (seen.st_size, seen.st_mtime_ns):
                found[relative] = before
            else:
                digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
                found[relative] = Known(digest, seen.st_size, seen.st_mtime_ns)
    return found


def _load(path: Path) -> SyncManifest:
    data = read_json(path)
    try:
        return SyncManifest(
            *({address: _files(table) for address, table in _tables(data.get(part)).items()} for part in PARTS)
        )
    except (TypeError, ValueError):
        return SyncManifest()  # damaged: what equals the package is taken as ours again, all else as the owner's


PARTS = ("shipped", "written")


def _files(table: Mapping[str, Any]) -> Files:
    return {name: Known(str(digest), int(size), int(time)) for name, (digest, size, time) in table.items()}


def _tables(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _save(path: Path, manifest: SyncManifest) -> None:
    data = {
        part: {
            address: {name: (known.digest, known.size, known.time) for name, known in files.items()}
            for address, files in getattr(manifest, part).items()
        }
        for part in PARTS
    }
    write_private(path, json.dumps(data, sort_keys=True))
