"""The bridge as a child process: what it says before it listens, and that it is seen to end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hermes.core.errors import UnreachableError
from hermes.platforms.whatsapp.install import Installed
from hermes.platforms.whatsapp.process import Child, Launch, SessionLock

FLOOD = "import sys\nwhile True:\n    sys.stdout.write('x' * 1_000_000)\n"


async def test_one_that_floods_in_place_of_its_own_words_is_told_and_ended(tmp_path: Path) -> None:
    (tmp_path / "main.mjs").write_text(FLOOD)
    launch = Launch(Installed(Path(sys.executable), tmp_path), tmp_path, tmp_path, tmp_path)
    lock = await SessionLock.take(tmp_path / "lock")
    assert lock is not None
    try:
        with pytest.raises(UnreachableError, match="says something that is not its own"):
            await Child.start(launch, lock.descriptor)
    finally:
        lock.release()
    again = await SessionLock.take(tmp_path / "lock")
    assert again is not None, "nobody holds the session any more"
    again.release()
