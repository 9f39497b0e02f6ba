"""kill -9 over WhatsApp: what the bridge has on disk goes into the inbox later, and a send repeated is shown once."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.store.home import make_home
from tests.chaos.world import AnyWorld, Flight, opened_on, plain
from tests.fakes.server import Hold, Said, Sent
from tests.fakes.whatsapp import Line
from tests.fakes.whatsapp_account import FakeWhatsAppAccount, bridges, free_port

Json = dict[str, Any]
PEOPLE = "49155"


class WatchfulWhatsApp(FakeWhatsAppAccount):
    """Knows of each send whether its answer had left. A chat is told of by the last digits of its person's number."""

    owns_its_bridge = True

    def __init__(self) -> None:
        super().__init__(port=free_port())
        self.flights: list[Flight] = []
        self.answered: set[tuple[str, str]] = set()
        self.batches = 0
        self.on_send: Callable[[], None] = lambda: None
        self._flying: dict[str, Flight] = {}

    def user_says(self, text: str, *, chat: int = 7, **more: Any) -> Said:
        return super().user_says(text, user=f"{PEOPLE}{chat:08d}@s.whatsapp.net", **more)

    def on_sent(self, sent: Sent) -> None:
        self.on_send()
        sent.text = sent.raw
        flight = Flight(sent, time.monotonic())
        self.flights.append(flight)
        self._flying[sent.message_id] = flight
        self.answered.add((sent.chat, flight.text))

    def _show(self, chat: str, message_id: str, message: Mapping[str, Any]) -> None:
        super()._show(_number(chat), message_id, message)

    def _change(self, chat: str, protocol: Mapping[str, Any]) -> None:
        super()._change(chat, protocol)
        target = self._ours.get(protocol["key"]["id"])
        if target is not None:
            target.text = target.raw
            self.answered.add((chat, plain(target.text)))

    def _take_message(self, line: Line, args: Json) -> None:
        super()._take_message(line, args)
        if self._hold is None:
            self._answer_left(args["id"])

    async def _ack_later(self, line: Line, message_id: str, chat: str, hold: Hold) -> None:
        await super()._ack_later(line, message_id, chat, hold)
        if not line.writer.is_closing():
            self._answer_left(message_id)

    def _answer_left(self, message_id: str) -> None:
        if (flight := self._flying.pop(message_id, None)) is not None:
            flight.answered_at = time.monotonic()

    def _take_receipt(self, number: int) -> None:
        super()._take_receipt(number)
        self.batches += 1

    def release_all(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release()

    def has_answered(self, chat: int, text: str) -> bool:
        return (str(chat), text) in self.answered


def _number(chat: str) -> str:
    return chat.partition("@")[0].removeprefix(PEOPLE).lstrip("0")


@asynccontextmanager
async def opened(folder: Path, seed: int) -> AsyncIterator[AnyWorld[WatchfulWhatsApp]]:
    make_home(folder / "home")
    async with WatchfulWhatsApp() as whatsapp:
        whatsapp.link_session(folder / "home" / "whatsapp" / "session")
        environ = {
            "WHATSAPP_ENABLED": "true",
            "WHATSAPP_MODE": "bot",
            "WHATSAPP_REPLY_PREFIX": "none",
            "WHATSAPP_ALLOW_ALL_USERS": "true",
            "WHATSAPP_DM_POLICY": "open",
            "WHATSAPP_BRIDGE_FOLDER": str(bridges()),
            **whatsapp.bridge_environ,
        }
        async with opened_on(whatsapp, folder, seed, environ) as world:
            yield world
