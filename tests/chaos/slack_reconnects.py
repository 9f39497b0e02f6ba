"""Connections to Slack that fail, of every kind: no descriptor, task or thread is left behind by any of them."""

from __future__ import annotations

from pathlib import Path

import aiohttp
from aiohttp import web

from hermes.platforms.slack import MANIFEST
from tests.chaos.reconnects import Grown, fail_each_way
from tests.fakes.slack import FakeSlack, _Socket

TROUBLES = ("500", "garbage", "dropped", "limited", "no upgrade", "no hello", "closed", "cut", "farewell")


class TroubledSlack(FakeSlack):
    """Does the wrong thing with every connection."""

    trouble = ""
    tries = 0

    def suffer(self, trouble: str) -> None:
        self.trouble = trouble

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        is_socket = request.path == "/link"
        self.tries += is_socket or (request.path == "/api/auth.test" and self.trouble in TROUBLES[:4])
        match self.trouble:
            case "500":
                return web.Response(status=500, text="<html>Internal Server Error</html>")
            case "garbage":
                return web.Response(body=b'{"ok": tru\xff', content_type="application/json")
            case "dropped":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "limited":
                return web.json_response(
                    {"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": "0"}
                )
            case "no upgrade" if is_socket:
                return web.Response(status=403, text="no")
            case "no hello" if is_socket:
                return await self._refuse_hello(request)
            case _:
                return await super()._answer(request)

    async def _refuse_hello(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(timeout=0.5)
        await socket.prepare(request)
        await socket.send_str('{"type": "disconnect", "reason": "too_many_websockets"}')
        await socket.receive()
        return socket

    async def _converse(self, socket: _Socket) -> None:
        match self.trouble:
            case "closed":
                await socket.response.close(code=aiohttp.WSCloseCode.GOING_AWAY)
            case "cut":
                self.drop_connection()
            case "farewell":
                self.disconnect("shutting_down")
                await super()._converse(socket)
            case _:
                await super()._converse(socket)


async def fail_again_and_again(folder: Path, failures: int) -> Grown:
    async with TroubledSlack() as slack:
        return await fail_each_way(slack, MANIFEST, TROUBLES, folder, failures)
