"""A real gateway behind a proxy: Telegram and the model are reached through it, or past it where NO_PROXY says so."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.chaos.world import GatewayProcess
from tests.fakes.model import FakeModel
from tests.fakes.proxy import FakeHttpProxy, FakeProxy, FakeSocksProxy
from tests.fakes.telegram import UNPACED, FakeTelegram

pytestmark = pytest.mark.slow

KINDS = [FakeHttpProxy, FakeSocksProxy]
# The fakes are on loopback, which is reached directly unless NO_PROXY names something else.
EVERYTHING = {"NO_PROXY": "elsewhere.example"}


def place(url: str) -> str:
    """``127.0.0.1:8080`` of an address."""
    return url.removeprefix("http://").partition("/")[0]


def everything_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@asynccontextmanager
async def gateway(
    folder: Path, telegram: FakeTelegram, model: FakeModel, **proxies: str
) -> AsyncIterator[GatewayProcess]:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_BASE_URL": telegram.url,
        **UNPACED,
        "TELEGRAM_ALLOWED_USERS": "7",
        "GATEWAY_OWNERS": "local",
        "OPENAI_API_KEY": "sk-test-0123456789",
        "OPENAI_BASE_URL": model.url,
        "API_SERVER_PORT": "0",
        **proxies,
    }
    with (folder / "gateway.out").open("w", encoding="utf-8") as output:
        process = GatewayProcess(folder / "h", environ, output)
        process.start()
        try:
            await process.ready()
            yield process
        finally:
            await process.stop()


async def is_answered(telegram: FakeTelegram) -> None:
    telegram.user_says("hello")
    await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"], 10)


@pytest.mark.parametrize("kind", KINDS, ids=["HTTP", "SOCKS5"])
async def test_telegram_and_the_model_are_reached_through_a_proxy_with_a_password(
    tmp_path: Path, kind: type[FakeProxy]
) -> None:
    async with FakeTelegram() as telegram, FakeModel() as model, kind(login="ana:proxy-pass-17") as proxy:
        async with gateway(tmp_path, telegram, model, ALL_PROXY=proxy.url, **EVERYTHING):
            await is_answered(telegram)
        assert {place(telegram.url), place(model.url)} == set(proxy.asked)
    assert b"proxy-pass-17" not in everything_below(tmp_path)


async def test_no_proxy_is_reached_past_the_proxy_and_the_rest_through_it(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram, FakeModel() as model, FakeHttpProxy() as proxy:
        async with gateway(tmp_path, telegram, model, HTTP_PROXY=proxy.url, NO_PROXY=f"x.example,{place(model.url)}"):
            await is_answered(telegram)
        assert set(proxy.asked) == {place(telegram.url)}


async def test_with_no_proxy_for_loopback_the_proxy_sees_nothing(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram, FakeModel() as model, FakeHttpProxy() as proxy:
        async with gateway(tmp_path, telegram, model, ALL_PROXY=proxy.url, NO_PROXY="localhost,127.0.0.1"):
            await is_answered(telegram)
        assert proxy.asked == []


async def test_telegrams_own_proxy_is_its_alone(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram, FakeModel() as model, FakeSocksProxy() as proxy:
        async with gateway(tmp_path, telegram, model, TELEGRAM_PROXY=proxy.url, **EVERYTHING):
            await is_answered(telegram)
        assert set(proxy.asked) == {place(telegram.url)}


async def test_a_proxy_that_refuses_our_password_is_told_in_status_without_it(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram, FakeModel() as model, FakeHttpProxy(login="ana:right-pass-17") as proxy:
        wrong = proxy.url.replace("right-pass-17", "wrong-pass-17")
        async with gateway(tmp_path, telegram, model, TELEGRAM_PROXY=wrong, **EVERYTHING) as process:
            told = process.status()["platforms"][0]
        assert told["state"] == "unreachable"
        assert "proxy" in told["note"]
        assert "wrong-pass-17" not in str(told)
        assert proxy.asked == []
