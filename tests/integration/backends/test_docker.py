"""The docker back end, through the docker program or podman, against a real podman with runc."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.backends import docker
from hermes.agent.backends.limits import MB, WorkspaceQuota
from hermes.config.agent_settings import LimitsConfig, OthersTerminal, OwnerTerminal
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole
from tests.fakes import containers
from tests.fakes.containers import IMAGE, RealPodman
from tests.integration.backends.conftest import SECRET, House, patience, running, until_running

pytestmark = [pytest.mark.slow, pytest.mark.one_python]  # podman and docker are other programs


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


# At most 511 shells, whatever happens: the test bounds the bomb as well as the container.
BOMB = "f() {{ if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep {mark}; }}; f 8; wait; echo survived"
HOG = "x=$(head -c 700000000 /dev/zero | cat -v); echo survived ${#x}"  # some 1.4 GB at most
FILL = "for n in $(seq 40); do head -c 30000000 /dev/zero > big$n; done; sleep 20; echo survived"


def bound(house: House, **limits: int) -> None:
    house.set(others=OthersTerminal.DOCKER, docker_image=IMAGE, limits=LimitsConfig(**limits))


async def test_a_fork_bomb_is_bounded(boxed: House, mark: str) -> None:
    bound(boxed, processes=40)
    most = 0
    call = asyncio.create_task(boxed.sh(boxed.person(), BOMB.format(mark=mark), timeout=6))
    while not call.done():
        most = max(most, len(running(f"sleep\0{mark}")))
        await asyncio.sleep(0.1)
    assert "survived" not in await call
    assert most <= 40


async def test_a_memory_hog_is_bounded(boxed: House) -> None:
    bound(boxed, memory_mb=128)
    assert "survived" not in await boxed.sh(boxed.person(), HOG, timeout=60)


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/run", "/dev/shm", "/", "/bin"])
async def test_no_folder_of_the_container_is_without_a_bound(boxed: House, place: str) -> None:
    bound(boxed, tmp_mb=8, file_mb=200)
    told = await boxed.sh(boxed.person(), f"head -c 100000000 /dev/zero > {place}/big && echo survived")
    assert "survived" not in told


async def test_filling_the_workspace_ends_at_its_quota(boxed: House) -> None:
    bound(boxed, workspace_mb=60)
    ana = boxed.person()
    told = await boxed.sh(ana, FILL, timeout=60)
    assert "terminal.limits.workspace_mb" in told
    assert WorkspaceQuota().measure(ana.workspace) < 1100 * MB


async def test_set_id_bits_do_not_outlive_the_command(boxed: House) -> None:
    ana = boxed.person()
    await boxed.sh(ana, "cp /bin/cat mine && chmod 6755 mine")
    assert (ana.workspace / "mine").stat().st_mode & 0o7777 == 0o755


async def test_no_file_of_the_machine_is_marked(boxed: House) -> None:
    victim = boxed.home / ".env"
    before = victim.stat()
    await boxed.sh(
        boxed.person(),
        f"chmod 4777 {victim} {boxed.home}; chown 12345 {victim}; touch {victim}; cp {victim} l; chmod 777 l;"
        "chown 12345 . ; echo x > /proc/sys/kernel/core_pattern; echo b > /proc/sysrq-trigger; echo 1 > /proc/self/mem",
    )
    after = victim.stat()
    assert (after.st_mode, after.st_uid, after.st_mtime_ns) == (before.st_mode, before.st_uid, before.st_mtime_ns)
    assert victim.read_text() == SECRET


async def test_the_network_of_a_container_is_not_the_machines(boxed: House) -> None:
    boxed.set(others=OthersTerminal.DOCKER, docker_image=IMAGE, network=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        told = await boxed.sh(
            boxed.person(), f"bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' && echo reached; echo started"
        )
    if "started" not in told:
        pytest.skip("podman has no plug-ins for networks here")
    assert "reached" not in told


async def test_no_socket_process_or_attribute_of_the_machine_is_reached(boxed: House, mark: str) -> None:
    setxattr, ptrace = {"x86_64": (188, 101), "aarch64": (5, 117)}[platform.machine()]
    victim = boxed.home / ".env"
    attempts = f"""
        socket(S, 1, 1, 0); print connect(S, pack("S a*", 1, "\\0{mark}")) ? "got in\\n" : "no socket: $!\\n";
        print syscall({ptrace}, 16, {os.getpid()}, 0, 0) == 0 ? "got in\\n" : "no process: $!\\n";
        my @words = ("{victim}", "user.mark", "1");
        print syscall({setxattr}, $words[0], $words[1], $words[2], 1, 0) == 0 ? "got in\\n" : "no file: $!\\n";
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{mark}")
        listener.listen()
        output = await boxed.sh(boxed.person(), f"LC_ALL=C perl -e '{attempts}'")
    assert "got in" not in output
    assert [line.partition(":")[0] for line in output.splitlines()[1:]] == ["no socket", "no process", "no file"]
    assert os.listxattr(victim) == []
