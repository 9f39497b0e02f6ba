"""The control socket: what the CLI may rely on, with a real socket between the two sides."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import ConfigError
from hermes.hosting import locks, paths
from hermes.hosting.control import client as control
from hermes.hosting.control.server import ControlServer, Handler, Reply

DOOR = Path(__file__).parent / "workers" / "door.py"


async def echo(args: Mapping[str, Any], _reply: Reply) -> Any:
    return args


async def count(args: Mapping[str, Any], reply: Reply) -> str:
    for number in range(args["to"]):
        await reply.event({"number": number})
    return "done"


async def refuse(_args: Mapping[str, Any], _reply: Reply) -> None:
    raise ConfigError("telegram has no token")


async def fail(_args: Mapping[str, Any], _reply: Reply) -> None:
    raise RuntimeError("a bug")


VERBS: dict[str, Handler] = {"echo": echo, "count": count, "refuse": refuse, "fail": fail}


@contextlib.asynccontextmanager
async def listening(home: Path, verbs: Mapping[str, Handler] = VERBS) -> AsyncIterator[None]:
    async with asyncio.timeout(10), ControlServer(home, verbs).listening():
        yield


async def call(home: Path, verb: str, args: Mapping[str, Any] | None = None, **options: Any) -> Any:
    return await asyncio.to_thread(control.call, home, verb, args, **options)


async def test_a_request_is_answered_with_its_result(tmp_path: Path) -> None:
    async with listening(tmp_path):
        assert await call(tmp_path, "echo", {"text": "你好\n\0"}) == {"text": "你好\n\0"}


async def test_events_come_before_the_result(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    async with listening(tmp_path):
        assert await call(tmp_path, "count", {"to": 3}, on_event=seen.append) == "done"
    assert seen == [{"number": 0}, {"number": 1}, {"number": 2}]


async def test_a_refusal_carries_its_words_and_its_kind(tmp_path: Path) -> None:
    async with listening(tmp_path):
        with pytest.raises(control.RefusedByGatewayError, match="telegram has no token") as refused:
            await call(tmp_path, "refuse")
        assert refused.value.kind == "ConfigError"


async def test_a_bug_in_one_verb_leaves_the_others(tmp_path: Path) -> None:
    async with listening(tmp_path):
        with pytest.raises(control.RefusedByGatewayError, match="a bug"):
            await call(tmp_path, "fail")
        with pytest.raises(control.RefusedByGatewayError, match="does not know 'nonsense'"):
            await call(tmp_path, "nonsense")
        assert await call(tmp_path, "echo", {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    "line", [b"not json", b"[]", b'{"args": {}}', b'{"verb": 7}', b'{"verb": "echo", "args": [1]}']
)
async def test_what_is_no_request_gets_a_sentence(tmp_path: Path, line: bytes) -> None:
    async with listening(tmp_path):
        reader, writer = await asyncio.open_unix_connection(paths.socket(str(tmp_path)))
        writer.write(line + b"\n")
        told = json.loads(await reader.readline())
        writer.close()
        assert "request" in told["error"]["text"]


async def test_several_requests_go_over_one_connection(tmp_path: Path) -> None:
    async with listening(tmp_path):
        reader, writer = await asyncio.open_unix_connection(paths.socket(str(tmp_path)))
        for number in (1, 2):
            writer.write(json.dumps({"verb": "echo", "args": {"n": number}}).encode() + b"\n")
            assert json.loads(await reader.readline()) == {"result": {"n": number}}
        writer.close()


async def test_a_client_that_goes_away_cancels_what_it_asked_for(tmp_path: Path) -> None:
    cancelled = asyncio.Event()

    async def stream(_args: Mapping[str, Any], reply: Reply) -> None:
        try:
            await reply.event("started")
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    async with listening(tmp_path, {"stream": stream}):
        reader, writer = await asyncio.open_unix_connection(paths.socket(str(tmp_path)))
        writer.write(b'{"verb": "stream"}\n')
        await reader.readline()
        writer.close()
        await asyncio.wait_for(cancelled.wait(), 2)
        assert cancelled.is_set()


async def test_a_long_answer_shows_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.hosting.control.server.SIGN_OF_LIFE_SECONDS", 0.05)

    async def slow(_args: Mapping[str, Any], _reply: Reply) -> str:
        await asyncio.sleep(0.4)
        return "done"

    async with listening(tmp_path, {"slow": slow}):
        assert await call(tmp_path, "slow", timeout=0.2, on_event=print) == "done"
        with pytest.raises(control.GatewayIsStalledError):
            await call(tmp_path, "slow", timeout=0.2)


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


async def test_the_socket_is_for_its_owner_alone_and_gone_afterwards(tmp_path: Path) -> None:
    async with listening(tmp_path):
        assert mode_of(paths.socket(str(tmp_path))) == 0o600
        assert mode_of(paths.run_folder(str(tmp_path))) == 0o700
    assert "gateway.sock" not in os.listdir(paths.run_folder(str(tmp_path)))


async def test_a_home_with_a_very_long_path_works_too(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30) / ("longer" * 20)
    async with listening(home):
        assert await call(home, "echo", {"a": 1}) == {"a": 1}


async def test_a_socket_left_by_a_killed_process_is_replaced(tmp_path: Path) -> None:
    os.makedirs(paths.run_folder(str(tmp_path)))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(paths.socket(str(tmp_path)))
    async with listening(tmp_path):
        assert await call(tmp_path, "echo") == {}


@contextlib.contextmanager
def listening_elsewhere(home: Path, *verbs: str, above: Sequence[str] = ()) -> Iterator[int]:
    """A server in a process of its own, of which this one is no descendant; its pid. ``above`` starts it."""
    lock = locks.take(paths.parent_lock(str(home)), "supervisor")
    assert lock is not None
    command = [*above, sys.executable, str(DOOR), str(home), *verbs]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        yield process.pid
        process.communicate(timeout=20)
    lock.release()


def test_a_second_container_decides_pairings_by_file_and_nothing_else(tmp_path: Path) -> None:
    with listening_elsewhere(tmp_path, "pairing.approve", "approvals.answer"):
        os.unlink(paths.socket(str(tmp_path)))
        assert control.call(tmp_path, "pairing.approve", {"code": "AB"}, timeout=20) == {"code": "AB"}
        with pytest.raises(control.RefusedByGatewayError, match="on the gateway's socket alone"):
            control.call(tmp_path, "approvals.answer", {"id": "AB"}, timeout=20)
        assert os.listdir(paths.requests(str(tmp_path))) == []


IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.mark.parametrize("way", ["socket", "file"])
def test_a_process_of_another_container_decides_pairings_and_nothing_else(tmp_path: Path, way: str) -> None:
    """The server in a pid namespace of its own sees us as process 0."""
    if shutil.which("unshare") is None or subprocess.run([*IN_A_CONTAINER, "true"], check=False).returncode:
        pytest.skip("this machine allows no new pid namespace")
    with listening_elsewhere(tmp_path, "pairing.approve", "approvals.answer", "restart", above=IN_A_CONTAINER):
        if way == "file":
            os.unlink(paths.socket(str(tmp_path)))
        assert control.call(tmp_path, "pairing.approve", {"code": "AB"}, timeout=20) == {"code": "AB"}
        with pytest.raises(control.RefusedByGatewayError, match="From another container only pairings"):
            control.call(tmp_path, "approvals.answer", {"id": "AB", "allow": True}, timeout=20)


@pytest.mark.parametrize("form", ["unlocked", "locked by nobody any more", "another kind of lock", "a link", "a pipe"])
def test_a_request_file_without_a_living_process_behind_it_decides_nothing(tmp_path: Path, form: str) -> None:
    with listening_elsewhere(tmp_path, "pairing.approve"):
        stem = f"{paths.requests(str(tmp_path))}/forged"
        written = f"{tmp_path}/elsewhere" if form == "a link" else f"{stem}.tmp"
        request = json.dumps({"verb": "pairing.approve", "args": {"code": "AB"}})
        if form == "a pipe":
            os.mkfifo(written)
        else:
            Path(written).write_text(request)
        with contextlib.ExitStack() as stack:
            if form == "another kind of lock":
                fcntl.flock(stack.enter_context(open(written, "rb")), fcntl.LOCK_EX)
            elif form == "locked by nobody any more":
                code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX)"
                subprocess.run([sys.executable, "-c", code, written], check=True)
            if form == "a link":
                os.symlink(written, f"{stem}.json")
            else:
                os.rename(written, f"{stem}.json")
            # Whoever asks properly is answered after it: by then the forged one was looked at.
            os.unlink(paths.socket(str(tmp_path)))
            assert control.call(tmp_path, "pairing.approve", {"code": "CD"}, timeout=20) == {"code": "CD"}
        told = Path(f"{stem}.answer").read_text() if os.path.exists(f"{stem}.answer") else ""
        assert "result" not in told
        assert form in ("a link", "a pipe") or "cannot tell which process" in told


def test_with_no_gateway_nothing_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(control.GatewayIsDownError):
        control.call(tmp_path, "ping")
    assert list(tmp_path.iterdir()) == [tmp_path / "home"]


def test_a_lock_without_an_answer_is_stalled_and_the_request_is_taken_back(tmp_path: Path) -> None:
    lock = locks.take(paths.parent_lock(str(tmp_path)), "supervisor")
    assert lock is not None
    with pytest.raises(control.GatewayIsStalledError):
        control.call(tmp_path, "ping", timeout=0.1)
    assert os.listdir(paths.requests(str(tmp_path))) == []
    lock.release()


def test_an_old_request_is_not_carried_out_late(tmp_path: Path) -> None:
    folder = paths.requests(str(tmp_path))
    paths.make_private(folder)
    paths.write_private(f"{folder}/old.json", json.dumps({"verb": "ping", "args": {}}))
    os.utime(f"{folder}/old.json", (time.time() - 3600, time.time() - 3600))
    with listening_elsewhere(tmp_path, "ping"):
        os.unlink(paths.socket(str(tmp_path)))
        assert control.call(tmp_path, "ping", {"a": 1}, timeout=20) == {"a": 1}
        assert os.listdir(folder) == []


def test_what_cannot_be_read_among_the_requests_keeps_no_other_from_its_answer(tmp_path: Path) -> None:
    paths.make_private(f"{paths.requests(str(tmp_path))}/torn.json")  # a folder
    with listening_elsewhere(tmp_path, "ping"):
        os.unlink(paths.socket(str(tmp_path)))
        for number in (1, 2):
            assert control.call(tmp_path, "ping", {"n": number}, timeout=20) == {"n": number}


@pytest.mark.parametrize(
    "verb, args, is_refused",
    [
        ("approvals.answer", {"id": "K7QP2M", "allow": True}, True),
        ("say", {"text": " /Approve K7QP2M"}, True),
        ("say", {"text": "hello"}, True),
        ("a verb of tomorrow", {}, True),
        ("status", {}, False),
    ],
)
async def test_a_command_of_the_agent_cannot_answer_what_the_agent_asked(
    tmp_path: Path, verb: str, args: Mapping[str, Any], is_refused: bool
) -> None:
    request = f"call({str(tmp_path)!r}, {verb!r}, {dict(args)!r})"
    code = f"from hermes.hosting.control.client import call; {request}"
    async with listening(tmp_path, {verb: echo}):
        assert await call(tmp_path, verb, args) == args  # whoever is no child of the gateway
        child = await asyncio.create_subprocess_exec(
            "sh", "-c", 'setsid "$@"; exit $?', "sh", sys.executable, "-c", code, stderr=asyncio.subprocess.PIPE
        )
        _, said = await child.communicate()
    assert (b"cannot answer its own questions" in said) is is_refused
    assert bool(child.returncode) is is_refused
