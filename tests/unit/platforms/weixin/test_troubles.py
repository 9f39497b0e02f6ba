"""Every failure that the protocol sheet tells of, played by the fake: who acts, and that nothing is made worse."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hermes.core.errors import (
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
    WindowClosedError,
)
from hermes.core.keys import Target
from hermes.core.manifest import AccountResource, AdapterParts
from hermes.core.messages import Attachment, AttachmentKind, InboundMessage, OutboundMessage, Unreadable
from hermes.core.ports import Adapter, EndsTyping, FetchesFiles, ShowsTyping
from hermes.platforms.weixin.adapter import WeixinAdapter
from hermes.platforms.weixin.config import WeixinConfig
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.fakes.clock import FakeClock
from tests.fakes.jumping import JumpingLoop, LoopClock, run_in_jumps
from tests.fakes.weixin import ANA, BOT, STALE, STALE_CONTEXT, THROTTLED, Answer, FakeWeixin
from tests.unit.platforms.weixin import samples
from tests.unit.platforms.weixin.test_parse import mutated

SECONDS = 30


@asynccontextmanager
async def connected(inbox: Inbox, **more: Any) -> AsyncIterator[tuple[FakeWeixin, Adapter, asyncio.Task[None]]]:
    async with (
        asyncio.timeout(SECONDS),
        FakeWeixin() as weixin,
        weixin.adapter(**more) as adapter,
        receiving(adapter, inbox) as running,
    ):
        yield weixin, adapter, running


async def has_written(weixin: FakeWeixin, inbox: Inbox) -> None:
    weixin.user_says("hello")
    await inbox.message()


def contexts(weixin: FakeWeixin) -> list[str]:
    return [body["msg"].get("context_token", "") for body in weixin.bodies["sendmessage"]]


# Receiving


@pytest.mark.parametrize("stale", [{"ret": -14}, {"errcode": -14, "errmsg": "session timeout"}], ids=["ret", "errcode"])
async def test_a_dead_token_ends_it_and_nothing_more_is_asked_with_it(stale: dict[str, int], inbox: Inbox) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("getupdates", stale)
        with pytest.raises(CredentialsError, match="hermes weixin login"):
            await adapter.run(inbox)
        asked = weixin.counts.total()
        with pytest.raises(CredentialsError):
            await adapter.send(saying(weixin, "hello"))
        with pytest.raises(CredentialsError):
            await adapter.run(inbox)
        assert isinstance(adapter, ShowsTyping)
        await adapter.typing(weixin.target())
        assert weixin.counts.total() == asked


def test_a_server_that_does_not_wait_for_news_is_not_asked_in_a_hot_loop() -> None:
    async def story(_: JumpingLoop, __: LoopClock) -> int:
        async with FakeWeixin() as weixin, weixin.adapter() as adapter:
            weixin.hold_seconds = 0.0
            async with receiving(adapter, Inbox()) as running:
                await asyncio.sleep(60)
                assert not running.done()
            return weixin.polls

    assert 50 < run_in_jumps(story) < 70


def test_one_batch_after_another_is_taken_without_a_pause() -> None:
    async def story(loop: JumpingLoop, _: LoopClock) -> float:
        inbox = Inbox()
        async with FakeWeixin() as weixin, weixin.adapter() as adapter:
            weixin.batch_size = 1
            for number in range(5):
                weixin.user_says(f"number {number}")
            began = loop.time()
            async with receiving(adapter, inbox):
                await inbox.until(5)
            return loop.time() - began

    assert run_in_jumps(story) < 1


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>busy</html>", b"[]", b"{", {"ret": -1}, {"ret": 7}, Answer(b"oops", 502), Answer(b"", 302)],
    ids=["empty", "a page", "a list", "half", "busy", "other", "502", "redirect"],
)
async def test_an_answer_that_is_none_is_a_failure_of_the_poll_and_the_next_message_arrives(
    answer: bytes | dict[str, int] | Answer, inbox: Inbox
) -> None:
    async with asyncio.timeout(SECONDS), FakeWeixin() as weixin:
        weixin.answer_next("getupdates", answer)
        weixin.user_says("hello")
        async with weixin.adapter() as adapter:
            with pytest.raises(PlatformError) as failed:
                await adapter.run(inbox)
            assert not isinstance(failed.value, CredentialsError)
            async with receiving(adapter, inbox):
                assert (await inbox.message()).text == "hello"


async def test_messages_in_an_answer_that_cannot_be_read_are_kept_as_they_came(inbox: Inbox) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("getupdates", b'{"ret":0,"msgs":[{"message_id":5,')
        with pytest.raises(UnreachableError):
            await adapter.run(inbox)
    [kept] = inbox.events
    assert isinstance(kept, Unreadable)
    assert '"message_id":5' in kept.raw


async def test_a_poll_that_nobody_answers_in_time_is_no_failure_and_keeps_its_place(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeWeixin() as weixin, aiohttp.ClientSession() as http:
        weixin.hold_ms = 1
        parts = AdapterParts("main", weixin.settings(), http, lambda: None, {})
        adapter = WeixinAdapter(WeixinConfig.of(parts), http, parts, grace_seconds=0.05)
        weixin.user_says("one")
        async with receiving(adapter, inbox):
            await inbox.message()
            await weixin.wait_for(lambda: weixin.polls >= 4)
            weixin.user_says("two")
            assert (await inbox.message()).text == "two"
    assert {body["get_updates_buf"] for body in weixin.bodies["getupdates"][1:3]} == {"Ck-1"}


async def test_a_poll_that_weixin_will_hold_for_long_is_waited_for_and_no_silence(inbox: Inbox) -> None:
    async with connected(inbox) as (weixin, adapter, _):
        usual = adapter.capabilities.silence_seconds
        for hold_ms, silence in ((120_000, usual + 85), (None, usual), (200, usual)):
            weixin.hold_ms = hold_ms
            await has_written(weixin, inbox)
            assert adapter.capabilities.silence_seconds == silence


def test_a_proxy_that_cuts_every_poll_after_half_a_minute_is_no_trouble() -> None:
    async def story(loop: JumpingLoop, _: LoopClock) -> tuple[int, float, str]:
        inbox, signs = Inbox(), [loop.time()]
        async with FakeWeixin() as weixin, weixin.adapter(alive=lambda: signs.append(loop.time())) as adapter:
            weixin.cut_after_seconds = 30.0
            async with receiving(adapter, inbox) as running:
                await asyncio.sleep(300)
                assert not running.done()
                weixin.user_says("still there?")
                text = (await inbox.message()).text
            return weixin.polls, max(later - earlier for earlier, later in pairwise(signs)), text

    polls, longest_silence, text = run_in_jumps(story)
    assert 10 <= polls <= 12
    assert longest_silence < WeixinAdapter.capabilities.silence_seconds
    assert text == "still there?"


async def test_three_polls_in_a_row_that_come_to_nothing_make_it_wait_and_count_as_no_sign_of_life(
    inbox: Inbox,
) -> None:
    kept, signs, waits = AccountResource(), list[int](), list[float]()
    async with asyncio.timeout(SECONDS), FakeWeixin() as weixin, aiohttp.ClientSession() as http:
        for _ in range(2):
            weixin.answer_next("getupdates", {"ret": -1}, Answer(b"busy", 503), {"ret": -2})
        for number in range(6):
            alive = lambda number=number: signs.append(number)  # noqa: E731 - one for each start
            parts = AdapterParts("main", weixin.settings(), http, alive, {}, kept=kept)
            with pytest.raises(PlatformError) as failed:
                await WeixinAdapter(WeixinConfig.of(parts), http, parts).run(inbox)
            waits.append(failed.value.retry_after if isinstance(failed.value, RateLimitedError) else 0.0)
        weixin.user_says("hello")
        parts = AdapterParts("main", weixin.settings(), http, lambda: signs.append(6), {}, kept=kept)
        async with receiving(WeixinAdapter(WeixinConfig.of(parts), http, parts), inbox):
            await inbox.message()
    assert waits == [0, 0, 30, 0, 0, 30]
    assert signs == [0, 6], "once it was announced and not yet known that polls fail, and once one came"


async def test_a_place_that_did_not_move_is_asked_for_again(inbox: Inbox) -> None:
    async with (
        asyncio.timeout(SECONDS),
        FakeWeixin() as weixin,
        weixin.adapter(cursor={"get_updates_buf": "old"}) as adapter,
    ):
        weixin.answer_next("getupdates", {"ret": 0, "msgs": [samples.ALL[0]], "get_updates_buf": ""}, {})
        async with receiving(adapter, inbox):
            await inbox.message()
            await weixin.wait_for(lambda: weixin.polls == 3)
    assert [body["get_updates_buf"] for body in weixin.bodies["getupdates"]] == ["old"] * 3


async def test_another_bot_in_the_place_of_the_first_begins_anew(inbox: Inbox) -> None:
    of_another = {"identity": "other@im.bot", "get_updates_buf": "old", f"chat:{ANA}": '["CK-old", 1.0]'}
    async with (
        asyncio.timeout(SECONDS),
        FakeWeixin() as weixin,
        weixin.adapter(cursor=of_another) as adapter,
        receiving(adapter, inbox),
    ):
        await adapter.send(saying(weixin, "hi"))
        await has_written(weixin, inbox)
    assert weixin.bodies["getupdates"][0]["get_updates_buf"] == ""
    assert contexts(weixin) == [""]
    assert (inbox.cursor["identity"], inbox.cursor["get_updates_buf"]) == (BOT, "Ck-1")


async def test_the_place_is_stored_with_what_came(inbox: Inbox) -> None:
    async with connected(inbox) as (weixin, *_):
        await has_written(weixin, inbox)
    assert inbox.cursor["get_updates_buf"] == "Ck-1"
    assert f"CK-{ANA}-1" in inbox.cursor[f"chat:{ANA}"]


async def test_five_hundred_broken_messages_lose_no_neighbour(inbox: Inbox) -> None:
    chance = random.Random(11)
    async with asyncio.timeout(20), FakeWeixin() as weixin:
        said = []
        for number in range(500):
            raw = samples.ALL[number % len(samples.ALL)]
            for _ in range(chance.randrange(1, 4)):
                raw = mutated(raw, chance)
            try:
                weixin.deliver(raw)
            except TypeError:  # what no JSON can say cannot arrive
                weixin.deliver_raw(b'{"message_id": 5, "item_list": [{"type": 1, "text_item": {"text": "\\ud800"}}]}')
            if number % 10 == 0:
                said.append(weixin.user_says(f"neighbour {number}"))
        said.append(weixin.user_says("the last"))
        async with weixin.adapter() as adapter, receiving(adapter, inbox):
            await weixin.wait_for(lambda: said[-1].key in inbox.keys, 15)
    arrived = {event.text for event in inbox.events if isinstance(event, InboundMessage)}
    assert {f"neighbour {number}" for number in range(0, 500, 10)} <= arrived


# Sending


async def test_a_stale_context_is_left_out_and_forgotten_when_it_is_called_so(inbox: Inbox) -> None:
    async with connected(inbox) as (weixin, adapter, _):
        await has_written(weixin, inbox)
        weixin.answer_next("sendmessage", STALE_CONTEXT)
        await adapter.send(saying(weixin, "hi"))
        await adapter.send(saying(weixin, "again"))
    assert contexts(weixin) == [f"CK-{ANA}-1", "", ""]
    assert weixin.texts() == ["hi", "again"]


async def test_an_old_context_is_left_out_once_whatever_weixin_calls_it(inbox: Inbox) -> None:
    clock = FakeClock()
    async with connected(inbox, now=clock.now) as (weixin, adapter, _):
        await has_written(weixin, inbox)
        clock.advance(1100)
        weixin.answer_next("sendmessage", THROTTLED)
        with pytest.raises(RateLimitedError):
            await adapter.send(saying(weixin, "too much"))
        clock.advance(31)
        await adapter.send(saying(weixin, "let through again"))
        clock.advance(3600)
        weixin.answer_next("sendmessage", THROTTLED)
        await adapter.send(saying(weixin, "good morning"))
        await adapter.send(saying(weixin, "and a good day"))
    known = f"CK-{ANA}-1"
    assert contexts(weixin) == [known, known, known, "", ""]
    assert weixin.texts() == ["let through again", "good morning", "and a good day"]


async def test_an_old_context_is_no_reason_to_knock_twice_during_a_penalty(inbox: Inbox) -> None:
    clock = FakeClock()
    async with connected(inbox, now=clock.now) as (weixin, adapter, _):
        await has_written(weixin, inbox)
        clock.advance(7200)
        weixin.is_throttled = True
        for seconds, tries in ((0, 2), (31, 3), (61, 4)):
            clock.advance(seconds)
            with pytest.raises((RateLimitedError, WindowClosedError)):
                await adapter.send(saying(weixin, "hi"))
            assert weixin.counts["sendmessage"] == tries


async def test_a_message_without_a_context_keeps_the_one_that_is_known(inbox: Inbox) -> None:
    async with connected(inbox) as (weixin, adapter, _):
        await has_written(weixin, inbox)
        for context in (None, "", "\x00", 5):
            weixin.user_says("and", context_token=context)
            await inbox.message()
        await adapter.send(saying(weixin, "hi"))
    assert contexts(weixin) == [f"CK-{ANA}-1"]


async def test_minus_fourteen_on_a_send_is_tried_once_without_the_context(inbox: Inbox) -> None:
    async with connected(inbox) as (weixin, adapter, running):
        await has_written(weixin, inbox)
        weixin.answer_next("sendmessage", STALE)
        await adapter.send(saying(weixin, "hi"))
        assert not running.done()
    assert contexts(weixin) == [f"CK-{ANA}-1", ""]


async def test_minus_fourteen_twice_is_a_dead_token_and_the_poll_ends_at_once(inbox: Inbox) -> None:
    async with connected(inbox) as (weixin, adapter, running):
        await has_written(weixin, inbox)
        await weixin.wait_for(lambda: weixin.polls == 2)
        weixin.answer_next("sendmessage", STALE, STALE)
        with pytest.raises(CredentialsError):
            await adapter.send(saying(weixin, "hi"))
        with pytest.raises(CredentialsError, match="hermes weixin login"):
            await running


async def test_a_refusal_opens_the_breaker_and_a_second_one_parks(inbox: Inbox) -> None:
    clock = FakeClock()
    async with connected(inbox, now=clock.now) as (weixin, adapter, _):
        await has_written(weixin, inbox)
        clock.advance(1)
        weixin.is_throttled = True
        with pytest.raises(RateLimitedError) as told:
            await adapter.send(saying(weixin, "hi"))
        assert (told.value.retry_after, told.value.in_all) == (30, True)
        assert inbox.cursor["breaker"], "whoever is started next must know"
        assert isinstance(adapter, ShowsTyping)
        await adapter.typing(weixin.target())
        assert weixin.typing_signs == [], "no sign either"
        clock.advance(10)
        with pytest.raises(RateLimitedError) as told:
            await adapter.send(saying(weixin, "hi"))
        assert told.value.retry_after == 20
        assert weixin.counts["sendmessage"] == 1, "nothing is asked during the pause"
        clock.advance(20)
        for _ in range(3):
            with pytest.raises(WindowClosedError):
                await adapter.send(saying(weixin, "hi"))
        assert weixin.counts["sendmessage"] == 2
        clock.advance(1)
        await has_written(weixin, inbox)
        with pytest.raises(RateLimitedError) as told:
            await adapter.send(saying(weixin, "hi"))
        assert told.value.retry_after == 59, "for whoever wrote it is tried when the pause is over"
        weixin.is_throttled = False
        clock.advance(60)
        await adapter.send(saying(weixin, "hi"))
        assert inbox.cursor["breaker"] == ""


async def test_the_pause_doubles_up_to_an_hour() -> None:
    clock = FakeClock()
    pauses = []
    async with FakeWeixin() as weixin, weixin.adapter(now=clock.now) as adapter:
        weixin.is_throttled = True
        for _ in range(9):
            before = weixin.counts["sendmessage"]
            while weixin.counts["sendmessage"] == before:
                clock.advance(5)
                with pytest.raises((RateLimitedError, WindowClosedError)):
                    await adapter.send(saying(weixin, "hi"))
            pauses.append(clock.now())
    gaps = [round(later - earlier) for earlier, later in pairwise(pauses)]
    assert gaps == [30, 60, 120, 240, 480, 960, 1920, 3600]


@pytest.mark.parametrize("status", [400, 404, 500, 502])
async def test_an_http_error_leaves_the_outcome_unknown_and_a_repeat_keeps_its_name(status: int) -> None:
    message = OutboundMessage(Target("weixin", ANA), "hi", idempotency_key="ob_1")
    again = OutboundMessage(Target("weixin", ANA), "hi", idempotency_key="ob_1", is_repeat=True)
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("sendmessage", Answer(b"oops", status))
        with pytest.raises(OutcomeUnknownError):
            await adapter.send(message)
        await adapter.send(again)
    assert {body["msg"]["client_id"] for body in weixin.bodies["sendmessage"]} == {"hermes-weixin-ob_1"}


@pytest.mark.parametrize("status", [302, 404, 429, 500])
async def test_an_http_error_is_none_of_weixins_words_whatever_it_says(status: int) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("sendmessage", Answer(b'{"message_id": 5}', status))
        with pytest.raises(OutcomeUnknownError, match=str(status)):
            await adapter.send(saying(weixin, "hi"))


@pytest.mark.parametrize("answer", [b"", b"{", b"[]"], ids=["empty", "half", "a list"])
async def test_an_answer_to_a_send_that_cannot_be_read_leaves_its_outcome_unknown(answer: bytes) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("sendmessage", answer)
        with pytest.raises(OutcomeUnknownError):
            await adapter.send(saying(weixin, "hi"))


@pytest.mark.parametrize(
    "answer, kind", [({"ret": -1}, UnreachableError), ({"ret": -3}, RejectedError)], ids=["busy", "no"]
)
async def test_other_refusals_of_a_send_are_tried_again_or_final(
    answer: dict[str, int], kind: type[PlatformError]
) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("sendmessage", answer)
        with pytest.raises(kind):
            await adapter.send(saying(weixin, "hi"))


async def test_a_success_without_a_number_is_one() -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.gives_ids = False
        assert (await adapter.send(saying(weixin, "hi"))).message_id == weixin.sent[0].message_id


async def test_a_text_with_half_a_surrogate_pair_goes_out_mended() -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        await adapter.send(saying(weixin, "half \ud83d"))
    assert weixin.texts() == ["half \ufffd"]


async def test_it_says_when_it_comes_and_when_it_goes_unless_it_is_not_known_any_more(inbox: Inbox) -> None:
    async with connected(inbox) as (weixin, _, _):
        await weixin.wait_for(lambda: weixin.polls == 1)
        assert weixin.counts["msg/notifystart"] == 1
    assert weixin.counts["msg/notifystop"] == 1
    async with connected(inbox) as (weixin, adapter, running):
        await weixin.wait_for(lambda: weixin.polls == 1)
        weixin.answer_next("sendmessage", STALE)
        with pytest.raises(CredentialsError):
            await adapter.send(saying(weixin, "hi"))
        await asyncio.wait({running})
    assert weixin.counts["msg/notifystop"] == 0


async def test_a_server_that_knows_no_announcements_is_polled_all_the_same(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("msg/notifystart", Answer(b"not found", 404))
        weixin.user_says("hello")
        async with receiving(adapter, inbox):
            assert (await inbox.message()).text == "hello"


# Typing


async def test_typing_ends_when_it_is_told_and_its_ticket_is_asked_for_once() -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        assert isinstance(adapter, ShowsTyping)
        assert isinstance(adapter, EndsTyping)
        for _ in range(3):
            await adapter.typing(weixin.target())
        await adapter.typing_ended(weixin.target())
    assert [status for _, status in weixin.typing_signs] == [1, 1, 1, 2]
    assert weixin.counts["getconfig"] == 1


async def test_a_ticket_that_has_lapsed_is_renewed_and_one_that_is_not_given_is_not_asked_for_all_the_time() -> None:
    clock = FakeClock()
    async with FakeWeixin() as weixin, weixin.adapter(now=clock.now) as adapter:
        assert isinstance(adapter, ShowsTyping)
        weixin.answer_next("getconfig", {"ret": -1}, {"ret": 0})
        for seconds in (0, 1, 2, 3, 2):  # asked, not yet, asked, not yet, asked
            clock.advance(seconds)
            await adapter.typing(weixin.target())
        assert (weixin.counts["getconfig"], weixin.typings) == (3, 1)
        clock.advance(601)
        await adapter.typing(weixin.target())
        assert weixin.counts["getconfig"] == 4


async def test_a_ticket_that_lapses_before_its_time_is_renewed_at_once_or_the_sign_would_stay() -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        assert isinstance(adapter, ShowsTyping)
        assert isinstance(adapter, EndsTyping)
        await adapter.typing(weixin.target())
        weixin.ticket_era += 1
        await adapter.typing_ended(weixin.target())
        assert [status for _, status in weixin.typing_signs] == [1, 2]
        assert weixin.counts["getconfig"] == 2


async def test_a_chat_whose_every_ticket_is_refused_is_left_alone_for_a_moment() -> None:
    clock = FakeClock()
    async with FakeWeixin() as weixin, weixin.adapter(now=clock.now) as adapter:
        assert isinstance(adapter, ShowsTyping)
        weixin.answer_next("sendtyping", {"ret": -3}, {"ret": -3})
        for _ in range(3):
            await adapter.typing(weixin.target())
        assert (weixin.counts["sendtyping"], weixin.counts["getconfig"]) == (2, 2)
        clock.advance(3)
        await adapter.typing(weixin.target())
        assert weixin.typings == 1


# Files


@pytest.fixture
def picture(tmp_path: Path) -> Attachment:
    path = tmp_path / "cat.png"
    path.write_bytes(b"\x89PNG" + bytes(100))
    return Attachment(AttachmentKind.IMAGE, path=str(path), name="cat.png", mime="image/png")


async def test_words_with_a_file_are_a_bubble_before_it(picture: Attachment) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        await adapter.send(OutboundMessage(weixin.target(), "my cat", attachment=picture))
    assert [(sent.text, bool(sent.file)) for sent in weixin.sent] == [("my cat", False), ("", True)]


async def test_a_file_that_is_sent_again_without_words_costs_one_bubble(picture: Attachment) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        await adapter.send(OutboundMessage(weixin.target(), "", attachment=picture, is_repeat=True))
    assert [(sent.text, bool(sent.file)) for sent in weixin.sent] == [("", True)]


async def test_an_upload_that_does_not_say_where_it_lies_is_tried_three_times(picture: Attachment) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("cdn upload", b"", b"")
        await adapter.send(OutboundMessage(weixin.target(), "", attachment=picture))
        assert weixin.counts["cdn upload"] == 3
        weixin.answer_next("cdn upload", Answer(b"", 500), Answer(b"", 503), b"")
        with pytest.raises(UnreachableError, match=r"cat\.png"):
            await adapter.send(OutboundMessage(weixin.target(), "", attachment=picture))
    assert len(weixin.sent) == 1


async def test_a_place_that_has_expired_is_asked_for_anew_once(picture: Attachment) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("cdn upload", Answer(b"", 403))
        await adapter.send(OutboundMessage(weixin.target(), "", attachment=picture))
        assert weixin.counts["getuploadurl"] == 2
        weixin.answer_next("cdn upload", Answer(b"", 403), Answer(b"", 403))
        with pytest.raises(RejectedError, match=r"cat\.png.*expired"):
            await adapter.send(OutboundMessage(weixin.target(), "", attachment=picture))
        assert weixin.counts["getuploadurl"] == 4
    assert len(weixin.sent) == 1


async def test_an_upload_without_a_place_is_refused_in_words(picture: Attachment) -> None:
    async with FakeWeixin() as weixin, weixin.adapter() as adapter:
        weixin.answer_next("getuploadurl", {"upload_param": "", "upload_full_url": "http://169.254.169.254/x"})
        with pytest.raises(RejectedError, match=r"no place to upload cat\.png"):
            await adapter.send(OutboundMessage(weixin.target(), "", attachment=picture))


@pytest.mark.parametrize("status, kind", [(404, RejectedError), (500, UnreachableError)])
async def test_a_file_that_cannot_be_fetched_is_told(
    status: int, kind: type[PlatformError], inbox: Inbox, tmp_path: Path
) -> None:
    async with connected(inbox) as (weixin, adapter, _):
        weixin.user_sends(b"data", "a.txt")
        message = await inbox.message()
        assert isinstance(adapter, FetchesFiles)
        weixin.answer_next("cdn download", Answer(b"", status))
        with pytest.raises(kind, match=r"a\.txt"):
            await adapter.fetch(message.attachments[0], tmp_path / "in")
        path = await adapter.fetch(message.attachments[0], tmp_path / "in")
    assert path.read_bytes() == b"data"


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()
