"""Another client's reader agrees that what our fake sends is what Telegram sends."""

from __future__ import annotations

import orjson
import pytest
from telegram import Message, Update, User

from tests.fakes.telegram import FakeTelegram


def update(fake: FakeTelegram) -> Update:
    parsed = Update.de_json(orjson.loads(fake._pending[-1].body), None)
    # Whatever the oracle does not know it keeps aside: a misspelt field would show up there.
    for part in (parsed, parsed.effective_message, parsed.effective_chat, parsed.effective_user):
        assert part is None or not part.api_kwargs, part.api_kwargs
    return parsed


@pytest.fixture
def fake() -> FakeTelegram:
    return FakeTelegram()


def test_it_reads_a_private_message(fake: FakeTelegram) -> None:
    fake.user_says("/start hello")
    message = update(fake).message
    assert message is not None
    assert (message.text, message.chat.type, message.entities[0].type) == ("/start hello", "private", "bot_command")


def test_it_reads_a_topic_of_a_forum(fake: FakeTelegram) -> None:
    fake.user_says("hi @test_bot", chat=fake.group(is_forum=True), thread=5)
    message = update(fake).message
    assert message is not None
    assert (message.message_thread_id, message.is_topic_message, message.chat.is_forum) == (5, True, True)
    assert list(message.parse_entities(["mention"]).values()) == ["@test_bot"]


def test_it_reads_an_edit(fake: FakeTelegram) -> None:
    fake.user_edits(fake.user_says("helo"), "hello")
    edited = update(fake).edited_message
    assert edited is not None
    assert (edited.text, edited.edit_date is not None) == ("hello", True)


@pytest.mark.parametrize("kind", ["document", "photo", "voice", "audio", "video"])
def test_it_reads_every_kind_of_file(fake: FakeTelegram, kind: str) -> None:
    fake.user_sends(b"data", "a.bin", "look", kind=kind, media_group_id="7")
    message = update(fake).message
    assert message is not None
    file = getattr(message, kind)
    assert (file[-1] if kind == "photo" else file).file_id == "FILE1"
    assert (message.caption, message.media_group_id) == ("look", "7")


def test_it_reads_a_reply_with_a_quote_and_a_press(fake: FakeTelegram) -> None:
    markup = {"inline_keyboard": [[{"text": "OK", "callback_data": "ok:1"}]]}
    fake._post({"chat_id": 7, "text": "May I?", "reply_markup": markup}, "sendMessage", "May I?")
    fake.user_answers(fake.sent[0], "yes", quote="May")
    answer = update(fake).message
    assert answer is not None
    assert answer.reply_to_message is not None
    assert answer.quote is not None
    assert (answer.reply_to_message.text, answer.quote.text) == ("May I?", "May")
    fake.user_presses(fake.sent[0], "ok:1")
    press = update(fake).callback_query
    assert press is not None
    assert (press.data, press.from_user.id, isinstance(press.message, Message)) == ("ok:1", 7, True)


def test_it_reads_the_answers_too(fake: FakeTelegram) -> None:
    assert User.de_json(fake._get_me({}), None).username == "test_bot"
    fake.user_says("hello")
    sent = fake._send_message(
        {"chat_id": "7", "text": "*hi*", "parse_mode": "MarkdownV2", "reply_parameters": {"message_id": 1}}
    )
    message = Message.de_json(sent, None)
    assert (message.text, message.reply_to_message is not None) == ("hi", True)
    assert not message.api_kwargs
