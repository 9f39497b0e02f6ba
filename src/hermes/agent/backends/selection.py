"""Select a person's back end by configuration, machine and role."""

from __future__ import annotations

from typing import assert_never

from hermes.agent.backends.base import BackendName
from hermes.config.agent_settings import OthersTerminal, OwnerTerminal, TerminalConfig
from hermes.core.dataclasses import dataclass
from hermes.core.roles import PersonRole


@dataclass(frozen=True, slots=True)
class Availability:
    """Hold, for each back end, why it cannot be used here; '' where it can."""

    bubblewrap: str = ""
    landlock: str = ""
    docker: str = ""
    ssh: str = ""

    def why_not(self, name: BackendName) -> str:
        match name:
            case BackendName.LOCAL:
                return ""
            case BackendName.GUARDED:
                both = self.bubblewrap and self.landlock
                return f"{self.bubblewrap}, and {self.landlock}" if both else ""
            case BackendName.BUBBLEWRAP:
                return self.bubblewrap
            case BackendName.LANDLOCK:
                return self.landlock
            case BackendName.DOCKER:
                return self.docker
            case BackendName.SSH:
                return self.ssh
            case _:
                assert_never(name)


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """Hold the chosen back end, or None and the reason."""

    backend: BackendName | None
    why: str = ""


def choose(config: TerminalConfig, available: Availability, role: PersonRole) -> BackendChoice:
    """Choose a back end: only the owner works outside a sandbox; never fall back to a weaker one."""
    if role is PersonRole.GUEST:
        return BackendChoice(None, "Guests have no terminal.")
    if role is PersonRole.OWNER:
        named = BackendName.LOCAL if config.backend is OwnerTerminal.AUTO else BackendName(config.backend.value)
        return _if_available(named, available, "terminal.backend")
    match config.others:
        case OthersTerminal.NONE:
            return BackendChoice(None, "The terminal is for the owner alone here (terminal.others is none).")
        case OthersTerminal.AUTO:
            for name in (BackendName.BUBBLEWRAP, BackendName.LANDLOCK):
                if not available.why_not(name):
                    return BackendChoice(name)
            why = f"it needs a sandbox, but {available.bubblewrap}, and {available.landlock}"
            return BackendChoice(None, f"There is no terminal for you: {why}. The owner can install bubblewrap.")
        case _:
            return _if_available(BackendName(config.others.value), available, "terminal.others")


def _if_available(name: BackendName, available: Availability, key: str) -> BackendChoice:
    why_not = available.why_not(name)
    if why_not:
        return BackendChoice(None, f"There is no terminal: {key} is {name}, and {why_not}.")
    return BackendChoice(name)
