"""Keep pictures that a terminal sends with a message, until the turn has read them.

The terminal sends the bytes, not only a path: nothing is read here with more rights than the person there has.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

from hermes.core.errors import RejectedError
from hermes.core.messages import Attachment, AttachmentKind, Picture

KEEP_SECONDS = 7 * 86_400.0  # a turn may wait for days until somebody answers its question
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")


class PictureFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, key: str, pictures: tuple[Picture, ...]) -> tuple[Attachment, ...]:
        """Store the pictures of the message ``key``. A message that is sent again with its key finds the same files."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._sweep()
        kept = []
        for number, picture in enumerate(pictures):
            file_id = f"{re.sub(r'[^A-Za-z0-9_-]', '_', key)[:60]}-{number}"
            half = self._folder / f"{file_id}.part"
            with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(picture.data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(half, self._folder / file_id)
            kept.append(Attachment(AttachmentKind.IMAGE, file_id, picture.path, picture.name, size=len(picture.data)))
        return tuple(kept)

    def copy(self, attachment: Attachment, into: Path) -> Path:
        source = self._folder / attachment.file_id
        if not _NAME.match(attachment.file_id) or not source.is_file():
            raise RejectedError("the picture is no longer stored. Send it again.")
        name = re.sub(r"[^\w.-]", "_", attachment.name)[-80:].lstrip(".") or "picture"
        return Path(shutil.copyfile(source, into / name))

    def _sweep(self) -> None:
        oldest = time.time() - KEEP_SECONDS
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)
