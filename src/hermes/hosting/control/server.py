"""Serve the control socket: one JSON object per line. Pairings can be decided by request file too.

A process of a tool is answered nothing that changes the gateway: the agent would answer its own questions.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.core.i18n.failures import sentence
from hermes.hosting import paths, processes
from hermes.hosting.control.access import OPEN_TO_OUTSIDE, OPEN_TO_TOOLS, why_not
from hermes.hosting.control.client import short_address
from hermes.hosting.tool_processes import UNKNOWN, ToolProcesses

MAX_LINE_BYTES = 32 * 1024 * 1024
SIGN_OF_LIFE_SECONDS = 2.0
LOOK_SECONDS = 0.5
FRESH_SECONDS = 30.0  # an older request file was given up by whoever wrote it
MAX_FILE_BYTES = 64 * 1024

log = logging.getLogger(__name__)


class Reply(Protocol):
    async def event(self, data: Any) -> None:
        """Send something on the way to the result."""


Handler = Callable[[Mapping[str, Any], Reply], Awaitable[Any]]


class ControlServer:
    """``async with ControlServer(home, verbs).listening():`` answers until the end of the block.

    A handler whose client goes away is cancelled. Only the process that owns the home may listen: an old
    socket in the way is removed. ``tools`` tells who asks.
    """

    def __init__(
        self, home: str | os.PathLike[str], verbs: Mapping[str, Handler], tools: ToolProcesses | None = None
    ) -> None:
        self._home = os.fspath(home)
        self._verbs = verbs
        self._tools = tools or ToolProcesses()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        tasks: set[asyncio.Task[None]] = set()
        path = paths.socket(self._home)
        paths.make_private(paths.requests(self._home))
        line = _bind(path)
        server = None
        if line is not None:
            server = await asyncio.start_unix_server(
                lambda reader, writer: self._keep(tasks, self._talk(reader, writer)), sock=line, limit=MAX_LINE_BYTES
            )
        is_over = self._look_for_files(tasks)
        try:
            yield
        finally:
            is_over.set()
            if server is not None:
                server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    @staticmethod
    def _keep(tasks: set[asyncio.Task[None]], work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers = _SocketReply(writer, self._tools)
        try:
            raw = await reader.readline()
            while raw:
                raw = await self._one_request(raw, reader, answers)
        except (ConnectionError, ValueError):
            return  # gone, or a line longer than any of ours
        finally:
            writer.close()

    async def _one_request(self, raw: bytes, reader: asyncio.StreamReader, answers: _SocketReply) -> bytes:
        """Answer one line and return the next; nothing when the client has gone."""
        answering = asyncio.create_task(self._answer(raw, answers))
        following = asyncio.create_task(reader.readline())
        try:
            while not answering.done():
                await asyncio.wait(
                    {answering, following} if not following.done() else {answering},
                    timeout=SIGN_OF_LIFE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if following.done() and not following.result():
                    return b""
                if not answering.done():
                    await answers.sign_of_life()
            await answering
            return await following
        finally:
            for task in (answering, following):
                task.cancel()
            await asyncio.gather(answering, following, return_exceptions=True)

    async def _answer(self, raw: bytes, reply: _FileReply) -> None:
        """Every request gets exactly one last line, whatever happens in its handler."""
        try:
            verb, args = _read(raw)
            if verb not in OPEN_TO_TOOLS and (why := reply.why_not(verb)):
                log.warning("Request refused", extra={"verb": verb[:80], "reason": why})
                await reply.error(why, "Refused")
                return
            if verb not in self._verbs:
                words = f"This gateway does not know {verb!r}: it runs an older version. Try: hermes gateway restart"
                await reply.error(words, "UnknownVerb")
                return
            await reply.result(await self._verbs[verb](args, reply))
        except GatewayError as error:
            await reply.error(str(error), type(error).__name__)
        except ConnectionError:
            raise
        except Exception as error:
            # The same edge as the HTTP middleware: one bad request never ends the server.
            log.exception("Request failed")
            await reply.error(
                f"The gateway failed at this: {sentence(str(error))} The details: hermes logs --level error", "Failure"
            )

    def _look_for_files(self, tasks: set[asyncio.Task[None]]) -> threading.Event:
        """Watch the folder of requests from a thread of its own, which wakes the loop only when there is one."""
        loop = asyncio.get_running_loop()
        is_over = threading.Event()

        device = os.stat(paths.run_folder(self._home)).st_dev

        def take(found: list[_Request]) -> None:
            for request in found:
                if not is_over.is_set():
                    self._keep(tasks, self._answer_file(request))

        def look() -> None:
            seen = -1
            while not is_over.wait(LOOK_SECONDS):
                found, seen = _take_requests(paths.requests(self._home), seen, device, self._tools)
                if found:
                    with contextlib.suppress(RuntimeError):  # the loop has just ended
                        loop.call_soon_threadsafe(take, found)

        threading.Thread(target=look, name="control requests", daemon=True).start()
        return is_over

    async def _answer_file(self, request: _Request) -> None:
        reply = _Collected(request.origin)
        await self._answer(request.raw, reply)
        await asyncio.to_thread(paths.write_private, f"{request.stem}.answer", reply.text())


@dataclass(frozen=True, slots=True)
class _Request:
    """A request file: its path without the ending, what it says, and who holds the lock on it."""

    stem: str
    raw: bytes
    origin: str


class _FileReply(Protocol):
    def why_not(self, verb: str) -> str: ...
    async def event(self, data: Any) -> None: ...
    async def result(self, data: Any) -> None: ...
    async def error(self, text: str, kind: str) -> None: ...


class _SocketReply:
    """Answers that go down the socket as they come."""

    def __init__(self, writer: asyncio.StreamWriter, tools: ToolProcesses) -> None:
        self._writer = writer
        self._tools = tools
        self._connected_at = processes.since_boot()

    def why_not(self, verb: str) -> str:
        line = self._writer.get_extra_info("socket")
        return why_not(verb, self._tools.origin_of_peer(line, self._connected_at))

    async def event(self, data: Any) -> None:
        await self._send({"event": data})

    async def result(self, data: Any) -> None:
        await self._send({"result": data})

    async def error(self, text: str, kind: str) -> None:
        await self._send({"error": {"text": text, "kind": kind}})

    async def sign_of_life(self) -> None:
        """An empty line: still at it. Clients skip it."""
        self._writer.write(b"\n")
        await self._writer.drain()

    async def _send(self, data: Any) -> None:
        self._writer.write(_dump(data))
        await self._writer.drain()


class _Collected:
    """Answers that are handed over together, in a file."""

    def __init__(self, origin: str) -> None:
        self._lines: list[bytes] = []
        self._origin = origin

    def why_not(self, verb: str) -> str:
        why = why_not(verb, self._origin)
        if not why and verb not in OPEN_TO_OUTSIDE:
            return f"{verb!r} is answered on the gateway's socket alone, which cannot be reached. Look: hermes doctor"
        return why

    async def event(self, data: Any) -> None:
        self._lines.append(_dump({"event": data}))

    async def result(self, data: Any) -> None:
        self._lines.append(_dump({"result": data}))

    async def error(self, text: str, kind: str) -> None:
        self._lines.append(_dump({"error": {"text": text, "kind": kind}}))

    def text(self) -> str:
        return b"".join(self._lines).decode()


def _dump(data: Any) -> bytes:
    return orjson.dumps(data, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS)


def _read(raw: bytes) -> tuple[str, Mapping[str, Any]]:
    try:
        request = orjson.loads(raw)
        verb, args = request["verb"], request.get("args") or {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise GatewayError('A request is one JSON object per line: {"verb": "…", "args": {…}}') from None
    if not isinstance(verb, str) or not isinstance(args, dict):
        raise GatewayError("A request's verb is a text and its args are an object.")
    return verb, args


def _bind(path: str) -> socket.socket | None:
    """The listening socket, for its owner alone; None on a file system without sockets."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # left by a process that was killed: we own the home, so nobody listens there
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(path) as address:
            line.bind(address)
        os.chmod(path, 0o600)
        line.setblocking(False)
    except OSError as error:
        line.close()
        log.warning(
            "Control socket not opened", extra={"reason": str(error), "instead": "request files, for pairings alone"}
        )
        return None
    return line


def _take_requests(folder: str, seen: int, device: int, tools: ToolProcesses) -> tuple[list[_Request], int]:
    """The requests that came since the folder last changed, each taken out of it; and the folder's new mark."""
    try:
        mark = os.stat(folder).st_mtime_ns
    except FileNotFoundError:
        return [], -1
    if mark == seen:
        return [], seen
    found: list[_Request] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found += _take_one(entry, device, tools)
    # A file may still join within the clock tick of this mark, and would not move it: then look once more.
    is_settled = time.time_ns() - mark > 1_000_000_000
    return found, mark if is_settled else -1


def _take_one(entry: os.DirEntry[str], device: int, tools: ToolProcesses) -> list[_Request]:
    """Take one request out of the folder. The kernel names the process that holds its lock.

    Only files on the home's own file system count: one that another program serves could name any process.
    """
    try:
        age = time.time() - entry.stat(follow_symlinks=False).st_mtime
        if age > FRESH_SECONDS:
            os.unlink(entry.path)  # also answers that nobody fetched
            return []
        if not entry.name.endswith(".json"):
            return []
        with open(os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            facts = os.fstat(file.fileno())
            raw = file.read(MAX_FILE_BYTES) if stat.S_ISREG(facts.st_mode) else b""
            is_ours = facts.st_dev == device and facts.st_nlink == 1 and facts.st_uid == os.geteuid()
            origin = tools.origin_of_locker(file.fileno()) if is_ours else UNKNOWN
        os.unlink(entry.path)
    except FileNotFoundError:
        return []  # taken back by its writer
    except OSError as error:
        log.warning("Request file not read", extra={"path": entry.path, "reason": str(error)})
        return []  # another's, or no file at all: the others are answered
    return [_Request(entry.path.removesuffix(".json"), raw, origin)]
