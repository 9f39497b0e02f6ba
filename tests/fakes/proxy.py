"""An HTTP and a SOCKS5 proxy on loopback that remember what they were asked for."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import struct
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class FakeProxy:
    """Listens while entered. ``asked`` holds ``host:port`` of every connection; names in ``hosts`` lead elsewhere.

    ``login`` ("user:password") is demanded when set.
    """

    scheme = ""

    def __init__(self, *, login: str = "", hosts: dict[str, str] | None = None) -> None:
        self.asked: list[str] = []
        self.login = login
        self._hosts = hosts or {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        port = self._server.sockets[0].getsockname()[1]
        login = f"{self.login}@" if self.login else ""
        return f"{self.scheme}://{login}127.0.0.1:{port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def _open(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.asked.append(f"{host}:{port}")
        return await asyncio.open_connection(self._hosts.get(host, host), port)

    async def _pipe(
        self,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
            writer.close()

        try:
            await asyncio.gather(copy(near[0], far[1]), copy(far[0], near[1]))
        finally:
            far[1].close()


class FakeHttpProxy(FakeProxy):
    """CONNECT for secure addresses, the whole address in the request line for plain ones."""

    scheme = "http"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, target, version = head.split("\r\n", 1)[0].split(" ")
        fields = [line for line in head.split("\r\n")[1:] if line]
        if not self._may_pass(fields):
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            far = await self._open(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
        else:
            parts = urlsplit(target)
            far = await self._open(parts.hostname or "", parts.port or 80)
            kept = [line for line in fields if not line.casefold().startswith("proxy-")]
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            far[1].write("\r\n".join([f"{method} {path} {version}", *kept, "", ""]).encode("latin-1"))
        await self._pipe((reader, writer), far)

    def _may_pass(self, fields: list[str]) -> bool:
        wanted = base64.b64encode(self.login.encode()).decode()
        return not self.login or f"proxy-authorization: basic {wanted}".casefold() in [
            line.casefold() for line in fields
        ]


class FakeSocksProxy(FakeProxy):
    """SOCKS5 (RFC 1928) with CONNECT, and user and password (RFC 1929)."""

    scheme = "socks5"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        wanted = 2 if self.login else 0
        if wanted not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(bytes([5, wanted]))
        if self.login and not await self._may_pass(reader, writer):
            return
        _, command, _, kind = await reader.readexactly(4)
        host = await self._host(reader, kind)
        (port,) = struct.unpack("!H", await reader.readexactly(2))
        assert command == 1, "only CONNECT is asked for"
        try:
            far = await self._open(host, port)
        except OSError:
            writer.write(b"\x05\x05\x00\x01" + bytes(6))  # connection refused
            return
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await self._pipe((reader, writer), far)

    async def _host(self, reader: asyncio.StreamReader, kind: int) -> str:
        if kind == 3:
            (size,) = await reader.readexactly(1)
            return (await reader.readexactly(size)).decode()
        return str(ipaddress.ip_address(await reader.readexactly(4 if kind == 1 else 16)))

    async def _may_pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, size = await reader.readexactly(2)
        user = await reader.readexactly(size)
        (size,) = await reader.readexactly(1)
        is_right = b":".join((user, await reader.readexactly(size))).decode() == self.login
        writer.write(bytes([1, 0 if is_right else 1]))
        return is_right
