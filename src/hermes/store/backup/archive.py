"""Write and read the file of a backup: a tar.gz that begins with a signed list of its files.

    manifest.json   who made it, when, and name, size, mode and SHA-256 of every file behind it, in this order
    manifest.hmac   HMAC-SHA-256 of the list, by the key of the home that made it
    …               the files, exactly as listed

Reading trusts nothing: each part must be the next one of the list, with its size, and the file must end there. So a
damaged, torn or changed archive is refused before anything of it is used, and none can make us read or write more than
its list says.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.store.backup import contents
from hermes.store.private_files import sync_folder

FORMAT = 1
MANIFEST = "manifest.json"
SIGNATURE = "manifest.hmac"
CHUNK_BYTES = 1 << 20
MAX_MANIFEST_BYTES = 64 << 20
MAX_FILE_BYTES = 1 << 40
LATEST_TIME = 1e11
COMPRESSION = 4
"""Nearly as small as the usual 6, for half of the time."""

_HEX = re.compile(r"[0-9a-f]{64}")


SYNC_BYTES = 4 << 20
"""So much is written before it is brought to the disk: a commit of the store would otherwise wait for all of it."""


class SyncedWriter(io.RawIOBase):
    """Writes to a descriptor, and every few megabytes waits for the disk, so that nobody else has to."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unsynced = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        written = os.write(self._descriptor, data)
        self._unsynced += written
        if self._unsynced >= SYNC_BYTES:
            self._unsynced = 0
            os.fsync(self._descriptor)
        return written


class ArchiveRefusedError(GatewayError):
    """An archive that is not used; the text says in one sentence why. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    name: str
    size: int
    mode: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """``home`` names the key of the home that made it; ``scope`` what the backup covers, there or not."""

    id: str
    created_at: float
    version: str
    reason: str
    home: str
    scope: tuple[str, ...]
    files: tuple[ArchivedFile, ...]
    removed_secrets: int = 0
    left_out: int = 0

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def has_secrets(self) -> bool:
        return any(file.name == contents.ENCRYPTED for file in self.files)

    def to_bytes(self) -> bytes:
        plain: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        plain["files"] = [[file.name, file.size, file.mode, file.sha256] for file in self.files]
        return json.dumps({"format": FORMAT, **plain}).encode()


_FIELDS = ("id", "created_at", "version", "reason", "home", "scope", "removed_secrets", "left_out")


def key_id(key: bytes) -> str:
    return hashlib.sha256(b"hermes backup key" + key).hexdigest()[:16]


def sign(key: bytes, manifest: bytes) -> str:
    return hmac.new(key, manifest, hashlib.sha256).hexdigest()


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(archive: Path, manifest: BackupManifest, key: bytes, folder: Path) -> None:
    """Write the listed files of a folder as an archive, which is there whole or not at all."""
    half = archive.with_name(f".{archive.name}.half")
    half.unlink(missing_ok=True)
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as raw:
            with (
                io.BufferedWriter(SyncedWriter(raw.fileno()), CHUNK_BYTES) as synced,
                gzip.GzipFile(filename="", mode="wb", compresslevel=COMPRESSION, fileobj=synced, mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w:", format=tarfile.PAX_FORMAT) as tar,
            ):
                listed = manifest.to_bytes()
                for name, content in ((MANIFEST, listed), (SIGNATURE, sign(key, listed).encode())):
                    tar.addfile(_member(name, len(content), 0o600), io.BytesIO(content))
                for file in manifest.files:
                    with (folder / file.name).open("rb") as content_of:
                        tar.addfile(_member(file.name, file.size, file.mode), content_of)
            raw.flush()
            os.fsync(raw.fileno())
        half.replace(archive)
        sync_folder(archive.parent)
    finally:
        half.unlink(missing_ok=True)


def _member(name: str, size: int, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, mode
    return member


# Reading


class _Forward:
    """A stream that only goes forward and reads no more than a chunk at once, whatever a header asks for."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name
        self._at = 0
        self.limit = MAX_MANIFEST_BYTES

    def read(self, count: int = -1) -> bytes:
        if not 0 <= count <= self.limit:
            raise ArchiveRefusedError(
                f"{self._name} was changed after it was made: a part of it is larger than listed."
            )
        found = self._stream.read(count)
        self._at += len(found)
        return found

    def tell(self) -> int:
        return self._at

    def seek(self, to: int, whence: int = 0) -> int:
        if whence or to < self._at:
            raise ArchiveRefusedError(f"{self._name} is damaged: its parts are not in order.")
        while to > self._at:
            if not self.read(min(CHUNK_BYTES, self.limit, to - self._at)):
                break
        return self._at


class ArchiveReader:
    """An open archive whose list has been checked. ``files`` gives each file with its content, once."""

    def __init__(self, path: Path, tar: tarfile.TarFile, stream: _Forward, key: bytes | None) -> None:
        self.name = path.name
        self._tar = tar
        self._stream = stream
        listed = self._small(MANIFEST, MAX_MANIFEST_BYTES)
        self.manifest = parse(listed, self.name)
        signature = self._small(SIGNATURE, 64)
        stream.limit = CHUNK_BYTES
        self.is_of_this_home = key is not None and self.manifest.home == key_id(key)
        if key is not None and self.is_of_this_home and not hmac.compare_digest(sign(key, listed).encode(), signature):
            raise ArchiveRefusedError(
                f"{self.name} was changed after it was made: its list of files is not the signed one."
            )

    def files(self) -> Iterator[tuple[ArchivedFile, Iterator[bytes]]]:
        """Give each file with its content in chunks, which must be read to the end; raises at the first fault."""
        for file in self.manifest.files:
            member = self._next(file.name, file.size)
            yield file, self._content(file, member)
        rest = b""
        while found := self._stream.read(CHUNK_BYTES):
            rest += found
            if len(rest) > CHUNK_BYTES or rest.strip(b"\0"):
                raise ArchiveRefusedError(
                    f"{self.name} was changed after it was made: it goes on behind its last file."
                )

    def _content(self, file: ArchivedFile, member: tarfile.TarInfo) -> Iterator[bytes]:
        opened = cast("IO[bytes]", self._tar.extractfile(member))
        digest, left = hashlib.sha256(), file.size
        while left:
            found = opened.read(min(CHUNK_BYTES, left))
            if not found:
                raise ArchiveRefusedError(f"{self.name} ends too early: it is not complete.")
            digest.update(found)
            left -= len(found)
            yield found
        if digest.hexdigest() != file.sha256:
            raise ArchiveRefusedError(f"{self.name} is damaged: {file.name} is not as it was written.")

    def _next(self, name: str, size: int) -> tarfile.TarInfo:
        self._tar.members = []  # type: ignore[attr-defined] # it would remember every file of the archive
        member = self._tar.next()
        if member is None:
            raise ArchiveRefusedError(f"{self.name} ends too early: it is not complete.")
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
            raise ArchiveRefusedError(
                f"{self.name} was changed after it was made: {member.name} is no plain file (a link or a device)."
            )
        if member.name != name or member.size != size:
            raise ArchiveRefusedError(
                f"{self.name} was changed after it was made: its list names {name} where it holds {member.name}."
            )
        return member

    def _small(self, name: str, most: int) -> bytes:
        member = self._tar.next()
        if member is None or member.name != name or member.type != tarfile.REGTYPE or member.size > most:
            raise ArchiveRefusedError(f"{self.name} is no backup of Hermes.")
        content = cast("IO[bytes]", self._tar.extractfile(member)).read(member.size)
        if len(content) != member.size:
            raise ArchiveRefusedError(f"{self.name} ends too early: it is not complete.")
        return content


@contextmanager
def open_archive(path: Path, key: bytes | None) -> Iterator[ArchiveReader]:
    """Open an archive and check its list; raises ArchiveRefusedError. ``key`` is the home's own, if it has one."""
    if not path.is_file():
        raise ArchiveRefusedError(f"There is no backup {path}. The list: hermes backup list")
    try:
        with path.open("rb") as raw, gzip.GzipFile(fileobj=raw, mode="rb") as packed:
            stream = _Forward(cast("IO[bytes]", packed), path.name)
            with tarfile.open(fileobj=cast("Any", stream), mode="r:") as tar:
                yield ArchiveReader(path, tar, stream, key)
    except (gzip.BadGzipFile, tarfile.TarError, zlib.error, ValueError, RecursionError) as error:
        is_whole = isinstance(error, gzip.BadGzipFile) and "Not a gzipped file" in str(error)
        complaint = "is no backup of Hermes" if is_whole else "is damaged"
        raise ArchiveRefusedError(f"{path.name} {complaint}.") from error
    except EOFError as error:
        raise ArchiveRefusedError(f"{path.name} ends too early: it is not complete.") from error


def parse(raw: bytes, name: str) -> BackupManifest:
    """Read the list of an archive, which anybody may have written."""
    try:
        plain = json.loads(raw)
        if int(plain["format"]) != FORMAT:
            raise ArchiveRefusedError(f"{name} was made by a newer Hermes. Update Hermes first: hermes update")
        manifest = BackupManifest(
            id=str(plain["id"]),
            created_at=float(plain["created_at"]),
            version=str(plain["version"]),
            reason=str(plain["reason"]),
            home=str(plain["home"]),
            scope=tuple(map(str, plain["scope"])),
            files=tuple(
                ArchivedFile(str(file), int(size), int(mode), str(sha256))
                for file, size, mode, sha256 in plain["files"]
            ),
            removed_secrets=int(plain["removed_secrets"]),
            left_out=int(plain["left_out"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ArchiveRefusedError(f"{name} is damaged: its list of files cannot be read.") from error
    if not 0 <= manifest.created_at <= LATEST_TIME:  # nor NaN
        raise ArchiveRefusedError(f"{name} is damaged: its list of files cannot be read.")
    _check_names(manifest, name)
    return manifest


def _check_names(manifest: BackupManifest, archive: str) -> None:
    names = [file.name for file in manifest.files]
    for file in manifest.files:
        reason = "" if file.name == contents.ENCRYPTED else contents.why_refused(file.name)
        if reason:
            raise ArchiveRefusedError(f"{archive} {reason}: {file.name[:200]}")
        if not 0 <= file.size <= MAX_FILE_BYTES or not _HEX.fullmatch(file.sha256):
            raise ArchiveRefusedError(f"{archive} is damaged: its list of files cannot be read.")
    taken = set(names)
    above = ("/".join(parts[:count]) for parts in (name.split("/") for name in names) for count in range(1, len(parts)))
    if len(taken) != len(names) or any(folder in taken for folder in above):
        raise ArchiveRefusedError(f"{archive} names a file twice.")
    allowed: Sequence[str] = (*contents.SCOPE, contents.WORKSPACES)
    if odd := [name for name in manifest.scope if name not in allowed]:
        raise ArchiveRefusedError(f"{archive} names a file that no backup of Hermes holds: {odd[0][:200]}")
