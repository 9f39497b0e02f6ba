"""The local back end: as whoever runs the gateway. It is the owner's default, and only the owner's."""

from __future__ import annotations

from pathlib import Path

from hermes.agent.backends.base import BackendName, Work
from hermes.agent.backends.child import Child, Launch
from hermes.agent.backends.lease import leased
from hermes.agent.backends.output import Output
from hermes.core.i18n.en import Words


class LocalBackend:
    name = BackendName.LOCAL
    touches_host = True
    shares_files = True

    def where(self, folder: Path, words: Words) -> str:
        return words.WHERE_LOCAL.format(folder=folder)

    async def start(self, work: Work, output: Output) -> Child:
        return await Child.start(Launch(leased(work.arguments), work.environment, work.folder), output)
