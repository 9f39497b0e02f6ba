"""Two profiles on one machine: different keys, bots, ports and stores, side by side."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import AsyncExitStack, redirect_stderr, redirect_stdout
from pathlib import Path

from hermes.cli.main import main
from tests.e2e.terminal import ROOT, patched_environ
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram

ANA = 5550142
SECONDS = 30


class Machine:
    """One person's account on a machine, and `hermes` typed there."""

    def __init__(self, folder: Path) -> None:
        self._environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HERMES_", "OPENAI_", "API_SERVER"))
        } | {"HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}

    def here(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """The same in this process: saves the start of an interpreter where that is not what is tested."""
        out, err = io.StringIO(), io.StringIO()
        with patched_environ(self._environ | environ), redirect_stdout(out), redirect_stderr(err):
            code = main(list(words))
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    async def hermes(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-P", "-m", "hermes", *words],
            env=self._environ | environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


async def until_sent(chat: FakeTelegram, text: str) -> None:
    for _ in range(SECONDS * 20):
        if text in "\n".join(chat.texts(ANA)):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{text!r} was not sent: {chat.texts(ANA)}")


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
        return port


def health(port: int) -> Mapping[str, object]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=SECONDS) as answer:
        told: Mapping[str, object] = json.load(answer)
        return told


async def test_two_profiles_answer_side_by_side_with_their_own_keys_and_bots(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    root = tmp_path / ".hermes"
    names = ("work", "play")
    async with AsyncExitStack() as stack:
        bots = {
            name: await stack.enter_async_context(FakeTelegram(token=f"42:TEST-{name}", username=f"{name}_bot"))
            for name in names
        }
        models = {name: await stack.enter_async_context(FakeModel()) for name in names}
        ports = {}
        for name in names:
            made = machine.here("profile", "create", name, "--json")
            assert made.returncode == 0, made.stderr
            assert json.loads(made.stdout)["api"] == {"work": 8652, "play": 8662}[name]
            ports[name] = free_port()  # other tests may use those just now
            lines = {
                "API_SERVER_PORT": str(ports[name]),
                "OPENAI_API_KEY": f"sk-of-{name}-0123456789",
                "OPENAI_BASE_URL": models[name].url,
                "TELEGRAM_ALLOWED_USERS": str(ANA),
                **bots[name].environ,
            }
            env = root / "profiles" / name / ".env"
            env.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        try:
            starts = [machine.hermes("-p", name, "gateway", "start") for name in names]
            for name, started in zip(names, await asyncio.gather(*starts), strict=True):
                assert started.returncode == 0, started.stdout + started.stderr
                assert f"-p {name} gateway stop" in started.stdout, "what is printed can be typed as it stands"
            for name in names:
                bots[name].private_chat(ANA)
                bots[name].user_says(f"hello {name}", chat=ANA)
            for name in names:
                await until_sent(bots[name], f"hello {name}")
                other = names[1 - names.index(name)]
                assert f"hello {other}" not in "\n".join(bots[name].texts(ANA))
                assert set(models[name].keys) == {f"sk-of-{name}-0123456789"}
                assert (await asyncio.to_thread(health, ports[name]))["status"] == "ok"
            # Named by the option or by the variable, `status` says which one it is.
            told = await machine.hermes("status", HERMES_PROFILE="work")
            assert "profile    work\n  home       ~/.hermes/profiles/work\n" in told.stdout
            told = await asyncio.to_thread(machine.here, "-p", "play", "gateway", "status")
            assert "profile    play" in told.stdout
            listed = json.loads((await asyncio.to_thread(machine.here, "profile", "list", "--json")).stdout)
            assert [(one["name"], one["state"], one["service"]) for one in listed] == [
                ("default", "not running", "hermes-gateway"),
                ("play", "running", "hermes-gateway-play"),
                ("work", "running", "hermes-gateway-work"),
            ]
            refused = machine.here("profile", "remove", "work", "--yes")
            assert "The gateway of this profile is running. Stop it first:" in refused.stderr
            assert (root / "profiles" / "work" / "state.db").exists()
        finally:
            await asyncio.gather(*(machine.hermes("-p", name, "gateway", "stop") for name in names))
        cloned = machine.here("-p", "work", "profile", "create", "copy", "--clone")
        assert cloned.returncode == 0, cloned.stderr
        env_of_clone = (root / "profiles" / "copy" / ".env").read_text()
        assert "OPENAI_API_KEY" in env_of_clone
        assert "TELEGRAM" not in env_of_clone, "two gateways cannot listen for one bot"
        removed = machine.here("profile", "remove", "work", "--yes")
        assert removed.returncode == 0, removed.stderr
        assert not (root / "profiles" / "work").exists()
        assert (root / "profiles" / "play" / "state.db").exists()
