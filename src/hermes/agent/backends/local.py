"""Run commands as the gateway's user, without a sandbox: for the owner only."""

from __future__ import annotations

from pathlib import Path

from hermes.agent.backends.base import BackendName, CommandSpec
from hermes.agent.backends.child import ChildProcess, Launch
from hermes.agent.backends.lease import leased
from hermes.agent.backends.output import Output
from hermes.core.i18n.en import Texts


class LocalBackend:
    """``is_outside``: outside the sandbox in which this owner's other commands run."""

    name = BackendName.LOCAL
    touches_host = True
    shares_files = True

    def __init__(self, *, is_outside: bool = False) -> None:
        self._is_outside = is_outside

    def where(self, folder: Path, words: Texts) -> str:
        return (words.WHERE_OUTSIDE if self._is_outside else words.WHERE_LOCAL).format(folder=folder)

    async def start(self, work: CommandSpec, output: Output) -> ChildProcess:
        return await ChildProcess.start(Launch(leased(work.arguments), work.environment, work.folder), output)
