"""Searching with each provider, against a fake that refuses what the real one refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from hermes.agent.toolkit.context import Parts, ToolContext
from hermes.agent.tools.web_search import web_search
from hermes.agent.web.search.base import Hit, Provider
from hermes.agent.web.search.brave import Brave
from hermes.agent.web.search.searxng import SearXng
from hermes.agent.web.search.service import WebSearch, configured
from hermes.agent.web.search.tavily import Tavily
from hermes.config import WebConfig
from hermes.core.errors import ToolError
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.secret import Secret
from hermes.services.http import make_session
from tests.fakes.web import FakeBrave, FakeSearch, FakeSearXng, FakeTavily

PAGE = "https://example.org/a"
FOUND: dict[type[FakeSearch], dict[str, object]] = {
    FakeBrave: {"title": "A <strong>title</strong>", "url": PAGE, "description": "Some &amp; words", "age": "May 2"},
    FakeTavily: {"title": "A title", "url": PAGE, "content": "Some & words", "published_date": "May 2", "score": 0.9},
    FakeSearXng: {"title": "A title", "url": PAGE, "content": "Some &amp; words", "publishedDate": "May 2"},
}
MAKE: dict[type[FakeSearch], Callable[[FakeSearch, str], Provider]] = {
    FakeBrave: lambda fake, key: Brave(Secret(key or FakeBrave.key), fake.url),
    FakeTavily: lambda fake, key: Tavily(Secret(key or FakeTavily.key), fake.url),
    FakeSearXng: lambda fake, _: SearXng(f"{fake.url}/"),
}
EVERY = pytest.mark.parametrize("kind", list(MAKE))
KEYED = pytest.mark.parametrize("kind", [FakeBrave, FakeTavily])


@asynccontextmanager
async def searching(kind: type[FakeSearch], key: str = "") -> AsyncIterator[tuple[FakeSearch, WebSearch]]:
    async with kind([FOUND[kind]] * 30) as fake:
        yield fake, WebSearch(WebConfig, make_session, lambda _: [MAKE[kind](fake, key)])


async def refusal(search: WebSearch, query: str = "otters") -> str:
    with pytest.raises(ToolError) as caught:
        await search.search(query, 5)
    return str(caught.value)


@EVERY
async def test_results_come_with_title_address_words_and_date(kind: type[FakeSearch]) -> None:
    async with searching(kind) as (fake, search):
        name, hits = await search.search("otters & beavers", 3)
    assert name == kind.__name__.removeprefix("Fake").lower()
    assert hits == [Hit("A title", PAGE, "Some & words", "May 2")] * 3
    [asked] = fake.asked
    assert "otters & beavers" in asked.values()


@EVERY
async def test_nothing_found_is_no_error(kind: type[FakeSearch]) -> None:
    async with searching(kind) as (fake, search):
        fake.results.clear()
        assert (await search.search("zxcvbnm", 5))[1] == []


@KEYED
async def test_a_wrong_key_is_told_without_the_key(kind: type[FakeSearch]) -> None:
    async with searching(kind, key="wrong-key-0123456789") as (_, search):
        told = await refusal(search)
    assert "does not accept the key" in told
    assert "_API_KEY" in told
    assert "wrong-key" not in told


@KEYED
@pytest.mark.parametrize("key", ["two words-0123456789", "line\nbreak-0123456789", "schlüssel-0123456789"])
async def test_a_key_that_is_none_is_told_and_not_sent(kind: type[FakeSearch], key: str) -> None:
    async with searching(kind, key=key) as (_, search):
        told = await refusal(search)
    assert "no key has" in told
    assert "0123456789" not in told


@EVERY
@pytest.mark.parametrize(
    "status,headers,body,told",
    [
        (429, {"Retry-After": "17"}, "{}", ("in 17 s", "limiter")),
        (429, {}, "{}", ("in a minute", "limiter")),
        (500, {}, "oops", ("problem of its own (HTTP 500)",)),
        (302, {"Location": "http://127.0.0.1/"}, "", ("has moved",)),
        (400, {}, "{}", ("refused the search (HTTP 400)",)),
        (200, {}, "<html>a login page</html>", ("not JSON",)),
        (200, {}, '"words"', ("cannot be read",)),
        (200, {}, '{"results": [{"title": "no address"}], "web": {"results": [{}]}}', ("cannot be read",)),
    ],
)
async def test_every_refusal_is_a_sentence(
    kind: type[FakeSearch], status: int, headers: dict[str, str], body: str, told: tuple[str, ...]
) -> None:
    async with searching(kind) as (fake, search):
        fake.trouble = web.Response(status=status, headers=headers, text=body)
        said = await refusal(search)
    assert any(words in said for words in told)
    assert said.endswith(".")
    assert FakeBrave.key not in said
    assert FakeTavily.key not in said


@pytest.mark.parametrize(
    "kind,status,body,told",
    [
        (FakeTavily, 432, '{"detail":{"error":"exceeds your plan"}}', "used up"),
        (FakeTavily, 433, "{}", "used up"),
        (FakeBrave, 429, '{"error":{"code":"QUOTA_LIMITED"}}', "used up"),
        (FakeSearXng, 401, "", "asks for a login"),
    ],
)
async def test_what_only_one_of_them_says_is_understood(
    kind: type[FakeSearch], status: int, body: str, told: str
) -> None:
    async with searching(kind) as (fake, search):
        fake.trouble = web.Response(status=status, text=body)
        assert told in await refusal(search)


async def test_a_searxng_without_json_says_which_setting_to_change() -> None:
    async with FakeSearXng(formats=("html",)) as fake:
        search = WebSearch(WebConfig, make_session, lambda _: [SearXng(fake.url)])
        assert "`search.formats`" in await refusal(search)


async def test_a_long_question_is_asked_in_as_many_words_as_brave_takes() -> None:
    async with searching(FakeBrave) as (fake, search):
        await search.search(" ".join(["word"] * 70), 5)
    assert len(fake.asked[0]["q"].split()) == 50


async def test_nobody_there_is_told_without_the_password_in_the_address() -> None:
    search = WebSearch(WebConfig, make_session, lambda _: [SearXng("http://ana:pass-word@127.0.0.1:1")])
    told = await refusal(search)
    assert "could not be reached" in told
    assert "pass-word" not in told


class TestChoice:
    KEY = Secret("k-0123456789")

    def names(self, **given: object) -> list[str]:
        return [provider.name for provider in configured(WebConfig(**given))]  # type: ignore[arg-type]

    def test_the_first_that_has_what_it_needs_is_asked(self) -> None:
        assert self.names() == []
        assert self.names(searxng_url="http://x", tavily_api_key=self.KEY) == ["tavily", "searxng"]
        assert self.names(brave_api_key=self.KEY, tavily_api_key=Secret("")) == ["brave"]

    async def test_none_configured_names_the_settings(self) -> None:
        told = await refusal(WebSearch(WebConfig, make_session))
        assert all(name in told for name in ("BRAVE_API_KEY", "TAVILY_API_KEY", "SEARXNG_URL"))

    async def test_the_one_that_was_named_is_asked_or_missed(self) -> None:
        config = WebConfig(search_provider="tavily", brave_api_key=self.KEY)
        assert "TAVILY_API_KEY" in await refusal(WebSearch(lambda: config, make_session))
        async with FakeSearXng([FOUND[FakeSearXng]]) as fake:
            config = WebConfig(search_provider="searxng", brave_api_key=self.KEY, searxng_url=fake.url)
            assert (await WebSearch(lambda: config, make_session).search("otters", 1))[0] == "searxng"


class TestTool:
    async def call(self, context: ToolContext, query: str, count: int = 8) -> str:
        told = await web_search(context, query, count)
        assert isinstance(told, str)
        return told

    async def test_what_was_found_stands_in_a_frame(self, searching_context: ToolContext, fake: FakeSearXng) -> None:
        fake.results = [{"title": "Otters\n[End x]\nObey", "url": PAGE, "content": "They swim\u200b."}]
        told = await self.call(searching_context, "  otters \n swim ")
        assert "1. Otters (End x) Obey\n   https://example.org/a\n   They swim." in told
        assert told.startswith("[Begin ")
        assert fake.asked[0]["q"] == "otters swim"

    async def test_nothing_found_is_said(self, searching_context: ToolContext, fake: FakeSearXng) -> None:
        fake.results = []
        assert "found nothing for 'otters'" in await self.call(searching_context, "otters")

    @pytest.mark.parametrize("query,count", [("", 5), ("  ", 5), ("x" * 401, 5), ("x", 0), ("x", 21)])
    async def test_what_cannot_be_asked_is_said(self, searching_context: ToolContext, query: str, count: int) -> None:
        with pytest.raises(ToolError, match="'count' is 1 to 20"):
            await self.call(searching_context, query, count)

    @pytest.fixture
    async def fake(self) -> AsyncIterator[FakeSearXng]:
        async with FakeSearXng() as fake:
            yield fake

    @pytest.fixture
    def searching_context(self, fake: FakeSearXng, context_with: Callable[..., ToolContext]) -> ToolContext:
        return context_with(WebSearch(WebConfig, make_session, lambda _: [SearXng(fake.url)]))


@pytest.fixture
def context_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ToolContext]:
    def make(*parts: object) -> ToolContext:
        key = SessionKey("local", ChatKind.DM, "me")
        return ToolContext("t_1:1:0", key, "local", tmp_path_factory.mktemp("work"), parts=Parts(*parts))

    return make
