"""Whoever is not the owner reaches their own workspace and the system's programs, in every back end open to them."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from hermes.agent.backends import bubblewrap, network
from hermes.config.agent_settings import OthersTerminal
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole
from tests.fakes.programs import needs
from tests.integration.backends.conftest import SECRET, House, patience, processes_of, running, until_running

pytestmark = pytest.mark.one_python  # the kernel and the sandbox do the work


async def test_the_workspace_can_be_read_and_written(sandbox: House) -> None:
    ana = sandbox.person()
    (ana.workspace / "notes.txt").write_text("hello\n")
    told = await sandbox.sh(
        ana, "cat notes.txt; mkdir -p a/b && echo new > a/b/c && mv a/b/c d && cat d; pwd; echo $HOME"
    )
    assert told == f"Exit code 0.\nhello\nnew\n{ana.workspace}\n{ana.workspace}"
    assert (ana.workspace / "d").read_text() == "new\n"


async def test_there_is_a_place_for_temporary_files(sandbox: House) -> None:
    ana = sandbox.person()
    assert "ok" in await sandbox.sh(ana, 'f=$(mktemp) && echo ok > "$f" && cat "$f"; sort <(echo a)')


@needs("python3")
async def test_code_runs_in_the_sandbox_too(sandbox: House) -> None:
    closed = str(sandbox.home / ".env")
    code = f"print(open('x', 'w').write('ab'))\ntry:\n    open({closed!r})\nexcept OSError:\n    print('no')"
    told = (await sandbox.call(sandbox.person(), "execute_code", code=code)).text
    assert told == "Exit code 0.\n2\nno"


READS = (
    "cat {home}/.env",
    "cat {home}/state.db",
    "ls {home}",
    "ls {home}/workspaces",
    "cat ../bob/private.txt",
    "cat {home}/workspaces/bob/private.txt",
    "ls {home}/workspaces/bob",
    "ln -s {home}/.env link; cat link",
    "ln {home}/.env hard; cat hard",
    "cp {home}/.env copied; cat copied",
    "exec 9<{home}/.env; cat <&9",
    "cat /etc/shadow; ls -la /etc/shadow- /etc/ssh /etc/sudoers.d 2>&1 | grep -v 'No such\\|denied'",
    "ls /root /home/*; cat ~root/.bashrc",
    "cat /proc/{pid}/environ /proc/{pid}/cmdline",
    "ls /proc/{pid}/root/",
    "cat /proc/1/root{home}/.env",
    "python3 -c 'import os; print(open(\"{home}/.env\").read())'",
    "bash -c 'cat < {home}/.env'",
    "unshare -Urm cat {home}/.env",
    "tar c {home} | head -c 100",
)
CHANGES = (
    "echo x > {home}/.env",
    "echo x >> {home}/state.db",
    "rm -f {home}/.env",
    "truncate -s 0 {home}/.env",
    "python3 -c 'import os; os.truncate(\"{home}/.env\", 0)'",
    "mv {home}/.env .",
    "chmod 777 {home}/.env {home}",
    "touch {home}/new {home}/workspaces/new /usr/new /etc/new /new /usr/bin/new",
    "mkdir {home}/workspaces/bob/new",
    "echo x > ../bob/private.txt",
    "rm -f ../bob/private.txt",
    "chmod 777 ../bob/private.txt",
)


async def test_a_user_reads_nothing_that_is_not_theirs(sandbox: House) -> None:
    ana, bob = sandbox.person("ana"), sandbox.person("bob")
    (bob.workspace / "private.txt").write_text("bob's diary")
    commands = [command.format(home=sandbox.home, pid=os.getpid()) for command in READS]
    told = await asyncio.gather(*(sandbox.sh(ana, command) for command in commands))
    for command, output in zip(commands, told, strict=True):
        for secret in (SECRET, "diary", "SQLite format", "root:", "-m\0pytest", "PYTEST_", "\nprivate.t", "\nstate.db"):
            assert secret not in output, command


async def test_a_user_changes_nothing_that_is_not_theirs(sandbox: House) -> None:
    ana, bob = sandbox.person("ana"), sandbox.person("bob")
    diary = bob.workspace / "private.txt"
    diary.write_text("bob's diary")
    modes = [os.stat(path).st_mode for path in (sandbox.home, sandbox.home / ".env", diary)]
    await asyncio.gather(*(sandbox.sh(ana, command.format(home=sandbox.home)) for command in CHANGES))
    assert (sandbox.home / ".env").read_text() == SECRET
    assert diary.read_text() == "bob's diary"
    assert [os.stat(path).st_mode for path in (sandbox.home, sandbox.home / ".env", diary)] == modes
    assert sorted(path.name for path in bob.workspace.iterdir()) == ["private.txt"]
    assert not any("new" in os.listdir(place) for place in (sandbox.home, "/", "/usr", "/etc", "/usr/bin"))


async def test_a_user_does_not_see_or_reach_the_processes_of_this_machine(sandbox: House) -> None:
    ana = sandbox.person()
    victim = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    try:
        told = await sandbox.sh(
            ana,
            f"ps -eo pid,args; kill -9 {victim.pid}; kill -9 -{victim.pid}; "
            f"python3 -c 'import os; os.kill({victim.pid}, 9)'; prlimit --pid {victim.pid} --nofile=1:1",
        )
        assert "sleep 60" not in told
        assert "-m pytest" not in told
        assert victim.returncode is None
        assert os.getpgid(victim.pid) == victim.pid
        assert resource.prlimit(victim.pid, resource.RLIMIT_NOFILE) != (1, 1)
    finally:
        victim.kill()
        await victim.wait()


async def test_kill_everything_ends_only_oneself(sandbox: House) -> None:
    bystander = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    await sandbox.sh(sandbox.person(), "python3 -c 'import os; os.kill(-1, 15)'", timeout=30)
    assert bystander.returncode is None
    bystander.kill()
    assert await bystander.wait() == -9


CONNECT = """
import socket
def attempt(what, work):
    try:
        work()
        print(what, "reached")
    except OSError as error:
        print(what, "no")
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", {port}), 1).sendall(b"x"))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {port})))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect({unix!r}))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0{abstract}"))
"""


@needs("python3")
async def test_loopback_and_sockets_of_the_machine_are_never_reached(sandbox: House, tmp_path: Path) -> None:
    ana = sandbox.person()
    abstract = f"hermes-test-{os.getpid()}"
    unix = str(tmp_path / "home" / "g.sock")
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as own,
        socket.socket(socket.AF_UNIX) as hidden,
    ):
        own.bind(unix)
        own.listen()
        hidden.bind("\0" + abstract)
        hidden.listen()
        code = CONNECT.format(port=tcp.getsockname()[1], unix=unix, abstract=abstract)
        told = (await sandbox.call(ana, "execute_code", code=code)).text
        assert "tcp no" in told
        assert "unix no" in told
        assert "abstract no" in told
        tcp.settimeout(0)
        with pytest.raises(BlockingIOError):
            tcp.accept()

        sandbox.set(others=sandbox.config.terminal.others, network=True)
        told = (await sandbox.call(ana, "execute_code", code=code)).text
        assert "tcp no" in told, "the loopback of this machine stays out of reach"
        assert "unix no" in told
        assert "abstract no" in told
        with pytest.raises(BlockingIOError):
            tcp.accept()


def _addresses() -> str:
    if shutil.which("ip") is None:
        return ""
    return subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("program", network.PROGRAMS)
async def test_a_sandbox_with_a_network_reaches_the_internet_and_not_the_loopback(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Another address of this machine stands for the internet: what listens there is open to every neighbour."""
    if why := bubblewrap.why_not():
        pytest.skip(why)
    found = shutil.which(program)
    outside = re.findall(r"inet (?!127\.)([0-9.]+)", _addresses())
    if found is None or not outside or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip(f"{program}, another address of this machine or /dev/net/tun is missing")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / program).symlink_to(found)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin:/usr/sbin:/sbin")
    house.environ["PATH"] = os.environ["PATH"]
    house.set(others=OthersTerminal.BUBBLEWRAP, network=True)
    with socket.create_server(("0.0.0.0", 0)) as everywhere, socket.create_server(("127.0.0.1", 0)) as loopback:
        open_port, closed_port = everywhere.getsockname()[1], loopback.getsockname()[1]
        reach = "timeout 3 bash -c 'echo > /dev/tcp/{0}/{1}' 2>/dev/null && echo reached {0} {1}; "
        command = "".join(
            reach.format(host, port)
            for host in (outside[0], "127.0.0.1", "10.0.2.2")
            for port in (open_port, closed_port)
        )
        said = await house.sh(house.person(), f"{command} cat /etc/resolv.conf /proc/net/route", timeout=60)
        assert network.RESOLVER in said
        assert f"reached {outside[0]} {closed_port}" not in said
        assert "reached 127.0.0.1" not in said
        assert f"reached 10.0.2.2 {closed_port}" not in said
        if program == "slirp4netns":  # in pasta's network that address is the sandbox's own
            assert f"reached {outside[0]} {open_port}" in said
    assert len(said.partition("Iface")[2].splitlines()) > 1, "it has a route"
    assert not running(f"{program}\0")


@needs("python3")
async def test_without_a_program_for_networks_people_are_told_what_is_missing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := bubblewrap.why_not():
        pytest.skip(why)
    monkeypatch.setattr(network, "PROGRAMS", ("no-such-program",))
    house.set(others=OthersTerminal.BUBBLEWRAP, network=True)
    said = await house.sh(
        house.person(), "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 1)\""
    )
    assert "There is no network here: terminal.network is on, but neither pasta nor slirp4netns is installed" in said


@pytest.mark.parametrize("command", ["sleep {0}", "trap '' TERM; sleep {0}; sleep {0}", "(sleep {0} | cat) & wait"])
async def test_an_interrupt_ends_everything_in_time(sandbox: House, mark: str, command: str) -> None:
    call = asyncio.create_task(sandbox.sh(sandbox.person(), command.format(mark)))
    await until_running(mark)
    await asyncio.sleep(0.05)
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - began < patience(command)
    assert not running(mark)
    assert not processes_of(sandbox.groups[0])


async def test_nothing_escapes_by_leaving_its_group(sandbox: House, mark: str) -> None:
    """A daemon: it leaves session and group, as `setsid` does."""
    await sandbox.sh(sandbox.person(), f"setsid -f sleep {mark}; (setsid sleep {mark} &); echo", timeout=30)
    assert not running(mark)


async def test_the_owners_keys_are_not_handed_to_users(sandbox: House) -> None:
    sandbox.environ["DEPLOY_TOKEN"] = "t0ken"
    sandbox.set(others=sandbox.config.terminal.others, env_passthrough=("DEPLOY_TOKEN",))
    assert "t0ken" not in await sandbox.sh(sandbox.person(), "env; echo $DEPLOY_TOKEN")
    assert "t0ken" in await sandbox.sh(sandbox.person("eva", PersonRole.ADMIN), "env")


async def test_a_home_inside_the_workspace_stays_closed(sandbox: House) -> None:
    """The owner gave everybody one folder, and the gateway's own home lies in it."""
    from dataclasses import replace

    ana = replace(sandbox.person(), workspace=sandbox.home.parent)
    if sandbox.config.terminal.others.value == "landlock":
        with pytest.raises(ToolError, match="Landlock cannot keep it closed"):
            await sandbox.sh(ana, "cat home/.env")
        return
    told = await sandbox.sh(ana, "ls -A home; cat home/.env; echo mine > mine")
    assert SECRET not in told
    assert (sandbox.home.parent / "mine").exists()


async def test_the_same_questions_are_answered_to_the_owner(house: House) -> None:
    """So that a refusal above is a refusal, and not a question that nobody understood."""
    owner, bob = house.person("ana", PersonRole.OWNER), house.person("bob")
    (bob.workspace / "private.txt").write_text("bob's diary")
    told = await asyncio.gather(
        *(house.sh(owner, f"cat {name}") for name in (house.home / ".env", "../bob/private.txt"))
    )
    assert SECRET in told[0]
    assert "diary" in told[1]
