"""Connections to Slack that fail, of every kind: no descriptor, task or thread is left behind by any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import aiohttp
from aiohttp import web

from hermes.config import load
from hermes.core.keys import AccountKey
from hermes.core.messages import InboundEvent, Marks
from hermes.core.ports import Adapter, Emit
from hermes.platforms.slack import MANIFEST
from hermes.services.clock import SystemClock
from hermes.services.supervisor import Link, Pace, Supervisor
from hermes.store.db import open_database
from tests.chaos.reconnects import Grown, Held
from tests.chaos.world import until
from tests.fakes.slack import FakeSlack, _Socket

QUICK = Pace(backoff_seconds=(0.0,), conflict_seconds=0.0, watch_seconds=0.005)
TROUBLES = ("500", "garbage", "dropped", "limited", "no upgrade", "no hello", "closed", "cut", "farewell")
WAIT_SECONDS = 20.0
STEADY = 15  # so many looks in a row saw the same


class TroubledSlack(FakeSlack):
    """Does the wrong thing with every connection."""

    trouble = ""
    tries = 0

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
    """Count what is held while all is well, fail, and count again when all is well."""
    db = await open_database(folder / "state.db")
    try:
        async with TroubledSlack() as slack:
            config = load(folder, slack.environ, folder, (MANIFEST,)).config
            supervisor = Supervisor({"slack": MANIFEST}, db, lambda: config, SystemClock(), {}, pace=QUICK)
            supervisor.connect(_nowhere, _nobody)
            supervisor.reconcile()
            try:
                for trouble in TROUBLES:  # whatever is made once and kept is made now
                    await _fail(slack, supervisor, trouble, 2)
                before, tried = await _steady(), slack.tries
                for trouble in TROUBLES:
                    await _fail(slack, supervisor, trouble, -(-failures // len(TROUBLES)))
                return Grown(slack.tries - tried, before, await _steady())
            finally:
                await supervisor.stop_intake()
                await supervisor.close()
    finally:
        await db.close()


async def _fail(slack: TroubledSlack, supervisor: Supervisor, trouble: str, times: int) -> None:
    slack.trouble, enough = trouble, slack.tries + times
    slack.drop_connection()
    await until(lambda: slack.tries >= enough, WAIT_SECONDS + times * 0.2)
    slack.trouble = ""
    slack.drop_connection()
    await until(lambda: supervisor.status()[0]["state"] == Link.CONNECTED and slack.sockets == 1, WAIT_SECONDS)


async def _steady() -> Held:
    """What is held once that no longer changes: closing takes a moment, on both sides of a socket."""
    seen: list[Held] = []
    for _ in range(200):
        seen.append(Held.now())
        if len(seen) > STEADY and len(set(seen[-STEADY:])) == 1:
            break
        await asyncio.sleep(0.02)
    return seen[-1]


def _nowhere(_account: AccountKey, _adapter: Adapter) -> Emit:
    async def emit(events: Sequence[InboundEvent], cursor: Marks | None = None) -> None:
        return

    return emit


async def _nobody(_account: str) -> None:
    return
