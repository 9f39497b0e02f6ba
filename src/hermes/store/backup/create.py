"""Make a backup of a home beside the gateway that runs there.

Each SQLite file is copied by SQLite's own backup from one snapshot: the gateway goes on writing, and the copy is the
store as it was at one moment. Nothing of the gateway is asked, so a backup works with one that is stalled, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets as random_bytes
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.store import home as homes
from hermes.store.backup import archive, contents, shelf, vault
from hermes.store.backup.archive import ArchivedFile, BackupManifest
from hermes.store.backup.secret_marks import mark_secrets

PAGES_AT_ONCE = 256
PAUSE_SECONDS = 0.002
WAIT_SECONDS = 120.0
BUSY_SECONDS = 30.0
SPARE_BYTES = 32 << 20
MAKING = ".making"


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """What to archive. ``secrets`` are the values to take out of settings; ``passphrase`` adds the secret files.

    ``has_stores``: the home holds the stores; False where PostgreSQL does.
    """

    home: Path
    version: str
    reason: str = "manual"
    to: Path | None = None
    folder: Path | None = None
    secrets: Sequence[str] = ()
    passphrase: str = ""
    has_workspaces: bool = False
    has_stores: bool = True
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class BackupResult:
    path: Path
    manifest: BackupManifest


def create(request: BackupRequest) -> BackupResult:
    """Make the archive; it is there whole or not at all. Raises GatewayError in words."""
    home = request.home
    if homes.marker(home) is None:
        raise GatewayError(f"{home} holds nothing to back up.")
    if request.passphrase:
        vault.check_passphrase(request.passphrase)
    folder = request.folder or shelf.default_folder(home)
    homes.make_private_folder(shelf.default_folder(home))
    homes.make_private_folder(folder)
    with _alone(shelf.default_folder(home)):
        key = homes.own_secret(shelf.key_file(home))
        making = folder / f"{MAKING}-{os.getpid()}"
        for left in folder.glob(f"{MAKING}-*"):  # by one that was killed: we hold the lock
            shutil.rmtree(left)
        making.mkdir(0o700)
        try:
            path = request.to or shelf.new_path(folder, request.reason, request.clock())
            if path.exists():
                raise GatewayError(f"{path} is there already.")
            manifest = _gather(request, key, making)
            archive.write(path, manifest, key, making)
        except OSError as error:
            raise GatewayError(
                f"No backup was made: {error.strerror or error} ({error.filename or folder})."
            ) from error
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return BackupResult(path, manifest)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make one backup of a home at a time."""
    deadline = time.monotonic() + WAIT_SECONDS
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise GatewayError("Another backup of this home is being made. Try again in a moment.") from None
                time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def _gather(request: BackupRequest, key: bytes, making: Path) -> BackupManifest:
    """Copy everything into one folder, so that nothing changes any more between its checksum and the archive."""
    home, identity, removed, left_out = request.home, random_bytes.token_hex(16), 0, 0
    names = [*contents.FILES, *contents.FOLDERS, *([contents.WORKSPACES] if request.has_workspaces else [])]
    found = [pair for name in names for pair in contents.files_below(home, name)]
    stores = [name for name in contents.STORES if request.has_stores and (home / name).exists()]
    _refuse_without_room(making, [path for _, path in found] + [home / name for name in stores])
    files: list[ArchivedFile] = []

    def add(name: str, mode: int = 0o600) -> None:
        path = making / name
        files.append(ArchivedFile(name, path.stat().st_size, mode, archive.sha256_of(path)))

    for name, path in found:
        target = making / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            mode = 0o700 if path.stat().st_mode & 0o100 else 0o600
            shutil.copyfile(path, target)
        except FileNotFoundError:  # sent, or removed, since we listed it
            left_out += 1
            continue
        if name in contents.CONFIG_FILES:
            text, count = mark_secrets(target.read_text("utf-8", "surrogateescape"), request.secrets, key)
            target.write_text(text, "utf-8", "surrogateescape")
            removed += count
        add(name, mode)
    for name in stores:  # last: files that the stores refer to are there already
        copy_store(home / name, making / name)
        add(name)
    if request.passphrase and (sealed := vault.seal(home, identity, request.passphrase)):
        (making / contents.ENCRYPTED).write_bytes(sealed)
        add(contents.ENCRYPTED)
    covered = [*(contents.STORES if request.has_stores else ()), *names]
    return BackupManifest(
        id=identity,
        created_at=request.clock(),
        version=request.version,
        reason=request.reason,
        home=archive.key_id(key),
        scope=tuple(covered),
        files=tuple(files),
        removed_secrets=removed,
        left_out=left_out,
    )


def _refuse_without_room(folder: Path, paths: Sequence[Path]) -> None:
    """A backup never fills the disk of the store: it needs its size twice, once copied and once packed."""
    needed = 2 * sum(path.stat().st_size for path in paths if path.exists()) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise GatewayError(
            f"No backup was made: it needs {needed >> 20} MB, and {folder.parent} has {free >> 20} MB left."
        )


@contextlib.contextmanager
def _synced(path: Path) -> Iterator[Callable[[int, int, int], None]]:
    """Bring a copy to the disk while it grows: a commit of the store would otherwise wait for all of it."""
    descriptor = os.open(path, os.O_RDONLY)
    last = 0

    def progress(_status: int, left: int, total: int) -> None:
        nonlocal last
        if (total - left - last) * 4096 >= archive.SYNC_BYTES:
            last = total - left
            os.fsync(descriptor)

    try:
        yield progress
    finally:
        os.close(descriptor)


def copy_store(source: Path, target: Path) -> None:
    """Copy a SQLite file that others may be writing, as it is at one moment; the copy is checked.

    Read only, so nothing in the home changes. The snapshot keeps the copy from starting over with every write.
    """
    uri = f"file:{quote(str(source.absolute()))}?mode=ro"
    try:
        with (
            contextlib.closing(
                sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
            ) as connection,
            contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy,
        ):
            has_log = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            # Without a write-ahead log the snapshot holds up writers, so the copy is made in one go.
            pages = PAGES_AT_ONCE if has_log else -1
            with _synced(target) as progress:
                connection.backup(copy, pages=pages, progress=progress, sleep=PAUSE_SECONDS)
            connection.execute("ROLLBACK")
            copy.execute("PRAGMA journal_mode = delete")  # one file that stands alone
            if (answer := copy.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise GatewayError(f"No backup was made: {source.name} is damaged ({answer}). Look: hermes doctor")
    except sqlite3.Error as error:
        raise GatewayError(
            f"No backup was made: {source.name} cannot be read ({error}). Look: hermes doctor"
        ) from error
    target.chmod(0o600)
