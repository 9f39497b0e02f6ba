"""Connections to QQ that fail, of every kind: no descriptor, task or thread is left behind by any of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import web

from tests.chaos.reconnects import Grown, Held
from tests.fakes.qq import FakeQQ
from tests.integration.qq_line import Line, play

TROUBLES = ("500", "garbage", "dropped", "no upgrade", "4009", "4900", "cut", "silent")


class TroubledQQ(FakeQQ):
    """Does the wrong thing with every connection."""

    trouble = ""
    tries = 0

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        is_socket = request.path == "/websocket/"
        self.tries += is_socket or self.trouble in ("500", "garbage", "dropped")
        match self.trouble:
            case "500":
                return web.Response(status=500, text="<html>Internal Server Error</html>")
            case "garbage":
                return web.Response(body=b'{"access_tok\xff', content_type="application/json")
            case "dropped":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "no upgrade" if is_socket:
                return web.Response(status=403, text="no")
            case _:
                return await super()._answer(request)

    async def _converse(self, socket: web.WebSocketResponse) -> None:
        if self.trouble in ("4009", "4900"):
            await socket.close(code=int(self.trouble), message=b"scripted")
        elif self.trouble == "cut":
            self.drop_connection()
        elif self.trouble == "silent":
            await asyncio.sleep(30)
        else:
            await super()._converse(socket)

    async def fail(self, held: Line, trouble: str, times: int) -> None:
        self.trouble, until = trouble, self.tries + times
        self.drop_connection()
        while self.tries < until:  # noqa: ASYNC110 - a second costs nothing on this clock
            await asyncio.sleep(1)
        self.trouble = ""
        await held.listens()


def fail_again_and_again(folder: Path, failures: int) -> Grown:
    """Count what is held while all is well, fail, and count again when all is well. On a clock that jumps."""
    found: list[Grown] = []

    async def story(held: Line) -> None:
        qq = held.qq
        assert isinstance(qq, TroubledQQ)
        await held.listens()
        for trouble in TROUBLES:  # whatever is made once and kept is made now
            await qq.fail(held, trouble, 2)
        await held.loop.sleep(120)
        before, tried = Held.now(), qq.tries
        for trouble in TROUBLES:
            await qq.fail(held, trouble, -(-failures // len(TROUBLES)))
        await held.loop.sleep(120)
        await held.hears("after all")
        found.append(Grown(qq.tries - tried, before, Held.now()))

    play(folder, story, TroubledQQ)
    return found[0]
