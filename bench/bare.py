"""The bare work of an API request, as a process of its own: ``python -m bench.bare DATABASE MODEL_URL``.

One aiohttp server, one aiohttp call to the model, and the two commits of a request in another thread; a stream is read
with the gateway's own pauses, so that it wakes as often. Nothing else of ours is in it. Prints its port.
"""

from __future__ import annotations

import argparse
import asyncio
import queue
import sqlite3
import threading
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from hermes.agent.models.stream_timeouts import ConcurrentStreams, hold_back

PATH = "/v1/chat/completions"


class Writer:
    """One thread that commits, as the store has one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: queue.SimpleQueue[asyncio.Future[None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._asked.put(None)
        self._thread.join()

    async def commit(self) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._asked.put(done)
        await done

    def _run(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")
        while (done := self._asked.get()) is not None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO rows (text) VALUES (?)", ["x" * 400])
            connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(done.set_result, None)
        connection.close()


class Bare:
    def __init__(self, writer: Writer, http: aiohttp.ClientSession, model_url: str) -> None:
        self._writer = writer
        self._http = http
        self._url = f"{model_url}/chat/completions"
        self._crowd = ConcurrentStreams()

    async def complete(self, request: web.Request) -> web.StreamResponse:
        asked = orjson.loads(await request.read())
        await self._writer.commit()
        if asked.get("stream"):
            return await self._stream(request, asked)
        text = "".join([piece async for piece in self._ask(asked)])
        await self._writer.commit()
        body = {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": text}}]}
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    async def _stream(self, request: web.Request, asked: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for piece in self._ask(asked):
            chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": piece}}]}
            await response.write(b"data: %s\n\n" % orjson.dumps(chunk))
        await self._writer.commit()
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _ask(self, asked: Any) -> Any:
        """The text of each read from the model."""
        body = orjson.dumps({**asked, "stream": True})
        loop = asyncio.get_running_loop()
        rest = b""
        first_at = 0.0
        with self._crowd.joined():
            async with self._http.post(self._url, data=body, headers={"Content-Type": "application/json"}) as response:
                while data := await response.content.readany():
                    first_at = first_at or loop.time()
                    *lines, rest = (rest + data).split(b"\n")
                    chunks = [orjson.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
                    if text := "".join(_text(chunk) for chunk in chunks):
                        yield text
                    if pause := self._crowd.pause_seconds(loop.time() - first_at):
                        hold_back(response, pause)


def _text(chunk: Any) -> str:
    choices = chunk.get("choices")
    return (choices[0]["delta"].get("content") or "") if choices else ""


async def serve(database: Path, model_url: str) -> None:
    with Writer(database) as writer:
        async with aiohttp.ClientSession() as http:
            app = web.Application()
            app.router.add_post(PATH, Bare(writer, http, model_url).complete)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            print(runner.addresses[0][1], flush=True)
            try:
                await asyncio.Event().wait()
            finally:
                await runner.cleanup()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("model_url")
    options = parser.parse_args()
    asyncio.run(serve(options.database, options.model_url))
