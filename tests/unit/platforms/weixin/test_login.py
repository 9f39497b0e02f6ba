"""Signing in: each answer that the server has for a code that is shown, and what it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from hermes.core.errors import CredentialsError, UnreachableError
from hermes.core.manifest import AdapterParts, SignedIn
from hermes.core.secret import Secret
from hermes.platforms.weixin.login import Pace, sign_in
from tests.fakes.weixin import ANA, BOT, TOKEN, FakeWeixin

QUICK = Pace(pause_seconds=0.0, poll_seconds=0.2, login_seconds=5.0)


class Screen:
    """A person who looks, and types these numbers when asked."""

    def __init__(self, *numbers: str) -> None:
        self.codes: list[str] = []
        self.said: list[str] = []
        self.questions: list[str] = []
        self._numbers = list(numbers)

    def show_code(self, payload: str) -> None:
        self.codes.append(payload)

    def say(self, text: str) -> None:
        self.said.append(text)

    def progress(self, text: str) -> None:
        self.said.append(text)

    async def ask(self, question: str) -> str:
        self.questions.append(question)
        return self._numbers.pop(0) if self._numbers else ""


async def signed_in(
    weixin: FakeWeixin, screen: Screen, *statuses: Mapping[str, Any], token: str = "", pace: Pace = QUICK
) -> SignedIn:
    weixin.statuses.extend(statuses)
    async with aiohttp.ClientSession() as http:
        values = {"qr_url": weixin.url, "token": Secret(token) if token else None}
        return await sign_in(AdapterParts("main", values, http, lambda: None, {}), screen, pace)


async def test_a_code_that_is_scanned_and_confirmed_gives_token_id_address_and_owner() -> None:
    async with FakeWeixin() as weixin:
        screen = Screen()
        signed = await signed_in(weixin, screen, {"status": "wait"}, {"status": "scaned"}, weixin.confirms())
        base_url = weixin.url
    assert signed == SignedIn({"token": TOKEN, "account_id": BOT, "base_url": base_url, "user_id": ANA}, owner=ANA)
    assert screen.codes == ["https://liteapp.weixin.qq.com/q/1?bot_type=3"]
    assert screen.said == ["Scanned. Confirm it on the phone."]
    assert weixin.known_tokens == [[]]


async def test_the_known_token_is_named_and_a_bot_that_is_bound_here_keeps_it() -> None:
    async with FakeWeixin() as weixin:
        signed = await signed_in(weixin, Screen(), {"status": "binded_redirect"}, token="old")
    assert signed == SignedIn({})
    assert weixin.known_tokens == [["old"]]


async def test_an_expired_code_is_renewed_and_after_the_third_it_ends() -> None:
    async with FakeWeixin() as weixin:
        screen = Screen()
        with pytest.raises(CredentialsError, match="3rd code"):
            await signed_in(weixin, screen, *[{"status": "expired"}] * 3)
    assert len(screen.codes) == 3


async def test_a_number_is_asked_for_and_asked_again_when_it_was_wrong() -> None:
    async with FakeWeixin() as weixin:
        screen = Screen("12", "34")
        need = {"status": "need_verifycode"}
        await signed_in(weixin, screen, need, need, {"status": "scaned"}, weixin.confirms())
    assert weixin.verify_codes == ["", "12", "34", ""]
    assert screen.questions[1].startswith("That number was wrong.")


async def test_too_many_wrong_numbers_lead_to_a_new_code() -> None:
    async with FakeWeixin() as weixin:
        screen = Screen("12")
        blocked = ({"status": "need_verifycode"}, {"status": "verify_code_blocked"})
        await signed_in(weixin, screen, *blocked, weixin.confirms())
    assert len(screen.codes) == 2
    assert weixin.verify_codes == ["", "12", ""]


async def test_where_nobody_can_be_asked_a_number_ends_it_in_words() -> None:
    async with FakeWeixin() as weixin:
        with pytest.raises(CredentialsError, match="in a terminal"):
            await signed_in(weixin, Screen(), {"status": "need_verifycode"})


async def test_a_redirect_is_followed_and_one_without_a_host_is_not() -> None:
    async with FakeWeixin() as weixin:
        there = {"status": "scaned_but_redirect", "redirect_host": f"localhost:{weixin.port}"}
        await signed_in(weixin, Screen(), {"status": "scaned_but_redirect"}, there, weixin.confirms())
    assert [host.partition(":")[0] for host in weixin.status_hosts] == ["127.0.0.1", "127.0.0.1", "localhost"]


@pytest.mark.parametrize("host", ["evil.example/x", "user@evil.example", "evil.example#", "evil.example\\x", "a b"])
async def test_a_redirect_to_something_that_is_no_host_is_not_followed(host: str) -> None:
    async with FakeWeixin() as weixin:
        await signed_in(weixin, Screen(), {"status": "scaned_but_redirect", "redirect_host": host}, weixin.confirms())
    assert [each.partition(":")[0] for each in weixin.status_hosts] == ["127.0.0.1"] * 2


async def test_a_gateway_error_and_a_word_of_a_later_day_count_as_waiting() -> None:
    async with FakeWeixin() as weixin:
        signed = await signed_in(weixin, Screen(), {"http": 502}, {"status": "dancing"}, weixin.confirms())
    assert signed.values["account_id"] == BOT


async def test_a_server_that_knows_only_the_older_request_is_asked_that_way() -> None:
    async with FakeWeixin() as weixin:
        weixin.takes_qr_post = False
        await signed_in(weixin, Screen(), weixin.confirms())
    assert weixin.counts["get_bot_qrcode"] == 2


async def test_a_confirmation_without_an_address_means_the_usual_one_and_without_an_id_a_failure() -> None:
    async with FakeWeixin() as weixin:
        signed = await signed_in(weixin, Screen(), weixin.confirms(baseurl=""))
        with pytest.raises(CredentialsError, match="no token"):
            await signed_in(weixin, Screen(), weixin.confirms(ilink_bot_id=""))
    assert signed.values["base_url"] == "https://ilinkai.weixin.qq.com"


async def test_it_ends_when_nobody_scans() -> None:
    async with FakeWeixin() as weixin:
        with pytest.raises(CredentialsError, match="in time"):
            await signed_in(weixin, Screen(), pace=Pace(pause_seconds=0.01, poll_seconds=0.2, login_seconds=0.1))


async def test_a_code_that_stood_there_for_long_is_renewed() -> None:
    pace = Pace(pause_seconds=0.0, poll_seconds=0.2, stale_seconds=0.0, login_seconds=5.0)
    async with FakeWeixin() as weixin:
        screen = Screen()
        await signed_in(weixin, screen, {"status": "wait"}, weixin.confirms(), pace=pace)
    assert len(screen.codes) == 2


async def test_without_a_network_it_says_so_at_once() -> None:
    weixin = FakeWeixin()
    async with weixin:
        pass
    with pytest.raises(UnreachableError):
        await signed_in(weixin, Screen())
