"""Open stores as the gateway would, which recovers a damaged one and adds what its schema lacks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def open_each(home: Path, files: Mapping[str, str]) -> list[str]:
    """Open and close each file, by its name and migrations; what that told. The caller holds the home."""
    import asyncio

    from hermes.core.secret import Redactor
    from hermes.hosting.logs.logs import Logs
    from hermes.store.db import Trouble
    from hermes.store.open import open_database

    outcomes: list[str] = []

    def note(trouble: Trouble) -> None:
        outcomes.append(trouble.text)

    async def open_one(path: Path, steps: str) -> None:
        db = await open_database(path, migrations=steps, on_trouble=note)
        await db.close()

    with Logs.open(str(home), Redactor(), console=False):
        for name, steps in files.items():
            asyncio.run(open_one(home / name, steps))
    return outcomes
