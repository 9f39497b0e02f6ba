"""The image, built and run by podman: the long form of ``tests/e2e/test_entrypoint.py``.

``HERMES_TEST_IMAGE=BASE ./scripts/test tests/e2e/test_image.py -s`` builds on that base and prints the size. BASE is an
image with Python, such as python:3.13-slim, or one made by debootstrap (--include=python3,python3-venv) and `podman
import`. HERMES_TEST_IMAGE_OPTIONS are further options of `podman build`, such as --volume for a local package index.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_process_gateway import free_port
from tests.e2e.test_who_may_talk import code_in
from tests.fakes.containers import why_not
from tests.fakes.telegram import FakeTelegram

BASE = os.environ.get("HERMES_TEST_IMAGE", "")
REASON = (why_not() if BASE else "") or ("" if BASE else "HERMES_TEST_IMAGE names no base image: the long form")
pytestmark = [pytest.mark.skipif(bool(REASON), reason=REASON), pytest.mark.timeout(900)]

CLONE = Path(__file__).parents[2]
IMAGE = "localhost/hermes-gateway-test"
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network=host")
ANA = 5550142
MB = 1_000_000


def podman(*words: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["podman", *words], capture_output=True, text=True, timeout=seconds, check=False)


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    options = shlex.split(os.environ.get("HERMES_TEST_IMAGE_OPTIONS", ""))
    began = time.monotonic()
    built = podman(
        "build", "--format=docker", f"--build-arg=BASE={BASE}", "--tag", IMAGE, *LIMITS, *options, str(CLONE),
        seconds=800,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    sizes = {name: int(podman("image", "inspect", "--format={{.Size}}", name).stdout) for name in (IMAGE, BASE)}
    print(
        f"\nImage: {sizes[IMAGE] / MB:.0f} MB, of which the base {BASE} is {sizes[BASE] / MB:.0f} MB; "
        f"built in {time.monotonic() - began:.0f} s"
    )
    yield IMAGE
    podman("rmi", "--force", IMAGE)


class Container:
    """A gateway in a container, with a folder of the host as its volume."""

    def __init__(self, name: str, volume: Path, *options: str) -> None:
        self.name = f"{name}-{os.getpid()}"
        self.volume = volume
        self.port = free_port()
        self._options = (*options, "--env", f"API_SERVER_PORT={self.port}")

    def start(self) -> float:
        """Seconds until it answers."""
        began = time.monotonic()
        done = podman("run", "--detach", "--name", self.name, *self.words(), IMAGE, "gateway", "run")
        assert done.returncode == 0, done.stderr
        while not self.health():
            assert time.monotonic() - began < 60, self.logs()
            time.sleep(0.1)
        return time.monotonic() - began

    def words(self) -> tuple[str, ...]:
        return (*LIMITS, "--volume", f"{self.volume}:/opt/data", *self._options)

    def health(self) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except OSError:
            return None

    def logs(self) -> str:
        done = podman("logs", self.name)
        return done.stdout + done.stderr

    def logs_until(self, words: str) -> str:
        deadline = time.monotonic() + 60
        while words not in (logs := self.logs()):
            assert time.monotonic() < deadline, logs
            time.sleep(0.2)
        return logs

    def exec(self, *words: str) -> subprocess.CompletedProcess[str]:
        return podman("exec", self.name, *words)

    def second(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in another container on the same volume."""
        return podman("run", "--rm", *self.words(), IMAGE, *words)

    def stop(self) -> float:
        began = time.monotonic()
        done = podman("stop", "--time", "10", self.name)
        assert done.returncode == 0, done.stderr
        return time.monotonic() - began

    def remove(self) -> None:
        podman("rm", "--force", "--time", "2", self.name)


async def test_a_gateway_in_a_container_from_its_first_start_to_its_second(
    image: str, tmp_path: Path, telegram: FakeTelegram
) -> None:
    volume = tmp_path / "data"
    volume.mkdir()
    options = ["--env=TZ=Asia/Shanghai", f"--env=TELEGRAM_BOT_TOKEN={telegram.token}"]
    options += [f"--env=TELEGRAM_BASE_URL={telegram.url}"]
    first = Container("hermes-one", volume, *options)
    try:
        seconds = await asyncio.to_thread(first.start)
        logs = await asyncio.to_thread(first.logs_until, "Gateway started in")
        print(f"\nHealthy after {seconds:.1f} s")
        assert "Dropping root privileges" in logs
        assert "Syncing bundled skills into" in logs
        assert "Hermes Gateway Starting..." in logs
        assert "+08:00 INFO" in logs, "TZ counts in the log"
        await asyncio.to_thread(_root_is_given_up, first)
        telegram.user_says("hi", chat=ANA, name="Ana")
        await telegram.wait_for(lambda: any("pairing code" in text for text in telegram.texts(ANA)), 60)
        code = code_in(next(text for text in telegram.texts(ANA) if "pairing code" in text))
        done = await asyncio.to_thread(first.second, "pairing", "approve", "telegram", code)
        assert (done.returncode, f"(telegram {ANA}) may talk now" in done.stdout) == (0, True), (
            done.stdout + done.stderr
        )
        listed = await asyncio.to_thread(first.exec, "hermes", "pairing", "list", "--json")
        assert str(ANA) in listed.stdout, "approved in the running gateway, without a restart"
        sessions = await asyncio.to_thread(first.second, "sessions", "list")
        assert sessions.returncode == 0, sessions.stderr
        stopped = await asyncio.to_thread(first.stop)
        print(f"Stopped after {stopped:.1f} s")
        assert stopped < 10
        assert "Stopping" in await asyncio.to_thread(first.logs)
    finally:
        await asyncio.to_thread(first.remove)
    again = Container("hermes-two", volume, *options)
    try:
        await asyncio.to_thread(again.start)
        listed = await asyncio.to_thread(again.exec, "hermes", "pairing", "list", "--json")
        assert str(ANA) in listed.stdout, "the volume kept it"
    finally:
        await asyncio.to_thread(again.remove)


def _root_is_given_up(container: Container) -> None:
    status = container.exec("cat", "/proc/1/status").stdout
    uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    assert set(uids) == {"1000"}
    assert {path.lstat().st_uid for path in container.volume.rglob("*")} == {1000}
    done = container.exec("hermes", "gateway", "status")
    assert "kept up by its container" in done.stdout, done.stdout + done.stderr
    assert container.exec("hermes", "config", "set", "agent.show_reasoning", "true").returncode == 0
    assert {path.lstat().st_uid for path in container.volume.rglob("*")} == {1000}, (
        "exec as root leaves no file of root"
    )
    assert container.exec("sh", "-c", "command -v cc gcc make g++").stdout == "", "no compiler is left inside"
    typed = container.exec("hermes-gateway", "status").stdout
    assert "kept up by its container" in typed


def test_the_files_belong_to_whom_the_host_says(image: str, tmp_path: Path) -> None:
    for name, options, owner in (
        ("given", ["--env=HERMES_UID=4711", "--env=HERMES_GID=4712"], (4711, 4712)),
        ("of-the-folder", [], (5001, 5002)),
        ("user-option", ["--user=6001:6002"], (6001, 6002)),
    ):
        volume = tmp_path / name
        volume.mkdir()
        if name != "given":
            os.chown(volume, *owner)
        (volume / "link").symlink_to("/etc/shadow")
        container = Container(f"hermes-{name}", volume, *options)
        done = container.second("config", "path")
        assert done.returncode == 0, done.stderr
        found = {(path.lstat().st_uid, path.lstat().st_gid) for path in [volume, volume / "agent-home"]}
        assert found == {owner}, name
        assert os.stat("/etc/shadow").st_uid == 0
    wrong = podman("run", "--rm", *LIMITS, "--env=HERMES_UID=ann", image, "--version")
    assert (wrong.returncode, "are numbers" in wrong.stderr) == (78, True)


def test_a_worker_that_is_killed_comes_back_in_its_container(image: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    container = Container("hermes-kills", tmp_path / "data")
    try:
        container.start()
        worker = container.exec("cat", "/proc/1/task/1/children").stdout.split()[0]
        container.exec("python3", "-c", f"import os; os.kill({worker}, 9)")
        deadline = time.monotonic() + 60
        while container.exec("cat", "/proc/1/task/1/children").stdout.split()[:1] in ([], [worker]):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        while not container.health():
            assert time.monotonic() < deadline, container.logs()
            time.sleep(0.2)
        assert "Worker ended" in container.logs()
    finally:
        container.remove()
