"""An edit of ~/.hermes/.env or config.yaml counts within a second, without a restart; a bad one breaks nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.services.gateway import Gateway
from tests.fakes.model import FakeModel
from tests.fakes.proxy import FakeHttpProxy
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start

SOON = 10.0  # a second is promised; a machine that stands still gets ten


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(exist_ok=True)
    return folder


def write(home: Path, name: str, *lines: str) -> None:
    (home / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


async def until(ask: Callable[[], bool], seconds: float = SOON) -> None:
    deadline = time.monotonic() + seconds
    while not ask():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        await asyncio.sleep(0.01)


def state_of_telegram(gateway: Gateway) -> str:
    states = [link["state"] for link in gateway.supervisor.status() if link["account"] == "telegram"]
    return str(states[0]) if states else "absent"


async def test_a_person_is_let_in_and_shut_out_by_an_edit(start: Start, telegram: FakeTelegram, home: Path) -> None:
    write(home, ".env", "TELEGRAM_ALLOWED_USERS=7")
    telegram.private_chat(9)
    async with start(TELEGRAM_ALLOWED_USERS="", TELEGRAM_DM_POLICY="allowlist") as gateway:
        telegram.user_says("hello", chat=9, user=9)
        await telegram.wait_for(lambda: len(telegram.texts(9)) >= 1)
        assert "I don't recognize you yet" in telegram.texts(9)[0]
        assert "add your id 9 to TELEGRAM_ALLOWED_USERS" in telegram.texts(9)[0]

        write(home, ".env", "TELEGRAM_ALLOWED_USERS=7,9")
        await until(lambda: gateway.config.platforms["telegram"]["main"].access.lists("9"))
        telegram.user_says("and now?", chat=9, user=9)
        await telegram.wait_for(lambda: telegram.texts(9)[1:] == ["echo: and now?"])

        write(home, ".env", "TELEGRAM_ALLOWED_USERS=7")
        await until(lambda: not gateway.config.platforms["telegram"]["main"].access.lists("9"))
        telegram.user_says("still?", chat=9, user=9)
        telegram.user_says("hello")
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"])
        assert len(telegram.texts(9)) == 2, "not answered, and not told again within the hour"
    assert telegram.counts["getMe"] == 1, "the connection was never made anew"


async def test_a_token_written_into_env_starts_telegram_and_taking_it_out_stops_it(
    start: Start, telegram: FakeTelegram, home: Path
) -> None:
    async with start(TELEGRAM_BOT_TOKEN="", TELEGRAM_ALLOWED_USERS="") as gateway:
        assert state_of_telegram(gateway) != "connected"
        write(home, ".env", f"TELEGRAM_BOT_TOKEN={telegram.token}", "TELEGRAM_ALLOWED_USERS=7")
        await until(lambda: state_of_telegram(gateway) == "connected")
        telegram.user_says("hello")
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"])

        write(home, ".env", "TELEGRAM_ALLOWED_USERS=7")
        await until(lambda: state_of_telegram(gateway) != "connected")


async def test_a_wrong_token_is_signed_out_with_a_cure_and_the_right_one_connects(
    start: Start, telegram: FakeTelegram, home: Path
) -> None:
    write(home, ".env", "TELEGRAM_BOT_TOKEN=42:WRONG-token-0123456789")
    async with start(TELEGRAM_BOT_TOKEN="") as gateway:
        await until(lambda: state_of_telegram(gateway) == "signed out")
        told = next(link for link in gateway.supervisor.status() if link["account"] == "telegram")
        assert "Unauthorized" in told["note"]
        assert "TELEGRAM_BOT_TOKEN" in told["cure"]
        assert "WRONG-token" not in str(told)

        write(home, ".env", f"TELEGRAM_BOT_TOKEN={telegram.token}")
        await until(lambda: state_of_telegram(gateway) == "connected")
        telegram.user_says("hello")
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"])


async def test_a_key_changed_in_env_is_used_by_the_next_call(start: Start, telegram: FakeTelegram, home: Path) -> None:
    write(home, ".env", "OPENAI_API_KEY=sk-old-0123456789")
    async with FakeModel(key="sk-new-0123456789") as strict:
        async with start(OPENAI_API_KEY="", OPENAI_BASE_URL=strict.url) as gateway:
            telegram.user_says("one")
            await telegram.wait_for(lambda: len(telegram.texts(7)) >= 1)
            assert "does not accept the key" in telegram.texts(7)[0]
            assert "sk-old" not in telegram.texts(7)[0]

            write(home, ".env", "OPENAI_API_KEY=sk-new-0123456789")
            await until(lambda: _has_key(gateway, "sk-new-0123456789"))
            telegram.user_says("two")
            await telegram.wait_for(lambda: telegram.texts(7)[1:] == ["echo: two"])
        assert strict.keys[-1] == "sk-new-0123456789"


def _has_key(gateway: Gateway, text: str) -> bool:
    key = gateway.config.providers["openai"].api_key
    return key is not None and key.reveal() == text


@pytest.mark.parametrize("form", ["api_key: sk-relay-0123456789", "api_key_env: RELAY_SECRET"])
async def test_a_provider_takes_its_key_from_api_key_and_from_api_key_env(
    start: Start, telegram: FakeTelegram, home: Path, form: str
) -> None:
    write(home, ".env", "RELAY_SECRET=sk-relay-0123456789")
    async with FakeModel(key="sk-relay-0123456789") as relay:
        lines = ["providers:", "  relay:", f"    base_url: {relay.url}", f"    {form}", "    default_model: m-1"]
        write(home, "config.yaml", "model:", "  provider: relay", *lines)
        async with start(OPENAI_API_KEY="", OPENAI_BASE_URL=""):
            telegram.user_says("hello")
            await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"])
        assert relay.requests[-1]["model"] == "m-1"


async def test_a_bad_edit_keeps_the_last_good_value_says_so_and_the_rest_goes_on(
    start: Start, telegram: FakeTelegram, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(home, "config.yaml", "agent:", "  max_iterations: 7")
    async with start() as gateway:
        assert gateway.config.agent.max_iterations == 7
        write(home, "config.yaml", "agent:", "  max_iterations: many", "language: zh")
        await until(lambda: gateway.config.language == "zh")
        assert gateway.config.agent.max_iterations == 7
        assert "agent.max_iterations: should be a whole number, not 'many'. The last good value stays." in caplog.text

        write(home, "config.yaml", "agent: [", "language: en")
        await until(lambda: "is not valid YAML" in caplog.text)
        assert (gateway.config.agent.max_iterations, gateway.config.language) == (7, "zh")
        assert "What it said before stays in force." in caplog.text
        telegram.user_says("hello")
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"])

        write(home, "config.yaml", "agent:", "  max_iterations: 9")
        await until(lambda: gateway.config.agent.max_iterations == 9)
        assert gateway.watch.loaded.problems == ()


async def test_a_proxy_written_into_env_is_the_way_of_the_next_call(
    start: Start, telegram: FakeTelegram, model: FakeModel, home: Path
) -> None:
    async with FakeHttpProxy() as proxy, start():
        telegram.user_says("one")
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: one"])
        assert proxy.asked == []

        write(home, ".env", f"ALL_PROXY={proxy.url}", "NO_PROXY=example.org")
        await until(lambda: telegram.url.removeprefix("http://") in proxy.asked)
        telegram.user_says("two")
        await telegram.wait_for(lambda: telegram.texts(7)[1:] == ["echo: two"])
        assert {telegram.url.removeprefix("http://"), model.url.removeprefix("http://").partition("/")[0]} <= set(
            proxy.asked
        )


async def test_the_log_level_follows_its_setting(home: Path, tmp_path: Path) -> None:
    levels: list[str] = []
    async with open_gateway(GatewayOptions(home, {}, tmp_path, set_log_level=levels.append)):
        assert levels == ["INFO"]
        write(home, "config.yaml", "logs:", "  level: debug")
        await until(lambda: levels[-1] == "DEBUG")
