"""A network that fails in the ways networks fail: a wire that goes dead without a word, names that lead nowhere."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self


class Wire:
    """A relay to one port of this machine, or to a socket's path.

    A cut leaves every connection open and silent, for good; new ones too.
    """

    def __init__(self, port: int | str) -> None:
        self.port = 0
        self._to = port
        self._whole = asyncio.Event()
        self._whole.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """What is connected now stays so, and never hears a byte again."""
        self._whole.clear()

    def mend(self) -> None:
        """New connections work. The old ones do not: that is what half-open means."""
        self._whole = asyncio.Event()
        self._whole.set()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._relay(reader, writer, self._whole))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, whole: asyncio.Event) -> None:
        try:
            await whole.wait()
            if isinstance(self._to, str):
                there, back = await asyncio.open_unix_connection(self._to)
            else:
                there, back = await asyncio.open_connection("127.0.0.1", self._to)
            try:
                await asyncio.gather(_pass_on(reader, back, whole), _pass_on(there, writer, whole))
            finally:
                back.close()
        except OSError:
            return  # the other end is down: the near one sees its connection close
        finally:
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, whole: asyncio.Event) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            await whole.wait()
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()


class Names:
    """What this process's name lookups answer: an address, or no such name ("")."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    @contextmanager
    def asked(self) -> Iterator[None]:
        """In place of the system's resolver, for as long as the block lasts."""
        loop: Any = asyncio.get_running_loop()
        before = loop.getaddrinfo

        async def look_up(host: str, port: int, **options: Any) -> Any:
            if host not in self.known:
                return await before(host, port, **options)
            if not self.known[host]:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return await before(self.known[host], port, **options)

        loop.getaddrinfo = look_up
        try:
            yield
        finally:
            loop.getaddrinfo = before
