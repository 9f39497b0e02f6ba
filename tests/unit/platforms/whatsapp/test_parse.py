"""Items of the bridge as what a person said, whatever is wrong with them."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from hermes.core.keys import ChatKind, Target
from hermes.core.messages import AttachmentKind, Ignored, InboundMessage, Quote, Unreadable
from hermes.platforms.whatsapp.parse import Reader, handle_of, understand
from hermes.platforms.whatsapp.wire import Me, message_id
from tests.unit.platforms.whatsapp.samples import ANA, ANA_LID, BOT, GROUP, ME, SAMPLES, SELF, in_group, item, note

NOW = 1_800_000_000.0
MUTATIONS = 10_000


def read(raw: Any, reader: Reader = BOT) -> InboundMessage:
    event = understand(raw, reader, NOW)
    assert isinstance(event, InboundMessage), event
    return event


def ignored(raw: Any, reader: Reader = BOT) -> str:
    event = understand(raw, reader, NOW)
    assert isinstance(event, Ignored), event
    return event.kind


def test_a_text_has_its_key_place_sender_and_time() -> None:
    message = read(item())
    assert message.keys == (f"msg:{ANA}:3A01",)
    assert message.session_key.target == Target("whatsapp", ANA)
    assert (message.sender_id, message.sender_name, message.text) == ("4915550000007", "Ana", "hello")
    assert message.sent_at.timestamp() == 1_700_000_000


def test_a_person_is_the_same_under_the_number_and_under_the_hidden_id() -> None:
    hidden, shown = read(item(chatId=ANA_LID, senderId=ANA_LID)), read(item())
    assert (hidden.session_key, hidden.sender_id) == (shown.session_key, "4915550000007")
    assert hidden.keys == (*shown.keys, f"msg:{ANA_LID}:3A01")


def test_a_message_that_comes_again_once_the_number_is_known_is_the_same_message() -> None:
    before = read(item(chatId=ANA_LID, senderId=ANA_LID, chatPhone="", senderPhone=""))
    after = read(item(chatId=ANA_LID, senderId=ANA_LID))
    assert set(before.keys) & set(after.keys)


def test_who_never_shows_a_number_is_known_by_the_hidden_id() -> None:
    message = read(item(chatId=ANA_LID, senderId=ANA_LID, chatPhone="", senderPhone=""))
    assert (message.sender_id, message.session_key.chat) == (ANA_LID, ANA_LID)


def test_the_device_that_wrote_is_no_part_of_who_wrote() -> None:
    message = read(item(chatId="4915550000007:12@s.whatsapp.net", senderId="4915550000007:12@s.whatsapp.net"))
    assert message.session_key.chat == ANA


# The chat with oneself


def test_in_self_chat_mode_only_the_chat_with_oneself_is_heard() -> None:
    message = read(note(), SELF)
    assert (message.text, message.sender_id, message.session_key.chat) == ("hello", "4915550000001", ME)
    assert ignored(item(), SELF) == ignored(in_group(), SELF) == ignored(item(fromMe=True), SELF) == "another chat"


def test_the_chat_with_oneself_has_one_name_under_the_hidden_id_too() -> None:
    hidden = note(chatId="100000000000001@lid", chatPhone="", senderId="100000000000001@lid", senderPhone="")
    assert read(hidden, SELF).session_key == read(note(), SELF).session_key


def test_nobody_else_is_taken_for_the_owner() -> None:
    assert ignored(note(fromMe=False), SELF) == "another chat"
    assert read(note(fromMe=False, senderId=ANA, senderPhone="4915550000007")).sender_id == "4915550000007"


def test_our_own_words_are_not_heard_as_somebodys() -> None:
    assert ignored(note(body="⚕ *Hermes*\nhello"), SELF) == "our own"
    bare = replace(SELF, prefix="")
    assert ignored(note(messageId=message_id("ob_1")), bare) == "our own"
    assert ignored(note(kind="edit", targetId=message_id("ob_1")), bare) == "our own"
    assert read(note(messageId="3EB0" + "A1" * 9), bare).text == "hello", "written with WhatsApp Web"


def test_two_of_us_do_not_talk_without_end() -> None:
    theirs = message_id("ob_of_another_gateway")
    assert ignored(item(messageId=theirs)) == ignored(in_group(messageId=theirs)) == "message of a bot"


def test_in_bot_mode_what_is_typed_on_the_bots_phone_to_others_is_not_for_us() -> None:
    assert ignored(item(fromMe=True)) == "our own"
    assert read(note()).text == "hello"


def test_nothing_of_other_chats_is_kept_even_when_it_cannot_be_read() -> None:
    event = understand({"kind": "unreadable", "raw": "a secret", "error": "TypeError"}, SELF, NOW)
    assert isinstance(event, Unreadable)
    assert "secret" not in event.raw
    assert ignored(item(body=5), SELF) == "another chat"


# Groups


def test_in_a_group_a_mention_is_for_us_and_our_name_is_no_part_of_it() -> None:
    message = read(in_group(body="@4915550000001 what do you think?", mentions=[ME]))
    assert (message.is_addressed, message.text, message.session_key.kind) == (
        True,
        "what do you think?",
        ChatKind.GROUP,
    )
    by_lid = read(in_group(body="soup @100000000000001", mentions=["100000000000001@lid"]))
    assert (by_lid.is_addressed, by_lid.text) == (True, "soup")
    assert not read(in_group(mentions=[ANA])).is_addressed


def test_a_reply_to_us_a_pattern_and_a_free_chat_are_for_us_too() -> None:
    quoted = in_group(hasQuotedMessage=True, quotedMessageId="3EB0", quotedFromMe=True, quotedText="Soup.")
    assert read(quoted).is_addressed
    assert read(in_group(body="hey Hermes, soup?"), replace(BOT, patterns=(re.compile("hermes", re.I),))).is_addressed
    assert read(in_group(), replace(BOT, free_chats=frozenset({GROUP}))).is_addressed
    assert not read(in_group()).is_addressed


# Files, quotes, edits, other kinds


@pytest.mark.parametrize(
    "more, kind, name",
    [
        ({"mediaType": "image", "mime": "image/jpeg"}, AttachmentKind.IMAGE, "picture.jpg"),
        ({"mediaType": "sticker", "mime": "image/webp"}, AttachmentKind.IMAGE, "picture.webp"),
        ({"mediaType": "video", "mime": "video/mp4"}, AttachmentKind.VIDEO, "film.mp4"),
        ({"mediaType": "audio", "mime": "audio/mpeg"}, AttachmentKind.AUDIO, "sound.mp3"),
        (
            {"mediaType": "audio", "mime": "audio/ogg; codecs=opus", "voice": True},
            AttachmentKind.VOICE,
            "voice.ogg",
        ),
        ({"mediaType": "document", "mime": "application/pdf", "fileName": "a.pdf"}, AttachmentKind.DOCUMENT, "a.pdf"),
        ({"mediaType": "hologram"}, AttachmentKind.DOCUMENT, "file"),
    ],
)
def test_a_file_comes_as_what_it_is(more: dict[str, Any], kind: AttachmentKind, name: str) -> None:
    message = read(item(hasMedia=True, size=1234, body="", **more))
    [file] = message.attachments
    assert (file.kind, file.name, file.size) == (kind, name, 1234)
    assert handle_of(file.file_id) == {"chatId": ANA, "messageId": "3A01"}
    assert message.may_continue == (kind is not AttachmentKind.VOICE)


def test_a_quote_of_ours_is_known_as_ours_without_the_prefix() -> None:
    quoted = {"hasQuotedMessage": True, "quotedMessageId": "3EB0AA"}
    assert read(item(**quoted, quotedText="42", quotedFromMe=True)).quote == Quote("42", "", "3EB0AA", True)
    ours = read(note(**quoted, quotedText="⚕ *Hermes*\n42", quotedFromMe=True), SELF).quote
    assert ours == Quote("42", "", "3EB0AA", True)
    own = read(note(**quoted, quotedText="milk", quotedFromMe=True), SELF).quote
    assert own is not None
    assert not own.from_us, "in the chat with oneself everything is from this account"


def test_an_edit_has_a_key_of_its_own_and_names_what_it_changes() -> None:
    edited = read(item(kind="edit", messageId="3A02", targetId="3A01", body="hello!"))
    assert (edited.is_edit, edited.message_id, edited.text) == (True, "3A01", "hello!")
    assert edited.keys == (f"msg:{ANA}:3A02",)


def test_forwards_albums_and_long_texts_are_likely_to_go_on() -> None:
    assert read(item(isForwarded=True)).may_continue
    assert read(item(albumId="3A00")).may_continue
    assert read(item(body="x" * 4096)).may_continue
    assert not read(item()).may_continue


def test_a_place_a_card_and_a_poll_are_read_as_words() -> None:
    place = {"latitude": 1.5, "longitude": 2.5, "name": "Café", "address": "Main St 1"}
    assert (
        read(item(nativeType="locationMessage", body="Café", nativeMetadata=place)).text == "Café, Main St 1, 1.5, 2.5"
    )
    card = {"contacts": [{"name": "Bo", "vcard": "BEGIN:VCARD"}]}
    assert read(item(nativeType="contactMessage", nativeMetadata=card)).text == "BEGIN:VCARD"
    poll = item(nativeType="pollCreationMessageV3", body="Lunch?", nativeMetadata={"options": ["Soup", "Rice"]})
    assert read(poll).text == "Lunch?\n- Soup\n- Rice"


@pytest.mark.parametrize(
    "raw, kind",
    [
        (item(kind="vote", options=["Yes"]), "a vote"),
        (item(kind="delete"), "a delete"),
        (item(kind="call"), "a call"),
        (item(kind=5), "of no kind"),
        (item(chatId="123@newsletter", chatPhone=""), "a broadcast"),
        (item(body="", nativeType="eventMessage"), "nothing to read: eventMessage"),
    ],
)
def test_what_is_not_for_us_is_passed_over(raw: Any, kind: str) -> None:
    assert ignored(raw) == kind


@pytest.mark.parametrize(
    "raw", [None, 5, "text", [], {}, item(chatId=None), item(messageId=""), item(messageId="x" * 300), item(body=[1])]
)
def test_what_cannot_be_read_is_kept_raw_under_a_name_of_its_own(raw: Any) -> None:
    event = understand(raw, BOT, NOW)
    assert isinstance(event, Unreadable)
    assert event.raw
    assert event.keys == understand(raw, BOT, NOW).keys != ()


def test_a_time_that_is_none_is_now() -> None:
    for timestamp in (None, 0, -1, "soon", 1e20, True):
        assert read(item(timestamp=timestamp)).sent_at.timestamp() == NOW


# Anything at all

STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**70, 1.5, float("nan"), float("inf"), "", "x", "\0", "\ud800", "@", "a@b@c"),
    *("9" * 40, [], {}, [[]], [None], {"a": {}}, "‮" * 50, ME, "null@s.whatsapp.net", "😀" * 3000),
)


def mutated(raw: Any, chance: random.Random) -> Any:
    """The same with something changed, removed or added."""
    if not isinstance(raw, dict) or not raw:
        return chance.choice(STRANGE)
    changed = dict(raw)
    for _ in range(chance.randint(1, 4)):
        key = chance.choice(list(changed)) if changed else "kind"
        match chance.randint(0, 4):
            case 0:
                changed.pop(key, None)
            case 1:
                changed[key] = (
                    mutated(changed[key], chance) if isinstance(changed.get(key), dict) else [changed.get(key)]
                )
            case 2:
                changed[str(chance.choice(STRANGE))] = chance.choice(STRANGE)
            case _:
                changed[key] = chance.choice(STRANGE)
    return changed


def test_ten_thousand_strange_items_become_events_that_can_be_stored() -> None:
    chance = random.Random(6)
    readers = (BOT, SELF, Reader("main", Me("", "100000000000001"), is_self_chat_only=False))
    kinds: dict[type, int] = {}
    for number in range(MUTATIONS):
        event = understand(mutated(chance.choice(SAMPLES), chance), readers[number % 3], NOW)
        kinds[type(event)] = kinds.get(type(event), 0) + 1
        if isinstance(event, InboundMessage):
            assert all(len(key) < 1000 for key in event.keys)
            assert event.sender_id
            event.session_key.__class__.parse(str(event.session_key))
        elif isinstance(event, Unreadable):
            assert event.keys
    assert all(kinds.get(kind, 0) > 200 for kind in (InboundMessage, Ignored, Unreadable)), kinds
