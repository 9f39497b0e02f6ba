"""One supervised account: its state as a person reads it, and what to do about a bad one."""

from __future__ import annotations

import asyncio
from dataclasses import field
from enum import StrEnum

import aiohttp

from hermes.config import AccountConfig
from hermes.core.dataclasses import dataclass
from hermes.core.keys import MAIN, AccountKey
from hermes.core.manifest import AccountResource, Manifest
from hermes.core.messages import Capabilities
from hermes.core.ports import Adapter
from hermes.services.http import ProxyRules

UNKNOWN_SILENCE_SECONDS = 30.0


class Link(StrEnum):
    """The state of an account, as a person reads it."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    UNREACHABLE = "unreachable"
    SILENT = "silent"
    CONFLICT = "conflict"
    SIGNED_OUT = "signed out"
    BROKEN = "broken"
    PAUSED = "paused"
    INCOMPLETE = "not configured"
    ELSEWHERE = "elsewhere"  # another node has it; this one stands by


@dataclass(slots=True)
class SupervisedAccount:
    """One account and how it does. Touched only on the event loop."""

    key: AccountKey
    manifest: Manifest
    config: AccountConfig
    rules: ProxyRules
    state: Link = Link.CONNECTING
    since: float = 0.0
    reason: str = ""
    cure: str = ""  # of being signed out, where the platform knows a better one than to sign in again
    last_frame: float | None = None
    sends_are_refused: bool = False  # what comes in says nothing about that
    capabilities: Capabilities | None = None
    adapter: Adapter | None = None
    standby: Adapter | None = None  # of an account elsewhere: fetches files, and neither receives nor sends
    task: asyncio.Task[None] | None = None
    running: asyncio.Task[None] | None = None
    http: aiohttp.ClientSession | None = None
    kept: AccountResource = field(default_factory=AccountResource)
    failures: int = 0
    started_at: float = 0.0
    short_runs: int = 0
    reconnects: int = 0
    frames_this_run: int = 0

    @property
    def duty(self) -> str:
        """The name of the duty that one node of a cluster holds for this account."""
        return f"account:{self.key}"

    @property
    def silence_seconds(self) -> float:
        """Seconds without a frame that are allowed; a platform may change them any time."""
        return self.adapter.capabilities.silence_seconds if self.adapter else UNKNOWN_SILENCE_SECONDS

    def note(self) -> str:
        """Return the reason of the state, or explain reconnects that the platform demands: they look like trouble."""
        is_routine = self.capabilities is not None and self.capabilities.ends_connections
        if self.reason or not is_routine or self.state is not Link.CONNECTED or not self.reconnects:
            return self.reason
        times = "once" if self.reconnects == 1 else f"{self.reconnects} times"
        return f"resumed {times}, as {self.manifest.title} makes everyone do"

    def how_to_fix(self) -> str:
        """Return what a person does about the state; '' where nothing helps or nothing is wrong."""
        match self.state:
            case Link.SIGNED_OUT if self.cure:
                return f"{self.cure}; then hermes gateway restart"
            case Link.SIGNED_OUT if self.manifest.sign_in is not None:
                return self._login_command()
            case Link.SIGNED_OUT:
                names = " and ".join(setting.env for setting in self.manifest.settings if setting.required)
                return f"check {names} in ~/.hermes/.env ({self.key}); it is read again at once"
            case Link.CONFLICT:
                return self.cure or "stop the other program that uses this account"
            case Link.INCOMPLETE if self.config.missing and self.manifest.sign_in is not None:
                return self._login_command()
            case Link.INCOMPLETE:
                _, has_command, command = self.reason.partition("Install it: ")
                if has_command:
                    return " ".join(command.split())
                return f"hermes config explain platforms.{self.key.platform}"
            case _:
                return ""

    def _login_command(self) -> str:
        account = "" if self.key.account == MAIN else f" --account {self.key.account}"
        return f"hermes {self.key.platform} login{account}"


def same_settings(old: AccountConfig, new: AccountConfig) -> bool:
    """Compare what an adapter is built from: access rules change without a restart."""
    return (old.values, old.proxy, old.missing, old.enabled) == (new.values, new.proxy, new.missing, new.enabled)
