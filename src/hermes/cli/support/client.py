"""Call the running gateway, or the same handlers in this process without one.

Which of the two it is can change while a chat is open. A gateway that is started takes the home over, and one that
ends leaves its work in the store, so the same question with the same key goes on where it was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hermes.cli.support.holder import LONE_CHAT, held_by, is_listening, wait_for_gateway, wait_for_owner
from hermes.cli.support.home import refuse_foreign
from hermes.cli.support.program_name import command_name
from hermes.core.errors import GatewayError, HomeInUseError
from hermes.hosting import locks, paths
from hermes.hosting.control import client as control
from hermes.hosting.control.client import (
    GatewayIsDownError,
    GatewayIsNotRunningError,
    GatewayIsStalledError,
    OnEvent,
)
from hermes.hosting.terminal import err

if TYPE_CHECKING:
    from hermes.cli.support.standalone import InProcessGateway

NOT_RUNNING = 3
ANSWER_SECONDS = 5.0  # of silence: a gateway at work sends a sign of life every 2 s
TRIES = 6  # whoever ends at once: a gateway may be stopped and started in a row
STEADY_SECONDS = 2.0  # one who answered for so long did not end at once
MAX_TEXT_CHARS = 5_000_000


class Standalone(Enum):
    """What a command does when no gateway runs."""

    NEVER = "needs one"
    STORE = "opens the database"
    GATEWAY = "is a small gateway itself, with the local platform only"
    CHAT = "is one too, stays open, and answers other commands meanwhile"


class GatewayClient:
    """``with GatewayClient(home, Standalone.GATEWAY) as client: client.ask("say", {...}, on_event)``."""

    def __init__(
        self, home: Path, alone: Standalone, on_recovered: Callable[[str], None] = lambda text: err(f"! {text}")
    ) -> None:
        """``on_recovered`` is given the report of a damaged file that this command has brought back."""
        self.home = home
        self._alone = alone
        self._on_recovered = on_recovered
        self._recoveries = 0
        self._inside: InProcessGateway | None = None
        self._lock = threading.RLock()  # a chat asks from several threads: one opens or closes, the others wait
        self._is_closed = False
        self._is_out_of_reach = False  # the gateway works, and its socket is in another container

    @property
    def is_alone(self) -> bool:
        return self._inside is not None

    def ask(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Ask, wherever the answer is to be had. A question that is asked again after a restart carries its own key.

        ``timeout`` is for the whole answer; with ``on_event`` only where request files are exchanged, which show no
        sign of life. On the socket 5 s of silence mean that the gateway is stalled.
        """
        args, shown = _sendable(args or {}), _guard_output(on_event)
        tries = 0
        while tries < TRIES:
            self.connect()
            began = time.monotonic()
            try:
                if (inside := self._inside) is not None:
                    _refuse_agent(verb, args)
                    return inside.ask(verb, args, shown)
                is_followed = shown is not None and is_listening(self.home)
                patience = ANSWER_SECONDS if timeout is None or is_followed else timeout
                # A worker that ended since we looked has a successor, which is waited for at its socket.
                return control.call(self.home, verb, args, patience, shown, may_leave_file=self._is_out_of_reach)
            except _ReaderIsGone:
                raise BrokenPipeError from None
            except GatewayIsStalledError:
                holder = locks.holder(paths.owner_lock(str(self.home)))
                if holder is not None and holder.what == LONE_CHAT:
                    raise held_by(holder) from None
                raise
            except GatewayIsDownError:
                tries = tries + 1 if time.monotonic() - began < STEADY_SECONDS else 1
                self._forget()
                if on_event is not None:
                    on_event({"kind": "again"})
        raise GatewayIsDownError("The gateway stopped three times before it answered. Look: hermes logs")

    def connect(self) -> None:
        """Find out who answers; open what is needed when nobody does. Raises GatewayIsDownError for Alone.NEVER."""
        with self._lock:
            self._connect()

    def _connect(self) -> None:
        if self._is_closed:
            raise GatewayError("This command is ending.")
        if self._inside is not None and self._inside.is_over:
            self._forget()
        taken: HomeInUseError | None = None
        for _ in range(TRIES):
            if self._inside is not None:
                return
            if control.is_running(self.home):
                self._is_out_of_reach = wait_for_gateway(self.home)
                if control.is_running(self.home):
                    return
            if self._alone is Standalone.NEVER:
                raise GatewayIsNotRunningError(f"The gateway is not running. Start it: {command_name()} gateway start")
            refuse_foreign(self.home)
            if wait_for_owner(self.home):
                return
            try:
                self._inside = self._open()
            except HomeInUseError as error:  # by a gateway or a command that began while we opened
                taken = error
        if taken is not None:
            raise taken

    def _open(self) -> InProcessGateway:
        from hermes.cli.support.standalone import InProcessGateway, alone_chat, alone_gateway, alone_store
        from hermes.store.sqlite import losses

        match self._alone:
            case Standalone.STORE:
                opened = alone_store(self.home)
            case Standalone.CHAT:
                opened = alone_chat(self.home)
            case _:
                opened = alone_gateway(self.home)
        inside = InProcessGateway(self.home, opened)
        self._recoveries = len(losses.read(self.home))
        try:
            inside.start()
        finally:
            self._tell_of_recoveries()
        return inside

    def _tell_of_recoveries(self) -> None:
        """A file that was damaged is brought back by whoever opens it, so it is up to this command to say so."""
        from hermes.store.sqlite import losses

        reports = losses.read(self.home)
        for report in reports[self._recoveries :]:
            self._on_recovered(report.text(self.home))
        self._recoveries = len(reports)

    def _forget(self) -> None:
        with self._lock:
            inside, self._inside = self._inside, None
            if inside is not None:
                inside.close()
                self._tell_of_recoveries()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self._forget()


def _sendable(args: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed as JSON can carry it: bytes that are no UTF-8 become a mark, and no message is a whole disk."""
    cleaned = {
        name: value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if isinstance(value, str) else value
        for name, value in args.items()
    }
    longest = max((len(value) for value in cleaned.values() if isinstance(value, str)), default=0)
    if longest > MAX_TEXT_CHARS:
        raise GatewayError(
            f"That is too long for one message: {longest:,} characters, and {MAX_TEXT_CHARS:,} can be sent."
        )
    return cleaned


def _refuse_agent(verb: str, args: Mapping[str, Any]) -> None:
    """Refuse what a gateway would refuse, in a command that works without one.

    A tool may have outlived its gateway. A message to the agent is allowed, a slash command in it is not.
    """
    from hermes.hosting import tool_processes
    from hermes.hosting.control import access

    is_talk = verb == "model.ready" or (verb == "say" and not str(args.get("text") or "").lstrip().startswith("/"))
    if not is_talk and verb not in access.OPEN_TO_TOOLS and tool_processes.is_marked():
        raise GatewayError(access.NOT_THE_AGENT)


class _ReaderIsGone(Exception):  # noqa: N818 - a fact, not an error
    """Our own reader (head, less) has seen enough. It must not look as if the gateway had hung up."""


def _guard_output(on_event: OnEvent | None) -> OnEvent | None:
    if on_event is None:
        return None

    def show(event: Mapping[str, Any]) -> None:
        try:
            on_event(event)
        except BrokenPipeError as error:
            raise _ReaderIsGone from error

    return show


def refuse_agent() -> None:
    """Raise where a tool of an agent runs this command: an agent neither replaces nor copies what its gateway is."""
    from hermes.hosting import tool_processes
    from hermes.hosting.control import access

    if tool_processes.is_marked():
        raise GatewayError(access.NOT_THE_AGENT)


# In this process
