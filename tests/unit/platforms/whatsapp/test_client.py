"""Whoever asks the bridge is told whether it is gone, or there and of no use: then it is replaced."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from hermes.core.errors import OutcomeUnknownError
from hermes.core.secret import Secret
from hermes.platforms.whatsapp.client import Address, Client, HangsError, LostError
from tests.fakes.site import Site


class Answering(Site):
    """A bridge that answers everything with the same."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        super().__init__()
        self.body, self.status = body, status

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=self.body, status=self.status)


@pytest.mark.parametrize(
    "body, status",
    [(b"<html>", 200), (b"[]", 200), (b"{}", 200), (b"\xff\x00", 200), (b"{}", 500), (b"", 502)],
)
async def test_an_answer_of_no_use_is_a_reason_to_start_it_anew(body: bytes, status: int) -> None:
    async with asyncio.timeout(20), Answering(body, status) as site, aiohttp.ClientSession() as http:
        bridge = Client(http, Address(site.port, Secret("token")))
        with pytest.raises(HangsError):
            await bridge.health()
        with pytest.raises(HangsError):
            await bridge.messages(0, 0)


async def test_what_became_of_a_send_is_unknown_after_an_answer_of_no_use() -> None:
    async with asyncio.timeout(20), Answering(b"<html>") as site, aiohttp.ClientSession() as http:
        with pytest.raises(OutcomeUnknownError):
            await Client(http, Address(site.port, Secret("token"))).send("send", {})


async def test_a_bridge_that_is_gone_is_told_as_gone() -> None:
    async with asyncio.timeout(20), aiohttp.ClientSession() as http:
        async with Answering(b"{}") as site:
            pass
        with pytest.raises(LostError):
            await Client(http, Address(site.port, Secret("token"))).health()
