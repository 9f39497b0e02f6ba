"""Packages for Node, installed once beside the packages of the tests; without Node or a registry, tests are skipped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.clients.environment import long_form_or_skip

VENV = Path(__file__).parents[2] / ".venv"
SCRIPTS = Path(__file__).with_name("node")
INSTALL_SECONDS = 120.0


async def installed(*packages: str, is_long: bool = False) -> Path:
    """Return the folder with these packages, each with its version."""
    if is_long:
        long_form_or_skip(packages[0])
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node or npm is not installed")
    kept = VENV / f"npm-{'+'.join(packages).replace('/', '_')}"
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory(prefix="npm-", dir=VENV) as made:
        (Path(made) / "package.json").write_text('{"private": true}')
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", "--loglevel=error"]
        code, words = await run(["npm", "install", *quiet, *packages], Path(made), {}, INSTALL_SECONDS)
        if code:
            pytest.skip(f"npm cannot install {', '.join(packages)}: {words.strip().splitlines()[-1:] or code}")
        with contextlib.suppress(OSError):  # another test process was quicker
            os.rename(made, kept)
            os.mkdir(made)  # what is cleared away at the end of the block
    return kept


async def run_script(script: str, folder: Path, environ: dict[str, str], seconds: float) -> str:
    """Run a script beside the packages of a folder and return what it printed."""
    for name in (script, "scenarios.mjs"):  # an import is looked up beside the file that asks for it
        await asyncio.to_thread(shutil.copy, SCRIPTS / name, folder / name)
    code, words = await run(["node", str(folder / script)], folder, environ, seconds)
    assert code == 0, words
    return words


async def run(command: list[str], folder: Path, environ: dict[str, str], seconds: float) -> tuple[int, str]:
    """Its exit code and what it printed. The person's own home is where npm's settings are."""
    plain = {"PATH": os.environ["PATH"], "HOME": pwd.getpwuid(os.getuid()).pw_dir}
    kept = {name: value for name, value in os.environ.items() if name.lower().startswith(("npm_config_", "node_extra"))}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**plain, **kept, **environ},
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
    return process.returncode or 0, words.decode()
