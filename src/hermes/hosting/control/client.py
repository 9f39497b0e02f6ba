"""Call the running gateway over its socket; pairings are decided by request file where that cannot be reached.

This is the side of the CLI: plain and synchronous, without asyncio, so that a command starts at once.
The gateway's side is `control_server`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hermes.core.errors import GatewayError
from hermes.hosting import locks, paths

ANSWER_SECONDS = 5.0
LOOK_SECONDS = 0.25
MAX_ADDRESS_BYTES = 100  # the system's limit is 108 bytes, on some systems 104

OnEvent = Callable[[Mapping[str, Any]], None]


class GatewayIsDownError(GatewayError):
    """No gateway runs for this home; the person starts one, or the command works alone."""


class GatewayIsNotRunningError(GatewayIsDownError):
    """The command cannot work alone, and no gateway runs."""

    exit_code = 3


class GatewayIsStalledError(GatewayError):
    """A gateway holds the home and does not answer. The files stay closed to everybody else."""


class RefusedByGatewayError(GatewayError):
    """The gateway read the request and said no; ``kind`` is the name of its error."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


def call(
    home: str | os.PathLike[str],
    verb: str,
    args: Mapping[str, Any] | None = None,
    timeout: float = ANSWER_SECONDS,
    on_event: OnEvent | None = None,
    *,
    may_leave_file: bool = True,
) -> Any:
    """Ask for one thing and return its result.

    Without ``on_event`` the whole answer must come within ``timeout`` seconds. With it the answer may take
    as long as it likes, and ``timeout`` is the longest silence: the gateway sends a sign of life meanwhile.
    ``may_leave_file``: where nobody listens at the socket, a request file is left for the gateway.
    Raises GatewayIsDownError, GatewayIsStalledError or RefusedByGatewayError.
    """
    folder = os.fspath(home)
    request = {"verb": verb, "args": dict(args or {})}
    try:
        line = _connect(folder, timeout)
    except OSError:
        if not is_running(folder):
            raise GatewayIsDownError("The gateway is not running.") from None
        if not may_leave_file:
            raise GatewayIsDownError("The gateway is starting.") from None
        return _call_by_file(folder, request, timeout, on_event)
    with line:
        return _call_by_socket(line, request, timeout, on_event)


def is_running(home: str | os.PathLike[str]) -> bool:
    """Tell by the locks whether a gateway holds this home, answering or not."""
    folder = os.fspath(home)
    if locks.holder(paths.parent_lock(folder)) is not None:
        return True
    owner = locks.holder(paths.owner_lock(folder))
    return owner is not None and "gateway" in owner.what


@contextlib.contextmanager
def short_address(path: str) -> Iterator[str]:
    """A way to say this path in the few bytes that a socket address may have."""
    if len(os.fsencode(path)) < MAX_ADDRESS_BYTES:
        yield path
        return
    folder, name = os.path.split(path)
    if os.path.isdir("/proc/self/fd"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{descriptor}/{name}"
        finally:
            os.close(descriptor)
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="hermes-") as short:
        link = os.path.join(short, "run")
        os.symlink(folder, link)
        yield os.path.join(link, name)


def _connect(home: str, timeout: float) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(timeout)
    try:
        with short_address(paths.socket(home)) as address:
            line.connect(address)
    except OSError:
        line.close()
        raise
    return line


def _call_by_socket(line: socket.socket, request: Mapping[str, Any], timeout: float, on_event: OnEvent | None) -> Any:
    deadline = time.monotonic() + timeout
    try:
        line.sendall(json.dumps(request).encode() + b"\n")
        with line.makefile("rb") as answers:
            while raw := answers.readline():
                if on_event is not None:
                    deadline = time.monotonic() + timeout
                if raw.strip() and _take(json.loads(raw), answer := _CallResult(), on_event):
                    return answer.result
                line.settimeout(max(0.001, deadline - time.monotonic()))
    except TimeoutError:
        raise _stalled(timeout) from None
    except ConnectionError:
        pass
    raise GatewayIsDownError("The gateway stopped before it answered.")


class _CallResult:
    result: Any = None


def _take(line: Mapping[str, Any], answer: _CallResult, on_event: OnEvent | None) -> bool:
    """Use one line of an answer; True when it was the last."""
    if "event" in line:
        if on_event is not None:
            on_event(line["event"])
        return False
    if "error" in line:
        raise RefusedByGatewayError(line["error"].get("text", ""), line["error"].get("kind", ""))
    answer.result = line.get("result")
    return True


def _call_by_file(home: str, request: Mapping[str, Any], timeout: float, on_event: OnEvent | None) -> Any:
    """Leave the request where the gateway looks; it answers beside it. Unanswered, it is taken back.

    We hold a lock on the file meanwhile: by that the gateway knows which process asks.
    """
    stem = os.path.join(paths.requests(home), secrets.token_hex(8))
    held = -1
    try:
        paths.make_private(paths.requests(home))
        held = os.open(f"{stem}.tmp", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: the gateway then says that it cannot tell
            fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(held, json.dumps(request).encode())
        os.rename(f"{stem}.tmp", f"{stem}.json")
    except OSError as error:  # a full disk, as a rule
        _take_back(stem, held)
        raise GatewayIsStalledError(
            f"The gateway cannot be asked: its socket does not answer, and no request can be left for it in "
            f"{paths.requests(home)} ({error.strerror}). Look: hermes doctor"
        ) from None
    deadline = time.monotonic() + timeout
    taker, looked_at = "", 0.0
    try:
        while not os.path.exists(f"{stem}.answer"):
            now = time.monotonic()
            if now >= deadline:
                raise _stalled(timeout)
            if now - looked_at >= LOOK_SECONDS and not os.path.exists(f"{stem}.json"):
                # Taken by a process that may end before it has answered; its successor knows nothing of the request.
                holder = locks.holder(paths.owner_lock(home))
                looked_at, owner = now, (f"{holder.pid} {holder.mark}" if holder is not None else "nobody")
                if taker not in ("", owner) and not os.path.exists(f"{stem}.answer"):
                    raise GatewayIsDownError("The gateway ended before it had answered.")
                taker = owner
            time.sleep(0.02)
        with open(f"{stem}.answer", encoding="utf-8") as file:
            answers = [json.loads(row) for row in file if row.strip()]
    finally:
        _take_back(stem, held)
    answer = _CallResult()
    for line in answers:
        _take(line, answer, on_event)
    return answer.result


def _take_back(stem: str, held: int) -> None:
    if held >= 0:
        os.close(held)
    for ending in ("tmp", "json", "answer"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{stem}.{ending}")


def _stalled(timeout: float) -> GatewayIsStalledError:
    return GatewayIsStalledError(
        f"The gateway is stalled: it holds the home and has not answered for {timeout:.0f} s. "
        "Look: hermes gateway status"
    )
