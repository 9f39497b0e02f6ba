"""Messages as iLink hands them out, read; and ten thousand broken ones, kept."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from hermes.core.keys import ChatKind
from hermes.core.messages import AttachmentKind, Ignored, InboundEvent, InboundMessage, Json, Unreadable
from hermes.platforms.weixin import wire
from hermes.platforms.weixin.cursors import Memory
from hermes.platforms.weixin.parse import Reader, Remembered, partial, understand
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


@pytest.mark.parametrize(
    "text, end_index, quoted",
    [
        ("a fox brown fox", 0, "brown fox"),  # from the beginning it would end before it starts
        ("fox brown fox fox", 1, "brown fox fox"),  # both are there: the hash tells which
        ("fox brown fox fox", 1, "brown fox"),
    ],
)
def test_where_a_part_ends_is_counted_in_either_way_and_its_hash_tells_in_which(
    text: str, end_index: int, quoted: str
) -> None:
    digest = hashlib.md5(quoted.encode()).hexdigest()  # noqa: S324 - theirs
    part = {"start": "brown", "end": "fox", "startindex": 0, "endindex": end_index, "quotemd5": digest}
    assert partial(text, part) == quoted


@pytest.mark.parametrize("told", ["1760000000000", 1_760_000_000_000])
def test_a_time_is_read_as_number_or_text(told: object) -> None:
    assert received(samples.text("hi"), create_time_ms=told).sent_at == datetime.fromtimestamp(1_760_000_000, UTC)


@pytest.mark.parametrize("told", ["soon", "", -5, 10**15, 10**400, True, None, 1.5])
def test_a_time_that_is_none_does_not_cost_the_message(told: object) -> None:
    assert received(samples.text("hi"), create_time_ms=told).sent_at == datetime.fromtimestamp(NOW, UTC)


@pytest.mark.parametrize("number", [None, 0, -1, 2**64, "", "x", "9" * 21, True, 1.5])
def test_without_a_number_of_its_own_a_message_is_known_by_that_of_its_first_item(number: object) -> None:
    named = received({**samples.text("hi"), "msg_id": 77}, message_id=number)
    assert named.keys == ("msg:77",)
    assert isinstance(read(samples.message(samples.text("hi"), message_id=number)), Unreadable)


# The same words twice


def twin(first: Json, **more: Any) -> bool:
    """Whether a second message counts as the first one again."""
    memory = Memory({})
    for raw in (first, {**first, "message_id": 2, "context_token": "another", **more}):
        event = read(raw)
        assert isinstance(event, InboundMessage)
        event = memory.add_repeat_key(event, raw)
    return "msg:7492913259736648968" in event.keys


@pytest.mark.parametrize(
    "later_ms, is_twin", [(0, True), (1, False), (1499, False), (2000, True), (11_000, True), (15_001, False)]
)
def test_the_same_words_some_seconds_later_are_the_same_message(later_ms: int, is_twin: bool) -> None:
    first = samples.message(samples.text("yes"))
    assert twin(first, create_time_ms=first["create_time_ms"] + later_ms) == is_twin


def heard(*said: tuple[int, str, int], memory: Memory | None = None) -> list[tuple[str, ...]]:
    """The keys of one message after another: its number, its words, and when they were written in milliseconds."""
    memory, keys = memory or Memory({}), []
    for number, words, at in said:
        raw = samples.message(samples.text(words), message_id=number, create_time_ms=1_760_000_000_000 + at)
        event = read(raw)
        assert isinstance(event, InboundMessage)
        keys.append(memory.add_repeat_key(event, raw).keys)
    return keys


def test_of_several_texts_in_a_row_each_is_known_when_it_comes_again() -> None:
    one, two = ("msg:1",), ("msg:2",)
    again = heard((1, "one", 0), (2, "two", 1000), (3, "one", 4000), (4, "two", 5000), (5, "one", 9000))
    assert again == [one, two, ("msg:3", *one), ("msg:4", *two), ("msg:5", *one)]
    memory = Memory({})
    heard((1, "one", 0), (2, "two", 1000), memory=memory)
    after_a_restart = Memory(memory.take_marks())
    assert heard((3, "one", 4000), (2, "two", 1000), memory=after_a_restart) == [("msg:3", *one), two]


def test_what_was_said_long_before_is_no_twin_and_not_kept() -> None:
    memory = Memory({})
    heard(*((number, f"text {number}", number * 100) for number in range(1, 30)), (30, "yes", 60_000), memory=memory)
    assert heard((31, "yes", 64_000), memory=memory) == [("msg:31", "msg:30")]
    assert all(len(mark) < 100 for name, mark in memory.take_marks().items() if name.startswith("last:"))


def test_a_mark_with_a_single_text_is_read_too() -> None:
    memory = Memory({})
    heard((1, "yes", 0), memory=memory)
    [(name, mark)] = [(name, mark) for name, mark in memory.take_marks().items() if name.startswith("last:")]
    single = Memory({name: mark.removeprefix("[").removesuffix("]")})
    assert heard((2, "yes", 4000), memory=single) == [("msg:2", "msg:1")]


def test_other_words_or_another_person_are_not() -> None:
    first = samples.message(samples.text("yes"))
    later = {"create_time_ms": first["create_time_ms"] + 4000}
    assert not twin(first, item_list=[samples.text("no")], **later)
    assert not twin(first, from_user_id="o2@im.wechat", **later)


def test_the_same_words_beside_another_file_are_another_message() -> None:
    first = samples.message(samples.FILE, samples.text("look"))
    assert not twin(first, create_time_ms=first["create_time_ms"] + 4000)


def test_times_that_are_written_as_text_tell_a_twin_too() -> None:
    first = samples.message(samples.text("yes"), create_time_ms="1760000000000")
    assert twin(first, create_time_ms="1760000004000")
    assert not twin(first, create_time_ms="soon")


def test_only_the_last_messages_are_kept_over_a_restart() -> None:
    memory = Memory({})
    for number in range(200):
        memory.remember(str(number), f"text {number}", from_us=False)
    cursor = memory.take_marks()
    assert len([name for name in cursor if name.startswith("said:")]) == 60
    again = Memory(cursor)
    assert [again.recall(str(number)) is not None for number in (139, 140, 199)] == [False, True, True]
    again.remember("200", "one more", from_us=True)
    assert Memory({**cursor, **again.take_marks()}).recall("140") is None, "the oldest makes room"


def test_the_last_words_are_known_after_a_restart_too() -> None:
    first = samples.message(samples.text("yes"))
    memory = Memory({})
    event = read(first)
    assert isinstance(event, InboundMessage)
    memory.add_repeat_key(event, first)
    again = {**first, "message_id": 2, "create_time_ms": first["create_time_ms"] + 4000}
    event = read(again)
    assert isinstance(event, InboundMessage)
    assert "msg:7492913259736648968" in Memory(memory.take_marks()).add_repeat_key(event, again).keys


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
            memory.add_repeat_key(event, raw)
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
