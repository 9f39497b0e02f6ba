"""What Slack sends, as the gateway reads it."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from hermes.core.keys import ChatKind
from hermes.core.messages import AttachmentKind, Ignored, InboundMessage, Press, Unreadable
from hermes.platforms.slack import wire
from hermes.platforms.slack.parse import Me, Place, place_of
from tests.unit.platforms.mutations import mutated

Json = dict[str, Any]
NOW = datetime(2026, 5, 1, tzinfo=UTC)
ME = Me("main", "T1", "UBOT", "hermes", lambda channel, thread: (channel, thread) == ("C1", "1700000000.000001"))
MESSAGE: Json = {
    "type": "message",
    "channel": "C1",
    "channel_type": "channel",
    "user": "U1",
    "text": "hi",
    "ts": "1700000000.000100",
    "event_ts": "1700000000.000100",
    "team": "T1",
    "client_msg_id": "cm1",
}
FILE: Json = {"id": "F1", "name": "a.png", "mimetype": "image/png", "url_private_download": "https://files.slack.com/a"}
EDIT: Json = {
    "type": "message",
    "subtype": "message_changed",
    "channel": "D1",
    "channel_type": "im",
    "ts": "1700000001.000000",
    "message": {"user": "U1", "text": "hello", "ts": "1700000000.000100", "edited": {"ts": "1700000001.000000"}},
    "previous_message": {"user": "U1", "text": "helo", "ts": "1700000000.000100"},
}
PRESS: Json = {
    "type": "block_actions",
    "user": {"id": "U1", "username": "ana", "team_id": "T1"},
    "container": {"type": "message", "message_ts": "1700000000.000100", "channel_id": "C1"},
    "channel": {"id": "C1", "name": "general"},
    "message": {"ts": "1700000000.000100", "text": "May I?", "thread_ts": "1700000000.000001"},
    "response_url": "https://hooks.slack.com/actions/1",
    "actions": [{"action_id": "hermes:0:0", "type": "button", "value": "ap_1:yes", "action_ts": "1700000002.000000"}],
}
SLASH: Json = {
    "team_id": "T1",
    "channel_id": "D1",
    "channel_name": "directmessage",
    "user_id": "U1",
    "user_name": "ana",
    "command": "/hermes",
    "text": "stop",
    "trigger_id": "13345224609.738474920.8088930838d88f008e0",
}


def event(**changes: Any) -> Json:
    return around("events_api", {"team_id": "T1", "event_id": "Ev1", "event": {**MESSAGE, **changes}})


def around(kind: str, payload: object) -> Json:
    return {"envelope_id": "e1", "type": kind, "payload": payload}


def read(envelope: Json) -> InboundMessage:
    known = wire.understand(envelope, ME, NOW)
    assert isinstance(known, InboundMessage), known
    return known


def test_a_message_is_known_by_team_channel_and_time() -> None:
    message = read(event())
    assert message.keys == ("msg:T1:C1:1700000000.000100",)
    assert (message.sender_id, message.message_id, message.text) == ("U1", "1700000000.000100", "hi")
    assert message.sent_at.timestamp() == pytest.approx(1700000000.0001)


def test_a_mention_told_twice_is_one_message() -> None:
    text = "<@UBOT> hello"
    first, second = read(event(text=text)), read(event(text=text, type="app_mention", channel_type=None))
    assert first == second
    assert first.is_addressed


def test_a_question_in_a_channel_opens_a_thread_and_talk_that_is_not_for_us_opens_none() -> None:
    assert read(event(text="<@UBOT> what?")).session_key.thread == "1700000000.000100"
    assert (read(event()).session_key.thread, read(event()).is_addressed) == ("", False)


def test_a_mention_of_somebody_whose_id_begins_like_ours_is_not_one_of_us() -> None:
    assert not read(event(text="<@UBOT7> what do you think?")).is_addressed
    assert read(event(text="what do you think, <@UBOT|hermes>?")).is_addressed


@pytest.mark.parametrize(
    "changes, is_addressed",
    [
        ({"thread_ts": "1700000000.000001"}, True),  # we take part there
        ({"thread_ts": "1700000000.000002"}, False),
        ({"thread_ts": "1700000000.000002", "parent_user_id": "UBOT"}, True),  # it began with a message of ours
        ({"thread_ts": "1700000000.000100"}, False),  # a message that has replies is no reply itself
    ],
)
def test_in_a_thread_of_ours_everything_is_for_us(changes: Json, is_addressed: bool) -> None:
    message = read(event(**changes))
    assert message.is_addressed is is_addressed
    root = changes["thread_ts"]
    assert message.session_key.thread == (root if root != MESSAGE["ts"] else "")


@pytest.mark.parametrize("kind", ["channel", "group", "mpim"])
def test_only_a_direct_chat_is_one(kind: str) -> None:
    assert read(event(channel_type=kind)).session_key.kind is ChatKind.GROUP
    assert read(event(channel="D1", channel_type="im")).session_key.kind is ChatKind.DM


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a &lt;b&gt; &amp;amp;", "a <b> &amp;"),
        ("<@UBOT>: what?", "what?"),
        ("what, <@UBOT>?", "what, @hermes?"),
        ("ask <@U2> or <@U3|bo> in <#C9|general>, <!here>", "ask @U2 or @bo in #general, @here"),
        (
            "<https://a.b|words> <https://a.b> <mailto:x@y.z|x@y.z> <http://c.d|c.d>",
            "words (https://a.b) https://a.b x@y.z http://c.d",
        ),
        ("<!subteam^S1|@team>", "@team"),
    ],
)
def test_slacks_notation_is_read_as_people_see_it(text: str, shown: str) -> None:
    assert read(event(text=text)).text == shown


@pytest.mark.parametrize(
    "changes",
    [
        {"subtype": "channel_join"},
        {"subtype": "message_deleted"},
        {"subtype": "bot_message"},
        {"bot_id": "B1"},
        {"user": "UBOT"},
        {"type": "reaction_added"},
    ],
)
def test_what_no_person_said_is_left_alone(changes: Json) -> None:
    assert isinstance(wire.understand(event(**changes), ME, NOW), Ignored)


def test_a_link_that_was_unfurled_is_no_edit_and_a_persons_edit_is() -> None:
    inner = {"team_id": "T1", "event": EDIT}
    message = read(around("events_api", inner))
    assert (message.text, message.is_edit) == ("hello", True)
    assert message.keys == ("edit:T1:D1:1700000000.000100:1700000001.000000",)
    same = {**EDIT, "previous_message": EDIT["message"]}
    assert isinstance(wire.understand(around("events_api", {**inner, "event": same}), ME, NOW), Ignored)


@pytest.mark.parametrize(
    "file, kind",
    [
        ({}, AttachmentKind.IMAGE),
        ({"mimetype": "video/mp4"}, AttachmentKind.VIDEO),
        ({"mimetype": "audio/mpeg"}, AttachmentKind.AUDIO),
        ({"mimetype": "audio/mp4", "subtype": "slack_audio"}, AttachmentKind.VOICE),
        ({"mimetype": "application/pdf"}, AttachmentKind.DOCUMENT),
    ],
)
def test_files_come_as_what_they_are(file: Json, kind: AttachmentKind) -> None:
    [attachment] = read(event(subtype="file_share", files=[{**FILE, **file}])).attachments
    assert (attachment.kind, attachment.file_id, attachment.name) == (kind, FILE["url_private_download"], "a.png")


def test_a_file_of_another_workspace_is_known_by_its_id() -> None:
    [attachment] = read(event(files=[{"id": "F9", "file_access": "check_file_info"}])).attachments
    assert attachment.file_id == "id:F9"


def test_a_press_has_its_place_its_sender_and_the_way_back() -> None:
    press = wire.understand(around("interactive", PRESS), ME, NOW)
    assert isinstance(press, Press)
    assert (press.data, press.sender_id, press.press_id) == ("ap_1:yes", "U1", PRESS["response_url"])
    assert (press.session_key.chat, press.session_key.thread) == ("C1", "1700000000.000001")


@pytest.mark.parametrize(
    "typed, command, text",
    [
        ("stop", "/hermes", "/stop"),
        ("/model gpt-5", "/hermes", "/model gpt-5"),
        ("what is new", "/hermes", "what is new"),
        ("", "/hermes", "/help"),
        ("What is new?", "/hermes", "What is new?"),
        ("a b", "/ask", "/ask a b"),
    ],
)
def test_a_slash_command_is_a_command_or_a_question(typed: str, command: str, text: str) -> None:
    message = read(around("slash_commands", {**SLASH, "text": typed, "command": command}))
    assert (message.text, message.is_addressed, message.session_key.kind) == (text, True, ChatKind.DM)


@pytest.mark.parametrize("subtype", ["thread_broadcast", "me_message", "file_share"])
def test_what_a_person_said_in_another_way_is_said(subtype: str) -> None:
    assert read(event(subtype=subtype)).text == "hi"


@pytest.mark.parametrize("text", ["", " ", "\u200b", None])
def test_a_message_of_nothing_is_left_alone(text: str | None) -> None:
    assert isinstance(wire.understand(event(text=text), ME, NOW), Ignored)


def test_our_name_alone_calls_us_and_with_a_file_it_is_the_file_that_counts() -> None:
    called = read(event(text="<@UBOT>"))
    assert (called.text, called.is_addressed) == ("@hermes", True)
    assert read(event(text="<@UBOT>", files=[FILE])).text == ""


def test_a_message_that_was_handed_on_is_quoted_with_who_said_it() -> None:
    shared = {"is_share": True, "author_name": "Bo", "text": "lunch at &lt;one&gt;?", "ts": "1699999999.000100"}
    message = read(event(text="", attachments=[{"text": "a link unfurled"}, shared]))
    assert message.quote is not None
    assert (message.text, message.quote.text, message.quote.sender_name) == ("", "lunch at <one>?", "Bo")
    ours = read(event(text="why?", attachments=[{**shared, "author_id": "UBOT"}])).quote
    assert ours is not None
    assert ours.from_us
    assert read(event(attachments="none")).quote is None


def test_an_invisible_gap_of_ours_does_not_come_back() -> None:
    assert read(event(text="a\u200b*b*")).text == "a*b*"


def test_a_press_under_the_first_message_of_a_thread_is_no_press_in_it() -> None:
    root = {**PRESS["message"], "thread_ts": PRESS["message"]["ts"]}
    press = wire.understand(around("interactive", {**PRESS, "message": root}), ME, NOW)
    assert isinstance(press, Press)
    assert press.session_key.thread == ""


@pytest.mark.parametrize("subtype", ["message_changed", "message_deleted", "message_replied"])
def test_what_changes_an_old_message_has_no_place_of_its_own_in_the_history(subtype: str) -> None:
    assert place_of({**MESSAGE, "subtype": subtype}) is None
    assert place_of(MESSAGE) == Place("C1", "1700000000.000100")
    assert place_of({**MESSAGE, "thread_ts": "1600000000.000001"}) == Place(
        "C1", "1700000000.000100", "1600000000.000001"
    )


def test_the_same_unreadable_event_in_another_envelope_has_the_same_key() -> None:
    broken = event(ts=5)
    first, second = (wire.understand({**broken, "envelope_id": each}, ME, NOW) for each in ("e1", "e2"))
    assert isinstance(first, Unreadable)
    assert first.keys == second.keys


SAMPLES = (
    event(),
    event(files=[FILE], subtype="file_share", thread_ts="1700000000.000001", text="<@UBOT> &lt;a&gt; <https://a.b|c>"),
    around("events_api", {"team_id": "T1", "event": EDIT}),
    around("interactive", PRESS),
    around("slash_commands", SLASH),
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
    "1700000000.0",
    "<@UBOT",
    "9" * 400,
)


@pytest.mark.one_python
def test_ten_thousand_broken_envelopes_are_read_or_kept_and_each_has_a_key_by_which_it_is_known() -> None:
    chance = random.Random(7)
    for number in range(10_000):
        envelope = mutated(chance, SAMPLES[number % len(SAMPLES)], STRANGE)
        if chance.random() < 0.3:
            envelope = mutated(chance, envelope, STRANGE)
        known = wire.understand(envelope, ME, NOW)
        assert isinstance(known, Ignored) or known.keys
        wire.past(envelope.get("payload"), "C1", ME)
