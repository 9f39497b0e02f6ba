"""Open the board: ``kanban.db`` beside ``state.db``, or its tables in the same PostgreSQL."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.store.db import Database, OnTrouble, StoreLimits
from hermes.store.open import open_beside

FILE = "kanban.db"
MIGRATIONS = "hermes.store.kanban_migrations"
FAMILY = "kanban"


def open_board(
    main: Database, home: Path, *, on_trouble: OnTrouble | None = None, limits: StoreLimits | None = None
) -> AbstractAsyncContextManager[Database]:
    return open_beside(main, home / FILE, migrations=MIGRATIONS, family=FAMILY, on_trouble=on_trouble, limits=limits)
