"""An update is read as what a person meant by it, and nothing that comes can break the reader."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.keys import ChatKind
from hermes.core.messages import (
    AttachmentKind,
    Ignored,
    InboundEvent,
    InboundMessage,
    Json,
    Press,
    Unreadable,
)
from hermes.core.text import storable
from hermes.platforms.telegram import wire
from hermes.platforms.telegram.edits import Seen
from hermes.platforms.telegram.parse import Me
from tests.fakes.telegram import FakeTelegram

ME = Me("42", "test_bot")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def understand(update: Any) -> InboundEvent:
    return wire.understand(update, ME, NOW)


def last(fake: FakeTelegram) -> Json:
    update: Json = orjson.loads(fake._pending[-1].body)
    return update


def message_in(fake: FakeTelegram) -> InboundMessage:
    event = understand(last(fake))
    assert isinstance(event, InboundMessage), event
    return event


@pytest.fixture
def fake() -> FakeTelegram:
    return FakeTelegram()


def test_a_private_message_is_addressed_and_named(fake: FakeTelegram) -> None:
    said = fake.user_says("hello", chat=9, name="Ben")
    message = message_in(fake)
    assert message.keys == (said.key,) == ("msg:9:1",)
    assert str(message.session_key) == "agent:main:telegram:dm:9"
    assert (message.sender_id, message.sender_name, message.text) == ("9", "Ben", "hello")
    assert message.is_addressed
    assert not message.may_continue


def test_an_account_of_its_own_is_in_the_key(fake: FakeTelegram) -> None:
    fake.user_says("hello")
    event = wire.understand(last(fake), Me("42", "test_bot", account="work"), NOW)
    assert isinstance(event, InboundMessage)
    assert str(event.session_key) == "agent:main:telegram@work:dm:7"


@pytest.mark.parametrize(
    "text,is_addressed,read",
    [
        ("hello all", False, "hello all"),
        ("@test_bot hello", True, "hello"),
        ("🙂 hey @TEST_BOT, hello", True, "🙂 hey @TEST_BOT, hello"),
        ("@other_bot hello", False, "@other_bot hello"),
        ("/status@test_bot now", True, "/status now"),
        ("/status@other_bot", False, "/status@other_bot"),
        ("/stop", True, "/stop"),
        ("look in /etc please", False, "look in /etc please"),
        ("@test_bot", True, "@test_bot"),
        ("mail me at a@test_bot.example", False, "mail me at a@test_bot.example"),
    ],
)
def test_in_a_group_it_listens_when_it_is_named(fake: FakeTelegram, text: str, is_addressed: bool, read: str) -> None:
    fake.user_says(text, chat=fake.group())
    message = message_in(fake)
    assert message.session_key.kind is ChatKind.GROUP
    assert (message.is_addressed, message.text) == (is_addressed, read)


def test_a_mention_of_a_bot_without_a_name_counts_by_its_id(fake: FakeTelegram) -> None:
    mention = {"type": "text_mention", "offset": 0, "length": 3, "user": {"id": 42, "is_bot": True, "first_name": "B"}}
    fake.user_says("Bot, hello", chat=fake.group(), entities=[mention])
    assert message_in(fake).is_addressed


async def test_a_reply_to_the_bot_in_a_group_is_addressed_and_quotes_it(fake: FakeTelegram) -> None:
    sent = fake._post({"chat_id": fake.group(), "text": "I am here"}, "sendMessage", "I am here")
    assert sent["message_id"] == 1
    fake.user_answers(fake.sent[0], "good", quote="here")
    message = message_in(fake)
    assert message.is_addressed
    assert message.quote is not None
    assert (message.quote.text, message.quote.from_us, message.quote.message_id) == ("here", True, "1")


def test_a_reply_to_another_person_is_quoted_and_not_addressed(fake: FakeTelegram) -> None:
    replied = {"message_id": 5, "date": 1, "from": {"id": 9, "first_name": "Ben"}, "caption": "a picture"}
    fake.user_says("nice", chat=fake.group(), reply_to_message=replied)
    message = message_in(fake)
    assert not message.is_addressed
    assert message.quote is not None
    assert (message.quote.text, message.quote.sender_name, message.quote.from_us) == ("a picture", "Ben", False)


def test_a_topic_is_a_place_of_its_own_and_its_opening_is_no_quote(fake: FakeTelegram) -> None:
    opening = {"message_id": 5, "date": 1, "forum_topic_created": {"name": "Plans", "icon_color": 1}}
    fake.user_says("hi", chat=fake.group(is_forum=True), thread=5, reply_to_message=opening)
    message = message_in(fake)
    assert message.session_key.thread == "5"
    assert message.quote is None


def test_the_general_topic_is_thread_one_whether_or_not_telegram_says_so(fake: FakeTelegram) -> None:
    forum = fake.group(is_forum=True)
    fake.user_says("hi", chat=forum)
    unsaid = message_in(fake)
    fake.user_says("hi", chat=forum, thread=1)
    assert unsaid.session_key == message_in(fake).session_key
    assert unsaid.session_key.thread == "1"


def test_a_thread_of_answers_in_an_ordinary_group_is_not_a_place(fake: FakeTelegram) -> None:
    fake.user_says("hi", chat=fake.group(), message_thread_id=77)
    assert message_in(fake).session_key.thread == ""


def test_an_edit_has_a_key_with_its_date(fake: FakeTelegram) -> None:
    said = fake.user_says("helo")
    edited = fake.user_edits(said, "hello")
    message = message_in(fake)
    assert message.is_edit
    assert message.keys == (edited.key,)
    assert edited.key.startswith("edit:7:1:")


@pytest.mark.parametrize(
    "more",
    [
        {"media_group_id": "1"},
        {"forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "x"}},
        {"forward_date": 1},
        {"text": "x" * 4000},
        {"text": "🙂" * 2000},
    ],
)
def test_what_is_likely_to_go_on_says_so(fake: FakeTelegram, more: Json) -> None:
    fake.user_says(**{"text": "part one", **more})
    assert message_in(fake).may_continue


@pytest.mark.parametrize(
    "kind,expected",
    [
        ("document", AttachmentKind.DOCUMENT),
        ("photo", AttachmentKind.IMAGE),
        ("voice", AttachmentKind.VOICE),
        ("audio", AttachmentKind.AUDIO),
        ("video", AttachmentKind.VIDEO),
    ],
)
def test_a_file_is_an_attachment_with_its_caption_as_text(
    fake: FakeTelegram, kind: str, expected: AttachmentKind
) -> None:
    fake.user_sends(b"data", "f.bin", "look", kind=kind, mime="x/y")
    message = message_in(fake)
    assert message.text == "look"
    assert [(each.kind, each.file_id, each.size) for each in message.attachments] == [(expected, "FILE1", 4)]


@pytest.mark.parametrize(
    "content,text",
    [
        ({"sticker": {"file_id": "S", "emoji": "👍", "is_animated": False}}, "👍"),
        ({"location": {"latitude": 1.5, "longitude": 2.5}}, "Location: 1.5, 2.5"),
        ({"contact": {"first_name": "Ben", "phone_number": "+1"}}, "Contact: Ben, +1"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "🎲 4"),
        ({"poll": {"question": "When?", "options": [{"text": "now"}]}}, "Poll: When?\n- now"),
        (
            {"venue": {"title": "Cafe", "address": "Road 1"}, "location": {"latitude": 1, "longitude": 2}},
            "Place: Cafe, Road 1",
        ),
    ],
)
def test_what_is_not_words_is_put_into_words(fake: FakeTelegram, content: Json, text: str) -> None:
    fake._new_message(content, 7, None, "Ana", None)
    assert message_in(fake).text == text


def test_a_press_names_its_presser_place_and_message(fake: FakeTelegram) -> None:
    markup = {"inline_keyboard": [[{"text": "OK", "callback_data": "ok:1"}]]}
    fake.group()
    fake._post({"chat_id": -1001234, "text": "?", "reply_markup": markup}, "sendMessage", "?")
    fake.user_presses(fake.sent[0], "OK", user=9, name="Ben")
    press = understand(last(fake))
    assert isinstance(press, Press)
    assert press.keys == ("press:999",)
    assert (press.sender_id, press.sender_name, press.data, press.press_id) == ("9", "Ben", "ok:1", "999")
    assert (press.message_id, press.session_key.chat, press.sent_at) == ("1", "-1001234", NOW)


@pytest.mark.parametrize(
    "update,kind",
    [
        ({"update_id": 1}, "empty"),
        ({"update_id": 1, "my_chat_member": {}}, "my_chat_member"),
        ({"update_id": 1, "callback_query": {"id": "1", "from": {"id": 1}, "game_short_name": "x"}}, "callback_query"),
        ({"update_id": 1, "message": {"message_id": 1, "date": 1, "new_chat_members": []}}, "new_chat_members"),
    ],
)
def test_what_is_not_for_us_is_ignored_by_name(update: Json, kind: str) -> None:
    event = understand(update)
    assert isinstance(event, Ignored)
    assert event.kind.startswith(kind)


def test_a_live_location_is_told_once_and_not_wherever_it_moves(fake: FakeTelegram) -> None:
    spot = {"latitude": 1.5, "longitude": 2.5, "live_period": 3600}
    fake._new_message({"location": spot}, 7, None, "Ana", None)
    first = last(fake)["message"]
    assert message_in(fake).text == "Location: 1.5, 2.5"
    moved = {**first, "location": {**spot, "latitude": 1.6}, "edit_date": first["date"] + 5}
    assert isinstance(understand({"update_id": 2, "edited_message": moved}), Ignored)


def test_other_bots_and_the_bot_itself_are_not_answered(fake: FakeTelegram) -> None:
    for sender in ({"id": 99, "is_bot": True, "first_name": "B"}, {"id": 42, "is_bot": True, "first_name": "Me"}):
        as_sender: dict[str, Any] = {"from": sender}
        fake.user_says("hello", **as_sender)
        assert isinstance(understand(last(fake)), Ignored)


def test_a_person_who_speaks_as_a_group_is_known_by_the_group(fake: FakeTelegram) -> None:
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    as_group: dict[str, Any] = {"from": anonymous, "sender_chat": {"id": -1001234, "title": "Family"}}
    fake.user_says("hi", chat=fake.group(), **as_group)
    assert (message_in(fake).sender_id, message_in(fake).sender_name) == ("-1001234", "Family")


@pytest.mark.parametrize("date", ["soon", None, 10**15, -(10**15), 1.5, True, [5]])
def test_a_time_that_cannot_be_read_does_not_cost_the_message(fake: FakeTelegram, date: object) -> None:
    fake.user_says("hello", date=date)
    assert (message_in(fake).text, message_in(fake).sent_at) == ("hello", NOW)
    fake.user_says("hello", date="1700000000")
    assert message_in(fake).sent_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_an_edit_without_a_time_cannot_be_told_from_others_and_is_set_aside() -> None:
    message = {"message_id": 1, "date": 1, "chat": {"id": 7, "type": "private"}, "from": {"id": 7}, "text": "x"}
    assert isinstance(understand({"update_id": 1, "edited_message": {**message, "edit_date": "soon"}}), Unreadable)


def test_an_edit_that_telegram_shows_nobody_is_none() -> None:
    """So it tells of a first reaction."""
    message = {"message_id": 1, "date": 1, "chat": {"id": 7, "type": "private"}, "from": {"id": 7}, "text": "x"}
    assert isinstance(understand({"update_id": 1, "edited_message": message}), Ignored)


def test_an_edit_in_which_nothing_changed_is_none(fake: FakeTelegram) -> None:
    seen = Seen()
    said = fake.user_sends(b"data", "notes.txt", "look")
    seen.ignore_unchanged(understand(last(fake)))
    same = {**last(fake)["message"], "edit_date": 1_900_000_000}
    assert isinstance(seen.ignore_unchanged(understand({"update_id": 2, "edited_message": same})), Ignored)
    for text, is_new in (("look here", True), ("look here", False), ("look", True)):
        changed = {**same, "caption": text}
        assert (
            isinstance(seen.ignore_unchanged(understand({"update_id": 3, "edited_message": changed})), InboundMessage)
            == is_new
        )
    unknown = {**same, "message_id": int(said.message_id) + 1}
    assert isinstance(seen.ignore_unchanged(understand({"update_id": 4, "edited_message": unknown})), InboundMessage)


def test_only_the_last_messages_are_remembered(fake: FakeTelegram) -> None:
    seen = Seen()
    fake.user_says("first")
    first = last(fake)["message"]
    seen.ignore_unchanged(understand({"update_id": 1, "message": first}))
    for number in range(2000):
        seen.ignore_unchanged(understand({"update_id": 2, "message": {**first, "message_id": 100 + number}}))
    edit = {"update_id": 3, "edited_message": {**first, "edit_date": 1_900_000_000}}
    assert isinstance(seen.ignore_unchanged(understand(edit)), InboundMessage)


def test_a_channel_post_comes_from_its_channel() -> None:
    chat = {"id": -100555, "type": "channel", "title": "News"}
    post = {"message_id": 3, "date": 1_700_000_000, "chat": chat, "sender_chat": chat, "text": "breaking"}
    event = understand({"update_id": 1, "channel_post": post})
    assert isinstance(event, InboundMessage)
    assert (event.session_key.kind, event.sender_id, event.is_addressed) == (ChatKind.CHANNEL, "-100555", False)


def test_what_cannot_be_read_keeps_its_raw_form_and_the_same_name_every_time() -> None:
    broken = {"update_id": 1, "message": {"text": "hello", "from": 5}}
    first, second = understand(broken), understand(broken)
    assert isinstance(first, Unreadable)
    assert first.keys == second.keys
    assert "hello" in first.raw


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def an_update() -> Json:
    fake = FakeTelegram()
    replied = {"message_id": 5, "date": 1, "from": {"id": 9, "first_name": "Ben"}, "text": "so"}
    fake.user_says("/go@test_bot x", chat=fake.group(is_forum=True), thread=4, reply_to_message=replied)
    update = last(fake)
    update["message"] |= {"photo": [{"file_id": "a", "file_size": 1}], "quote": {"text": "s", "position": 0}}
    press = {"id": "1", "from": update["message"]["from"], "message": update["message"], "data": "ok"}
    return {**update, "callback_query": press}


UPDATE = an_update()


def paths(value: object, prefix: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [prefix, *(path for key, each in inner for path in paths(each, (*prefix, key)))]


def mutated(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = mutated(value[path[0]], path[1:], new)
    return copy


@given(
    path=st.sampled_from([path for path in paths(UPDATE) if path]),
    other=st.sampled_from([path for path in paths(UPDATE) if path]),
    first=JSON,
    second=JSON,
    as_press=st.booleans(),
)
def test_no_mutation_of_an_update_breaks_the_reader(
    path: tuple[str | int, ...], other: tuple[str | int, ...], first: object, second: object, as_press: bool
) -> None:
    update = mutated(UPDATE, path, first)
    with suppress(KeyError, IndexError, TypeError):  # the first change may have taken away the place of the second
        update = mutated(update, other, second)
    if as_press:
        update.pop("message", None)
    event = understand(update)
    assert isinstance(event, InboundMessage | Press | Ignored | Unreadable)
    if isinstance(event, InboundMessage):
        storable(event.text).encode()
    for key in event.keys:
        assert storable(key) == key
    if isinstance(event, InboundMessage | Press):
        assert type(event.session_key).parse(str(event.session_key)) == event.session_key
    if isinstance(event, Unreadable):
        storable(event.raw).encode()


@given(JSON)
def test_anything_at_all_in_the_place_of_a_message_is_an_event(content: object) -> None:
    assert understand({"update_id": 1, "message": content}).keys is not None
    assert understand({"update_id": 1, "callback_query": content}).keys is not None


def test_a_message_of_ten_megabytes_is_only_a_long_message() -> None:
    fake = FakeTelegram()
    entities = [{"type": "mention", "offset": number, "length": 4} for number in range(100)]
    fake.user_says("x" * 10_000_000, chat=fake.group(), entities=entities)
    message = message_in(fake)
    assert len(message.text) == 10_000_000
    assert message.may_continue
