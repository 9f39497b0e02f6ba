"""Import the home of another gateway, in a gateway or in a command that works alone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.agent.skills.parse import same_name
from hermes.config import Loaded, load
from hermes.hosting import paths
from hermes.hosting.control.server import Reply
from hermes.hosting.importers.run import ImportTarget, import_home
from hermes.services.adapters.registry import find_platforms
from hermes.services.cron.jobs import Jobs
from hermes.services.gateway import Gateway
from hermes.store.db import Database


async def bring_home(gateway: Gateway, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
    """``{kind, path, commands?, dry_run?, addresses?}``: what came and what did not, and why.

    ``commands`` are names that no skill may have; ``addresses``: also settings that decide where words and keys go.
    """
    is_dry = bool(args.get("dry_run"))
    board = gateway.board()

    async def open_board() -> Database | None:
        return await board.db() if not is_dry or board.exists else None

    async def tell(number: int) -> None:
        await reply.event({"sessions": number})

    # Not the gateway's own: a command that works alone knows the local platform only.
    configuration = [await asyncio.to_thread(_load, gateway.home)]

    async def reload() -> None:
        await gateway.watch.read_again()
        configuration[0] = await asyncio.to_thread(_load, gateway.home)

    def jobs() -> Jobs:
        timer = gateway.cron()
        return Jobs(
            gateway.db,
            gateway.clock,
            lambda: configuration[0],
            gateway.home,
            gateway.skills,
            timer.changed,
            lambda _: None,
            timer.status,
        )

    target = ImportTarget(
        home=gateway.home,
        db=gateway.db,
        loaded=lambda: configuration[0],
        reload=reload,
        board=open_board,
        skills=gateway.skills.folder,
        commands=frozenset(same_name(str(name)) for name in args.get("commands") or ()),
        now=gateway.clock.now(),
        jobs=None if is_dry else jobs,
        refresh_skills=gateway.skills.refresh,
        has_addresses=bool(args.get("addresses")),
    )
    report = await import_home(str(args.get("kind") or ""), Path(str(args.get("path") or "")), target, tell)
    if not is_dry:
        await gateway.pairings.load()
        gateway.pairings.on_change()
        if report.counts["tasks"]["came"]:
            board.on_change()
    return report.to_dict()


def _load(home: Path) -> Loaded:
    manifests = tuple(find_platforms().manifests.values())
    return load(home, os.environ, Path(paths.working_folder(str(home))), manifests)
