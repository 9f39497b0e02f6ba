"""What QQ takes, what it refuses, and what follows from each of its refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

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
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Attachment, AttachmentKind, Button, OutboundMessage
from hermes.core.ports import Adapter, AnswersPresses, FetchesFiles, ShowsTyping
from hermes.platforms.qq.api import Api
from hermes.platforms.qq.config import QQConfig
from hermes.platforms.qq.media import is_own
from hermes.platforms.qq.reply_tickets import MESSAGE, Ledger, Ticket
from hermes.platforms.qq.uploads import Uploads
from tests.contract.adapters.conftest import Inbox, receiving
from tests.fakes.clock import FakeClock
from tests.fakes.files import png
from tests.fakes.jumping import JumpingLoop, LoopClock, run_in_jumps
from tests.fakes.qq import FakeQQ, openid

ANA = Target("qq", openid(7))
HOUR = 3600.0


@pytest.fixture
async def qq(clock: FakeClock) -> AsyncIterator[FakeQQ]:
    async with FakeQQ(now=clock.now) as fake:
        yield fake


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def to_ana(text: str, key: str = "", **more: object) -> OutboundMessage:
    return replace(OutboundMessage(ANA, text, idempotency_key=key), **more)  # type: ignore[arg-type]


async def heard(qq: FakeQQ, adapter: Adapter, inbox: Inbox, text: str = "hello", chat: int | str = 7) -> str:
    """Somebody wrote, and the adapter knows; the id of the message."""
    async with receiving(adapter, inbox):
        qq.user_says(text, chat=chat)
        return (await inbox.message()).message_id


# The right to answer


async def test_five_answers_go_out_as_answers_and_the_sixth_is_parked(qq: FakeQQ, inbox: Inbox) -> None:
    qq.unasked_left = 0
    async with qq.adapter() as adapter:
        said = await heard(qq, adapter, inbox)
        for number in range(5):
            await adapter.send(to_ana(f"answer {number}", f"ob_{number}"))
        with pytest.raises(WindowClosedError):
            await adapter.send(to_ana("answer 5", "ob_5"))
        assert {sent.reply_to for sent in qq.sent} == {said}
        again = await heard(qq, adapter, inbox, "and?")
        await adapter.send(to_ana("answer 5", "ob_5"))
    assert [sent.text for sent in qq.sent] == [f"answer {number}" for number in range(6)]
    assert qq.sent[-1].reply_to == again


@pytest.mark.parametrize(
    "chat, seconds", [(7, HOUR), ("group/G1", 300.0), ("channel/100010", 300.0), ("direct/1", 300.0)]
)
async def test_an_answer_that_comes_too_late_is_parked(
    qq: FakeQQ, clock: FakeClock, inbox: Inbox, chat: int | str, seconds: float
) -> None:
    qq.unasked_left = 0
    async with qq.adapter() as adapter:
        async with receiving(adapter, inbox):
            qq.user_says("hello", chat=chat)
            target = (await inbox.message()).session_key.target
        clock.advance(seconds - 1)
        await adapter.send(OutboundMessage(target, "in time", idempotency_key="ob_1"))
        clock.advance(2)
        with pytest.raises(WindowClosedError):
            await adapter.send(OutboundMessage(target, "late", idempotency_key="ob_2"))
    assert [sent.text for sent in qq.sent] == ["in time"]


async def test_where_messages_are_taken_unasked_a_late_one_goes_out(qq: FakeQQ, clock: FakeClock, inbox: Inbox) -> None:
    qq.unasked_left = 1
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
        clock.advance(HOUR + 1)
        await adapter.send(to_ana("late", "ob_1"))
        with pytest.raises(WindowClosedError):
            await adapter.send(to_ana("later", "ob_2"))
    assert [(sent.text, sent.reply_to) for sent in qq.sent] == [("late", "")]


@pytest.mark.parametrize("code", [22009, 40034102, 304045])
async def test_a_message_that_nobody_asked_for_is_parked_when_it_is_refused(qq: FakeQQ, code: int) -> None:
    qq.refuse_next("messages", code)
    async with qq.adapter() as adapter:
        with pytest.raises(WindowClosedError):
            await adapter.send(to_ana("hello"))


async def test_words_that_are_blocked_are_refused_for_good_though_nobody_asked(qq: FakeQQ) -> None:
    qq.refuse_next("messages", 304025, "content blocked")
    async with qq.adapter() as adapter:
        with pytest.raises(RejectedError, match="content blocked") as refused:
            await adapter.send(to_ana("hello"))
    assert not isinstance(refused.value, WindowClosedError)


async def test_the_right_to_answer_outlives_the_process(qq: FakeQQ, inbox: Inbox) -> None:
    qq.unasked_left = 0
    async with qq.adapter() as adapter:
        said = await heard(qq, adapter, inbox)
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("hello", "ob_1"))
    assert [sent.reply_to for sent in qq.sent] == [said]


async def test_another_bot_in_the_place_of_the_first_begins_anew(qq: FakeQQ, inbox: Inbox) -> None:
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
    qq.app_id = "102000002"
    qq.kill_tokens()
    async with qq.adapter() as adapter, receiving(adapter, inbox):
        await qq.wait_for(lambda: qq.identified == 2 and qq.is_listening)
        qq.user_says("hello", chat=8)
        await inbox.message()
        await adapter.send(to_ana("hello", "ob_1"))
    assert (qq.identified, qq.resumed, qq.sent[0].reply_to) == (2, 0, "")
    assert qq.cursor["identity"] == "102000002"


async def test_a_press_gives_the_right_to_one_answer(qq: FakeQQ, clock: FakeClock, inbox: Inbox) -> None:
    qq.unasked_left = 0
    buttons = ((Button("Yes", "yes"),),)
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
        await adapter.send(to_ana("May I?", "ob_1", buttons=buttons))
        clock.advance(HOUR + 1)
        async with receiving(adapter, inbox):
            qq.user_presses(qq.sent[0], "yes")
            await inbox.press()
        await adapter.send(to_ana("Thanks.", "ob_2"))
        with pytest.raises(WindowClosedError):
            await adapter.send(to_ana("More.", "ob_3"))
    assert [sent.text for sent in qq.sent] == ["May I?", "Thanks."]


async def test_a_message_that_qq_takes_for_none_leaves_the_press_to_be_answered(qq: FakeQQ, inbox: Inbox) -> None:
    qq.unasked_left = 0
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
        await adapter.send(to_ana("May I?", "ob_1", buttons=((Button("Yes", "yes"),),)))
        async with receiving(adapter, inbox):
            qq.user_presses(qq.sent[0], "yes")
            await inbox.press()
        qq.refuse_next("messages", 40034102, "no permission to send unasked")
        await adapter.send(to_ana("Thanks.", "ob_2"))
    assert [sent.text for sent in qq.sent] == ["May I?", "Thanks."]
    assert "event_id" in qq.called("/messages")[-1]


async def test_a_greeting_gives_that_right_too(qq: FakeQQ, inbox: Inbox) -> None:
    qq.unasked_left = 0
    async with qq.adapter() as adapter:
        async with receiving(adapter, inbox):
            qq.deliver("FRIEND_ADD", {"openid": ANA.chat, "timestamp": 1760000000}, ticket=ANA.chat)
            qq.user_says("hello", chat=8)
            await inbox.message()
        await adapter.send(to_ana("Welcome.", "ob_1"))
    assert qq.texts(7) == ["Welcome."]


# Sending the same thing again


async def test_a_repeat_of_what_arrived_is_not_shown_again(qq: FakeQQ, inbox: Inbox) -> None:
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
        first = await adapter.send(to_ana("hello", "ob_1"))
        second = await adapter.send(to_ana("hello", "ob_1", is_repeat=True))
    assert second.message_id == first.message_id
    assert qq.texts() == ["hello"]


async def test_a_repeat_after_a_crash_is_known_too(qq: FakeQQ, inbox: Inbox) -> None:
    async with qq.adapter() as adapter:
        said = await heard(qq, adapter, inbox)
        await adapter.send(to_ana("hello", "ob_1", reply_to=said))
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox, "something newer")
        receipt = await adapter.send(to_ana("hello", "ob_1", reply_to=said, is_repeat=True))
    assert qq.texts() == ["hello"]
    assert receipt.note


async def test_a_repeat_that_must_answer_another_message_carries_its_mark(
    qq: FakeQQ, clock: FakeClock, inbox: Inbox
) -> None:
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
        await adapter.send(to_ana("hello", "ob_1"))
    clock.advance(HOUR + 1)
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox, "something newer")
        await adapter.send(to_ana("hello", "ob_1", is_repeat=True))
    assert qq.texts() == ["hello", "↻ hello"]


async def test_a_number_that_is_taken_costs_nothing(qq: FakeQQ, inbox: Inbox) -> None:
    qq.refuse_next("messages", 40054005, "message deduplicated", times=2)
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
        await adapter.send(to_ana("hello", "ob_1"))
    assert qq.texts() == ["hello"]
    numbers = [body["msg_seq"] for body in qq.called("/messages")]
    assert len(set(numbers)) == 3


def test_a_thousand_answers_never_share_a_number_by_chance() -> None:
    ledger, ticket = Ledger({}), Ticket(MESSAGE, "m1")
    numbers = [ledger.seq(ticket, f"ob_{number}") for number in range(1000)]
    assert len(set(numbers)) == 1000
    assert numbers == [ledger.seq(ticket, f"ob_{number}") for number in range(1000)]
    assert all(1 <= number <= 65_535 for number in numbers)


async def test_a_connection_lost_after_the_request_left_is_repeated_with_the_same_number(
    qq: FakeQQ, inbox: Inbox
) -> None:
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
        hold = qq.hold_sends()
        sending = asyncio.create_task(adapter.send(to_ana("hello", "ob_1")))
        await hold.reached()
        qq.drop_connection()
        with pytest.raises(OutcomeUnknownError):
            await sending
        qq.release_all()
        await adapter.send(to_ana("hello", "ob_1", is_repeat=True))
    assert qq.texts() == ["hello"]


async def test_a_repeat_uses_the_ticket_of_its_first_attempt_though_there_is_a_newer_one(
    qq: FakeQQ, inbox: Inbox
) -> None:
    async with qq.adapter() as adapter:
        said = await heard(qq, adapter, inbox)
        await adapter.send(to_ana("hello", "ob_1"))
        await heard(qq, adapter, inbox, "something newer")
        await adapter.send(to_ana("hello", "ob_1", is_repeat=True))
    assert (qq.texts(), qq.sent[0].reply_to) == (["hello"], said)


# Refusals


@pytest.mark.parametrize(
    "code, status, error",
    [
        (20028, 429, RateLimitedError),
        (22009, 400, RateLimitedError),  # of an answer: it was asked for, so it only has to wait
        (100001, 400, RateLimitedError),
        (0, 429, RateLimitedError),
        (304025, 400, RejectedError),
        (50006, 400, RejectedError),
        (11253, 403, CredentialsError),
        (11254, 403, CredentialsError),
        (11265, 403, CredentialsError),
        (0, 500, OutcomeUnknownError),
        (0, 504, OutcomeUnknownError),
        (1100, 502, OutcomeUnknownError),
        (40034999, 400, RejectedError),
    ],
)
async def test_a_refusal_says_who_acts(
    qq: FakeQQ, inbox: Inbox, code: int, status: int, error: type[PlatformError]
) -> None:
    async with qq.adapter() as adapter:
        await heard(qq, adapter, inbox)
        qq.refuse_next("messages", code, "no such luck", status=status)
        with pytest.raises(error, match=r"no such luck .*trace-1") as refused:
            await adapter.send(to_ana("hello", "ob_1"))
    assert qq.sent == []
    if isinstance(refused.value, RateLimitedError):
        assert refused.value.retry_after == 60


@pytest.mark.parametrize(
    "code, status", [(11241, 400), (11243, 401), (11244, 401), (11245, 400), (11251, 400), (0, 401)]
)
async def test_a_token_that_is_refused_is_exchanged_once(qq: FakeQQ, code: int, status: int) -> None:
    qq.refuse_next("messages", code, status=status)
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("hello"))
        qq.refuse_next("messages", code, status=status, times=2)
        with pytest.raises(CredentialsError):
            await adapter.send(to_ana("again"))
    assert qq.texts() == ["hello"]


async def test_a_token_that_died_early_is_not_noticed(qq: FakeQQ) -> None:
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("one"))
        qq.kill_tokens()
        await asyncio.gather(*(adapter.send(to_ana(f"number {number}")) for number in range(5)))
    assert len(qq.sent) == 6
    assert qq.tokens_given == 2


@pytest.mark.parametrize("code", [11242, 11252, 11263, 11281])
async def test_a_check_that_failed_is_tried_once_more(qq: FakeQQ, code: int) -> None:
    qq.refuse_next("messages", code)
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("hello"))
        qq.refuse_next("messages", code, times=2)
        with pytest.raises(RejectedError):
            await adapter.send(to_ana("again"))
    assert len(qq.called("/messages")) == 4


@pytest.mark.parametrize("code", [50055, 50056, 304036])
async def test_where_markdown_is_not_allowed_words_are_sent_and_that_is_remembered(
    qq: FakeQQ, inbox: Inbox, code: int
) -> None:
    qq.refuse_next("messages", code)
    async with qq.adapter() as adapter:
        receipt = await adapter.send(to_ana("a **bold** word"))
        await adapter.send(to_ana("and *another*"))
        await heard(qq, adapter, inbox)
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("the **third**"))
        assert not adapter.capabilities.buttons
    assert receipt.note == "sent without formatting"
    assert [(sent.text, sent.raw) for sent in qq.sent] == [
        ("a bold word", "a bold word"),
        ("and another", "and another"),
        ("the third", "the third"),
    ]
    assert len(qq.called("/messages")) == 4


async def test_after_a_day_markdown_is_tried_again(qq: FakeQQ, clock: FakeClock, inbox: Inbox) -> None:
    qq.refuse_next("messages", 50056)
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("a **bold** word"))
        await heard(qq, adapter, inbox)
    clock.advance(86_000)
    async with qq.adapter() as adapter:
        assert not adapter.capabilities.buttons
    clock.advance(1_000)
    async with qq.adapter() as adapter:
        assert adapter.capabilities.buttons
        await adapter.send(to_ana("a **bold** word"))
    assert qq.sent[-1].raw == "a **bold** word"


async def test_words_without_marks_are_sent_as_plain_words(qq: FakeQQ) -> None:
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("2 * 3 is 6"))
        await adapter.send(to_ana("**six**"))
    assert [body["msg_type"] for body in qq.called("/messages")] == [0, 2]


@pytest.mark.parametrize("code", [304037, 304038, 304039, 304040])
async def test_where_buttons_are_not_allowed_the_question_is_sent_without(qq: FakeQQ, code: int) -> None:
    qq.refuse_next("messages", code)
    async with qq.adapter() as adapter:
        receipt = await adapter.send(to_ana("May I? Type /approve.", buttons=((Button("Yes", "y"),),)))
    assert (qq.texts(), qq.sent[0].buttons) == (["May I? Type /approve."], ())
    assert receipt.note == "sent without buttons"


async def test_an_address_that_is_not_on_the_bots_list_is_spelled_out(qq: FakeQQ) -> None:
    qq.any_address = False
    async with qq.adapter() as adapter:
        receipt = await adapter.send(to_ana("See https://docs.example.com/a"))
        await adapter.send(to_ana("See [the **docs**](https://docs.example.com/a)"))
    assert qq.texts()[0] == "See docs[.]example[.]com/a"
    assert "spelled out" in receipt.note
    assert len(qq.sent) == 2


@pytest.mark.parametrize("status, code", [(201, 304024), (202, 304023)])
async def test_a_message_that_people_look_at_first_counts_as_sent(qq: FakeQQ, status: int, code: int) -> None:
    async with qq.adapter() as adapter:
        qq.accept_next(status, {"code": code, "message": "push message is waiting for audit now"})
        receipt = await adapter.send(to_ana("hello"))
    assert (receipt.message_id, receipt.note) == ("", "QQ looks at it before it is shown")


async def test_many_buttons_are_put_into_rows_of_five(qq: FakeQQ) -> None:
    row = tuple(Button(f"b{number}", f"d{number}") for number in range(7))
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("Which?", buttons=(row,)))
    assert [len(each) for each in qq.sent[0].buttons] == [5, 2]


async def test_of_far_too_many_buttons_the_first_are_shown(qq: FakeQQ) -> None:
    rows = tuple((Button(f"b{number}", f"d{number}"),) for number in range(40))
    async with qq.adapter() as adapter:
        await adapter.send(to_ana("Which?", buttons=rows))
    assert [button.label for row in qq.sent[0].buttons for button in row] == [f"b{number}" for number in range(25)]


async def test_nothing_can_be_changed_afterwards(qq: FakeQQ) -> None:
    async with qq.adapter() as adapter:
        with pytest.raises(RejectedError, match="cannot change"):
            await adapter.send(to_ana("new", replaces="ROBOT1.0_1"))


async def test_an_address_that_is_none_of_qqs_is_refused(qq: FakeQQ) -> None:
    async with qq.adapter(base_url=f"{qq.url}/portal") as adapter:
        with pytest.raises(RejectedError):
            await adapter.send(to_ana("hello"))
    assert qq.sent == []


@pytest.mark.parametrize(
    "status, page, error",
    [
        (200, b"<html>Sign in to the hotel</html>", UnreachableError),  # a page took nothing
        (403, b"<html>no</html>", UnreachableError),
        (502, b"<html>oops</html>", OutcomeUnknownError),  # this may be QQ's own front
        (200, b"[]", OutcomeUnknownError),
        (200, b'{"id": "ROBO', OutcomeUnknownError),
    ],
)
async def test_something_else_than_qq_answering_is_not_mistaken_for_it(
    qq: FakeQQ, status: int, page: bytes, error: type[PlatformError]
) -> None:
    async with qq.adapter() as adapter:
        qq.page_for_next = (status, page)
        with pytest.raises(error, match="QQ_BASE_URL"):
            await adapter.send(to_ana("hello"))
        qq.page_for_next = (status, page)
        with pytest.raises(UnreachableError):
            await adapter.run(Inbox())
    assert qq.sent == []


async def test_a_wait_is_as_long_as_qq_says_within_reason(qq: FakeQQ) -> None:
    async with qq.adapter() as adapter:
        for told, seconds in (("7", 7.0), ("9" * 400, 3600.0), ("soon", 60.0)):
            qq.refuse_next("messages", 20028, status=429, headers={"Retry-After": told})
            with pytest.raises(RateLimitedError) as limited:
                await adapter.send(to_ana("hello"))
            assert limited.value.retry_after == seconds


# The token


@pytest.mark.parametrize(
    "code, error",
    [
        (100001, RateLimitedError),
        (100007, CredentialsError),
        (100016, CredentialsError),
        (10004, CredentialsError),
        (100002, UnreachableError),
        (100999, UnreachableError),  # a number that nobody has seen is no reason to give up for good
    ],
)
async def test_no_token_says_who_acts(qq: FakeQQ, code: int, error: type[PlatformError]) -> None:
    qq.refuse_next("token", code, f"no token for {qq.client_secret}")
    async with qq.adapter() as adapter:
        with pytest.raises(error, match=str(code)) as refused:
            await adapter.send(to_ana("hello"))
        assert qq.client_secret not in str(refused.value)
        if isinstance(refused.value, RateLimitedError):
            assert (refused.value.retry_after, refused.value.in_all) == (60, True)
        await adapter.send(to_ana("hello"))


@pytest.mark.parametrize("answer", [{}, {"access_token": ""}, {"access_token": 5, "expires_in": "7200"}])
async def test_an_answer_without_a_token_is_no_reason_to_give_up(qq: FakeQQ, answer: dict[str, object]) -> None:
    qq.token_answer = answer
    async with qq.adapter() as adapter:
        with pytest.raises(UnreachableError):
            await adapter.send(to_ana("hello"))
        qq.token_answer = None
        await adapter.send(to_ana("hello"))


@pytest.mark.parametrize(
    "expires_in, asked", [("7200", 1), (7200, 1), ("soon", 1), (None, 1), ("0", 2), ("60", 2), ("-5", 2)]
)
def test_a_token_is_renewed_in_its_last_minute_however_its_life_is_told(expires_in: object, asked: int) -> None:
    async def story(loop: JumpingLoop, clock: LoopClock) -> int:
        async with FakeQQ(now=clock.now) as qq, aiohttp.ClientSession() as http:
            api = Api(QQConfig.of(AdapterParts("main", qq.settings(), http, lambda: None, {})), http)
            qq.token_answer = {"access_token": "T", "expires_in": expires_in}
            await api.token()
            await asyncio.sleep(1800)
            await api.token()
            return qq.tokens_asked

    assert run_in_jumps(story) == asked


async def test_however_many_send_at_once_one_token_is_asked_for(qq: FakeQQ) -> None:
    async with qq.adapter() as adapter:
        await asyncio.gather(*(adapter.send(to_ana(f"number {number}")) for number in range(20)))
    assert (len(qq.sent), qq.tokens_asked) == (20, 1)


# Presses and typing


async def test_a_press_is_acknowledged_once_it_is_stored_and_only_once(qq: FakeQQ, inbox: Inbox) -> None:
    async with qq.adapter() as adapter, receiving(adapter, inbox):
        await adapter.send(to_ana("May I?", buttons=((Button("Yes", "y"),),)))
        qq.user_presses(qq.sent[0], "y")
        press = await inbox.press()
        await qq.wait_for(lambda: bool(qq.acks))
        assert isinstance(adapter, AnswersPresses)
        await adapter.answer_press(press.press_id, "Thanks.")
    assert qq.acks == {press.press_id: 0}
    assert qq.counts["interactions"] == 1


async def test_a_press_that_the_store_did_not_take_is_not_acknowledged(qq: FakeQQ, inbox: Inbox) -> None:
    async with qq.adapter() as adapter:
        async with receiving(adapter, inbox) as running:
            await adapter.send(to_ana("May I?", buttons=((Button("Yes", "y"),),)))
            await qq.wait_for(lambda: "session_id" in qq.cursor)
            inbox.is_down = True
            qq.user_presses(qq.sent[0], "y")
            await asyncio.wait({running})
        assert qq.acks == {}
        inbox.is_down = False
        async with receiving(adapter, inbox):
            await inbox.press()
            await qq.wait_for(lambda: bool(qq.acks))


async def test_a_press_whose_acknowledgement_did_not_arrive_is_acknowledged_with_its_answer(
    qq: FakeQQ, inbox: Inbox
) -> None:
    async with qq.adapter() as adapter, receiving(adapter, inbox):
        await adapter.send(to_ana("May I?", buttons=((Button("Yes", "y"),),)))
        qq.refuse_next("interactions", 0, status=502)
        qq.user_presses(qq.sent[0], "y")
        press = await inbox.press()
        await qq.wait_for(lambda: qq.counts["interactions"] == 1)
        assert isinstance(adapter, AnswersPresses)
        while not qq.acks:  # until the refusal has come back
            await adapter.answer_press(press.press_id, "Thanks.")
    assert qq.acks == {press.press_id: 0}


async def test_a_query_of_settings_and_a_broken_press_are_acknowledged_too(qq: FakeQQ, inbox: Inbox) -> None:
    async with qq.adapter() as adapter, receiving(adapter, inbox):
        for press_id, data in (("q-1", {"type": 2001}), ("q-2", {"type": 11})):
            qq.expect_ack(press_id)
            qq.deliver("INTERACTION_CREATE", {"id": press_id, "data": data})
        await qq.wait_for(lambda: len(qq.acks) >= 2)
    assert qq.acks == {"q-1": 0, "q-2": 1}


async def test_typing_is_shown_once_for_each_message(qq: FakeQQ, inbox: Inbox) -> None:
    async with qq.adapter() as adapter:
        assert isinstance(adapter, ShowsTyping)
        await adapter.typing(ANA)
        await heard(qq, adapter, inbox)
        for _ in range(3):
            await adapter.typing(ANA)
        assert qq.typings == 1
        await heard(qq, adapter, inbox, "more")
        await adapter.typing(ANA)
        await adapter.typing(Target("qq", "group/G1"))
    assert qq.typings == 2


# Files


@pytest.mark.parametrize("chat, scene", [(openid(7), "users"), ("group/G1", "groups")])
async def test_a_file_is_uploaded_for_the_kind_of_chat_it_is_sent_to(
    qq: FakeQQ, tmp_path: Path, chat: str, scene: str
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png())
    file = Attachment(AttachmentKind.IMAGE, path=str(path), name="a.png", mime="image/png")
    async with qq.adapter() as adapter:
        await adapter.send(OutboundMessage(Target("qq", chat), "look", attachment=file))
    assert (qq.sent[0].file, qq.sent[0].text, qq.sent[0].chat) == (png(), "look", chat)
    assert qq.called("/files")[0]["file_type"] == 1
    assert qq.calls[-2].path.startswith(f"/v2/{scene}/")


async def test_a_large_file_goes_up_in_parts(qq: FakeQQ, tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    data = bytes(range(256)) * 4 * 12_000  # over 10,002,432 bytes, the end of what `md5_10m` counts
    path.write_bytes(data)
    file = Attachment(AttachmentKind.VIDEO, path=str(path), name="film.mp4", mime="video/mp4")
    async with qq.adapter() as adapter:
        await adapter.send(OutboundMessage(ANA, "", attachment=file))
    assert [sent.file == data for sent in qq.sent] == [True]
    assert qq.counts["upload_part_finish"] == 4


@pytest.mark.parametrize("times, is_taken", [(3, True), (1000, False)])
def test_a_part_that_qq_has_not_seen_yet_is_asked_for_each_second_for_as_long_as_it_said(
    tmp_path: Path, times: int, is_taken: bool
) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"x" * 5000)
    file = Attachment(AttachmentKind.VIDEO, path=str(path), name="film.mp4", mime="video/mp4")

    async def upload(loop: JumpingLoop, clock: LoopClock) -> float:
        async with FakeQQ(now=clock.now) as qq, aiohttp.ClientSession() as http:
            config = QQConfig.of(AdapterParts("main", qq.settings(), http, lambda: None, {}))
            uploads = Uploads(Api(config, http), in_one_piece=1000)
            qq.refuse_next("upload_part_finish", 40093001, "not ready", times=times)
            began = loop.time()
            if is_taken:
                assert await uploads.upload(file, "/v2/users/A")
            else:
                with pytest.raises(RejectedError, match="not ready"):
                    await uploads.upload(file, "/v2/users/A")
            return loop.time() - began

    lasted = run_in_jumps(upload)
    assert round(lasted) == (3 if is_taken else 120)


async def test_a_part_that_is_refused_for_another_reason_is_not_asked_for_again(qq: FakeQQ, tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    with path.open("wb") as file:
        file.truncate(9_000_000)
    qq.refuse_next("upload_part_finish", 40093004, "part differs", times=2)
    film = Attachment(AttachmentKind.VIDEO, path=str(path), name="film.mp4", mime="video/mp4")
    async with qq.adapter() as adapter:
        with pytest.raises(RejectedError, match="part differs"):
            await adapter.send(OutboundMessage(ANA, "", attachment=film))
    assert qq.counts["upload_part_finish"] == 1


async def test_a_spent_quota_is_told_and_not_tried_again(qq: FakeQQ, tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    with path.open("wb") as file:
        file.truncate(9_000_000)
    qq.refuse_next("upload_prepare", 40093002, "daily quota")
    async with qq.adapter() as adapter:
        with pytest.raises(RejectedError, match="daily quota"):
            await adapter.send(
                OutboundMessage(ANA, "", attachment=Attachment(AttachmentKind.DOCUMENT, path=str(path), name="big.bin"))
            )
    assert qq.counts["upload_prepare"] == 1


@pytest.mark.parametrize("code", [304082, 304083])
@pytest.mark.parametrize("times, is_sent", [(2, True), (3, False)])
async def test_an_upload_that_failed_is_tried_twice_more(
    qq: FakeQQ, tmp_path: Path, code: int, times: int, is_sent: bool
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hello")
    qq.refuse_next("files", code, "fetch failed", times=times)
    message = OutboundMessage(ANA, "", attachment=Attachment(AttachmentKind.DOCUMENT, path=str(path), name="a.txt"))
    async with qq.adapter() as adapter:
        if is_sent:
            await adapter.send(message)
        else:
            with pytest.raises(RejectedError, match="fetch failed"):
                await adapter.send(message)
    assert len(qq.sent) == is_sent


async def test_a_file_without_words_has_the_space_that_qq_wants(qq: FakeQQ, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hello")
    file = Attachment(AttachmentKind.DOCUMENT, path=str(path), name="a.txt")
    async with qq.adapter() as adapter:
        await adapter.send(OutboundMessage(ANA, "", attachment=file))
    assert qq.called("/messages")[0]["content"] == " "


@pytest.mark.parametrize("is_ours, asked", [(True, 1), (False, 0)])
async def test_a_file_is_fetched_with_a_new_token_where_the_old_one_died(
    qq: FakeQQ, inbox: Inbox, tmp_path: Path, is_ours: bool, asked: int
) -> None:
    async with qq.adapter() as adapter:
        async with receiving(adapter, inbox):
            qq.user_sends(b"data", "a.txt")
            [file] = (await inbox.message()).attachments
        assert isinstance(adapter, FetchesFiles)
        qq.kill_tokens()
        if is_ours:
            assert (await adapter.fetch(file, tmp_path / "in")).read_bytes() == b"data"
        else:  # a file that we may not have stays one, with whatever token
            qq.refuses_files = True
            with pytest.raises(RejectedError, match=r"a\.txt"):
                await adapter.fetch(file, tmp_path / "in")
    assert qq.downloads == asked


async def test_a_file_elsewhere_is_fetched_without_the_token(qq: FakeQQ, inbox: Inbox, tmp_path: Path) -> None:
    async with qq.adapter() as adapter:
        async with receiving(adapter, inbox):
            qq.user_sends(b"data", "a.txt")
            [file] = (await inbox.message()).attachments
        assert isinstance(adapter, FetchesFiles)
        away = replace(file, file_id=file.file_id.replace("127.0.0.1", "localhost"))
        with pytest.raises(RejectedError, match=r"a\.txt.*401"):
            await adapter.fetch(away, tmp_path / "in")
    assert qq.shown_to == [""]


async def test_in_a_guild_a_file_is_refused_in_words(qq: FakeQQ) -> None:
    file = Attachment(AttachmentKind.DOCUMENT, path="/nowhere", name="a.txt")
    async with qq.adapter() as adapter:
        with pytest.raises(RejectedError, match=r"a\.txt"):
            await adapter.send(OutboundMessage(Target("qq", "channel/1"), "", attachment=file))


def test_the_token_is_shown_to_qqs_own_hosts_alone() -> None:
    assert all(is_own(host, "127.0.0.1") for host in ("127.0.0.1", "multimedia.nt.qq.com.cn", "api.sgroup.qq.com"))
    assert not any(is_own(host, "127.0.0.1") for host in ("evilqq.com", "qq.com.evil.example", "localhost"))


# Guilds


async def test_in_a_guild_words_go_to_the_channel_as_an_answer(qq: FakeQQ, inbox: Inbox) -> None:
    async with qq.adapter() as adapter:
        said = await heard(qq, adapter, inbox, "hello", chat="channel/100010")
        await adapter.send(OutboundMessage(Target("qq", "channel/100010"), "**hi**", idempotency_key="ob_1"))
        buttons = ((Button("Yes", "y"),),)
        await adapter.send(OutboundMessage(Target("qq", "channel/100010"), "May I?", buttons=buttons))
    assert qq.called("/messages")[0] == {"content": "hi", "msg_id": said}
    assert qq.sent[1].buttons == buttons
