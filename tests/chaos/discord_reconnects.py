"""Connections to Discord that fail, of every kind: no descriptor, task or thread is left behind by any of them."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from hermes.platforms.discord import MANIFEST
from tests.chaos.reconnects import Grown, fail_each_way
from tests.fakes.discord import FakeDiscord, Socket

TROUBLES = ("503", "garbage", "dropped", "limited", "no upgrade", "no hello", "closed", "cut", "lost", "garbled")


class TroubledDiscord(FakeDiscord):
    """Does the wrong thing with every connection."""

    trouble = ""
    tries = 0

    def suffer(self, trouble: str) -> None:
        self.trouble = trouble
        self.says_hello = trouble != "no hello"

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        is_socket = request.path in ("/gateway", "/resume")
        self.tries += is_socket or (request.path.endswith("/users/@me") and self.trouble in TROUBLES[:4])
        match self.trouble:
            case "503":
                return web.Response(status=503, text="<html>Service Unavailable</html>")
            case "garbage":
                return web.Response(body=b'{"id": tru\xff', headers={"Content-Type": "application/json"})
            case "dropped":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "limited":
                body, kind = b'{"retry_after": 5.0, "message": "slowly"}', {"Content-Type": "application/json"}
                return web.Response(status=429, body=body, headers={**kind, "Retry-After": "0"})
            case "no upgrade" if is_socket:
                return web.Response(status=403, text="no")
            case _:
                return await super()._answer(request)

    async def _converse(self, socket: Socket) -> None:
        match self.trouble:
            case "no hello" | "closed":
                await socket.response.close(code=4000)
            case "cut":
                self.drop_connection()
            case "garbled":
                await socket.response.send_str('{"op": 10, "d": null}')
                await super()._converse(socket)
            case _:
                await super()._converse(socket)

    async def _heard(self, socket: Socket, op: int, data: object) -> int:
        if self.trouble == "lost" and op in (2, 6):
            return 4000
        return await super()._heard(socket, op, data)


async def fail_again_and_again(folder: Path, failures: int) -> Grown:
    async with TroubledDiscord() as discord:
        return await fail_each_way(discord, MANIFEST, TROUBLES, folder, failures)
