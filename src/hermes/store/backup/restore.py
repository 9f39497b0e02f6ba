"""Restore a backup as a whole: what was there is set aside, and an interrupted restore is finished by the next start.

An archive is unpacked and checked in ``.restore/new`` of the home. Then the plan is written, which is the moment of the
decision: whoever owns the home next carries it out by renaming, and begins where a kill left off. Before the plan
nothing has changed; after it, nothing else can be read.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, GatewayError
from hermes.store import home as homes
from hermes.store import migrate
from hermes.store.backup import contents, shelf, vault
from hermes.store.backup.archive import (
    ArchivedFile,
    ArchiveReader,
    ArchiveRefusedError,
    BackupManifest,
    open_archive,
)
from hermes.store.backup.secret_marks import fill_in
from hermes.store.private_files import sync_folder, write_private
from hermes.store.sqlite.file import tx_of
from hermes.store.sqlite.transcript_files import Journal

FOLDER = ".restore"
PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class PreparedRestore:
    """``missing_secrets``: how many secrets of config.yaml the home does not know any more."""

    manifest: BackupManifest
    names: tuple[str, ...]
    missing_secrets: int = 0
    has_secrets: bool = False


def verify(archive: Path, key: bytes | None, passphrase: str = "") -> BackupManifest:
    """Read a whole archive and compare every checksum; raises ArchiveRefusedError."""
    with open_archive(archive, key) as reader:
        sealed = b""
        for file, chunks in reader.files():
            for chunk in chunks:
                if passphrase and file.name == contents.ENCRYPTED:
                    sealed += chunk
        if passphrase and sealed:
            vault.unseal(sealed, reader.manifest.id, passphrase, reader.name)
        return reader.manifest


def prepare(
    home: Path,
    archive: Path,
    *,
    passphrase: str = "",
    secrets: Sequence[str] = (),
    accepts_other_home: bool = False,
) -> PreparedRestore:
    """Unpack an archive beside the home's files and check all of it. Raises ArchiveRefusedError; nothing is changed.

    ``secrets`` are values of the home's present settings, which may stand in those of the archive.
    """
    key = shelf.read_key(home)
    new = home / FOLDER / "new"
    with open_archive(archive, key) as reader:
        if key is not None and not reader.is_of_this_home and not accepts_other_home:
            raise ArchiveRefusedError(
                f"{reader.name} was not made by this home, so only its checksums can be checked. "
                "If you trust it: --other-home"
            )
        _refuse_without_room(home, reader)
        drop_unfinished(home)
        homes.make_private_folder(new)
        try:
            sealed = _unpack(reader, new)
            opened = vault.unseal(sealed, reader.manifest.id, passphrase, reader.name) if sealed and passphrase else ()
            for name, content in opened:
                _folder_of(new, name)
                write_private(new / name, content)
            missing = _fill_in_secrets(new, secrets, key)
            for store in contents.STORES:
                if (new / store).exists():
                    _make_ready(new, store)
        except BaseException:
            shutil.rmtree(home / FOLDER, ignore_errors=True)
            raise
        secret_names = {next(known for known in contents.SECRETS if _is_at(name, known)) for name, _ in opened}
        names = (*reader.manifest.scope, *sorted(secret_names - {"backups/key"}))
        if any(name == "backups/key" for name, _ in opened) and key is None:
            names = (*names, "backups/key")
        return PreparedRestore(reader.manifest, names, missing, bool(opened))


def prepare_copies(home: Path, copies: Mapping[str, Path]) -> Sequence[str]:
    """Lay copies of single stores beside the home's files; returns the names for ``decide``. Nothing is changed.

    Raises ArchiveRefusedError for a copy that this program cannot read.
    """
    new = home / FOLDER / "new"
    drop_unfinished(home)
    homes.make_private_folder(new)
    try:
        for store, copy in copies.items():
            shutil.copyfile(copy, new / store)
            (new / store).chmod(0o600)
            _make_ready(new, store)
    except BaseException:
        shutil.rmtree(home / FOLDER, ignore_errors=True)
        raise
    return list(copies)


def decide(home: Path, names: Sequence[str], now: float) -> Path:
    """Write the plan: from here on the restore happens, however often it is interrupted. Returns where the old goes."""
    return _write_plan(home, f"{FOLDER}/new", names, now)


def undo(home: Path, now: float) -> Path:
    """Plan to put back what the last restore set aside. Raises GatewayError when there is nothing."""
    for folder in shelf.set_aside_folders(home):
        try:
            plan = json.loads((folder / PLAN).read_text("utf-8"))
        except (OSError, ValueError):
            continue
        drop_unfinished(home)
        homes.make_private_folder(home / FOLDER)
        return _write_plan(home, str(folder.relative_to(home)), [str(name) for name in plan["names"]], now)
    raise GatewayError("There is nothing to take back: no restore has set anything aside.")


def is_planned(home: Path) -> bool:
    return (home / FOLDER / PLAN).exists()


def finish(home: Path) -> Path | None:
    """Carry out a plan, from where a kill left off; returns where the old is. Only the owner of the home may.

    Without a plan, what an interrupted restore unpacked is deleted.
    """
    if not (home / FOLDER).exists():
        return None
    if not is_planned(home):
        drop_unfinished(home)
        return None
    plan = json.loads((home / FOLDER / PLAN).read_text("utf-8"))
    source, aside = home / str(plan["source"]), home / str(plan["aside"])
    homes.make_private_folder(aside)
    has_new = set(plan["new"])
    for name in plan["names"]:
        new, present, old = source / name, home / name, aside / name
        if name in has_new and not os.path.lexists(new):
            continue  # done before a kill
        if os.path.lexists(present) and not os.path.lexists(old):
            _folder_of(aside, name)
            _move(present, old)
        if name in has_new:
            _folder_of(home, name)
            _move(new, present)
    for folder in {home, aside, *((home / name).parent for name in plan["names"] if "/" in name)}:
        if folder.is_dir():
            sync_folder(folder)
    write_private(aside / PLAN, json.dumps({"names": plan["names"], "at": plan["at"]}))
    (home / FOLDER / PLAN).unlink()
    shutil.rmtree(home / FOLDER, ignore_errors=True)
    if source.parent == shelf.default_folder(home):  # what was taken back is in its place; nothing of it is left
        shutil.rmtree(source, ignore_errors=True)
    return aside


def _move(source: Path, target: Path) -> None:
    """Rename, or copy where ``backups`` or a single file of the home is on another disk."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EBUSY):
            raise
        half = target.with_name(f".{target.name}.half")
        if half.is_dir():
            shutil.rmtree(half)
        is_folder = source.is_dir() and not source.is_symlink()
        if is_folder:
            shutil.copytree(source, half, symlinks=True)
        else:
            shutil.copy2(source, half, follow_symlinks=False)
        try:
            os.rename(half, target)
        except OSError:  # the target is a mounted file: only its content can be replaced
            shutil.copyfile(half, target)
            half.unlink()
        with contextlib.suppress(OSError):  # a mounted file stays; its content is replaced next
            if is_folder:
                shutil.rmtree(source)
            else:
                source.unlink()


def drop_unfinished(home: Path) -> None:
    """Delete what a restore that was not decided has unpacked."""
    folder = home / FOLDER
    if is_planned(home):
        raise GatewayError("A restore is not finished yet. It ends with the next start: hermes gateway restart")
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def _write_plan(home: Path, source: str, scope: Sequence[str], now: float) -> Path:
    names = [name for top in scope for name in (top, *contents.companions(top))]
    names = list(dict.fromkeys(names))
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    aside = shelf.default_folder(home) / f"{shelf.BEFORE_RESTORE}{stamp}"
    number = 1
    while aside.exists():
        aside = aside.with_name(f"{shelf.BEFORE_RESTORE}{stamp}-{number}")
        number += 1
    plan: dict[str, Any] = {
        "source": source,
        "aside": str(aside.relative_to(home)),
        "names": names,
        "new": [name for name in names if os.path.lexists(home / source / name)],
        "at": now,
    }
    if not (home / source).is_dir():  # a gateway that started meanwhile has taken the home, and tidied it up
        raise GatewayError("A gateway was started during the restore. Nothing was changed; type it again.")
    sync_folder(home / source)
    write_private(home / FOLDER / PLAN, json.dumps(plan))
    sync_folder(home / FOLDER)
    sync_folder(home)
    return aside


# Unpacking


def _refuse_without_room(home: Path, reader: ArchiveReader) -> None:
    free = shutil.disk_usage(home).free
    if reader.manifest.size > free:
        raise ArchiveRefusedError(
            f"{reader.name} holds {reader.manifest.size >> 20} MB, and {home} has {free >> 20} MB left."
        )


def _unpack(reader: ArchiveReader, new: Path) -> bytes:
    """Write every file of an archive below a folder that is ours alone; returns the encrypted secrets."""
    sealed = b""
    for file, chunks in reader.files():
        if file.name == contents.ENCRYPTED:
            if file.size > 2 * vault.MAX_BYTES:
                raise ArchiveRefusedError(f"{reader.name} is damaged: its secrets are too large.")
            sealed = b"".join(chunks)
            continue
        _write_file(new, file, chunks)
    return sealed


def _write_file(new: Path, file: ArchivedFile, chunks: Iterator[bytes]) -> None:
    _folder_of(new, file.name)
    # Only we write here, and a list names no file twice: O_EXCL meets nothing, and no link is followed.
    descriptor = os.open(new / file.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as target:
        for chunk in chunks:
            target.write(chunk)
        os.fchmod(target.fileno(), 0o700 if file.mode & 0o100 else 0o600)
        target.flush()
        os.fsync(target.fileno())


def _folder_of(root: Path, name: str) -> None:
    path = root
    for part in name.split("/")[:-1]:
        path /= part
        homes.make_private_folder(path)


def _is_at(name: str, top: str) -> bool:
    return name == top or name.startswith(f"{top}/")


def _fill_in_secrets(new: Path, secrets: Sequence[str], key: bytes | None) -> int:
    missing = 0
    for name in contents.CONFIG_FILES:
        if (new / name).exists():
            text = (new / name).read_text("utf-8", "surrogateescape")
            filled, count = fill_in(text, secrets, key or b"")
            missing += count
            if filled != text:
                write_private(new / name, filled.encode("utf-8", "surrogateescape"))
    return missing


def _make_ready(new: Path, store: str) -> None:
    """Prepare a store of then for now: write the transcripts' files, and doubt what it was about to send.

    What waited to be sent when the backup was made has probably been sent since: it goes out marked as a repetition.
    Nobody is signed in to the dashboard: a sign-in of then may have been ended since, or be a stranger's.
    Raises ArchiveRefusedError for a store that this program cannot read.
    """
    try:
        with contextlib.closing(sqlite3.connect(new / store, isolation_level=None)) as connection:
            tx = tx_of(connection)
            migrate.pending(tx, migrate.load(contents.MIGRATIONS[store]), f"The {store} of this backup")
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise ArchiveRefusedError(f"The {store} of this backup is damaged.")
            if store != "state.db":
                return
            connection.execute("UPDATE outbox SET state = 'unknown' WHERE state = 'ready'")
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            for table in tables & {"dashboard_sign_ins", "dashboard_codes"}:  # older stores have none
                connection.execute(f"DELETE FROM {table}")
            journal = Journal(new / "sessions")
            for (session,) in connection.execute("SELECT id FROM sessions").fetchall():
                journal.catch_up(tx, str(session))
    except ConfigError as error:
        raise ArchiveRefusedError(str(error)) from error
    except sqlite3.Error as error:
        raise ArchiveRefusedError(f"The {store} of this backup cannot be read ({error}).") from error
