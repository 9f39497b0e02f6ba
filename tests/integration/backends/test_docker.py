"""The docker back end, through the docker program or podman, against a real podman with runc."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.backends import docker
from hermes.config.schema import OthersTerminal, OwnerTerminal
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole
from tests.fakes import containers
from tests.fakes.containers import IMAGE, RealPodman
from tests.integration.backends.conftest import SECRET, House, patience, running, until_running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPodman]:
    if why := containers.why_not():
        pytest.skip(why)
    with RealPodman(tmp_path_factory.mktemp("p")) as podman:
        yield podman


@pytest.fixture(params=docker.PROGRAMS)
def boxed(request: pytest.FixtureRequest, house: House, podman: RealPodman, tmp_path: Path) -> House:
    """Only this program is to be found; whatever it starts knows its own places."""
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not installed")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / request.param).symlink_to(program)
    house.environ |= {**podman.environ, "PATH": str(tmp_path / "bin")}
    house.set(backend=OwnerTerminal.DOCKER, others=OthersTerminal.DOCKER, docker_image=IMAGE)
    return house


async def test_a_command_runs_in_a_container_with_the_workspace(boxed: House, podman: RealPodman) -> None:
    ana = boxed.person()
    (ana.workspace / "notes.txt").write_text("hello\n")
    told = await boxed.sh(ana, 'cat notes.txt; pwd; echo $HOME; echo "$(id -u)" > out; echo err >&2; exit 5')
    assert told == f"Exit code 5.\nhello\n{ana.workspace}\n{ana.workspace}\nerr"
    assert (ana.workspace / "out").read_text() == f"{os.getuid()}\n"
    assert (ana.workspace / "out").stat().st_uid == os.getuid()
    assert podman.containers() == []


async def test_nothing_else_of_the_machine_is_there(boxed: House) -> None:
    ana, bob = boxed.person("ana"), boxed.person("bob")
    (bob.workspace / "private.txt").write_text("bob's diary")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        told = await boxed.sh(
            ana,
            f"cat {boxed.home}/.env ../bob/private.txt /etc/shadow /proc/{os.getpid()}/cmdline; ls {boxed.home} /root;"
            f"bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' && echo reached; env; id; cat /proc/self/status",
        )
    for secret in (SECRET, "diary", "root:", "pytest\0", "reached", "DOCKER_HOST", "CONTAINERS_CONF"):
        assert secret not in told
    assert "CapEff:\t0000000000000000" in told
    assert "NoNewPrivs:\t1" in told


@pytest.mark.parametrize("command", ["sleep {0}", "trap '' TERM; sleep {0}; sleep {0}"])
async def test_an_interrupt_ends_the_container_in_time(
    boxed: House, podman: RealPodman, mark: str, command: str
) -> None:
    call = asyncio.create_task(boxed.sh(boxed.person(), command.format(mark)))
    await until_running(f"sleep\0{mark}")
    await asyncio.sleep(0.05)
    began = time.monotonic()
    call.cancel()
    while running(f"sleep\0{mark}"):
        assert time.monotonic() - began < patience(command)
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await call
    assert podman.containers() == []


async def test_when_our_side_is_killed_the_container_ends(boxed: House, podman: RealPodman, mark: str) -> None:
    call = asyncio.create_task(boxed.sh(boxed.person(), f"sleep {mark}"))
    await until_running(f"sleep\0{mark}")
    os.killpg(boxed.groups[0], signal.SIGKILL)  # as the death of the worker does to its end of the lease
    async with asyncio.timeout(20):
        while running(f"sleep\0{mark}"):  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.02)
        await call
    assert podman.containers() == []


async def test_what_a_dead_gateway_left_is_removed_at_the_next_start(boxed: House, podman: RealPodman) -> None:
    program = docker.find_program(boxed.environ)
    for label in (docker.label_of(boxed.home), "hermes.home=another"):
        left = [program, "run", "--label", label, "--network", "none", IMAGE, "sh", "-c", "exit 1"]
        await (await asyncio.create_subprocess_exec(*left, env=boxed.environ)).wait()
    assert len(podman.containers()) == 2
    await asyncio.to_thread(docker.sweep, boxed.home, boxed.environ)
    [other] = podman.containers()
    await (await asyncio.create_subprocess_exec(program, "rm", other, env=boxed.environ)).wait()


async def test_what_is_let_through_is_in_no_list_of_processes(boxed: House, mark: str) -> None:
    boxed.environ["DEPLOY_TOKEN"] = "t0ken-in-the-environment"
    boxed.set(backend=OwnerTerminal.DOCKER, docker_image=IMAGE, env_passthrough=("DEPLOY_TOKEN",))
    owner = boxed.person(role=PersonRole.OWNER)
    call = asyncio.create_task(boxed.sh(owner, f"echo $DEPLOY_TOKEN; sleep {mark}", timeout=20))
    await until_running(f"sleep\0{mark}")
    assert not running("t0ken-in-the-environment")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await boxed.sh(owner, "echo $DEPLOY_TOKEN")).endswith("t0ken-in-the-environment")


async def test_an_image_that_is_not_there_is_told(boxed: House) -> None:
    boxed.set(others=OthersTerminal.DOCKER, docker_image="localhost/nothing-of-that-name")
    told = await boxed.sh(boxed.person(), "true")
    assert told.startswith("Exit code 125.")


async def test_without_an_image_people_are_told(house: House) -> None:
    house.set(others=OthersTerminal.DOCKER)
    with pytest.raises(ToolError, match=r"terminal\.docker_image is not set"):
        await house.sh(house.person(), "true")
