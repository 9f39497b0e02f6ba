"""Link a phone: show a code, wait for the scan, store the session.

The new link comes to be beside the session that is there, so a running gateway goes on until it is whole.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import field
from datetime import UTC, datetime

import aiohttp

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, ConflictError, CredentialsError, UnreachableError
from hermes.core.manifest import AdapterParts, SignedIn, SignInScreen
from hermes.platforms.whatsapp import session_files
from hermes.platforms.whatsapp.client import Client
from hermes.platforms.whatsapp.config import LINK, Places, WhatsAppConfig, person_id
from hermes.platforms.whatsapp.install import Installed, Installer, private
from hermes.platforms.whatsapp.process import Child, Launch, SessionLock
from hermes.platforms.whatsapp.wire import Me

PAIR_WITH = "pair_with"  # a number: a code to type on its phone takes the place of the one to scan

HOW_TO_SCAN = f"""\
On the phone: WhatsApp, Settings, Linked devices, Link a device. Then scan this.
(It cannot be scanned? Ctrl+C, then `{LINK} --code NUMBER` shows a code to type.)"""
HOW_TO_TYPE = """\
On the phone: WhatsApp, Settings, Linked devices, Link a device, Link with phone number instead. Then type:

    {code}
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """Tests shorten it."""

    link_seconds: float = 300.0
    reach_seconds: float = 45.0
    look_seconds: float = 1.0
    settle_seconds: float = 3.0  # the phone still syncs; a device that leaves at once looks like a failure to it


@dataclass(slots=True)
class Link:
    """One try to link, with a bridge that runs."""

    client: Client
    screen: SignInScreen
    number: str
    clock: Callable[[], float]
    pace: Pace = field(default_factory=Pace)
    _shown: int = 0
    _is_scanned: bool = False
    _has_words: bool = False

    async def run(self) -> Me:
        """Who was linked. Raises CredentialsError when nobody was, UnreachableError when WhatsApp is."""
        try:
            async with asyncio.timeout(self.pace.link_seconds):
                return await self._linked()
        except TimeoutError:
            raise CredentialsError("Nobody scanned the code in time. Run it again when the phone is at hand.") from None

    async def _linked(self) -> Me:
        began, health = self.clock(), await self.client.health()
        trouble = UnreachableError("WhatsApp gave no code to scan.")
        while True:
            if isinstance(error := health.trouble, UnreachableError):
                trouble = error
            match health.status:
                case "connected" if health.me is not None:
                    self.screen.progress("Linked. Waiting until the phone has everything …")
                    later = await self.client.health(unlike="connected", seconds=self.pace.settle_seconds)
                    if later.status == "logged_out":
                        raise CredentialsError(f"WhatsApp took the link back ({later.code}). Run it again.")
                    return health.me
                case "waiting_for_scan":
                    await self._show()
                case "logged_out" | "replaced":
                    raise CredentialsError(f"WhatsApp did not take the link ({health.code}). Run it again.")
                case "connecting" | "disconnected" if self._shown and not self._is_scanned and health.me is not None:
                    self._is_scanned = True
                    self.screen.say("Scanned. The phone and WhatsApp settle the rest …")
                case "connecting" | "disconnected" if self._shown:
                    self._has_words = False  # a code to type is good for one connection
                case _ if not self._shown and self.clock() - began > self.pace.reach_seconds:
                    raise trouble
            health = await self.client.health(unlike=health.status, seconds=self.pace.look_seconds)

    async def _show(self) -> None:
        code, number = await self.client.qr()
        if not code or number == self._shown:
            return
        if self.number:
            if not self._has_words:
                answer = await self.client.call("pair", {"phone": self.number})
                self.screen.say(HOW_TO_TYPE.format(code=answer.get("code")))
                self._has_words = True
        else:
            if self._shown == 0:
                self.screen.say(HOW_TO_SCAN)
            self.screen.show_code(code)
        self._shown = number


async def sign_in(parts: AdapterParts, screen: SignInScreen, pace: Pace | None = None) -> SignedIn:
    """Install the bridge, show codes until one is scanned, put the session in place; what to write then."""
    config = WhatsAppConfig.of(parts)
    installed = await install(config, screen)
    number = person_id(str(parts.values.get(PAIR_WITH) or ""))
    if number and not number.isdigit():
        raise ConfigError(f"{number!r} is no phone number. Write it with its country code, such as 15551234567.")
    places = config.places
    claim = await SessionLock.take(places.root / "linking.lock", 0.0)
    if claim is None:
        raise ConflictError(f"`{LINK}` is at work in another terminal.")
    try:
        me = await _linked_beside(config, installed, screen, number, pace or Pace())
        if not await asyncio.to_thread(session_files.is_whole, places.linking / "session"):
            raise UnreachableError(f"The keys of the link cannot be written to {places.linking}. Is the disk full?")
        await asyncio.to_thread(session_files.mark_linked, places)
        # A gateway that uses the old session adopts the new one when it starts its bridge again.
        if (lock := await SessionLock.take(places.lock, 0.5)) is not None:
            try:
                await asyncio.to_thread(session_files.adopt, places)
            finally:
                lock.release()
    finally:
        claim.release()
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    return SignedIn({"enabled": "true", "linked_at": stamp}, owner=me.id)


async def install(config: WhatsAppConfig, screen: SignInScreen) -> Installed:
    """Raises ConfigError (no Node) or InstallError."""
    installer = Installer(config.places.bridges, seconds=config.install_seconds, proxy=config.proxy)
    try:
        installed = await installer.install(screen.progress)
    finally:
        await installer.close()
    screen.say(f"✓ The bridge is installed ({installed.folder.name[:8]})")
    return installed


async def _linked_beside(
    config: WhatsAppConfig, installed: Installed, screen: SignInScreen, number: str, pace: Pace
) -> Me:
    places = config.places
    await asyncio.to_thread(_fresh, places)
    # Nobody else receives: what comes in while we link is kept where the gateway finds it. Otherwise it gets it itself.
    own = await SessionLock.take(places.lock, 0.0)
    spool, media = (places.spool, places.media) if own else (places.linking / "spool", places.linking / "media")
    lock = own or await SessionLock.take(places.linking / "lock", 0.0)
    if lock is None:
        raise ConflictError(f"`{LINK}` is at work in another terminal.")
    try:
        launch = Launch(installed, places.linking / "session", spool, media, config.proxy)
        screen.progress("Starting the bridge …")
        child = await Child.start(launch, lock.descriptor)
        try:
            async with aiohttp.ClientSession(trust_env=False) as http:
                clock = asyncio.get_running_loop().time
                return await Link(Client(http, child.address), screen, number, clock, pace).run()
        finally:
            await child.close()
    finally:
        lock.release()


def _fresh(places: Places) -> None:
    shutil.rmtree(places.linking, ignore_errors=True)  # of a try that came to nothing
    private(places.linking)
