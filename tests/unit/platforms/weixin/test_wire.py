"""The envelope, what refusals mean, and text as the phone shows it."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core.errors import CredentialsError, PlatformError, RejectedError, UnreachableError
from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage
from hermes.platforms.weixin import wire


@pytest.mark.parametrize(
    "version, number", [("2.4.9", "132105"), ("2.2.0", "131584"), ("1.0.11", "65547")], ids=["2.4.9", "2.2.0", "1.0.11"]
)
def test_a_version_is_one_number(version: str, number: str) -> None:
    assert wire.client_version(version) == number


@pytest.mark.parametrize("uin, coded", [(16909060, "MTY5MDkwNjA="), (4294967295, "NDI5NDk2NzI5NQ==")])
def test_the_uin_is_the_base64_of_its_decimal_text(uin: int, coded: str) -> None:
    assert wire.headers("t", uin)["X-WECHAT-UIN"] == coded


def test_before_the_login_no_token_is_sent() -> None:
    assert "Authorization" not in wire.headers("", 1)
    assert wire.headers("a:b", 1)["Authorization"] == "Bearer a:b"


@pytest.mark.parametrize(
    "answer, code",
    [
        *(({}, 0), ({"ret": 0}, 0), ({"ret": -2}, -2), ({"ret": 0, "errcode": -14}, -14), ({"ret": None}, 0)),
        *(({"ret": "-14"}, -14), ({"ret": "0"}, 0), ({"ret": "ok"}, 0), ({"ret": True}, 0), ({"errcode": 7}, 7)),
    ],
)
def test_absent_fields_mean_success(answer: dict[str, Any], code: int) -> None:
    assert wire.code_of(answer) == code


@pytest.mark.parametrize(
    "code, kind",
    [
        (-14, CredentialsError),
        (-2, wire.QuotaError),
        (-1, UnreachableError),
        (-3, RejectedError),
        (1001, RejectedError),
    ],
)
def test_each_refusal_says_who_acts(code: int, kind: type[PlatformError]) -> None:
    refusal = wire.refusal("sendmessage", {"ret": code, "errmsg": "why"})
    assert isinstance(refusal, kind)
    assert "why" in str(refusal)


def test_a_dead_token_names_the_command_that_mends_it() -> None:
    assert "hermes weixin login" in str(wire.refusal("getupdates", {"ret": -14}))


@pytest.mark.parametrize("said, is_stale", [("unknown error", True), ("prepare failed", False), ("", False)])
def test_of_minus_two_only_one_reason_means_a_stale_context(said: str, is_stale: bool) -> None:
    refusal = wire.refusal("sendmessage", {"ret": -2, "errmsg": said})
    assert isinstance(refusal, wire.QuotaError)
    assert refusal.may_be_stale_context == is_stale


@pytest.mark.parametrize(
    "text, shown",
    [
        ("**bold** and `code` stay", "**bold** and `code` stay"),
        ("# Title\n##### small\n###### smaller", "# Title\nsmall\nsmaller"),
        ("see ![a cat](https://x.example/cat.png) there", "see a cat (https://x.example/cat.png) there"),
        ("![](https://x.example/cat.png)", "https://x.example/cat.png"),
        ("这是*重点*吗", "这是*重点*吗"),
        ("这是 *重点* 吗", "这是 重点 吗"),
        ("plain *italics* stay", "plain *italics* stay"),
        ("**重点** stays bold", "**重点** stays bold"),
        ("```\n##### not a heading\n*重点*\n```", "```\n##### not a heading\n*重点*\n```"),
        ("snake_case_name_here", "snake_case_name_here"),
    ],
)
def test_text_is_sent_as_the_phone_shows_it(text: str, shown: str) -> None:
    assert wire.plainer(text) == shown


def test_a_message_carries_one_item_and_a_context_only_where_there_is_one() -> None:
    bare = wire.sending("o1@im.wechat", wire.text_item("hi"), "c", "")["msg"]
    assert "context_token" not in bare
    assert (bare["message_type"], bare["message_state"], len(bare["item_list"])) == (2, 2, 1)
    assert wire.sending("o1@im.wechat", wire.text_item("hi"), "c", "CK")["msg"]["context_token"] == "CK"


def test_the_same_message_keeps_its_client_id_and_another_has_its_own() -> None:
    message = OutboundMessage(Target("weixin", "o1@im.wechat"), "hi", idempotency_key="ob_1.0")
    assert wire.client_id(message) == wire.client_id(message) == "hermes-weixin-ob_1.0"
    nameless = OutboundMessage(Target("weixin", "o1@im.wechat"), "hi")
    assert wire.client_id(nameless) != wire.client_id(nameless)


def test_numbers_of_messages_keep_every_digit() -> None:
    answer = wire.decode(b'{"message_id":18446744073709551615}')
    assert wire.message_id_of(answer) == "18446744073709551615"
    assert wire.message_id_of({}) == ""


def test_a_bad_byte_spoils_a_letter_and_not_the_batch() -> None:
    assert wire.decode(b'{"msgs":["\xff"]}') == {"msgs": ["\ufffd"]}


def test_the_agent_name_is_one_that_the_server_takes() -> None:
    name, _, version = wire.signed({})["base_info"]["bot_agent"].partition("/")
    assert name == "Hermes"
    assert version


def test_a_poll_tells_how_long_the_next_may_be_held() -> None:
    batch = wire.read_batch({"msgs": [{}], "get_updates_buf": "Ck", "longpolling_timeout_ms": 200})
    assert (len(batch.messages), batch.cursor, batch.hold_seconds) == (1, "Ck", 0.2)
    assert wire.read_batch({"get_updates_buf": "", "longpolling_timeout_ms": -5}) == wire.Batch([], "", 0.0)
    with pytest.raises(ValueError, match="no list"):
        wire.read_batch({"msgs": {"0": 1}})
