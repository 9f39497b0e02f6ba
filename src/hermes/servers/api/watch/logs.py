"""`/api/logs`: the newest lines of the log, filtered, and the lines that follow as they are written."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from aiohttp import web

from hermes.core.roles import Action
from hermes.core.text import storable
from hermes.hosting import paths
from hermes.hosting.logs.reader import LEVELS, LogEntry, LogFilter, LogTail, newest
from hermes.servers.api.context import CALLER, STILL, ApiParts
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.manage.demand import demand
from hermes.servers.api.streams.sse import ClientGoneError, EventStream, event_stream
from hermes.servers.api.watch.paging import whole_number
from hermes.servers.app import json_response

LINES = 200
MAX_LINES = 1000
MAX_LINE_CHARS = 2000
MAX_BYTES = 250_000
"""Of one answer: a log of long lines is cut at its old end."""
LOOK_SECONDS = 0.5
CHECK_SECONDS = 15.0
MAX_STREAMS = 20


class LogRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._path = paths.log(str(parts.gateway.home))
        self._streams = 0
        self._is_over = False

    async def end(self, _app: web.Application) -> None:
        self._is_over = True

    async def listed(self, request: web.Request) -> web.Response:
        """``?level=&query=&limit=``: the newest that match, the oldest of them first."""
        demand(request[CALLER], Action.SEE_DETAILS)
        wanted, words = _filter(request)
        limit = whole_number(request, "limit", LINES, most=MAX_LINES)
        found = await asyncio.to_thread(_newest, self._path, wanted, words, limit)
        size, shown = 0, []
        for entry in reversed(found):
            line = entry_to_dict(entry)
            size += len(line["text"]) + 200
            if size > MAX_BYTES:
                break
            shown.append(line)
        return json_response({"object": "list", "data": shown[::-1], "has_more": len(shown) < len(found)})

    async def stream(self, request: web.Request) -> web.StreamResponse:
        demand(request[CALLER], Action.SEE_DETAILS)
        wanted, words = _filter(request)
        if self._streams >= MAX_STREAMS:
            text = f"{MAX_STREAMS} pages follow the log already. Close one, and try again."
            raise ApiError(429, text, code="too_many_streams", kind="rate_limit_error", headers={"Retry-After": "30"})
        self._streams += 1
        tail = LogTail(self._path)
        try:
            async with event_stream(request, {}) as stream:
                await stream.write(b": follows\n\n")
                await self._follow(request, stream, tail, wanted, words)
        except ClientGoneError:
            pass  # the page was closed
        finally:
            self._streams -= 1
            tail.close()
        return stream.response

    async def _follow(
        self, request: web.Request, stream: EventStream, tail: LogTail, wanted: LogFilter, words: str
    ) -> None:
        clock = asyncio.get_running_loop().time
        checked = clock()
        while not self._is_over:
            for entry in await asyncio.to_thread(tail.entries):
                if _is_wanted(entry, wanted, words):
                    await stream.send(entry_to_dict(entry), event="log")
            if clock() - checked >= CHECK_SECONDS:
                checked = clock()
                await stream.keep_alive()
                if not await request[STILL]():
                    return
            await asyncio.sleep(LOOK_SECONDS)


def _filter(request: web.Request) -> tuple[LogFilter, str]:
    level = request.query.get("level", "DEBUG").upper()
    if level not in LEVELS:
        raise bad_request(f"level is one of {', '.join(LEVELS)}.", code="invalid_value", param="level")
    return LogFilter(level), storable(request.query.get("query", "")).casefold()


def _is_wanted(entry: LogEntry, wanted: LogFilter, words: str) -> bool:
    return bool(entry.level) and wanted(entry) and (not words or words in entry.text.casefold())


def _newest(path: str, wanted: LogFilter, words: str, limit: int) -> list[LogEntry]:
    if not os.path.exists(path):
        return []
    return newest(path, lambda entry: _is_wanted(entry, wanted, words), limit)


def entry_to_dict(entry: LogEntry) -> dict[str, Any]:
    """Show one entry; ``source`` is the platform or part that its fields name."""
    fields = entry.fields
    source = next((fields[name] for name in ("platform", "account", "provider", "tool") if fields.get(name)), "")
    text = entry.text.split(" ", 2)[-1]
    more = len(text) - MAX_LINE_CHARS
    shown = f"{text[:MAX_LINE_CHARS]} [{more:,} more characters]" if more > 0 else text
    short = {name: value[:MAX_LINE_CHARS] for name, value in fields.items()}
    return {"at": entry.at, "level": entry.level, "source": source, "text": shown, "fields": short}
