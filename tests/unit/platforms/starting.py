"""A platform that cannot start, under a real supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hermes.config import load
from hermes.core.manifest import Manifest
from hermes.services.adapters.supervisor import Supervisor
from hermes.services.clock import SystemClock
from hermes.store.open import open_database
from tests.chaos.world import until
from tests.fakes.started_home import copy_store


async def why_not_configured(manifest: Manifest, environ: Mapping[str, str], folder: Path) -> str:
    """What status notes of its account."""
    config = load(folder, environ, folder, (manifest,)).config
    db = await open_database(copy_store(folder))
    supervisor = Supervisor({manifest.id: manifest}, db, lambda: config, SystemClock(), {})
    supervisor.connect(lambda *_: None, lambda _: None)  # type: ignore[arg-type,return-value]
    try:
        supervisor.reconcile()
        await until(lambda: supervisor.status()[0]["state"] == "not configured", 20)
        return str(supervisor.status()[0]["note"])
    finally:
        await supervisor.close()
        await db.close()
