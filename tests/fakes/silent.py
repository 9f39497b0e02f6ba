"""A server that takes every connection and never answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Listen on a port of loopback, the number of which is given; at the end every connection is closed."""
    writers: list[asyncio.StreamWriter] = []

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError):
            await reader.read()  # until the client leaves

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
        async with asyncio.timeout(10):
            for writer in writers:
                with suppress(ConnectionError):
                    await writer.wait_closed()
            await server.wait_closed()
