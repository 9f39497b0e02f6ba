"""The first minutes of a newcomer: a clone, an empty HOME, two commands; or a home that is already someone's.

The clone gets a .venv that borrows the packages of this one, so that nothing is installed here; the install itself
is shown by test_scripts.
"""

from __future__ import annotations

import asyncio
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hermes.hosting import heartbeat, paths, processes
from tests.e2e.keeping import until
from tests.fakes.telegram import UNPACED, FakeTelegram
from tests.fixtures.homes import snapshot, unpack_hermes_agent_home

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MODEL_CACHE = Path(os.environ.get("HERMES_TEST_MODEL_CACHE") or Path(sys.prefix) / "embedded-model") / "models"
HOPELESS = 78


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout


class Newcomer:
    """A person with a fresh clone, an empty HOME and one terminal."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "hermes"
        self.user_home = folder / "ana"
        self.user_home.mkdir(parents=True)
        if shutil.which("git"):
            _git("clone", "-q", str(ROOT), str(self.clone))
            self._take_what_is_not_committed_yet()
        else:  # what a clone would bring, and a few files more that nobody looks at
            shutil.copytree(
                ROOT, self.clone, symlinks=True, ignore=shutil.ignore_patterns(".venv*", "__pycache__", ".*_cache")
            )
        self._borrow_packages()
        self.home = self.user_home / ".hermes"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user_home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "API_SERVER_PORT": "0",
            # No network: whatever would be fetched is told as such.
            "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
            "PIP_RETRIES": "0",
            "PIP_CONFIG_FILE": os.devnull,
        }

    def _take_what_is_not_committed_yet(self) -> None:
        changed = _git("diff", "HEAD", "--name-only", "-z") + _git("ls-files", "-o", "--exclude-standard", "-z")
        for name in filter(None, changed.split("\0")):
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, self.clone / name)
            else:
                (self.clone / name).unlink(missing_ok=True)

    def _borrow_packages(self) -> None:
        venv.create(self.clone / ".venv", symlinks=True)
        packages = next((self.clone / ".venv" / "lib").glob("python*/site-packages"))
        # Its own sources first: a .pth in a borrowed folder is not read.
        (packages / "borrowed.pth").write_text(f"{self.clone / 'src'}\n{sysconfig.get_path('purelib')}\n")
        pins = (self.clone / "requirements" / "core.txt").read_text()
        (self.clone / ".venv" / "stamp-core").write_text(pins)

    def types(self, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """A command without a terminal, to its end."""
        return subprocess.run(
            [f"./scripts/{command[0]}", *command[1:]],
            cwd=self.clone,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    @contextmanager
    def runs(self, **environ: str) -> Iterator[Window]:
        """``./scripts/hermes-gateway run`` in a window of its own, until the end of the block."""
        window = Window(self, environ)
        try:
            yield window
        finally:
            window.close()


class Window:
    """A terminal in which the gateway runs; ``text`` is what stands in it."""

    def __init__(self, person: Newcomer, environ: dict[str, str]) -> None:
        self._home = str(person.home)
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            ["./scripts/hermes-gateway", "run"],
            cwd=person.clone,
            env=person.environ | environ,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._shown = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # the other side is closed
                return
            if not data:
                return
            self._shown += data

    @property
    def text(self) -> str:
        return self._shown.decode("utf-8", "replace").replace("\r\n", "\n")

    def shows(self, words: str, seconds: float = 20.0) -> str:
        """Everything shown, once these words are."""
        until(lambda: words in self.text or self.process.poll() is not None, seconds)
        assert words in self.text, self.text
        return self.text

    def worker(self) -> int:
        seen = heartbeat.read(paths.heartbeat(self._home))
        assert seen is not None
        return seen.pid

    def interrupt(self) -> int:
        """Ctrl+C; the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(15)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(12)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(20)
        os.close(self._ours)
        self._reader.join(2)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    return Newcomer(tmp_path_factory.mktemp("first"))


def modes_below(folder: Path) -> set[str]:
    """What group and others may do with anything of ours; nothing is the right answer."""
    found = set()
    for place, folders, files in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in (*folders, *files))):
            with suppress(FileNotFoundError):  # a fetch of the model makes and removes files of its own meanwhile
                mode = os.lstat(path).st_mode
                if not stat.S_ISLNK(mode) and mode & 0o077:
                    found.add(path)
    return found


def found_by_pgrep(text: str, *, session: int) -> list[int]:
    """What `pgrep -f TEXT -s SESSION` prints, without the program, which a bare machine does not have."""
    found = []
    for pid in sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended while we looked
            if os.getsid(pid) == session and text in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "):
                found.append(pid)
    return found


def test_the_first_start_shows_its_screen_is_ready_and_ends_by_ctrl_c(newcomer: Newcomer) -> None:
    with newcomer.runs() as window:
        shown = window.shows("Closing this window stops it.")
        worker, parent = window.worker(), processes.parent_of(window.worker())
        titles = {
            pid: Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in (worker, parent)
        }
        names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in (worker, parent)}
        found = found_by_pgrep("hermes gateway", session=window.process.pid)
        assert (newcomer.home / "logs" / "gateway.log").is_file()
        assert (newcomer.home / "logs" / "errors.log").is_file()
        assert modes_below(newcomer.home) == set()
        assert window.interrupt() == 0
    assert "⚕ Hermes Gateway Starting..." in shown
    assert "Press Ctrl+C to stop" in shown
    assert "Home     ~/.hermes, new, readable by you alone" in shown
    assert "Syncing bundled skills into ~/.hermes/skills/ ...  Done: 14 new, 0 updated, 0 unchanged." in shown
    assert re.search(r"^Model    built-in", shown, re.MULTILINE)
    assert re.search(r"^API      http://127\.0\.0\.1:\d+/v1   \(its key: \S+ api-key show\)$", shown, re.MULTILINE)
    assert "Chats    none yet" in shown
    assert re.search(r"^Gateway started in \d+\.\d s\.$", shown, re.MULTILINE)
    assert re.search(r"Talk to it +\./scripts/hermes$", shown, re.MULTILINE), "as it can be typed here"
    assert "It restarts itself after a crash." in shown
    assert "Traceback" not in shown
    assert not re.search(r"^\d{4}-\d\d-\d\dT", shown, re.MULTILINE), "a person reads words, not log lines"
    # What operators type: ps, pgrep (S0-03).
    assert "hermes gateway" in titles[worker]
    assert names[worker] == "hermes"
    assert "hermes supervisor" in titles[parent]
    assert "hermes gateway" not in titles[parent]
    assert found[:1] == [worker]


def test_the_second_start_says_that_the_home_is_known_and_adds_little_to_the_script(newcomer: Newcomer) -> None:
    started = time.monotonic()
    assert newcomer.types("hermes", "--version").stdout.startswith("hermes ")
    assert time.monotonic() - started < 2.0, "0.2 s are promised; a loaded machine gets ten times as long"
    with newcomer.runs() as window:
        shown = window.shows("Gateway started in")
    assert "Home     ~/.hermes, readable by you alone" in shown
    assert "Done: 0 new, 0 updated, 14 unchanged. 14 total bundled." in shown


async def test_with_a_telegram_token_the_screen_names_the_bot_and_warns_that_nobody_is_let_in(
    newcomer: Newcomer,
) -> None:
    async with FakeTelegram() as telegram:
        settings = {
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_BASE_URL": telegram.url,
            **UNPACED,
            "OPENAI_API_KEY": "sk-test-0123456789",
        }
        with newcomer.runs(**settings) as window:
            shown = await asyncio.to_thread(window.shows, "Gateway started in")
    assert "Model    openai / gpt-4o-mini" in shown
    assert "Chats    telegram @test_bot, connected" in shown
    assert "WARNING  No user allowlists configured. All unauthorized users will be denied." in shown
    log = (newcomer.home / "logs" / "gateway.log").read_text(encoding="utf-8")
    assert " WARNING No user allowlists configured. All unauthorized users will be denied." in log
    assert " INFO Connected platform=telegram" in log


def test_hello_is_answered_by_the_built_in_model(newcomer: Newcomer) -> None:
    if not list(MODEL_CACHE.glob("embedded-*")):
        pytest.skip("the built-in model's packages are not here; test_embedded_model fetches them")
    (newcomer.home / "models").mkdir(mode=0o700, exist_ok=True)
    for package in (*MODEL_CACHE.glob("embedded-*"), *MODEL_CACHE.glob("libgomp-*")):
        link = newcomer.home / "models" / package.name
        if package.is_dir() and not link.exists():
            link.symlink_to(package)
    done = newcomer.types("hermes", "-z", "hello")
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout.lower()
    assert "Traceback" not in done.stderr


def test_without_a_network_and_without_the_model_hello_says_so(newcomer: Newcomer, tmp_path: Path) -> None:
    done = newcomer.types("hermes", "-z", "hello", HOME=str(tmp_path), HERMES_HOME=str(tmp_path / "new"))
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "built-in model" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "command",
    [("hermes-gateway", "run"), ("hermes-gateway", "start"), ("hermes", "-z", "hello"), ("hermes", "doctor")],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_home_of_hermes_agent_is_left_as_it_was_and_the_way_beside_it_is_shown(
    newcomer: Newcomer, tmp_path: Path, command: tuple[str, ...]
) -> None:
    home = unpack_hermes_agent_home(tmp_path / "user" / ".hermes")
    before = snapshot(home)
    done = newcomer.types(*command, HOME=str(tmp_path / "user"))
    said = done.stdout + done.stderr
    assert snapshot(home) == before, "every byte, mode and time"
    assert done.returncode == (1 if command[1] == "doctor" else HOPELESS), said
    assert "~/.hermes belongs to hermes-agent 0.19 (1 session, 1 task, telegram)" in said
    assert "Traceback" not in said
    if command[1] != "doctor":
        assert "I have changed nothing there." in said
        assert re.search(r"HERMES_HOME=~/\.hermes-two API_SERVER_PORT=8643 \./scripts/hermes gateway run", said)


def test_beside_a_home_of_hermes_agent_another_one_works(newcomer: Newcomer, tmp_path: Path) -> None:
    user = tmp_path / "user"
    home = unpack_hermes_agent_home(user / ".hermes")
    before = snapshot(home)
    beside = {"HOME": str(user), "HERMES_HOME": str(user / ".hermes-two")}
    with newcomer.runs(**beside) as window:
        window.shows("Gateway started in")
    assert snapshot(home) == before
