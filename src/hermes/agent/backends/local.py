"""The local back end: as whoever runs the gateway. It is the owner's default, and only the owner's."""

from __future__ import annotations

from pathlib import Path

from hermes.agent.backends.base import BackendName, Work
from hermes.agent.backends.child import Child, Launch
from hermes.agent.backends.lease import leased
from hermes.agent.backends.output import Output


class LocalBackend:
    name = BackendName.LOCAL
    touches_host = True
    shares_files = True

    def where(self, folder: Path) -> str:
        return f"on this machine, in {folder}"

    async def start(self, work: Work, output: Output) -> Child:
        return await Child.start(Launch(leased(work.arguments), work.environment, work.folder), output)
