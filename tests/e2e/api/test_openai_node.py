"""The official `openai` package for Node, where Node is. It is installed once, beside the packages of the tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import tempfile
from pathlib import Path

import orjson
import pytest

from tests.e2e.api.conftest import Sdk
from tests.fakes.model import FakeModel, Json, Refusal, calls_tools

PACKAGE = "openai@6.30.1"  # the newest that runs on Node 20
SCRIPT = Path(__file__).with_name("openai_node.mjs")
KEPT = Path(__file__).parents[3] / ".venv" / f"npm-{PACKAGE}"
INSTALL_SECONDS = 60.0
RUN_SECONDS = 30.0


async def package() -> Path:
    """The folder of the installed package; the test is skipped where there is no way to it."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node or npm is not installed")
    if KEPT.exists():
        return KEPT
    with tempfile.TemporaryDirectory(prefix="npm-", dir=KEPT.parent) as made:
        (Path(made) / "package.json").write_text('{"private": true}')
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", "--loglevel=error"]
        code, words = await run(["npm", "install", *quiet, PACKAGE], Path(made), {}, INSTALL_SECONDS)
        if code:
            pytest.skip(f"npm cannot install {PACKAGE}: {words.strip().splitlines()[-1:] or code}")
        with contextlib.suppress(OSError):  # another test process was quicker
            os.rename(made, KEPT)
            os.mkdir(made)  # what is cleared away at the end of the block
    return KEPT


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


@pytest.mark.timeout(120)
async def test_the_package_for_node_meets_everything_as_it_expects(sdk: Sdk, model: FakeModel) -> None:
    folder = await package()
    model.when("weather", calls_tools(("get_weather", {"town": "Bern"})))
    model.when("look", calls_tools(("search_files", {"pattern": "needle"})))
    model.when_told("", "Nothing there.")
    model.when("fail", Refusal(401, "wrong key"))
    script = folder / SCRIPT.name  # an import is looked up beside the file that asks for it
    script.write_bytes(SCRIPT.read_bytes())
    told = {"OPENAI_BASE_URL": sdk.base_url, "OPENAI_API_KEY": sdk.key}
    code, words = await run(["node", str(script)], folder, told, RUN_SECONDS)
    assert code == 0, words
    met: Json = orjson.loads(words)
    assert (met["chat"], met["streamed"], met["usage"]) == ("echo: hi", "echo: hi", 19)
    assert met["worked"] == "Nothing there."  # as its own examples read a stream, with a tool of ours at work in it
    assert met["tool"] == {"name": "get_weather", "arguments": '{"town":"Bern"}'}
    assert (met["response"], met["chained"], met["gathered"]) == ("echo: first", "echo: second", "echo: fourth")
    assert (met["events"][0], met["events"][-1]) == ("response.created", "response.completed")
    assert met["retrieved"] == "completed"
    assert met["deleted"][:2] == ["NotFoundError", 404]
    assert "hermes" in met["models"]
    assert met["wrongKey"] == ["AuthenticationError", 401, "invalid_api_key"]
    assert met["nonsense"][:2] == ["BadRequestError", 400]
    assert met["failure"] == ["InternalServerError", 502, "auth"]
