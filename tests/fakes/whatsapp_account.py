"""The real adapter with the real bridge process, linked to the fake WhatsApp."""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import json
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

import aiohttp

from hermes.core.manifest import AccountResource, AdapterParts
from hermes.core.messages import Capabilities
from hermes.core.ports import Adapter, Alive
from hermes.core.secret import Secret
from hermes.platforms.whatsapp import MANIFEST
from hermes.platforms.whatsapp.adapter import WhatsAppAdapter
from hermes.platforms.whatsapp.client import Address, Client
from hermes.platforms.whatsapp.config import Places, WhatsAppConfig
from hermes.platforms.whatsapp.install import Installed, Installer, script_hash, sources
from hermes.platforms.whatsapp.process import Bridge, Launch
from tests.fakes.server import Sent
from tests.fakes.site import session
from tests.fakes.whatsapp import FakeWhatsApp
from tests.fakes.whatsapp_bridge import installed_packages, lay_out

_FENCED = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)
_MARKED = re.compile(r"(?<![\w*_~])([*_~])(?=\S)([^\n]+?)(?<=\S)\1(?![\w*_~])")


def bridges() -> Path:
    """A folder in which the bridge of this clone is installed, as the installer leaves it."""
    installed_packages()
    folder = Path(sys.prefix) / "whatsapp-bridge" / "installed"
    folder.mkdir(parents=True, exist_ok=True)
    whole = folder / script_hash(sources())[:16]
    with (folder / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not whole.exists():
            with tempfile.TemporaryDirectory(dir=folder) as near:
                lay_out(Path(near) / "bridge").rename(whole)
    return folder


def free_port() -> int:
    """Below those that outgoing connections get: while nobody listens there, a bridge could reach itself."""
    for port in random.sample(range(20_000, 32_000), 50):
        with suppress(OSError), closing(socket.create_server(("127.0.0.1", port))):
            return port
    raise OSError("no free port")


class LongLived:
    """One bridge process for many tests, since each start takes a second or two.

    It is linked to whoever listens on ``port``: the fake of the test that borrows it. What a test left in it is
    cleared; one whose link was ended is started anew.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="hermes-whatsapp-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.address = Address(0, Secret(""))
        atexit.register(self.close)

    @property
    def places(self) -> Places:
        return Places(self.folder, bridges())

    def started(self, fake: FakeWhatsApp) -> Address:
        """Where it answers, with nothing left in it of earlier tests."""
        if self._process is not None and not self._is_usable():
            self._end()
        if self._process is None:
            self._start(fake)
        return self.address

    def _start(self, fake: FakeWhatsApp) -> None:
        places, token = self.places, Secret("a-token")
        fake.link_session(places.session)
        installed = Installed(Path(shutil.which("node") or "node"), bridges() / script_hash(sources())[:16])
        launch = Launch(installed, places.session, places.spool, places.media, environ=fake.bridge_environ)
        self._process = subprocess.Popen(
            [str(installed.node), str(installed.script)],
            env=launch.whole_environ(token.reveal()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert first, "the bridge ended at once"
        self.address = Address(json.loads(first)["listening"], token)

    def _is_usable(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            return False
        status = self._ask("GET", "/health")["status"]
        while items := self._ask("GET", "/messages?after=0")["items"]:
            self._ask("POST", "/ack", {"cursor": items[-1]["cursor"]})
        return status not in ("logged_out", "replaced", "waiting_for_scan")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        with closing(HTTPConnection("127.0.0.1", self.address.port, timeout=5)) as http:
            headers = {"Authorization": f"Bearer {self.address.token.reveal()}"}
            http.request(method, path, json.dumps(body) if body is not None else None, headers)
            return json.load(http.getresponse())

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
        shutil.rmtree(self.folder / "session", ignore_errors=True)

    def close(self) -> None:
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def long_lived() -> LongLived:
    return LongLived()


class BorrowedBridge(Bridge):
    """A bridge whose process is somebody else's: it is asked as any other, and neither started nor ended."""

    def __init__(self, places: Places, address: Address) -> None:
        super().__init__(places, Installer(places.bridges))
        self._address = address

    async def client(self) -> Client:
        return self._client_at(self._address)

    async def guest(self) -> Client | None:
        return None

    @property
    def connections(self) -> int:
        connector = self._http.connector if self._http is not None else None
        return len(connector._acquired) if connector is not None else 0


class FakeWhatsAppAccount(FakeWhatsApp):
    """``adapter`` is a linked account in bot mode without a prefix; ``values`` are further settings of it.

    Its bridge is borrowed, unless it is to be this fake's own: then each adapter starts and ends one.
    """

    capabilities: Capabilities = WhatsAppAdapter.capabilities
    owns_its_bridge = False

    def __init__(self, *, port: int = 0, is_linked: bool = True, folder: str = "") -> None:
        bridges()  # skips before anything is open
        super().__init__(port=port or (0 if self.owns_its_bridge else long_lived().port), is_linked=is_linked)
        own = self.owns_its_bridge
        self.folder = Path(folder or tempfile.mkdtemp(prefix="hermes-whatsapp-")) if own else long_lived().folder
        self._borrowed: list[BorrowedBridge] = []
        self.mentioned: dict[str, list[str]] = {}  # by the message of ours
        if self.owns_its_bridge and is_linked:
            self.link_session(self.folder / "session")

    @property
    def bridge_environ(self) -> dict[str, str]:
        return {**super().bridge_environ, "HERMES_BRIDGE_BACKOFF_MS": "10,40"}

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        if not self.owns_its_bridge:
            await asyncio.to_thread(long_lived().started, self)
            await self._until("connected")
        return self

    async def _until(self, status: str) -> None:
        """Until the borrowed bridge knows how it stands."""
        async with aiohttp.ClientSession() as http, asyncio.timeout(10):
            bridge = Client(http, long_lived().address)
            while (health := await bridge.health()).status != status:
                await bridge.health(unlike=health.status, seconds=5)

    async def __aexit__(self, *_: object) -> None:
        try:
            await super().__aexit__(*_)
        finally:
            if self.owns_its_bridge:
                shutil.rmtree(self.folder)

    @property
    def open_connections(self) -> int:
        """Those of our adapters: a borrowed bridge stays connected."""
        return super().open_connections if self.owns_its_bridge else sum(each.connections for each in self._borrowed)

    def parts(
        self, http: Any = None, alive: Alive = lambda: None, values: Mapping[str, Any] | None = None
    ) -> AdapterParts:
        """As the supervisor makes them. Whoever asked closes what is kept."""
        defaults = {setting.key: setting.default for setting in MANIFEST.settings}
        own = {"enabled": True, "mode": "bot", "reply_prefix": "", "bridge_folder": str(bridges())}
        whole = {**defaults, **own, **(values or {})}
        parts = AdapterParts("main", whole, http, alive, {}, folder=self.folder, kept=AccountResource())
        parts.kept.one(Bridge, lambda: self._bridge(WhatsAppConfig.of(parts).places))
        return parts

    def _bridge(self, places: Places) -> Bridge:
        if self.owns_its_bridge:
            return Bridge(places, Installer(places.bridges), environ=self.bridge_environ)
        borrowed = BorrowedBridge(places, long_lived().address)
        self._borrowed.append(borrowed)
        return borrowed

    @asynccontextmanager
    async def adapter(
        self,
        *,
        alive: Alive = lambda: None,
        http: aiohttp.ClientSession | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Adapter]:
        async with session(http) as own:
            parts = self.parts(own, alive, values)
            if not self.devices and not self.owns_its_bridge:
                await self._until("logged_out")
            try:
                yield MANIFEST.build(parts)
            finally:
                await parts.kept.close()

    def _read(self, chat: str, message_id: str, message: Mapping[str, Any]) -> Sent:
        sent = super()._read(chat, message_id, message)
        sent.text = shown(sent.raw)
        parts = [part.get("contextInfo") or {} for part in message.values() if isinstance(part, dict)]
        self.mentioned[message_id] = [each for part in parts for each in part.get("mentionedJid", [])]
        return sent

    def _change(self, chat: str, protocol: Mapping[str, Any]) -> None:
        super()._change(chat, protocol)
        target = self._ours.get(protocol["key"]["id"])
        if target is not None:
            target.text = shown(target.raw)


def shown(text: str) -> str:
    """As a phone shows it: the marks are gone."""
    parts = _FENCED.split(text.replace("\u200b", ""))
    return "".join(part if number % 2 else _unmarked(part) for number, part in enumerate(parts))


def _unmarked(text: str) -> str:
    for _ in range(3):
        text = _MARKED.sub(r"\2", text)
    return text.replace("`", "")
