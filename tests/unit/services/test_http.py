"""Which way a call goes out, shown by real proxies on loopback."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from hermes.config import ProxyConfig
from hermes.services.http import ProxyRules, is_direct, make_session
from tests.fakes.proxy import FakeHttpProxy, FakeProxy, FakeSocksProxy

NAME = "platform.example"  # resolvable by nobody but the proxy
PROXIES = pytest.mark.parametrize("kind", [FakeHttpProxy, FakeSocksProxy])


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/moved":
            raise web.HTTPFound(f"http://127.0.0.1:{request.url.port}/direct")
        response = web.json_response({"path": request.path, "sent": await request.text()})
        response.set_cookie("seen", "1")
        return response

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str("hello")
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/socket", echo)
    app.router.add_route("*", "/{any:.*}", answer)
    running = TestServer(app)
    async with running:
        yield running


def proxying(kind: type[FakeProxy], **options: Any) -> FakeProxy:
    return kind(hosts={NAME: "127.0.0.1"}, **options)


@PROXIES
async def test_a_call_goes_through_the_platforms_own_proxy(kind: type[FakeProxy], server: TestServer) -> None:
    async with proxying(kind) as proxy, make_session(ProxyRules(own=proxy.url)) as http:
        async with http.post(f"http://{NAME}:{server.port}/send?a=1", json={"text": "hi"}) as response:
            assert await response.json() == {"path": "/send", "sent": '{"text":"hi"}'}
        assert proxy.asked == [f"{NAME}:{server.port}"]


@PROXIES
async def test_a_proxy_with_a_password_lets_us_in(kind: type[FakeProxy], server: TestServer) -> None:
    async with proxying(kind, login="ana:secret") as proxy, make_session(ProxyRules(all=proxy.url)) as http:
        async with http.get(f"http://{NAME}:{server.port}/") as response:
            assert response.status == 200
        assert proxy.asked


@PROXIES
async def test_connections_through_a_proxy_are_kept_and_used_again(kind: type[FakeProxy], server: TestServer) -> None:
    async with proxying(kind) as proxy, make_session(ProxyRules(own=proxy.url)) as http:
        for _ in range(3):
            async with http.get(f"http://{NAME}:{server.port}/") as response:
                await response.read()
        assert len(proxy.asked) == 1


@PROXIES
async def test_a_websocket_takes_the_same_way(kind: type[FakeProxy], server: TestServer) -> None:
    async with proxying(kind) as proxy, make_session(ProxyRules(own=proxy.url)) as http:
        async with http.ws_connect(f"ws://{NAME}:{server.port}/socket") as socket:
            assert await socket.receive_str() == "hello"
        assert proxy.asked


@PROXIES
async def test_a_redirect_to_a_host_of_no_proxy_goes_there_directly(kind: type[FakeProxy], server: TestServer) -> None:
    async with proxying(kind) as proxy, make_session(ProxyRules(own=proxy.url)) as http:
        async with http.get(f"http://{NAME}:{server.port}/moved") as response:
            assert (await response.json())["path"] == "/direct"
        assert proxy.asked == [f"{NAME}:{server.port}"]


async def test_a_secure_call_asks_an_http_proxy_to_connect(server: TestServer) -> None:
    async with proxying(FakeHttpProxy) as proxy, make_session(ProxyRules(https=proxy.url)) as http:
        with pytest.raises(aiohttp.ClientConnectorError):  # the server behind it speaks no TLS
            await http.get(f"https://{NAME}:{server.port}/")
        assert proxy.asked == [f"{NAME}:{server.port}"]


async def test_the_name_is_resolved_by_the_socks_proxy_in_both_spellings(server: TestServer) -> None:
    async with proxying(FakeSocksProxy) as proxy:
        for url in (proxy.url, proxy.url.replace("socks5://", "socks5h://")):
            async with make_session(ProxyRules(own=url)) as http, http.get(f"http://{NAME}:{server.port}/") as response:
                assert response.status == 200
        assert len(proxy.asked) == 2


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_proxy_that_is_away_raises_what_says_that_nothing_was_sent(scheme: str) -> None:
    async with make_session(ProxyRules(own=f"{scheme}://me:secret@127.0.0.1:1")) as http:
        with pytest.raises(aiohttp.ClientProxyConnectionError) as caught:
            await http.get(f"http://{NAME}:9/")
        assert "secret" not in str(caught.value)


async def test_without_a_proxy_nothing_of_socks_is_imported_and_no_cookie_is_kept(server: TestServer) -> None:
    before = "aiohttp_socks" in sys.modules
    async with make_session() as http:
        async with http.get(server.make_url("/")) as response:
            assert response.status == 200
        assert len(http.cookie_jar) == 0
        assert not http.trust_env
    assert ("aiohttp_socks" in sys.modules) == before


class TestRules:
    RULES = ProxyRules.of(
        ProxyConfig(https="http://s", http="http://p", all="socks5://a", no_proxy="example.org,10.0.0.0/8")
    )

    @pytest.mark.parametrize(
        "url,proxy",
        [
            ("https://api.telegram.org/x", "http://s"),
            ("wss://api.telegram.org/x", "http://s"),
            ("http://api.telegram.org/x", "http://p"),
            ("https://example.org", None),
            ("https://deep.example.org:8443", None),
            ("https://notexample.org", "http://s"),
            ("https://10.1.2.3/", None),
            ("https://11.1.2.3/", "http://s"),
            ("http://localhost:1/", "http://p"),  # NO_PROXY was set and does not name it
        ],
    )
    def test_an_address_takes_the_proxy_of_its_scheme(self, url: str, proxy: str | None) -> None:
        assert self.RULES.proxy_for(url) == proxy

    def test_the_platforms_own_goes_first_and_all_is_the_last_resort(self) -> None:
        proxies = ProxyConfig(https="http://s", all="socks5://a")
        assert ProxyRules.of(proxies, own="socks5://own").proxy_for("https://x") == "socks5://own"
        assert ProxyRules.of(proxies).proxy_for("http://x") == "socks5://a"
        assert ProxyRules().proxy_for("https://x") is None

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "LOCALHOST", "ollama.localhost"])
    def test_loopback_is_direct_unless_said_otherwise(self, host: str) -> None:
        assert is_direct(host, 80, "")
        assert not is_direct(host, 80, "example.org")

    @pytest.mark.parametrize(
        "host,port,no_proxy,direct",
        [
            ("a.example.org", 443, ".example.org", True),
            ("a.example.org", 443, "*.example.org", True),
            ("example.org", 443, "example.org:443", True),
            ("example.org", 80, "example.org:443", False),
            ("anything", 80, "*", True),
            ("10.0.0.1", 80, " 10.0.0.1 , x", True),
            ("fd00::1", 80, "fd00::/8", True),
            ("[fd00::1]", 80, "[fd00::1]", True),
            ("example.org", 80, ",,", False),
        ],
    )
    def test_no_proxy_is_read_as_others_read_it(self, host: str, port: int, no_proxy: str, direct: bool) -> None:
        assert is_direct(host, port, no_proxy) is direct
