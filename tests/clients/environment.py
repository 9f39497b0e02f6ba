"""Real client packages, each in an environment of its own beside the packages of the tests, installed once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

KEPT = Path(__file__).parents[2] / ".venv"
SCRIPTS = Path(__file__).with_name("scripts")
INSTALL_SECONDS = 1800.0
ALL = "HERMES_TEST_CLIENTS"
"""Set to ``all`` for the long form: every client, also those that take minutes to install."""


def long_form_or_skip(package: str) -> None:
    if os.environ.get(ALL) != "all":
        pytest.skip(f"{package} belongs to the long form: {ALL}=all ./scripts/test tests/clients installs and runs it")


async def python_with(package: str, *, is_long: bool) -> Path:
    """The interpreter of an environment that has the package; the test is skipped where there is no way to it."""
    if is_long:
        long_form_or_skip(package)
    folder = KEPT / f"client-{package}"
    found = folder / "bin" / "python"
    if found.exists():
        return found
    with tempfile.TemporaryDirectory(prefix="client-", dir=KEPT) as made:
        code, words = await run([sys.executable, "-m", "venv", "--without-pip", made], {}, 60)
        if not code:
            install = ["-m", "pip", "--python", f"{made}/bin/python", "install", "--quiet", "--no-compile", package]
            code, words = await run([sys.executable, *install], {}, INSTALL_SECONDS)
        if code:
            pytest.skip(f"{package} cannot be installed: {words.strip().splitlines()[-1:] or code}")
        with contextlib.suppress(OSError):  # another test process was quicker
            os.rename(made, folder)
            os.mkdir(made)  # what is cleared away at the end of the block
    return found


async def run(command: list[str], environ: dict[str, str], seconds: float, cwd: Path | None = None) -> tuple[int, str]:
    """Its exit code and what it printed. pip finds its settings in the home of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    home = pwd.getpwuid(os.getuid()).pw_dir
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": home, **kept, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(seconds):
            words, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 1, f"took more than {seconds:.0f} s"
    return process.returncode or 0, words.decode(errors="replace")


async def interrupt(
    command: list[str], environ: dict[str, str], seconds: float, cwd: Path, is_time: Callable[[], object]
) -> int:
    """Run a program and interrupt it at the given time, as Ctrl+C does. Return 3, as the scripts of clients say."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(seconds):
            while not is_time():  # noqa: ASYNC110 - the fake counts, and tells nobody
                await asyncio.sleep(0.05)
            process.send_signal(signal.SIGINT)
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return 3
