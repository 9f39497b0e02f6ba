"""Open files by paths that a model wrote, without following symlinks out.

``ToolContext.inside`` says whether a path is for this person. Between that answer and the opening, somebody may put a
link where a folder was. So here nothing is opened by its path: we start at the workspace and go down folder by folder
with ``O_NOFOLLOW``, each one held open and compared with the closed ones. A link on that way was put there in between.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from hermes.agent.toolkit.context import ToolContext
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.store.home import make_private_folder

Identity = tuple[int, int]

MAX_OWN_FILES = 100_000
PATH_BYTES = 4096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR)


class NoFileError(ToolError):
    """There is nothing at this path."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was read: its bytes, its permissions and whose it is."""

    data: bytes
    mode: int
    owner: tuple[int, int]


@dataclass(frozen=True, slots=True)
class OpenFolderEntry:
    """A name in a folder that is held open. ``path`` is how the model wrote it, ``target`` where it really is."""

    ctx: ToolContext
    folder: int
    name: str
    target: Path
    path: str

    def look(self) -> os.stat_result | None:
        """Return what is there, a link itself and not what it leads to; None when nothing is."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise ToolError(f"{self.path!r} cannot be read: {error.strerror}.") from error

    def open(self) -> BinaryIO:
        """Return the regular file that is there, for reading."""
        found = self.look()
        if found is None:
            raise NoFileError(f"There is no file {self.path!r}. Use search_files to see what exists.")
        self.refuse_odd(found)  # before the opening too: with a device, that alone may do something
        try:
            handle = os.open(self.name, _FILE, dir_fd=self.folder)
        except OSError as error:
            if error.errno in _GONE:
                raise NoFileError(f"There is no file {self.path!r} any more.") from None
            raise ToolError(f"{self.path!r} cannot be read: {error.strerror}.") from error
        try:
            opened = os.fstat(handle)
            self.refuse_odd(opened)
            if opened.st_nlink > 1 and _is_closed_elsewhere(self.ctx, opened):
                raise ToolError(f"{self.path!r} is another name of a file that is closed to tools.")
            return os.fdopen(handle, "rb")
        except BaseException:
            os.close(handle)
            raise

    def refuse_odd(self, found: os.stat_result) -> None:
        """Only regular files are read or replaced."""
        if stat.S_ISDIR(found.st_mode):
            raise ToolError(f"{self.path!r} is a folder. Use search_files with kind 'names' to see what is in it.")
        if not stat.S_ISREG(found.st_mode) or found.st_dev in _kernel_devices():
            raise ToolError(f"{self.path!r} is not a regular file.")

    def read(self, limit: int) -> File:
        """Return the whole file; ToolError when it is longer than ``limit`` bytes."""
        with self.open() as file:
            about = os.fstat(file.fileno())
            data = file.read(limit + 1)
        if len(data) > limit:
            size = max(about.st_size, len(data))
            raise ToolError(f"{self.path!r} is too large for this ({size:,} bytes; at most {limit:,}).")
        return File(data, stat.S_IMODE(about.st_mode), (about.st_uid, about.st_gid))

    def write(
        self, data: bytes | BinaryIO, *, token: str, mode: int | None = None, owner: tuple[int, int] | None = None
    ) -> None:
        """Put the bytes there in one step: whoever reads sees all of the old or all of the new.

        Also a file of several names gets a new one of its own: the others keep what they were. ``token`` names the
        half-written file, so that a repeat after a crash takes its place.
        """
        found = self.look()
        if found is not None:
            self.refuse_odd(found)
        half = f".hermes-{hashlib.sha256(token.encode()).hexdigest()[:16]}.tmp"
        try:
            self._write_half(half, io.BytesIO(data) if isinstance(data, bytes) else data, mode, owner)
            try:
                os.rename(half, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            except BaseException:
                self._remove(half)
                raise
            os.fsync(self.folder)
        except OSError as error:
            raise ToolError(f"{self.path!r} cannot be written: {error.strerror}.") from error

    def _write_half(self, half: str, data: BinaryIO, mode: int | None, owner: tuple[int, int] | None) -> None:
        self._remove(half)
        handle = os.open(half, _NEW_FILE, 0o666 if mode is None else 0o600, dir_fd=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                shutil.copyfileobj(data, file)
                file.flush()
                if owner is not None and owner != (os.geteuid(), os.getegid()):
                    with contextlib.suppress(PermissionError):  # then it is ours from now on, as with any editor
                        os.fchown(handle, *owner)
                if mode is not None:
                    os.fchmod(handle, mode)
                os.fsync(handle)
        except BaseException:
            self._remove(half)
            raise

    def remove(self) -> None:
        found = self.look()
        if found is None:
            return
        self.refuse_odd(found)
        try:
            self._remove(self.name)
        except OSError as error:
            raise ToolError(f"{self.path!r} cannot be removed: {error.strerror}.") from error

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.folder)


@contextmanager
def place_of(ctx: ToolContext, path: str, *, makes_folders: bool = False) -> Iterator[OpenFolderEntry]:
    """Hold the folder of a path open; NoFileError when there is no such folder and none is to be made."""
    target = ctx.inside(path)
    root = ctx.workspace.resolve()
    # Closed folders by inode, whatever their names; without those that hold the workspace itself.
    closed = frozenset(_identities(*ctx.closed) - _identities(root, *root.parents))
    *folders, name = target.relative_to(root).parts or (".",)
    if makes_folders:
        refuse_unwritable(path, target)
        try:
            if not root.is_dir():
                make_private_folder(root)
        except OSError as error:
            raise ToolError(f"The workspace {root} cannot be made: {error.strerror}.") from error
    handle = _open(root, None, path)
    try:
        for folder in folders:
            if makes_folders:
                _make(folder, handle, path)
            inner = _open(folder, handle, path)
            handle, outer = inner, handle
            os.close(outer)
            if _identity(os.fstat(handle)) in closed:
                raise ToolError(f"{path!r} belongs to Hermes or to the system and is closed to tools.")
        yield OpenFolderEntry(ctx, handle, name, target, path)
    finally:
        os.close(handle)


def open_inside(ctx: ToolContext, path: str, mode: Literal["rb", "xb"] = "rb") -> BinaryIO:
    """Open a file of the workspace: ``rb`` an existing regular one, ``xb`` one that must not exist yet.

    The caller closes it. Blocking: call it in a thread.
    """
    with place_of(ctx, path, makes_folders=mode == "xb") as place:
        if mode == "rb":
            return place.open()
        try:
            return os.fdopen(os.open(place.name, _NEW_FILE, 0o666, dir_fd=place.folder), "wb")
        except OSError as error:
            raise ToolError(f"{path!r} cannot be made: {error.strerror}.") from error


def read_inside(ctx: ToolContext, path: str, limit: int) -> File:
    """Return a whole file of the workspace, at most ``limit`` bytes. Blocking: call it in a thread."""
    with place_of(ctx, path) as place:
        return place.read(limit)


def _open(folder: str | Path, within: int | None, path: str) -> int:
    try:
        return os.open(folder, _FOLDER, dir_fd=within)
    except OSError as error:
        if error.errno in _GONE:
            raise NoFileError(f"There is no file {path!r}. Use search_files to see what exists.") from None
        raise ToolError(f"{path!r} cannot be read: {error.strerror}.") from error


def _make(folder: str, within: int, path: str) -> None:
    try:
        os.mkdir(folder, 0o777, dir_fd=within)
    except FileExistsError:
        return  # whether it is a folder is seen when it is opened
    except OSError as error:
        raise ToolError(f"The folder of {path!r} cannot be made: {error.strerror}.") from error


def refuse_unwritable(path: str, target: Path) -> None:
    """ToolError for a path at which a file can be thought of, but not made or stored."""
    if path.endswith(("/", "/.", "/..")) or path in ("", ".", ".."):
        raise ToolError(f"{path!r} names a folder, not a file.")
    try:
        too_long = len(str(target).encode()) >= PATH_BYTES
    except UnicodeEncodeError:
        raise ToolError(f"{path!r} is not a usable path (half of a character).") from None
    if too_long:  # we could write there, folder by folder, and no other program could open or remove it
        raise ToolError(f"{path[:80]!r}… is not a usable path (too long).")


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _identities(*folders: Path) -> set[Identity]:
    found = set()
    for folder in folders:
        with contextlib.suppress(OSError):  # not there, or not for us: then nothing in it is opened either
            found.add(_identity(os.stat(folder)))
    return found


def _kernel_devices() -> frozenset[int]:
    """Return the file systems of the kernel, wherever else they are mounted too (a chroot has its own /proc)."""
    return frozenset(os.stat(folder).st_dev for folder in ("/proc", "/sys") if os.path.isdir(folder)) - {
        os.stat("/").st_dev
    }


def _is_closed_elsewhere(ctx: ToolContext, found: os.stat_result) -> bool:
    """Tell whether a file of several names has one of them in a folder of Hermes. With too many to look at: yes."""
    workspace = ctx.workspace.resolve()
    count = 0
    for forbidden in ctx.forbidden:
        for folder, folders, files in os.walk(forbidden.resolve()):
            if Path(folder) == workspace:
                folders.clear()
                continue
            count += len(files)
            if count > MAX_OWN_FILES or any(_is(os.path.join(folder, name), found) for name in files):
                return True
    return False


def _is(path: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), found)
    except OSError:
        return False
