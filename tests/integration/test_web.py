"""The web tools in the whole gateway: their settings, their proxy, the roles, and the keys that nobody sees."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.core.roles import PersonRole
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.pdf import pdf
from tests.fakes.proxy import FakeHttpProxy
from tests.fakes.telegram import FakeTelegram
from tests.fakes.web import FakeBrave, FakeSearXng, FakeSite
from tests.integration.conftest import USER, Start
from tests.integration.watching import answered, make, results
from tests.unit.agent.tools.test_vision import PNG


@pytest.fixture
async def site() -> AsyncIterator[FakeSite]:
    async with FakeSite() as site:
        yield site


async def test_a_page_is_closed_until_the_owner_opens_its_host(
    start: Start, telegram: FakeTelegram, model: FakeModel, site: FakeSite
) -> None:
    site.serves("/", "<title>Diary</title><p>Dear diary.")
    url = f"http://127.0.0.1:{site.port}/"
    model.script([calls_tools(("web_extract", {"url": url})), "I cannot read that."])
    async with start():
        telegram.user_says("read it")
        await answered(telegram, "I cannot read that.")
    assert "127.0.0.1 is loopback" in results(model)[0]
    assert not site.seen


@pytest.mark.parametrize("role", [PersonRole.OWNER, PersonRole.ADMIN, PersonRole.USER])
async def test_a_host_that_was_opened_is_read_for_the_owner_and_for_nobody_else(
    start: Start, telegram: FakeTelegram, model: FakeModel, site: FakeSite, role: PersonRole
) -> None:
    site.serves("/book.pdf", pdf(["A very short book."]), "application/pdf")
    url = f"http://127.0.0.1:{site.port}/book.pdf"
    model.script([calls_tools(("web_extract", {"url": url})), "Done."])
    async with start(WEB_ALLOW_PRIVATE_HOSTS=f"127.0.0.1:{site.port}") as gateway:
        await make(gateway, USER, role)
        telegram.user_says("read it")
        await answered(telegram, "Done.")
    told = results(model)[0]
    assert ("A very short book." in told) == (role is PersonRole.OWNER)
    assert ("is loopback" in told) == (role is not PersonRole.OWNER)
    assert len(site.seen) == (role is PersonRole.OWNER)


async def test_a_search_goes_to_the_server_that_is_set(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.script([calls_tools(("web_search", {"query": "otters"})), "Found."])
    hit = {"title": "Otters", "url": "https://otters.example/", "content": "They swim."}
    async with FakeSearXng([hit]) as fake, start(SEARXNG_URL=fake.url):
        telegram.user_says("look it up")
        await answered(telegram, "Found.")
    assert "1. Otters\n   https://otters.example/\n   They swim." in results(model)[0]


async def test_without_a_provider_the_model_reads_which_settings_are_missing(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("web_search", {"query": "otters"})), "No search here."])
    async with start():
        telegram.user_says("look it up")
        await answered(telegram, "No search here.")
    assert "BRAVE_API_KEY" in results(model)[0]


async def test_pages_are_fetched_through_the_proxy(
    start: Start, telegram: FakeTelegram, model: FakeModel, site: FakeSite, tmp_path: Path
) -> None:
    site.serves("/", "<p>From far away.")
    (tmp_path / "home" / "config.yaml").write_text(f"web: {{ports: [{site.port}]}}\n")
    model.script([calls_tools(("web_extract", {"url": f"http://8.8.8.8:{site.port}/"})), "Read."])
    async with FakeHttpProxy(hosts={"8.8.8.8": "127.0.0.1"}) as proxy:
        async with start(HTTP_PROXY=proxy.url):
            telegram.user_says("read it")
            await answered(telegram, "Read.")
        assert proxy.asked == [f"8.8.8.8:{site.port}"]
    assert "From far away." in results(model)[0]


async def test_a_picture_is_looked_at_by_the_model_of_the_chat(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.script([calls_tools(("vision", {"image": "dot.png", "question": "What is it?"})), "A dot.", "It is a dot."])
    async with start():
        (tmp_path / "work" / "dot.png").write_bytes(PNG)
        telegram.user_says("what is in dot.png?")
        await answered(telegram, "It is a dot.")
    asked = model.requests[1]["messages"][-1]["content"]
    assert asked[0] == {"type": "text", "text": "What is it?"}
    assert asked[1]["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert "A dot." in results(model)[0]


async def test_a_picture_is_looked_at_by_the_model_that_vision_names(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    (tmp_path / "home" / "config.yaml").write_text("vision: {model: openai/eyes-1}\n")
    model.script([calls_tools(("vision", {"image": "dot.png"})), "A dot.", "It is a dot."])
    async with start():
        (tmp_path / "work" / "dot.png").write_bytes(PNG)
        telegram.user_says("what is in dot.png?")
        await answered(telegram, "It is a dot.")
    assert [request["model"] for request in model.requests] == ["gpt-4o-mini", "eyes-1", "gpt-4o-mini"]


async def test_a_page_that_repeats_a_key_of_ours_shows_it_to_nobody(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    canary = FakeBrave.key
    hit = {"title": "Leak", "url": "https://leak.example/", "content": f"the key is {canary}"}
    model.script([calls_tools(("web_search", {"query": "keys"})), "Odd."])
    async with (
        FakeSearXng([hit]) as fake,
        start(SEARXNG_URL=fake.url, BRAVE_API_KEY=canary, WEB_SEARCH_PROVIDER="searxng"),
    ):
        telegram.user_says("look it up")
        await answered(telegram, "Odd.")
    assert "the key is [hidden]" in results(model)[0]
