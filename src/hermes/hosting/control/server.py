"""Serve the control socket: one JSON object per line, request files beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import orjson

from hermes.core.errors import GatewayError
from hermes.core.i18n.failures import sentence
from hermes.hosting import paths, processes
from hermes.hosting.control.client import short_address

MAX_LINE_BYTES = 32 * 1024 * 1024
SIGN_OF_LIFE_SECONDS = 2.0
LOOK_SECONDS = 0.5
FRESH_SECONDS = 30.0  # an older request file was given up by whoever wrote it

log = logging.getLogger(__name__)


class Reply(Protocol):
    async def event(self, told: Any) -> None:
        """Send something on the way to the result."""


Handler = Callable[[Mapping[str, Any], Reply], Awaitable[Any]]


class ControlServer:
    """``async with ControlServer(home, verbs).listening():`` answers until the end of the block.

    A handler whose client goes away is cancelled. Only the process that owns the home may listen: an old
    socket in the way is removed.
    """

    def __init__(self, home: str | os.PathLike[str], verbs: Mapping[str, Handler]) -> None:
        self._home = os.fspath(home)
        self._verbs = verbs

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
        answers = _SocketReply(writer)
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
            said = str(args.get("text") or "").lstrip()
            is_approval = verb == "approvals.answer" or (verb == "say" and said.casefold().startswith("/approve"))
            if is_approval and reply.is_from_a_tool():
                raise GatewayError(
                    "This runs in the agent's own terminal, and the agent cannot answer its own questions."
                )
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

        def take(found: list[tuple[str, bytes]]) -> None:
            for stem, raw in found:
                if not is_over.is_set():
                    self._keep(tasks, self._answer_file(stem, raw))

        def look() -> None:
            seen = -1
            while not is_over.wait(LOOK_SECONDS):
                found, seen = _take_requests(paths.requests(self._home), seen)
                if found:
                    with contextlib.suppress(RuntimeError):  # the loop has just ended
                        loop.call_soon_threadsafe(take, found)

        threading.Thread(target=look, name="control requests", daemon=True).start()
        return is_over

    async def _answer_file(self, stem: str, raw: bytes) -> None:
        reply = _Collected()
        await self._answer(raw, reply)
        await asyncio.to_thread(paths.write_private, f"{stem}.answer", reply.text())


class _FileReply(Protocol):
    def is_from_a_tool(self) -> bool: ...
    async def event(self, told: Any) -> None: ...
    async def result(self, told: Any) -> None: ...
    async def error(self, text: str, kind: str) -> None: ...


class _SocketReply:
    """Answers that go down the socket as they come."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def is_from_a_tool(self) -> bool:
        """Whether whoever asks was started by this gateway: a command of the agent, by whatever way it got here."""
        return os.getpid() in processes.ancestors(_peer(self._writer.get_extra_info("socket")))

    async def event(self, told: Any) -> None:
        await self._send({"event": told})

    async def result(self, told: Any) -> None:
        await self._send({"result": told})

    async def error(self, text: str, kind: str) -> None:
        await self._send({"error": {"text": text, "kind": kind}})

    async def sign_of_life(self) -> None:
        """An empty line: still at it. Clients skip it."""
        self._writer.write(b"\n")
        await self._writer.drain()

    async def _send(self, told: Any) -> None:
        self._writer.write(_dump(told))
        await self._writer.drain()


class _Collected:
    """Answers that are handed over together, in a file."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def is_from_a_tool(self) -> bool:
        return False  # a file tells nothing about who wrote it; a command that names the folder is asked about

    async def event(self, told: Any) -> None:
        self._lines.append(_dump({"event": told}))

    async def result(self, told: Any) -> None:
        self._lines.append(_dump({"result": told}))

    async def error(self, text: str, kind: str) -> None:
        self._lines.append(_dump({"error": {"text": text, "kind": kind}}))

    def text(self) -> str:
        return b"".join(self._lines).decode()


def _peer(line: Any) -> int:
    """The process at the other end; 0 where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    size = struct.calcsize("3i")
    pid, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(pid)


def _dump(told: Any) -> bytes:
    return orjson.dumps(told, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS)


def _read(raw: bytes) -> tuple[str, Mapping[str, Any]]:
    try:
        told = orjson.loads(raw)
        verb, args = told["verb"], told.get("args") or {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise GatewayError('A request is one JSON object per line: {"verb": "…", "args": {…}}') from None
    if not isinstance(verb, str) or not isinstance(args, dict):
        raise GatewayError("A request's verb is a text and its args are an object.")
    return verb, args


def _bind(path: str) -> socket.socket | None:
    """The listening socket, for its owner alone; None on a file system without sockets (request files remain)."""
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
        log.warning("Control socket not opened", extra={"reason": str(error), "instead": "request files"})
        return None
    return line


def _take_requests(folder: str, seen: int) -> tuple[list[tuple[str, bytes]], int]:
    """The requests that came since the folder last changed, each taken out of it; and the folder's new mark."""
    try:
        mark = os.stat(folder).st_mtime_ns
    except FileNotFoundError:
        return [], -1
    if mark == seen:
        return [], seen
    found: list[tuple[str, bytes]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found += _take_one(entry)
    # A file may still join within the clock tick of this mark, and would not move it: then look once more.
    is_settled = time.time_ns() - mark > 1_000_000_000
    return found, mark if is_settled else -1


def _take_one(entry: os.DirEntry[str]) -> list[tuple[str, bytes]]:
    try:
        age = time.time() - entry.stat().st_mtime
        if age > FRESH_SECONDS:
            os.unlink(entry.path)  # also answers that nobody fetched
            return []
        if not entry.name.endswith(".json"):
            return []
        with open(entry.path, "rb") as file:
            raw = file.read()
        os.unlink(entry.path)
    except FileNotFoundError:
        return []  # taken back by its writer
    except OSError as error:
        log.warning("Request file not read", extra={"path": entry.path, "reason": str(error)})
        return []  # another's, or no file at all: the others are answered
    return [(entry.path.removesuffix(".json"), raw)]
