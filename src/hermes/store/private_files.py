"""Write files that only their owner can read, and make names outlive a power cut.

The supervisor imports this too: standard library only, and little of it.
"""

from __future__ import annotations

import os
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def write_private(path: str | Path, content: str | bytes, *, is_synced: bool = True) -> None:
    """Replace a file in one step: readers see the old content or the new.

    ``is_synced``: that holds after a power cut too.
    """
    temporary = f"{os.fspath(path)}.{os.getpid()}-{get_ident()}.tmp"
    data = content.encode() if isinstance(content, str) else content
    if os.path.lexists(temporary):  # left by a process of this id that was killed
        os.unlink(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(data)
            file.flush()
            if is_synced:
                os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def sync_folder(folder: str | Path) -> None:
    """Make names that were changed in a folder outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
