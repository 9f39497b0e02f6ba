"""Open every store of a copied home with this code: ``python -m hermes.hosting.update.rehearsal HOME``.

An update runs it with the new code, before that is taken up. What it prints is one JSON object: the rows of every table
after the migrations.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from pathlib import Path

from hermes.hosting.terminal import err, out_json
from hermes.store.backup import contents
from hermes.store.db import Trouble, Tx
from hermes.store.open import open_database


def count_rows(tx: Tx) -> dict[str, int]:
    """The rows of every table that holds the gateway's own."""
    tables = tx.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'", str)
    return {name: int(tx.value(f'SELECT count(*) FROM "{name}"')) for name in tables}  # noqa: S608 - of the schema


async def rehearse(home: Path) -> dict[str, dict[str, int]]:
    """Migrate each store of the home and count its rows."""
    found = {}
    troubles: list[Trouble] = []
    for name, migrations in contents.MIGRATIONS.items():
        if (home / name).exists():
            db = await open_database(home / name, migrations=migrations, on_trouble=troubles.append)
            try:
                found[name] = await db.read(count_rows)
            finally:
                await db.close()
    if damage := [trouble.text for trouble in troubles if trouble.kind == "damage"]:
        raise RuntimeError("; ".join(damage))
    return found


if __name__ == "__main__":
    try:
        out_json(asyncio.run(rehearse(Path(sys.argv[1]))))
    except Exception as error:  # noqa: BLE001 - whatever it is, the update must hear of it in one line
        err(traceback.format_exception_only(error)[-1].strip())
        sys.exit(1)
