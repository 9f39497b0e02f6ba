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
from hermes.store.db import Trouble
from hermes.store.open import open_database
from hermes.store.sqlite.schema_repair import count_rows


async def rehearse(home: Path) -> dict[str, dict[str, int]]:
    """Migrate each store of the home and count its rows."""
    found = {}
    troubles: list[Trouble] = []
    for name, migrations in contents.MIGRATIONS.items():
        if (home / name).exists():
            db = await open_database(home / name, migrations=migrations, on_trouble=troubles.append)
            await db.close()
            found[name] = await asyncio.to_thread(count_rows, home / name)
    if damage := [trouble.text for trouble in troubles if trouble.kind == "damage"]:
        raise RuntimeError("; ".join(damage))
    return found


if __name__ == "__main__":
    try:
        out_json(asyncio.run(rehearse(Path(sys.argv[1]))))
    except Exception as error:  # noqa: BLE001 - whatever it is, the update must hear of it in one line
        err(traceback.format_exception_only(error)[-1].strip())
        sys.exit(1)
