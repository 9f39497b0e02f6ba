"""Resolve symlinks; a loop of links is an error on every Python version."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def real_path(path: Path) -> Path:
    """Resolve all links of a path that need not exist; OSError (ELOOP) where a link leads to itself.

    ``Path.resolve`` takes a loop for the end of the way. What it does then depends on the version: from 3.13 on the
    loop itself is returned as a good path, and before, the rest of the path is put behind it without following the
    links in it. So neither is believed: the kernel must not meet a loop, and resolving again must change nothing.
    """
    place = Path(os.path.realpath(path))
    for each in (path, place):
        try:
            os.stat(each)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise
    if os.path.realpath(place) != str(place):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return place
