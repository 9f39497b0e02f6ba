"""The ssh back end against a real sshd on loopback: what runs there ends there, also when we die."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import pytest

from hermes.config.agent_settings import OwnerTerminal
from hermes.core.roles import PersonRole
from tests.fakes import sshd
from tests.fakes.sshd import RealSshd
from tests.integration.backends.conftest import House, patience, running, until_running

OWNER = PersonRole.OWNER


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSshd]:
    if why := sshd.why_not():
        pytest.skip(why)
    with RealSshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def remote(house: House, server: RealSshd) -> House:
    # Another folder than the workspace: it stands for that of the other machine.
    there = house.home.parent / "there with 'quotes'"
    (there / "sub folder").mkdir(parents=True)
    house.set(backend=OwnerTerminal.SSH, ssh_folder=str(there), **server.settings)
    return house


async def test_a_command_runs_there_with_every_byte_of_it(remote: House) -> None:
    ana = remote.person(role=OWNER)
    told = await remote.sh(ana, "pwd; cat <<'E'\n$(id) `id` \"double\" 'single' \\ ; & ü\nE\nexit 3")
    assert told == f"Exit code 3.\n{remote.home.parent}/there with 'quotes'\n$(id) `id` \"double\" 'single' \\ ; & ü"
    assert (await remote.sh(ana, "pwd", folder="sub folder")).endswith("/sub folder")


async def test_where_it_would_run_is_named_to_whoever_is_asked(remote: House) -> None:
    ana = remote.person(role=OWNER)
    need = remote.toolbox.approval("terminal", '{"command": "rm -rf everything"}', ana)
    assert need is not None
    assert need.touches_host
    assert "over ssh on" in need.where
    assert "127.0.0.1" in need.where


@pytest.mark.parametrize("command", ["sleep {0}", "trap '' TERM; sleep {0}; sleep {0}", "(sleep {0} | cat) & wait"])
async def test_an_interrupt_ends_it_there_in_time(remote: House, mark: str, command: str) -> None:
    call = asyncio.create_task(remote.sh(remote.person(role=OWNER), command.format(mark)))
    await until_running(f"sleep\0{mark}")
    await asyncio.sleep(0.05)
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - began < patience(command)
    assert not running(f"sleep\0{mark}")


async def test_when_our_side_is_killed_it_ends_there_too(remote: House, mark: str) -> None:
    call = asyncio.create_task(remote.sh(remote.person(role=OWNER), f"sleep {mark}"))
    await until_running(f"sleep\0{mark}")
    os.killpg(remote.groups[0], signal.SIGKILL)  # as the death of the worker does to its end of the lease
    async with asyncio.timeout(20):
        while running(f"sleep\0{mark}"):  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.02)
        await call
    assert not running(f"sleep\0{mark}")


async def test_what_it_leaves_behind_there_is_ended(remote: House, mark: str) -> None:
    told = await remote.sh(remote.person(role=OWNER), f"nohup sleep {mark} & echo started", timeout=30)
    assert told.endswith("started")
    async with asyncio.timeout(20):
        while running(f"sleep\0{mark}"):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)


async def test_only_what_is_let_through_reaches_the_other_machine(remote: House) -> None:
    remote.environ |= {"OPENAI_API_KEY": "sk-1", "DEPLOY_TOKEN": "two words $HOME 'x'"}
    remote.set(**{**_chosen(remote), "env_passthrough": ("DEPLOY_TOKEN",)})
    told = await remote.sh(remote.person(role=OWNER), 'echo "$DEPLOY_TOKEN"; env | grep -c "HERMES_HOME\\|OPENAI"')
    assert told == "Exit code 1.\ntwo words $HOME 'x'\n0"


async def test_a_machine_that_cannot_be_reached_is_told(remote: House) -> None:
    remote.set(**{**_chosen(remote), "ssh_port": 1})
    told = await remote.sh(remote.person(role=OWNER), "true")
    assert told.startswith("Exit code 255")
    assert "refused" in told


async def test_a_machine_whose_key_is_not_known_is_not_trusted(remote: House) -> None:
    empty = remote.home / "none"
    empty.write_text("")
    remote.set(**{**_chosen(remote), "ssh_known_hosts": str(empty)})
    assert "Host key verification failed" in await remote.sh(remote.person(role=OWNER), "true")


def _chosen(house: House) -> dict[str, object]:
    terminal = house.config.terminal
    return {name: getattr(terminal, name) for name in terminal.__dataclass_fields__}
