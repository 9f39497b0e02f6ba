"""A home, a port or a setting that cannot be used: one sentence that names it and its cure, and no traceback."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.chaos.world import GatewayProcess, until
from tests.fakes.model import FakeModel

ROOT = Path(__file__).parents[2]
HOPELESS = 78

# For root the modes of files mean nothing; without these two rights they do.
AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
needs_modes = pytest.mark.skipif(
    bool(AS_ANYBODY) and shutil.which("setpriv") is None, reason="root may read everything, and setpriv is not here"
)


def environ(folder: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "API_SERVER_PORT": "0",
        "OPENAI_API_KEY": "sk-test-0123456789",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        **more,
    }


def typed(folder: Path, home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What a person types, without a terminal, and all that is printed."""
    return subprocess.run(
        [*AS_ANYBODY, str(ROOT / "scripts" / command[0]), *command[1:]],
        env=environ(folder, HERMES_HOME=str(home)),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@asynccontextmanager
async def running(folder: Path, settings: Mapping[str, str]) -> AsyncIterator[tuple[GatewayProcess, Path]]:
    """A gateway that is ready, and the file that holds what it printed."""
    output = folder / "gateway.out"
    with output.open("w", encoding="utf-8") as file:
        gateway = GatewayProcess(folder / "h", environ(folder, **settings), file)
        gateway.start()
        try:
            await gateway.ready()
            yield gateway, output
        finally:
            await gateway.stop()


@contextmanager
def a_taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def a_file(folder: Path) -> Path:
    path = folder / "file"
    path.write_text("mine\n", encoding="utf-8")
    path.chmod(0o644)
    return path


def below_a_file(folder: Path) -> Path:
    return a_file(folder) / "home"


def read_only(folder: Path) -> Path:
    path = folder / "read_only"
    path.mkdir(mode=0o500)
    return path


def nowhere_to_make_it(folder: Path) -> Path:
    return read_only(folder) / "home"


def not_ours_to_enter(folder: Path) -> Path:
    path = folder / "closed"
    path.mkdir(mode=0o000)
    return path


HOMES = [a_file, below_a_file, read_only, nowhere_to_make_it, not_ours_to_enter]
COMMANDS = [("hermes-gateway", "run"), ("hermes-gateway", "start"), ("hermes", "-z", "hello")]


@needs_modes
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("make", HOMES, ids=lambda make: make.__name__)
def test_a_home_that_cannot_be_one_is_named_with_its_cure_and_left_as_it_was(
    tmp_path: Path, make: object, command: tuple[str, ...]
) -> None:
    assert callable(make)
    home = make(tmp_path)
    before = {path: (path.stat().st_mode, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")}
    done = typed(tmp_path, home, *command)
    said = done.stdout + done.stderr
    assert done.returncode == HOPELESS, said
    assert str(home) in said
    assert "HERMES_HOME" in said, "the cure"
    assert "Traceback" not in said
    assert {path: (path.stat().st_mode, path.stat().st_mtime_ns) for path in before} == before


@needs_modes
@pytest.mark.parametrize("make", [a_file, below_a_file, not_ours_to_enter], ids=lambda make: make.__name__)
def test_status_of_a_home_that_cannot_be_one_says_so_without_a_traceback(tmp_path: Path, make: object) -> None:
    assert callable(make)
    done = typed(tmp_path, make(tmp_path), "hermes", "gateway", "status")
    assert done.returncode in (3, HOPELESS), done
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
async def test_a_taken_port_a_broken_file_a_slip_and_a_placeholder_are_told_and_local_chat_goes_on(
    tmp_path: Path,
) -> None:
    home = tmp_path / "h"
    home.mkdir()
    (home / "config.yaml").write_text("model:\n  default: [unclosed\nfoo: {\n", encoding="utf-8")
    (home / ".env").write_text(
        "TELEGRAM_BOT_TOKEN=<token from @BotFather>\nTELEGRAM_ALOWED_USERS=7\n\xff\n", encoding="latin-1"
    )
    async with FakeModel() as model:
        with a_taken_port() as port:
            settings = {"API_SERVER_PORT": str(port), "OPENAI_BASE_URL": model.url}
            async with running(tmp_path, settings) as (gateway, output):
                done = await asyncio.to_thread(typed, tmp_path, home, "hermes", "-z", "hello")
                said = output.read_text(encoding="utf-8")
                troubles = gateway.status()["troubles"]
    assert (done.returncode, done.stdout.strip()) == (0, "echo: hello"), done.stderr
    assert "config.yaml line 3, column 4: is not valid YAML" in said
    assert "TELEGRAM_BOT_TOKEN: still holds an example value, so it is not used. Write your own there" in said
    assert "TELEGRAM_ALOWED_USERS is unknown. → TELEGRAM_ALLOWED_USERS?" in said
    assert ".env line 3: holds a byte that is not UTF-8. Save the file as UTF-8." in said
    assert f"port {port} on 127.0.0.1 cannot be used (Address already in use)" in said
    assert "set API_SERVER_PORT" in said
    assert any(f"port {port}" in trouble for trouble in troubles)
    assert "Traceback" not in said


@needs_modes
def test_an_env_file_that_may_not_be_read_is_told_with_a_cure(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    (home / ".env").write_text("TELEGRAM_ALLOWED_USERS=7\n", encoding="utf-8")
    (home / ".env").chmod(0o000)
    done = typed(tmp_path, home, "hermes", "config", "check")
    said = done.stdout + done.stderr
    assert ".env: cannot be read: Permission denied." in said
    assert f"chmod 600 {home / '.env'}" in said
    assert "Traceback" not in said


@pytest.mark.slow
async def test_a_database_server_that_is_not_up_yet_is_waited_for_and_named_without_a_password(tmp_path: Path) -> None:
    with a_taken_port() as port:
        pass  # free again: nobody listens there
    output = tmp_path / "gateway.out"
    url = f"postgresql://hermes:pass-word-17@127.0.0.1:{port}/hermes"
    with output.open("w", encoding="utf-8") as file:
        gateway = GatewayProcess(tmp_path / "h", environ(tmp_path, HERMES_DATABASE_URL=url), file)
        gateway.start()
        try:
            await until(lambda: "PostgreSQL cannot be reached" in output.read_text(encoding="utf-8"), 15)
            first = gateway.worker()
            await until(
                lambda: "PostgreSQL" in typed(tmp_path, tmp_path / "h", "hermes", "gateway", "status").stdout, 10
            )
            assert first
            assert gateway.worker() == first, "it waits and does not crash"
        finally:
            await gateway.stop()
    said = output.read_text(encoding="utf-8")
    assert said.count("Store    PostgreSQL cannot be reached") == 1
    assert "HERMES_DATABASE_URL" in said
    assert "pass-word-17" not in said + (tmp_path / "h" / "logs" / "gateway.log").read_text(encoding="utf-8")
    assert "Traceback" not in said
