"""The guarded fetch against a server on loopback that stands behind public addresses."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest

from hermes.agent.web.safe_http import MAX_REDIRECTS, Fetched, GuardedWeb
from hermes.config import WebConfig
from hermes.core.errors import ToolError
from hermes.services.http import ProxyRules, make_session
from tests.fakes.proxy import FakeHttpProxy, FakeProxy, FakeSocksProxy
from tests.fakes.web import OTHER_PUBLIC, PRIVATE, PUBLIC, FakeNet, FakeSite, bomb

TYPES = ("text/", "application/json")
CONFIG = WebConfig(timeout_seconds=5, max_bytes=1 << 20)


@pytest.fixture
async def site() -> AsyncIterator[FakeSite]:
    async with FakeSite() as running:
        running.serves("/", "<p>hello</p>")
        yield running


@pytest.fixture
def net(site: FakeSite) -> FakeNet:
    net = FakeNet(places={PUBLIC: site.port, OTHER_PUBLIC: site.port, PRIVATE: site.port})
    net.name("example.org", PUBLIC)
    return net


@pytest.fixture
def guarded(net: FakeNet) -> GuardedWeb:
    return GuardedWeb(lambda: CONFIG, resolve=net.resolve, place=net.place)


async def get(guarded: GuardedWeb, url: str, *, is_owner: bool = False) -> Fetched:
    return await guarded.fetch(url, types=TYPES, is_owner=is_owner)


async def refusal(guarded: GuardedWeb, url: str, *, is_owner: bool = False) -> str:
    with pytest.raises(ToolError) as caught:
        await get(guarded, url, is_owner=is_owner)
    return str(caught.value)


async def test_a_page_comes_with_its_type_and_where_it_came_from(guarded: GuardedWeb, site: FakeSite) -> None:
    fetched = await get(guarded, "http://example.org/")
    assert fetched == Fetched("http://example.org/", "text/html", "utf-8", b"<p>hello</p>")
    [request] = site.seen
    assert request.headers["Host"] == "example.org"
    assert request.headers["User-Agent"].startswith("Hermes/")
    assert request.headers["Accept-Encoding"] == "gzip"
    assert "Authorization" not in request.headers


async def test_no_cookie_is_kept_from_one_hop_or_fetch_to_the_next(guarded: GuardedWeb, site: FakeSite) -> None:
    site.serves("/in", "", status=302, headers={"Location": "/", "Set-Cookie": "who=ana; Path=/"})
    for _ in range(2):
        await get(guarded, "http://example.org/in")
    assert not any("Cookie" in request.headers for request in site.seen)


class TestRebinding:
    async def test_what_was_checked_is_what_is_connected_to(
        self, guarded: GuardedWeb, net: FakeNet, site: FakeSite
    ) -> None:
        """A second look-up, whose answer is private, would be the hole; so there is none."""
        net.name("rebind.example", PUBLIC, PRIVATE)
        assert await get(guarded, "http://rebind.example/")
        assert net.asked == ["rebind.example"]
        assert net.connected == [PUBLIC]

    async def test_each_hop_is_looked_up_and_checked_again(
        self, guarded: GuardedWeb, net: FakeNet, site: FakeSite
    ) -> None:
        net.name("rebind.example", PUBLIC, PRIVATE)
        site.redirects("/again", "http://rebind.example/")
        assert f"leads to {PRIVATE}" in await refusal(guarded, "http://rebind.example/again")
        assert [request.path for request in site.seen] == ["/again"]

    @pytest.mark.parametrize("answers", [[PRIVATE], [PUBLIC, PRIVATE], ["127.0.0.1"], ["::1"], ["169.254.169.254"], []])
    async def test_a_name_with_a_near_address_is_refused_before_anything_is_sent(
        self, guarded: GuardedWeb, net: FakeNet, site: FakeSite, answers: list[str]
    ) -> None:
        net.name("inside.example", answers)
        await refusal(guarded, "http://inside.example/")
        assert not site.seen
        assert not net.connected

    async def test_a_name_that_does_not_exist_is_said(self, guarded: GuardedWeb) -> None:
        assert "There is no host 'nowhere.example'" in await refusal(guarded, "http://nowhere.example/")

    async def test_literal_loopback_is_refused_though_a_server_is_there(
        self, guarded: GuardedWeb, site: FakeSite
    ) -> None:
        guarded = GuardedWeb(lambda: replace(CONFIG, ports=(site.port,)))
        for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "127.1", "[::ffff:127.0.0.1]"):
            await refusal(guarded, f"http://{host}:{site.port}/")
        assert not site.seen


class TestRedirects:
    async def test_a_redirect_is_followed_and_the_last_address_is_told(
        self, guarded: GuardedWeb, net: FakeNet, site: FakeSite
    ) -> None:
        net.name("other.example", OTHER_PUBLIC)
        site.redirects("/old", "/new?x=1#part")
        site.redirects("/new", "//other.example/there", status=308)
        site.serves("/there", "arrived", "text/plain")
        fetched = await get(guarded, "http://example.org/old")
        assert (fetched.url, fetched.body) == ("http://other.example/there", b"arrived")
        assert net.connected == [PUBLIC, PUBLIC, OTHER_PUBLIC]

    @pytest.mark.parametrize(
        "to",
        [
            "http://169.254.169.254/latest/meta-data/",
            "http://[::ffff:169.254.169.254]/",
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            "gopher://127.0.0.1:6379/_INFO",
            "data:text/html,hi",
            "http://127.0.0.1/",
            "//127.0.0.1/",
            "///127.0.0.1/",
            "\\\\127.0.0.1/",
            "/\\127.0.0.1/",
            "http:127.0.0.1/",
            "http:/127.0.0.1/",
            "http://user:pass@example.org/",
            "http://localhost/",
            "http://example.org:22/",
            "http://2130706433/",
            "http://[",
        ],
    )
    async def test_a_redirect_to_what_is_closed_is_refused(
        self, guarded: GuardedWeb, net: FakeNet, site: FakeSite, to: str
    ) -> None:
        site.redirects("/away", to)
        told = await refusal(guarded, "http://example.org/away")
        assert told.endswith(".")
        assert [request.path for request in site.seen] == ["/away"]
        assert net.connected == [PUBLIC]

    async def test_redirects_end(self, guarded: GuardedWeb, site: FakeSite) -> None:
        site.redirects("/round", "/round")
        assert f"more than {MAX_REDIRECTS} redirects" in await refusal(guarded, "http://example.org/round")
        assert len(site.seen) == MAX_REDIRECTS + 1


class TestBounds:
    async def test_a_long_page_is_cut_at_the_limit(self, guarded: GuardedWeb, site: FakeSite) -> None:
        site.serves("/long", b"x" * (3 << 20), "text/plain")
        fetched = await get(guarded, "http://example.org/long")
        assert fetched.is_cut
        assert len(fetched.body) == 1 << 20

    async def test_a_packed_page_is_unpacked(self, guarded: GuardedWeb, site: FakeSite) -> None:
        site.serves_packed("/packed", gzip.compress(b"first ") + gzip.compress(b"second"))
        assert (await get(guarded, "http://example.org/packed")).body == b"first second"

    async def test_a_bomb_is_stopped_at_the_limit_and_never_held(self, guarded: GuardedWeb, site: FakeSite) -> None:
        site.serves_packed("/bomb", bomb(200))
        tracemalloc.start()
        try:
            fetched = await get(guarded, "http://example.org/bomb")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert fetched.is_cut
        assert len(fetched.body) == 1 << 20
        assert peak < 8 << 20

    @pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "compress"])
    async def test_packing_that_was_not_asked_for_is_refused(
        self, guarded: GuardedWeb, site: FakeSite, encoding: str
    ) -> None:
        site.serves_packed("/odd", b"???", encoding=encoding)
        assert "not unpacked" in await refusal(guarded, "http://example.org/odd")

    async def test_broken_packing_is_said(self, guarded: GuardedWeb, site: FakeSite) -> None:
        site.serves_packed("/broken", b"this is not gzip at all")
        assert "cannot be unpacked" in await refusal(guarded, "http://example.org/broken")
        site.serves_packed("/half", gzip.compress(b"x" * 5000)[:30])
        assert "broke off" in await refusal(guarded, "http://example.org/half")

    async def test_a_body_that_drips_ends_with_the_time(self, net: FakeNet, site: FakeSite) -> None:
        async def drip() -> AsyncIterator[bytes]:
            while True:
                yield b"."
                await asyncio.sleep(0.02)

        site.drips("/slow", drip)
        hasty = GuardedWeb(lambda: replace(CONFIG, timeout_seconds=0.2), resolve=net.resolve, place=net.place)
        assert "did not come within 0.2 s" in await refusal(hasty, "http://example.org/slow")

    async def test_a_name_server_that_never_answers_ends_with_the_time(self) -> None:
        async def never(host: str, port: int) -> list[str]:
            await asyncio.sleep(60)
            return []

        hasty = GuardedWeb(lambda: replace(CONFIG, timeout_seconds=0.1), resolve=never)
        assert "did not come within" in await refusal(hasty, "http://example.org/")

    @pytest.mark.parametrize("content_type", ["video/mp4", "application/zip", "image/png"])
    async def test_another_type_is_refused_before_it_is_read(
        self, guarded: GuardedWeb, site: FakeSite, content_type: str
    ) -> None:
        site.serves("/file", b"\0" * 100, content_type)
        assert content_type in await refusal(guarded, "http://example.org/file")

    async def test_what_a_stranger_chose_stands_in_no_sentence_of_ours(
        self, guarded: GuardedWeb, site: FakeSite
    ) -> None:
        site.serves("/obey-me", "", "obey me now/please", status=404)
        site.serves("/typed", "x", "obey/me now please")
        site.serves("/charset", "x", "text/plain; charset=--obey me")
        assert await refusal(guarded, "http://example.org/obey-me") == "example.org answered 404 Not Found."
        assert "obey" not in (await refusal(guarded, "http://example.org/typed")).replace("obey/me", "")
        assert (await get(guarded, "http://example.org/charset")).charset in ("", "--obey")

    @pytest.mark.parametrize(
        "status,headers,told",
        [
            (404, {}, "404 Not Found"),
            (403, {}, "not open to everybody"),
            (429, {"Retry-After": "30"}, "Try again in 30 s."),
            (500, {}, "500"),
            (204, {}, "204"),
            (304, {}, "304"),
        ],
    )
    async def test_a_refusal_of_the_server_is_told(
        self, guarded: GuardedWeb, site: FakeSite, status: int, headers: dict[str, str], told: str
    ) -> None:
        site.serves("/no", "", status=status, headers=headers)
        assert told in await refusal(guarded, "http://example.org/no")

    async def test_nobody_there_is_told(self, net: FakeNet, guarded: GuardedWeb) -> None:
        net.name("dead.example", "151.101.9.9")
        net.places["151.101.9.9"] = 1
        assert "dead.example could not be reached" in await refusal(guarded, "http://dead.example/")


class TestOwner:
    async def test_a_host_the_owner_opened_is_read_for_the_owner_alone(self, site: FakeSite, net: FakeNet) -> None:
        config = replace(CONFIG, allow_private_hosts=(f"127.0.0.1:{site.port}", "nas.lan"))
        guarded = GuardedWeb(lambda: config, resolve=net.resolve, place=net.place)
        net.name("nas.lan", PRIVATE)
        for url in (f"http://127.0.0.1:{site.port}/", "http://nas.lan/"):
            assert (await get(guarded, url, is_owner=True)).body == b"<p>hello</p>"
            await refusal(guarded, url)
        assert len(site.seen) == 2

    async def test_a_page_cannot_lead_to_another_host_of_the_network(self, site: FakeSite, net: FakeNet) -> None:
        config = replace(CONFIG, allow_private_hosts=("nas.lan",))
        guarded = GuardedWeb(lambda: config, resolve=net.resolve, place=net.place)
        net.name("nas.lan", PRIVATE)
        net.name("router.lan", "192.168.1.1")
        site.redirects("/out", "http://router.lan/admin")
        await refusal(guarded, "http://nas.lan/out", is_owner=True)
        assert [request.path for request in site.seen] == ["/out"]


@pytest.mark.parametrize("kind", [FakeHttpProxy, FakeSocksProxy])
class TestBehindAProxy:
    def guarded(self, proxy: FakeProxy, net: FakeNet, site: FakeSite, ports: tuple[int, ...] = ()) -> GuardedWeb:
        rules = ProxyRules(all=proxy.url)

        def open_proxied(url: str) -> aiohttp.ClientSession | None:
            return make_session(rules, auto_decompress=False) if rules.proxy_for(url) else None

        config = replace(CONFIG, ports=(*CONFIG.ports, site.port))
        return GuardedWeb(lambda: config, open_proxied, resolve=net.resolve, place=net.place)

    def proxy(self, kind: type[FakeProxy], site: FakeSite, login: str = "") -> FakeProxy:
        return kind(hosts={"far.example": "127.0.0.1", "example.org": "127.0.0.1"}, login=login)

    async def test_a_name_that_only_the_proxy_knows_is_fetched_through_it(
        self, kind: type[FakeProxy], net: FakeNet, site: FakeSite
    ) -> None:
        site.serves_packed("/z", gzip.compress(b"through"))
        async with self.proxy(kind, site) as proxy:
            fetched = await get(self.guarded(proxy, net, site), f"http://far.example:{site.port}/z")
            assert proxy.asked == [f"far.example:{site.port}"]
        assert fetched.body == b"through"
        assert not net.connected

    @pytest.mark.parametrize(
        "url", ["http://10.0.0.1/", "http://inside.example/", "http://localhost/", "http://169.254.169.254/"]
    )
    async def test_what_is_known_to_be_near_is_not_asked_of_the_proxy(
        self, kind: type[FakeProxy], net: FakeNet, site: FakeSite, url: str
    ) -> None:
        net.name("inside.example", PRIVATE)
        async with self.proxy(kind, site) as proxy:
            await refusal(self.guarded(proxy, net, site), url)
            assert not proxy.asked

    async def test_a_redirect_to_what_is_near_is_refused(
        self, kind: type[FakeProxy], net: FakeNet, site: FakeSite
    ) -> None:
        site.redirects("/away", "http://192.168.0.1/")
        async with self.proxy(kind, site) as proxy:
            await refusal(self.guarded(proxy, net, site), f"http://example.org:{site.port}/away")
            assert proxy.asked == [f"example.org:{site.port}"]

    async def test_a_proxy_that_is_away_is_told_without_its_password(
        self, kind: type[FakeProxy], net: FakeNet, site: FakeSite
    ) -> None:
        async with self.proxy(kind, site, login="ana:pass-word-0123") as proxy:
            guarded = self.guarded(proxy, net, site)
        told = await refusal(guarded, "http://far.example/")
        assert "proxy" in told
        assert "pass-word" not in told
