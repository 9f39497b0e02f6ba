"""The short form of ./scripts/chaos --only whatsapp: the bridge dies a few times, and once with all of us."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from tests.chaos import whatsapp_kills, whatsapp_restarts
from tests.chaos.kills import kill_again_and_again
from tests.fakes.whatsapp import FakeWhatsApp
from tests.fakes.whatsapp_account import bridges

RESTARTS = 2
KILLS = 2
ROOT = Path(__file__).parents[2]

# A gateway as far as WhatsApp is concerned: it connects, and then it is killed.
WORKER = """
import asyncio, sys
from tests.fakes.whatsapp_account import FakeWhatsAppAccount

class Worker(FakeWhatsAppAccount):
    owns_its_bridge = True

async def main():
    worker = Worker(port=int(sys.argv[1]), folder=sys.argv[2])
    async with worker.adapter() as adapter:
        print(await adapter.describe(), flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.timeout(180)
async def test_a_bridge_that_dies_comes_back_and_nothing_is_lost_or_left_open(tmp_path: Path) -> None:
    grown, lost = await whatsapp_restarts.restart_again_and_again(tmp_path, RESTARTS)
    assert lost == []
    assert grown.is_good, f"before {grown.before}, after {grown.after}"


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_gateway_killed_by_kill_nine_leaves_no_bridge_behind(tmp_path: Path) -> None:
    bridges()  # skips where there can be none
    async with FakeWhatsApp() as whatsapp:
        whatsapp.link_session(tmp_path / "session")
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", textwrap.dedent(WORKER), str(whatsapp.port), str(tmp_path)),
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert worker.stdout is not None
        async with asyncio.timeout(20):
            assert await worker.stdout.readline() == b"Hermes (+4915550000001)\n"
        pid = int(json.loads((tmp_path / "bridge.json").read_text())["pid"])
        assert is_alive(pid)
        worker.send_signal(signal.SIGKILL)
        await worker.wait()
        async with asyncio.timeout(30):
            while is_alive(pid):  # noqa: ASYNC110 - the dead tell nobody
                await asyncio.sleep(0.02)
        await whatsapp.wait_for(lambda: whatsapp.open_connections == 0)


@pytest.mark.timeout(240)
async def test_nothing_said_on_whatsapp_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    killed = await kill_again_and_again(whatsapp_kills.opened(tmp_path / "world", seed=5), KILLS)
    assert killed.is_good, killed.story
    assert killed.verdict.repeats == 0, "a repeat goes out under the same id"
