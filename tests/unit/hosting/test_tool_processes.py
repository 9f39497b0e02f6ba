"""Who started a process: ancestors and limits of real processes, and what another of the same user can see of us."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hermes.hosting import processes, tool_processes
from hermes.hosting.tool_processes import NO_LIMIT, OUTSIDE, PERSON, TOOL, UNKNOWN, ToolProcesses

IMPORTS = "import os, sys, time, socket; from hermes.hosting import processes, tool_processes\n"
DAEMON = """
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while os.getppid() in ({first}, os.getpgrp()): time.sleep(0.01)
        os.write(writer, str(os.getpid()).encode()); os.close(1); time.sleep(60); os._exit(0)
    os._exit(0)
print(os.read(reader, 20).decode(), flush=True)
"""


@contextmanager
def python(code: str, *words: str, **options: object) -> Iterator[subprocess.Popen[str]]:
    """A process of Python that runs this; ended at the end of the block."""
    command = [sys.executable, "-c", IMPORTS + code, *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):  # its children may hold the other ends for a minute
            assert stream is not None
            stream.close()
        process.wait(20)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def orphan_of_a_gone_gateway(**environ: str) -> Iterator[int]:
    """A daemon of a worker that has ended, and no supervisor above it."""
    code = "tool_processes.mark_children()\n" + DAEMON.format(first=os.getpid())
    with python(code, env={**os.environ, **environ}) as worker:
        pid = int(line_of(worker))
        worker.wait(20)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def until(ask: Callable[[], object], seconds: float = 20.0) -> None:
    assert processes.wait_until(lambda: bool(ask()), seconds)


def test_those_above_us_and_we_ourselves_are_people_and_those_below_are_tools() -> None:
    judge = ToolProcesses()
    assert (judge.origin(os.getpid()), judge.origin(os.getppid()), judge.origin(1)) == (PERSON, PERSON, PERSON)
    with python("print('up', flush=True); time.sleep(60)") as child:
        line_of(child)
        assert judge.origin(child.pid) == TOOL


def test_a_process_that_cannot_be_seen_is_not_a_persons() -> None:
    with python("pass") as child:
        child.wait(20)
    judge = ToolProcesses()
    assert (judge.origin(child.pid), judge.origin(0), judge.origin(-1)) == (UNKNOWN, OUTSIDE, UNKNOWN)


def test_the_mark_outlives_worker_and_supervisor() -> None:
    with orphan_of_a_gone_gateway() as pid:
        assert os.getpid() not in processes.ancestors(pid)
        assert ToolProcesses().origin(pid) == TOOL


def test_a_gateway_that_a_tool_started_knows_its_own_tools_from_the_people_around_it() -> None:
    code = "before = tool_processes.mark_children()\nprint(before, tool_processes.mark_children(), flush=True)"
    with python(code) as nested:
        first, second = map(int, line_of(nested).split())
        assert second < first
        assert ToolProcesses(limit=second).origin(os.getppid()) == PERSON


@pytest.mark.skipif(os.geteuid() == 0, reason="root may raise any limit; there the supervisor's adoption counts")
def test_nobody_but_root_takes_the_mark_off() -> None:
    code = "import resource; tool_processes.mark_children(); resource.setrlimit(10, (-1, -1))"
    with python(code, stderr=subprocess.DEVNULL) as child:
        assert child.wait(20) != 0


def test_orphans_of_an_adopter_stay_below_it_and_leave_no_zombie() -> None:
    code = "assert processes.adopt_orphans()\n" + DAEMON.format(first=0) + "time.sleep(60)"
    with python(code) as adopter:
        pid = int(line_of(adopter))
        try:
            until(lambda: processes.parent_of(pid) == adopter.pid)
            assert ToolProcesses((adopter.pid,)).origin(pid) == TOOL
        finally:
            os.kill(pid, signal.SIGKILL)


def test_what_ended_below_us_and_belongs_to_nobody_is_reaped_at_the_second_look() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    until(lambda: not processes.is_alive(pid, ""))
    seen = processes.reap_long_ended(set())
    assert pid in seen
    assert pid in processes.children(os.getpid())
    processes.reap_long_ended(seen)
    assert pid not in processes.children(os.getpid())


# Over a Unix socket


@pytest.mark.parametrize("option", [tool_processes.SO_PEERPIDFD, 9999], ids=["pidfd", "number alone"])
def test_whoever_connected_is_known_and_nobody_who_has_ended(
    tmp_path: Path, option: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels before 6.5 tell only a number."""
    monkeypatch.setattr(tool_processes, "SO_PEERPIDFD", option)
    path = str(tmp_path / "sock")
    code = "line = socket.socket(socket.AF_UNIX); line.connect(sys.argv[1]); print('up', flush=True); sys.stdin.read()"
    judge = ToolProcesses()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as own:
        server.bind(path)
        server.listen()
        own.connect(path)
        accepted, _ = server.accept()
        with accepted:
            assert judge.origin_of_peer(accepted, processes.since_boot()) == PERSON
        with python(code, path) as child:
            accepted, _ = server.accept()
            line_of(child)
            assert judge.origin_of_peer(accepted, processes.since_boot()) == TOOL
        with accepted:
            assert judge.origin_of_peer(accepted, processes.since_boot()) == UNKNOWN


def test_a_number_that_was_given_to_a_younger_process_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_processes, "SO_PEERPIDFD", 9999)
    path = str(tmp_path / "sock")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as own:
        server.bind(path)
        server.listen()
        own.connect(path)
        accepted, _ = server.accept()
        with accepted:
            assert ToolProcesses().origin_of_peer(accepted, 0.0) == UNKNOWN


# Over TCP


@contextmanager
def connected(process_code: str, host: str, bound: str = "", **options: object) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in (bound or host) else socket.AF_INET
    with socket.socket(family) as server:
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            server.bind((bound or host, 0))
        except OSError as error:
            pytest.skip(f"this machine has no {bound or host}: {error}")
        server.listen()
        port = str(server.getsockname()[1])
        code = "line = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n" + process_code
        with python(code, host, port, **options) as process:
            accepted, _ = server.accept()
            with accepted:
                line_of(process)
                yield accepted


def origin_at(line: socket.socket, judge: ToolProcesses | None = None) -> str:
    return (judge or ToolProcesses()).origin_of_connection(line.getpeername()[:2], line.getsockname()[:2])


STAYS = "print('up', flush=True); time.sleep(60)"


@pytest.mark.parametrize("host, bound", [("127.0.0.1", ""), ("127.0.0.9", "0.0.0.0"), ("::1", ""), ("127.0.0.1", "::")])
def test_a_tools_process_is_known_behind_a_connection(host: str, bound: str) -> None:
    with connected(STAYS, host, bound) as line:
        assert origin_at(line) == TOOL


def test_a_connection_of_our_own_or_of_a_person_is_no_tools() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        accepted, _ = server.accept()
        with accepted:
            assert origin_at(accepted) == PERSON
            assert ours.fileno() > 0


def test_a_connection_from_elsewhere_is_from_outside() -> None:
    assert ToolProcesses().origin_of_connection(("192.0.2.1", 40000), ("192.0.2.2", 8642)) == OUTSIDE
    assert ToolProcesses().origin_of_connection(("2001:db8::1", 40000), ("2001:db8::2", 8642)) == OUTSIDE


def test_a_connection_that_its_process_has_left_open_behind_is_nobodys() -> None:
    with connected(
        "line.shutdown(socket.SHUT_WR); print('up', flush=True); line.close(); time.sleep(60)", "127.0.0.1"
    ) as line:
        until(lambda: origin_at(line) in (UNKNOWN, OUTSIDE))
        assert origin_at(line) != PERSON


# What another process of the same user sees of us

NOBODY = 65534
PEEK = """
import ctypes
pid, seen = int(sys.argv[1]), []
for name in ("environ", "mem", "maps", "auxv", "stack", "syscall"):
    try:
        open(f"/proc/{pid}/{name}", "rb").read(1); seen.append(name)
    except OSError: pass
for name in ("fd", "fdinfo", "map_files"):
    try:
        os.listdir(f"/proc/{pid}/{name}"); seen.append(name)
    except OSError: pass
for name in ("cwd", "exe", "root"):
    try:
        os.readlink(f"/proc/{pid}/{name}"); seen.append(name)
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, pid, 0, 0) == 0: seen.append("ptrace")
try:
    handle = os.pidfd_open(pid)
    if libc.syscall(438, handle, 1, 0) >= 0: seen.append("pidfd_getfd")
except OSError: pass
print(",".join(seen), flush=True)
"""


def python_of_everybody() -> str:
    """A Python that a user without rights may run, where we are root; else our own."""
    return "/usr/bin/python3" if os.geteuid() == 0 else sys.executable


@pytest.mark.parametrize("is_hidden", [True, False])
def test_nobody_of_the_same_user_reads_the_memory_of_a_process_that_hides_it(is_hidden: bool, tmp_path: Path) -> None:
    if not os.path.exists(python_of_everybody()):
        pytest.skip("no Python for a user without rights is installed here")
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    prctl = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0);" if is_hidden else ""
    command = [python_of_everybody(), "-c", f"import time; {prctl} print('up', flush=True); time.sleep(60)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/", **user) as process:  # type: ignore[call-overload]
        line_of(process)
        peek = [python_of_everybody(), "-c", f"import os, sys\n{PEEK}", str(process.pid)]
        seen = subprocess.run(peek, capture_output=True, text=True, cwd="/", check=True, timeout=60, **user).stdout  # type: ignore[call-overload]
        process.kill()
    assert (seen.strip() == "") is is_hidden


def test_a_process_that_hides_its_memory_still_finds_its_own_way_in_proc() -> None:
    code = (
        "processes.rename_process('hermes'); assert processes.hide_memory(); assert processes.prctl(3, 0) is True\n"
        "print(open('/proc/self/comm').read().strip(), "
        "len(os.listdir('/proc/self/fd')) > 2, processes.resident_bytes(os.getpid()) > 0, "
        "os.path.exists(f'/proc/self/fd/1'), flush=True)"
    )
    with python(code) as process:
        assert line_of(process) == "hermes True True True"


# What tools leave behind


def test_leftovers_of_this_home_are_killed_and_nobody_elses(tmp_path: Path) -> None:
    home, other = str(tmp_path / "home"), str(tmp_path / "other")
    with (
        orphan_of_a_gone_gateway(HERMES_HOME=home) as left,
        orphan_of_a_gone_gateway(HERMES_HOME=other) as theirs,
        python(STAYS, env={**os.environ, "HERMES_HOME": home}) as persons,
    ):
        line_of(persons)
        limit = tool_processes.lock_limit(os.getpid())
        assert tool_processes.end_leftovers(home, limit, older_than="1", seconds=0.0) == 0, "younger than a worker"
        assert tool_processes.end_leftovers(home, limit) == 1
        until(lambda: not processes.is_alive(left, ""))
        assert processes.is_alive(theirs, "")
        assert processes.is_alive(persons.pid, "")


def test_the_limit_of_a_process_that_is_gone_is_none() -> None:
    assert tool_processes.lock_limit(-1) == NO_LIMIT
