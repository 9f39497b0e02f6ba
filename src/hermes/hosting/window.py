"""Show account changes in the terminal that runs `gateway run`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from hermes.core.durations import format_time
from hermes.core.keys import LOCAL
from hermes.core.text import one_line
from hermes.hosting import startup_report
from hermes.services.adapters.account import Link
from hermes.services.gateway import Gateway
from hermes.services.news import AccountChanged, Event, ModelFetched, StrangerKnocked

MAX_WAITING = 100
PATIENCE_SECONDS = 10.0
"""A connection that is back sooner was no trouble to anybody: platforms end and resume them as a matter of course."""
MAX_ID_CHARS = 64

_PASSING = frozenset({Link.CONNECTING, Link.UNREACHABLE, Link.SILENT, Link.BROKEN})


class ForegroundWindow:
    """``write`` shows one line. What is noticed while nobody has opened the window yet waits for that."""

    def __init__(self, gateway: Gateway, command: str, write: Callable[[str], None]) -> None:
        self._gateway = gateway
        self._command = command
        self._write = write
        self._news: asyncio.Queue[Event] = asyncio.Queue(MAX_WAITING)
        self._states = {account["account"]: str(account["state"]) for account in gateway.supervisor.status()}
        self._model_reason = ""
        self._checks: set[asyncio.TimerHandle] = set()

    def notice(self, event: Event) -> None:
        """Take news for ``run`` to show. Of far too many the oldest are left out: the log has them all."""
        if isinstance(event, AccountChanged) and event.state in _PASSING:
            self._look_later(event)
            return
        if self._news.full():
            self._news.get_nowait()
        self._news.put_nowait(event)

    async def run(self) -> None:
        """Show what was noticed, until cancelled."""
        try:
            while True:
                await self._show(await self._news.get())
        finally:
            for check in self._checks:
                check.cancel()

    def _look_later(self, event: AccountChanged) -> None:
        def look() -> None:
            self._checks.discard(check)
            if self._status_of(event.account).get("state") == event.state and not self._news.full():
                self._news.put_nowait(event)

        check = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, look)
        self._checks.add(check)

    async def _show(self, event: Event) -> None:
        match event:
            case AccountChanged(account=account, state=state):
                if account == LOCAL or self._states.get(account) == state:
                    return
                self._states[account] = state
                status = self._status_of(account)
                if status.get("state") == state:  # else something newer is on its way here
                    cure = f" → {status['cure']}" if status["cure"] else ""
                    self._line("Chats", f"{await startup_report.chat_line(self._gateway, status)}{cure}")
            case StrangerKnocked(platform=platform, user_id=user_id, name=name, code=code):
                person = f"{name or 'Somebody'} ({platform} {one_line(user_id, MAX_ID_CHARS)})"
                self._line("Pairing", f"{person} asks for access. To approve:")
                self._write(f"{'':<16} {self._command} pairing approve {platform} {code}")
            case ModelFetched(reason=""):
                self._line("Model", f"built-in is here. Say hello: {self._command}")
            case ModelFetched(reason=reason):
                if self._model_reason != (reason := reason.strip()):
                    self._model_reason = reason
                    self._line("Model", f"built-in, not here yet. {reason}")

    def _status_of(self, account: str) -> dict[str, object]:
        return next((status for status in self._gateway.supervisor.status() if status["account"] == account), {})

    def _line(self, subject: str, text: str) -> None:
        self._write(f"{format_time('%H:%M', time.time())}  {subject:<9} {text}")
