"""Messages as iLink hands them out, read; and ten thousand broken ones, kept."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from hermes.core.keys import ChatKind
from hermes.core.messages import AttachmentKind, Ignored, InboundEvent, InboundMessage, Json, Unreadable
from hermes.platforms.weixin import wire
from hermes.platforms.weixin.memory import Memory
from hermes.platforms.weixin.reading import Reader, Remembered, partial, understand
from tests.unit.platforms.weixin import samples

NOW = 1_760_000_000.0
ANA, BOT = "o9cq8AAA@im.wechat", "44b9b8ec@im.bot"
SAID = {"7492913259736648968": Remembered("the quick brown fox", from_us=True)}
READER = Reader(BOT, "main", SAID.get)


def read(message: object) -> InboundEvent:
    return understand(message, READER, NOW)


def received(*items: Json, **more: Any) -> InboundMessage:
    event = read(samples.message(*items, **more))
    assert isinstance(event, InboundMessage), event
    return event


def test_a_text_has_its_number_sender_place_and_time() -> None:
    message = received(samples.text("hello"))
    assert message.keys == ("msg:7492913259736648968",)
    assert (message.sender_id, message.session_key.chat, message.session_key.kind) == (ANA, ANA, ChatKind.DM)
    assert message.sent_at == datetime.fromtimestamp(1_760_000_000, UTC)
    assert message.is_addressed


def test_a_number_above_two_to_the_fiftythird_keeps_its_digits() -> None:
    raw = wire.decode(orjson.dumps(samples.message(samples.text("hi"), message_id=18446744073709551615)))
    event = read(raw)
    assert isinstance(event, InboundMessage)
    assert event.message_id == "18446744073709551615"


def test_a_group_is_a_place_of_its_own() -> None:
    message = received(samples.text("hi"), group_id="g1@chatroom")
    assert (message.session_key.kind, message.session_key.chat, message.sender_id) == (
        ChatKind.GROUP,
        "g1@chatroom",
        ANA,
    )


@pytest.mark.parametrize(
    "more",
    [{"message_type": 2}, {"from_user_id": ""}, {"from_user_id": BOT}, {"message_state": 1}, {"item_list": []}],
    ids=["from a bot", "from nobody", "from us", "not finished", "empty"],
)
def test_what_is_not_from_a_person_is_passed_over(more: Json) -> None:
    assert isinstance(read(samples.message(samples.text("hi"), **more)), Ignored)


@pytest.mark.parametrize(
    "item, kind, name",
    [
        (samples.IMAGE, AttachmentKind.IMAGE, "picture.jpg"),
        (samples.FILE, AttachmentKind.DOCUMENT, "a.pdf"),
        (samples.VIDEO, AttachmentKind.VIDEO, "video.mp4"),
        (samples.SILENT_VOICE, AttachmentKind.VOICE, "voice.silk"),
    ],
    ids=["image", "file", "video", "voice"],
)
def test_a_file_is_an_attachment_that_may_be_followed_by_words(item: Json, kind: AttachmentKind, name: str) -> None:
    message = received(item)
    assert [(file.kind, file.name) for file in message.attachments] == [(kind, name)]
    assert message.may_continue


def test_speech_that_was_written_down_is_text_and_is_not_fetched() -> None:
    message = received(samples.VOICE)
    assert (message.text, message.attachments) == ("turn on the light", ())


def test_a_long_text_may_go_on_and_a_short_one_does_not() -> None:
    assert received(samples.text("x" * 1990)).may_continue
    assert not received(samples.text("hello")).may_continue


def test_a_quote_by_number_alone_is_looked_up() -> None:
    message = received({**samples.text("why?"), "ref_msg": {"svr_id": 7492913259736648968}})
    assert message.quote is not None
    assert (message.quote.text, message.quote.from_us) == ("the quick brown fox", True)


def test_a_marked_part_of_a_quote_is_found() -> None:
    message = received(samples.PARTIAL_QUOTE)
    assert message.quote is not None
    assert message.quote.text == "brown fox"


def test_an_older_phone_brings_the_quoted_words_along() -> None:
    message = received(samples.OLD_QUOTE)
    assert message.quote is not None
    assert (message.quote.text, message.quote.from_us) == ("photo", False)


@pytest.mark.parametrize(
    "part, words",
    [
        ({"start": "a", "end": "c", "startindex": 1, "endindex": 0}, "a b c"),
        ({"start": "b", "end": "b"}, "b"),
        ({"start": "zz", "end": "c"}, ""),
        ({"start": "", "end": ""}, ""),
    ],
)
def test_a_part_is_counted_from_the_beginning_unless_that_is_behind_it(part: Json, words: str) -> None:
    assert partial("a x a b c", part) == words


# The same words twice


def twin(first: Json, **more: Any) -> bool:
    """Whether a second message counts as the first one again."""
    memory = Memory({})
    for raw in (first, {**first, "message_id": 2, "context_token": "another", **more}):
        event = read(raw)
        assert isinstance(event, InboundMessage)
        event = memory.told_twice(event, raw)
    return "msg:7492913259736648968" in event.keys


@pytest.mark.parametrize(
    "later_ms, is_twin", [(0, True), (1, False), (1499, False), (2000, True), (11_000, True), (15_001, False)]
)
def test_the_same_words_some_seconds_later_are_the_same_message(later_ms: int, is_twin: bool) -> None:
    first = samples.message(samples.text("yes"))
    assert twin(first, create_time_ms=first["create_time_ms"] + later_ms) == is_twin


def test_other_words_or_another_person_are_not() -> None:
    first = samples.message(samples.text("yes"))
    later = {"create_time_ms": first["create_time_ms"] + 4000}
    assert not twin(first, item_list=[samples.text("no")], **later)
    assert not twin(first, from_user_id="o2@im.wechat", **later)


def test_the_last_words_are_known_after_a_restart_too() -> None:
    first = samples.message(samples.text("yes"))
    memory = Memory({})
    event = read(first)
    assert isinstance(event, InboundMessage)
    memory.told_twice(event, first)
    again = {**first, "message_id": 2, "create_time_ms": first["create_time_ms"] + 4000}
    event = read(again)
    assert isinstance(event, InboundMessage)
    assert "msg:7492913259736648968" in Memory(memory.take_marks()).told_twice(event, again).keys


# Broken ones

WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**64, 2**70, 1.5, float("1e308"), "", "x", "\ud800", "\x00", "9" * 5000),
    *([], [None], [[]], {}, {"type": 1}, {"text": {}}, [[[[{}]]]], b"bytes".decode(), "🙂" * 10),
)


def mutated(value: Any, chance: random.Random) -> Any:
    """The same with one place somewhere in it replaced, removed or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(sorted(value))
        if chance.random() < 0.15:
            return {key: each for key, each in value.items() if key != name}
        return {**value, name: mutated(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        if chance.random() < 0.1:
            return [*value, value[place]]
        return [*value[:place], mutated(value[place], chance), *value[place + 1 :]]
    return chance.choice(WRONG)


def test_ten_thousand_broken_messages_break_nothing() -> None:
    chance = random.Random(7)
    memory = Memory({})
    kinds = {InboundMessage: 0, Ignored: 0, Unreadable: 0}
    for number in range(10_000):
        raw = samples.ALL[number % len(samples.ALL)]
        for _ in range(chance.randrange(1, 4)):
            raw = mutated(raw, chance)
        event = read(raw)
        kinds[type(event)] += 1
        if isinstance(event, InboundMessage):
            memory.told_twice(event, raw)
            assert isinstance(event.text, str)
            assert event.sender_id
            assert event.keys
        elif isinstance(event, Unreadable):
            assert event.keys
    assert all(kinds.values()), kinds
    for number in range(500):
        answer = mutated(
            {"ret": 0, "msgs": [samples.ALL[0]], "get_updates_buf": "x", "longpolling_timeout_ms": 1}, chance
        )
        if isinstance(answer, dict):
            try:
                batch = wire.read_batch(answer)
            except ValueError:
                continue
            assert isinstance(batch.cursor, str), number
