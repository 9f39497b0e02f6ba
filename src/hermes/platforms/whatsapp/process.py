"""Run the bridge as a child process, and never leave one behind."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import secrets
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Self

import aiohttp

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConflictError, CredentialsError, UnreachableError
from hermes.core.secret import Secret
from hermes.core.text import one_line
from hermes.platforms.whatsapp import session_files
from hermes.platforms.whatsapp.client import Address, Client
from hermes.platforms.whatsapp.config import LINK, Places
from hermes.platforms.whatsapp.install import Installed, Installer, private

log = logging.getLogger(__name__)

START_SECONDS = 30.0
LEAVE_SECONDS = 2.0
LOCK_SECONDS = 5.0
LOCK_PAUSE = 0.05
MAX_LINE_BYTES = 65_536

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "warn": logging.WARNING, "debug": logging.DEBUG}
# All that Node and TLS may want of our environment. Keys and tokens of other services are none of its business.
_PASSED_ON = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"})
_PASSED_ON_PREFIXES = ("NODE_EXTRA_CA_CERTS", "HERMES_BRIDGE_")


@dataclass(frozen=True, slots=True)
class Launch:
    """What one bridge is started with."""

    installed: Installed
    session: Path
    spool: Path
    media: Path
    proxy: str = field(default="", repr=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def whole_environ(self, token: str) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
        }
        return {
            **inherited,
            **self.environ,
            "HERMES_BRIDGE_SESSION": str(self.session),
            "HERMES_BRIDGE_SPOOL": str(self.spool),
            "HERMES_BRIDGE_MEDIA": str(self.media),
            "HERMES_BRIDGE_TOKEN": token,
            "HERMES_BRIDGE_PORT": "0",
            "NODE_COMPILE_CACHE": str(self.installed.folder / ".compiled"),  # a quicker start, from Node 22 on
            **({"HERMES_BRIDGE_PROXY": self.proxy} if self.proxy else {}),
        }


class Child:
    """One running bridge. It ends when its input closes, which happens however we end."""

    def __init__(self, process: Process, token: Secret) -> None:
        assert process.stdin is not None  # noqa: S101 - all three are pipes: start() asked for them
        assert process.stdout is not None  # noqa: S101 - the same
        self._process = process
        self._in = process.stdin
        self._out = process.stdout
        self._token = token
        self._reading: asyncio.Task[None] | None = None
        self.address = Address(0, token)
        self.last_words = ""

    @classmethod
    async def start(cls, launch: Launch, lock: int) -> Self:
        """Start the bridge, which inherits ``lock``: the session stays taken until it is gone. UnreachableError."""
        token = Secret(secrets.token_urlsafe(32))
        try:
            process = await asyncio.create_subprocess_exec(
                str(launch.installed.node),
                str(launch.installed.script),
                stdin=PIPE,
                stdout=PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=launch.whole_environ(token.reveal()),
                pass_fds=(lock,),
                start_new_session=True,  # a Ctrl+C is for us; we tell it
                umask=0o077,
                limit=MAX_LINE_BYTES,
            )
        except OSError as error:
            raise UnreachableError(f"The WhatsApp bridge cannot be started: {error.strerror or error}.") from None
        child = cls(process, token)
        try:
            await child._listening()
        except BaseException:
            await child.close()
            raise
        child._reading = asyncio.create_task(child._read(), name="log of the WhatsApp bridge")
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def close(self) -> None:
        """Let it go: it ends when its input closes, or is made to."""
        if self._reading is None:  # it is not seen to end while its pipe is full
            self._reading = asyncio.create_task(self._read(), name="last words of the WhatsApp bridge")
        self._in.close()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._process.wait()
        except TimeoutError:
            log.warning("Bridge killed", extra={"platform": "whatsapp"})
        finally:
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):  # it ended in between
                    self._process.kill()
                await self._process.wait()
            await asyncio.wait({self._reading}, timeout=1.0)
            self._reading.cancel()

    async def _listening(self) -> None:
        try:
            async with asyncio.timeout(START_SECONDS):
                while line := await self._out.readline():
                    self._hear(line)
                    if self.address.port > 0:
                        return
        except TimeoutError:
            raise UnreachableError(f"The WhatsApp bridge did not come up within {START_SECONDS:.0f} s.") from None
        except ValueError:
            raise UnreachableError("The WhatsApp bridge says something that is not its own.") from None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._process.wait()
        raise UnreachableError(f"The WhatsApp bridge ended at once ({self.how_it_ended}).")

    async def _read(self) -> None:
        while True:
            try:
                line = await self._out.readline()
            except ValueError:  # a line beyond the limit; the rest of it is passed over
                continue
            if not line:
                return
            self._hear(line)

    def _hear(self, line: bytes) -> None:
        """Its lines are JSON and hold no contents. Whatever else comes is a word of Node itself."""
        text = line.decode("utf-8", "replace").strip()
        try:
            frame: Any = json.loads(text)
        except ValueError:
            frame = None
        if not isinstance(frame, dict):
            self.last_words = one_line(text, 300) or self.last_words
            log.debug("Bridge", extra={"platform": "whatsapp", "said": self.last_words})
            return
        if isinstance(frame.get("listening"), int) and not self.address.port:
            self.address = Address(frame["listening"], self._token)
            return
        level = _LEVELS.get(str(frame.pop("level", "")), logging.INFO)
        self.last_words = one_line(str(frame.pop("text", "")), 300)
        fields = {f"bridge_{name}": value for name, value in frame.items() if isinstance(value, str | int | float)}
        # What it says of its connection we say ourselves, once, with the words of every platform.
        log.log(
            min(level, logging.INFO) if self.last_words == "Disconnected" else level,
            "Bridge: %s",
            self.last_words,
            extra={"platform": "whatsapp", **fields},
        )

    @property
    def how_it_ended(self) -> str:
        code = self._process.returncode
        if code is None:
            return "its output closed"
        if code < 0:  # it was killed, so what it said last tells nothing
            name = signal.Signals(-code).name
            return f"{name}: out of memory?" if -code == signal.SIGKILL else name
        return f"exit code {code}: {self.last_words}" if self.last_words else f"exit code {code}"


class SessionLock:
    """Who may use the session: one process and its bridge. Whoever ends, however, lets go of it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    async def take(cls, path: Path, wait_seconds: float = LOCK_SECONDS) -> Self | None:
        """None when another holds it for longer than that: one that is just ending is waited for."""
        await asyncio.to_thread(private, path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            async with asyncio.timeout(wait_seconds):
                while not _locked(descriptor):  # noqa: ASYNC110 - another process holds it, which tells nobody
                    await asyncio.sleep(LOCK_PAUSE)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, TimeoutError):
                return None
            raise
        return cls(descriptor)

    def release(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Bridge:
    """The bridge of one account, for as long as its adapters come and go. Whoever made it closes it."""

    def __init__(
        self,
        places: Places,
        installer: Installer,
        *,
        proxy: str = "",
        environ: Mapping[str, str] | None = None,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:
        self._places = places
        self._installer = installer
        self._proxy = proxy
        self._environ = environ or {}
        self._lock_seconds = lock_seconds
        self._child: Child | None = None
        self._lock: SessionLock | None = None
        self._starting = asyncio.Lock()
        self._http: aiohttp.ClientSession | None = None

    @property
    def pid(self) -> int | None:
        """The running process; None while there is none."""
        return self._child.pid if self._child is not None and self._child.is_running else None

    async def client(self) -> Client:
        """Return a client of the bridge, started if needed. Raises a ConfigError or PlatformError in words."""
        async with self._starting:
            if self._child is not None and self._child.is_running:
                return self._client_at(self._child.address)
            if self._child is not None:
                log.warning("Bridge ended", extra={"platform": "whatsapp", "reason": self._child.how_it_ended})
            await self._let_go()
            installed = await self._installer.ready()
            lock = await SessionLock.take(self._places.lock, self._lock_seconds)
            if lock is None:
                raise ConflictError(
                    "Another process uses this WhatsApp session: a second gateway, or `hermes whatsapp`."
                )
            self._lock = lock
            try:
                self._child = await self._started(installed, lock)
            finally:
                if self._child is None:
                    self._release()
            return self._client_at(self._child.address)

    def _client_at(self, address: Address) -> Client:
        """A session of our own: the one of the account may lead through a proxy, even to this machine."""
        if self._http is None:
            self._http = aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar())
        return Client(self._http, address)

    async def _started(self, installed: Installed, lock: SessionLock) -> Child:
        places = self._places
        await asyncio.to_thread(session_files.adopt, places)
        if not await asyncio.to_thread(session_files.is_linked, places.session):
            raise CredentialsError(f"WhatsApp is not linked. Run `{LINK}` and scan the code with the phone.")
        launch = Launch(installed, places.session, places.spool, places.media, self._proxy, self._environ)
        child = await Child.start(launch, lock.descriptor)
        await asyncio.to_thread(session_files.tell_running, places, child.address, child.pid)
        return child

    async def guest(self) -> Client | None:
        """For the bridge that another process of the owner keeps; None when nobody does."""
        address = await asyncio.to_thread(session_files.running_bridge, self._places)
        return self._client_at(address) if address is not None else None

    async def end(self) -> None:
        """End the process, if one runs; the next one who asks starts it anew."""
        async with self._starting:
            await self._let_go()

    async def close(self) -> None:
        try:
            await self.end()
        finally:
            http, self._http = self._http, None
            if http is not None:
                await http.close()

    async def _let_go(self) -> None:
        child, self._child = self._child, None
        try:
            if child is not None:
                await asyncio.to_thread(self._places.running.unlink, missing_ok=True)
                await child.close()
        finally:
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None
