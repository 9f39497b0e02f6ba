"""Name the workspace folder of each person: no two people ever share one."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection
from pathlib import Path

from hermes.store.private_files import write_private

log = logging.getLogger(__name__)

NOBODY = "nobody"
CLAIMS_FILE = ".folders.json"
MAX_NAME = 200
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:@+=,~")


def folder_name(person_id: str) -> str:
    """Name a folder after a person's id. Two different ids never have the same name.

    Letters, digits and some signs stand for themselves; every other byte is written ``%2F``.
    """
    if not person_id:
        return NOBODY
    name = "".join(_written(letter) for letter in person_id)
    if name.startswith(".") or name == NOBODY:
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > MAX_NAME:
        digest = hashlib.sha256(person_id.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{name[: MAX_NAME - len(digest)]}%{digest}"  # longer by a letter than any name that was not cut
    return name


def _written(letter: str) -> str:
    if letter in _PLAIN:
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def former_name(person_id: str) -> str:
    """Return the name of a folder in older releases, where ``/`` became ``_``."""
    return person_id.replace("/", "_")


class WorkspaceFolders:
    """Where the files of each person are.

    A person whose folder would be named differently now keeps the folder they have: it is claimed for them, in a file
    beside the folders, and nothing is moved.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._claims: dict[str, str] = {}

    def load(self, people: Collection[str]) -> None:
        """Claim the folders that people have from older releases. Blocks.

        ``people`` are the ids of all people.
        """
        self._claims = self._stored()
        ids = set(people)
        found = dict(self._claims)
        for person_id in sorted(ids):
            old, name = former_name(person_id), folder_name(person_id)
            is_theirs = old != name and person_id not in found and old not in found.values() and _is_one_name(old)
            if not is_theirs or (self._root / name).exists() or not (self._root / old).is_dir():
                continue
            if old in ids:
                log.warning("Workspace separated", extra={"person": person_id, "folder": name, "was": old})
                continue  # two people had this one; it is the one's whose name it bears
            found[person_id] = old
        if found != self._claims:
            write_private(self._root / CLAIMS_FILE, json.dumps(found, indent=1) + "\n")
            self._claims = found

    def _stored(self) -> dict[str, str]:
        try:
            read = json.loads((self._root / CLAIMS_FILE).read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("Claimed workspaces not read", extra={"reason": str(error)})
            return {}
        pairs = read.items() if isinstance(read, dict) else ()
        return {person: name for person, name in pairs if isinstance(name, str) and _is_one_name(name)}

    def of(self, person_id: str) -> Path:
        claimed = self._claims.get(person_id)
        if claimed is not None:
            return self._root / claimed
        name = folder_name(person_id)
        return self._root / (f"%{name}" if name in self._claims.values() else name)


def _is_one_name(name: str) -> bool:
    return bool(name) and "/" not in name and "\0" not in name and name not in (".", "..", CLAIMS_FILE, NOBODY)
