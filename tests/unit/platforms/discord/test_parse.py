"""What Discord's events mean, and that none of them can do harm."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from hermes.core.errors import RateLimitedError
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import AttachmentKind, Ignored, InboundMessage, Press, Unreadable
from hermes.platforms.discord import wire
from hermes.platforms.discord.cursors import MAX_SESSION_STARTS, MAX_THREADS, Places, Session
from hermes.platforms.discord.parse import Me, Room, RoomKind, Rules, snowflake_at, when
from tests.unit.platforms.mutations import mutated

Json = dict[str, Any]
ID = "1100000000000000001"
ANA: Json = {"id": "7", "username": "ana", "discriminator": "0", "global_name": "Ana", "avatar": None}
BOT: Json = {"id": "901", "username": "hermes", "bot": True}
MESSAGE: Json = {
    "id": ID,
    "channel_id": "300",
    "guild_id": "200",
    "author": ANA,
    "member": {"nick": None, "roles": []},
    "content": "hello",
    "timestamp": "2023-04-24T10:00:00.000000+00:00",
    "edited_timestamp": None,
    "mentions": [],
    "mention_roles": [],
    "attachments": [],
    "type": 0,
}
FILE: Json = {
    "id": "5",
    "filename": "a.png",
    "size": 9,
    "url": "https://cdn.discordapp.com/a.png",
    "content_type": "image/png",
}
PRESS: Json = {
    "id": ID,
    "application_id": "902",
    "type": 3,
    "token": "itok",
    "guild_id": "200",
    "channel_id": "400",
    "channel": {"id": "400", "type": 11, "parent_id": "300"},
    "member": {"user": ANA, "nick": "Annie", "roles": []},
    "data": {"custom_id": "ap_1:yes", "component_type": 2},
    "message": {"id": "1100000000000000000"},
    "locale": "zh-CN",
}
SLASH: Json = {
    **{key: PRESS[key] for key in ("id", "application_id", "token", "locale")},
    "type": 2,
    "channel_id": "500",
    "channel": {"id": "500", "type": 1},
    "user": ANA,
    "data": {"id": "1", "name": "model", "type": 1, "options": [{"name": "text", "type": 3, "value": "gpt-5 now"}]},
}
REPLY: Json = {**MESSAGE, "type": 19, "referenced_message": {**MESSAGE, "author": BOT, "content": "the answer"}}
EDIT: Json = {**MESSAGE, "content": "hello!", "edited_timestamp": "2023-04-24T10:00:05.000000+00:00"}

CHANNEL = Room("300", RoomKind.CHANNEL)
THREAD = Room("400", RoomKind.THREAD, "300")
DIRECT = Room("500", RoomKind.DIRECT)


def me(**rules: Any) -> Me:
    return Me("main", "901", "Hermes", Rules(**rules), {"400"}.__contains__, {"950"}.__contains__)


def read(raw: Json, room: Room = CHANNEL, **rules: Any) -> InboundMessage:
    event = wire.understand("MESSAGE_CREATE", raw, room, me(**rules))
    assert isinstance(event, InboundMessage), event
    return event


def test_a_message_has_its_identity_its_sender_and_its_time() -> None:
    message = read(MESSAGE, DIRECT)
    assert (message.keys, message.message_id, message.sender_id) == ((f"msg:{ID}",), ID, "7")
    assert (message.sender_name, message.text, message.is_addressed) == ("Ana", "hello", True)
    assert message.sent_at == when(ID)
    assert message.session_key == SessionKey("discord", ChatKind.DM, "500")


def test_ids_tell_the_time() -> None:
    assert when(snowflake_at(1_700_000_000.0)).timestamp() == 1_700_000_000.0


@pytest.mark.parametrize(
    "change, room, is_addressed",
    [
        ({}, CHANNEL, False),
        ({"content": "<@901> hello"}, CHANNEL, True),
        ({"mentions": [BOT]}, CHANNEL, True),
        ({"mentions": [ANA]}, CHANNEL, False),
        ({"mention_roles": ["950"]}, CHANNEL, True),
        ({"mention_roles": ["951"]}, CHANNEL, False),
        ({"mention_everyone": True, "content": "@everyone"}, CHANNEL, False),
        ({}, THREAD, True),
        ({}, Room("401", RoomKind.THREAD, "300"), False),
        ({}, DIRECT, True),
    ],
)
def test_in_a_server_it_must_be_meant(change: Json, room: Room, is_addressed: bool) -> None:
    assert read({**MESSAGE, **change}, room).is_addressed is is_addressed


def test_a_reply_to_ours_is_for_us_and_quotes_it() -> None:
    reply = read(REPLY)
    assert reply.is_addressed
    assert reply.quote is not None
    assert (reply.quote.text, reply.quote.from_us, reply.quote.message_id) == ("the answer", True, ID)
    gone = read({**REPLY, "referenced_message": None})
    assert (gone.is_addressed, gone.quote) == (False, None)


def test_a_mention_opens_a_thread_named_by_its_own_id_and_a_thread_belongs_to_its_channel() -> None:
    mention = {**MESSAGE, "content": "<@901> hi"}
    assert read(mention).session_key == SessionKey("discord", ChatKind.GROUP, "300", ID)
    assert read(mention, auto_thread=False).session_key == SessionKey("discord", ChatKind.GROUP, "300")
    assert read(mention, free=frozenset({"300"})).session_key == SessionKey("discord", ChatKind.GROUP, "300")
    assert read(mention, THREAD).session_key == SessionKey("discord", ChatKind.GROUP, "300", "400")
    assert read(MESSAGE).session_key.thread == "", "nobody spoke to us"


def test_channels_can_be_chosen_left_out_and_made_free() -> None:
    mention = {**MESSAGE, "content": "<@901> hi"}
    told = {"id": "400", "type": 11, "parent_id": "300"}
    for rules in ({"ignored": frozenset({"300"})}, {"allowed": frozenset({"301"})}):
        for room in (CHANNEL, THREAD):
            assert isinstance(wire.understand("MESSAGE_CREATE", mention, room, me(**rules)), Ignored)
        assert read(MESSAGE, DIRECT, **rules).is_addressed, "direct chats are no channels of a server"
        assert isinstance(wire.understand("INTERACTION_CREATE", {**SLASH, "channel": told}, None, me(**rules)), Ignored)
    assert read(MESSAGE, THREAD, allowed=frozenset({"300"})).is_addressed
    assert read(MESSAGE, free=frozenset({"300"})).is_addressed


@pytest.mark.parametrize(
    "content, text",
    [
        ("<@901> what now", "what now"),
        ("<@!901>, what now <@901>", "what now"),
        ("<@&950> what now", "what now"),
        ("<@&951> what now", "@951 what now"),
        ("ask <@901> now", "ask @Hermes now"),
        ("<@7> and <@8>", "@Ana and @8"),
        ("in <#300> <a:wave:123> <:ok:4>", "in #300 :wave: :ok:"),
        ("1 < 2 && <b>", "1 < 2 && <b>"),
        ("<@901>", ""),
    ],
)
def test_names_are_shown_as_people_read_them(content: str, text: str) -> None:
    assert read({**MESSAGE, "content": content, "mentions": [ANA]}, DIRECT).text == text


@pytest.mark.parametrize(
    "change",
    [
        {"author": {**ANA, "bot": True}},
        {"author": BOT},
        {"webhook_id": "5"},
        {"type": 7},
        {"type": 18},
        {"type": 21},
        {"author": {**ANA, "system": True}},
    ],
)
def test_bots_webhooks_and_notices_are_nobody(change: Json) -> None:
    assert isinstance(wire.understand("MESSAGE_CREATE", {**MESSAGE, **change}, DIRECT, me()), Ignored)


def test_a_link_that_got_a_preview_is_no_edit_and_a_persons_edit_is() -> None:
    edit = wire.understand("MESSAGE_UPDATE", EDIT, DIRECT, me())
    assert isinstance(edit, InboundMessage)
    assert (edit.text, edit.is_edit, edit.keys) == ("hello!", True, (f"edit:{ID}:2023-04-24T10:00:05+00:00",))
    for preview in ({"id": ID, "channel_id": "1", "embeds": []}, {**EDIT, "edited_timestamp": None}):
        assert isinstance(wire.understand("MESSAGE_UPDATE", preview, DIRECT, me()), Ignored)


@pytest.mark.parametrize(
    "file, kind",
    [
        ({}, AttachmentKind.IMAGE),
        ({"content_type": "video/mp4"}, AttachmentKind.VIDEO),
        ({"content_type": "audio/mpeg"}, AttachmentKind.AUDIO),
        ({"content_type": "audio/ogg", "waveform": "AA", "duration_secs": 1}, AttachmentKind.VOICE),
        ({"content_type": "text/plain; charset=utf-8"}, AttachmentKind.DOCUMENT),
        ({"content_type": None}, AttachmentKind.DOCUMENT),
    ],
)
def test_files_come_as_what_they_are(file: Json, kind: AttachmentKind) -> None:
    [attachment] = read({**MESSAGE, "attachments": [{**FILE, **file}]}).attachments
    assert (attachment.kind, attachment.file_id, attachment.name) == (kind, FILE["url"], "a.png")


def test_what_was_forwarded_and_stickers_are_read_too() -> None:
    shot = {"message": {"content": "from afar", "attachments": [FILE]}}
    forwarded = read({**MESSAGE, "content": "", "message_snapshots": [shot]}, DIRECT)
    assert (forwarded.text, len(forwarded.attachments)) == ("from afar", 1)
    assert read({**MESSAGE, "content": "", "sticker_items": [{"id": "1", "name": "Wave"}]}, DIRECT).text == ":Wave:"


def test_a_message_without_words_says_what_stands_in_it_and_one_with_nothing_is_no_message() -> None:
    empty = {**MESSAGE, "content": ""}
    answers = [{"poll_media": {"text": "yes"}}, {"poll_media": {"text": "no"}}, {"poll_media": 5}]
    poll = {"question": {"text": "Pizza?"}, "answers": answers}
    assert read({**empty, "poll": poll}, DIRECT).text == "Pizza?\n- yes\n- no"
    cards = [{"title": "Alert", "description": "disk full", "url": "https://x.test"}, {"image": {}}, 5]
    assert read({**empty, "embeds": cards}, DIRECT).text == "Alert\ndisk full\nhttps://x.test"
    shot = {"message": {"content": "", "embeds": cards, "attachments": []}}
    assert read({**empty, "message_snapshots": [shot]}, DIRECT).text.startswith("Alert")
    for nothing in (empty, {**empty, "poll": None}, {**empty, "embeds": [{"image": {}}]}):
        assert isinstance(wire.understand("MESSAGE_CREATE", nothing, DIRECT, me()), Ignored)
    assert read({**MESSAGE, "embeds": cards}, DIRECT).text == "hello", "a link got its preview"
    assert read({**MESSAGE, "content": "<@901>", "mentions": [BOT]}).is_addressed, "to be called is something"


def test_a_text_at_the_limit_is_likely_to_go_on() -> None:
    assert read({**MESSAGE, "content": "x" * 2000}, DIRECT).may_continue
    assert not read({**MESSAGE, "content": "x" * 1900}, DIRECT).may_continue


def test_a_press_has_its_place_its_sender_and_the_way_back() -> None:
    press = wire.understand("INTERACTION_CREATE", PRESS, None, me())
    assert isinstance(press, Press)
    assert (press.data, press.sender_id, press.sender_name) == ("ap_1:yes", "7", "Annie")
    assert (press.press_id, press.language, press.keys) == ("902/itok", "zh-CN", (f"press:{ID}",))
    assert press.session_key == SessionKey("discord", ChatKind.GROUP, "300", "400")


def test_a_slash_command_is_what_one_would_have_typed() -> None:
    message = wire.understand("INTERACTION_CREATE", SLASH, None, me())
    assert isinstance(message, InboundMessage)
    assert (message.text, message.is_addressed, message.language) == ("/model gpt-5 now", True, "zh-CN")
    assert message.session_key == SessionKey("discord", ChatKind.DM, "500")


@pytest.mark.parametrize("kind", [1, 4, 5, 99])
def test_other_interactions_are_left_alone(kind: int) -> None:
    assert isinstance(wire.understand("INTERACTION_CREATE", {**SLASH, "type": kind}, None, me()), Ignored)


def test_the_same_unreadable_event_has_the_same_key() -> None:
    broken = {**MESSAGE, "author": 5}
    first, second = (wire.understand("MESSAGE_CREATE", copy.deepcopy(broken), CHANNEL, me()) for _ in range(2))
    assert isinstance(first, Unreadable)
    assert first.keys == second.keys
    assert '"hello"' in first.raw


# What is remembered


def test_what_is_remembered_comes_back_as_it_was() -> None:
    places = Places.of({})
    cursor = places.begin("5")
    cursor |= places.move("500", "90", is_direct=True)
    cursor |= places.move("300", "80", is_direct=False)
    cursor |= places.join("400")
    cursor |= places.add_roles(["950"])
    cursor |= places.remember(Session("s1", 7, "ws://x"))
    again = Places.of(cursor)
    assert (again.since, again.mark("500"), again.mark("300"), again.mark("9")) == ("5", "90", "80", "5")
    assert (again.direct_chats, again.takes_part("400"), again.is_our_role("950")) == (["500"], True, True)
    assert again.session == Session("s1", 7, "ws://x")


def test_a_mark_never_goes_back_and_nothing_is_written_twice() -> None:
    places = Places.of({})
    assert places.move("300", "100", is_direct=False)
    assert places.move("300", "99", is_direct=False) == {}
    assert places.join("400")
    assert places.join("400") == {}
    assert places.add_roles(["950"])
    assert places.add_roles(["950"]) == {}


def test_the_thread_that_was_quiet_for_longest_is_forgotten() -> None:
    places = Places.of({})
    for number in range(MAX_THREADS + 1):
        places.join(str(1000 + number))
    assert not places.takes_part("1000")
    assert places.takes_part("1001")


def test_damaged_marks_cost_what_they_held_and_nothing_else() -> None:
    cursor = {
        "since": "soon",
        "session": "{",
        "threads": "7",
        "roles": '["x"]',
        "dm:x": "1",
        "channel:3": "y",
        "begun": "a/b",
    }
    places = Places.of(cursor)
    assert (places.since, places.session, places.direct_chats) == ("", None, [])
    assert places.begin_session(1000.0)["begun"] == "1000/1"


def test_too_many_new_sessions_wait_before_discord_takes_the_token_away() -> None:
    places = Places.of({})
    for number in range(MAX_SESSION_STARTS):
        places.begin_session(1000.0 + number)
    with pytest.raises(RateLimitedError, match="token"):
        places.begin_session(2000.0)
    assert places.begin_session(1000.0 + 4 * 3600)["begun"].endswith("/1")


# Fuzz

SAMPLES: tuple[tuple[str, Json], ...] = (
    ("MESSAGE_CREATE", MESSAGE),
    ("MESSAGE_CREATE", {**MESSAGE, "content": "<@901> <#3> <:a:5>", "mentions": [BOT, ANA], "attachments": [FILE]}),
    ("MESSAGE_CREATE", REPLY),
    ("MESSAGE_UPDATE", EDIT),
    ("INTERACTION_CREATE", PRESS),
    ("INTERACTION_CREATE", SLASH),
)
STRANGE: tuple[Any, ...] = (
    None,
    0,
    -1,
    1.5,
    True,
    "",
    "\ud800",
    "x" * 300,
    [],
    {},
    [[]],
    {"a": None},
    "9" * 400,
    "<@901",
    str(2**63),
    19,
)


@pytest.mark.one_python
def test_ten_thousand_broken_events_are_read_or_kept_and_each_has_a_key_by_which_it_is_known() -> None:
    chance = random.Random(7)
    for number in range(10_000):
        event, sample = SAMPLES[number % len(SAMPLES)]
        data = mutated(chance, sample, STRANGE)
        if chance.random() < 0.3:
            data = mutated(chance, data, STRANGE)
        room = (CHANNEL, THREAD, DIRECT)[number % 3]
        for known in (wire.understand(event, data, room, me()), wire.past(data, room, me())):
            assert isinstance(known, Ignored) or known.keys
