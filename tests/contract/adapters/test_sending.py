"""What goes out: delivered as asked, or refused in a way that says who acts."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.core.errors import CredentialsError, OutcomeUnknownError, PlatformError, RateLimitedError, RejectedError
from hermes.core.messages import Attachment, AttachmentKind, Button, OutboundMessage
from hermes.core.ports import AnswersPresses, Describes, FetchesFiles, ShowsTyping
from hermes.core.text import split
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.fakes.files import OPUS, png
from tests.fakes.server import FakeServer


async def test_a_message_reaches_the_chat_and_its_receipt_names_it(server: FakeServer) -> None:
    async with server.adapter() as adapter:
        receipt = await adapter.send(saying(server, "hello"))
        await server.wait_for(lambda: bool(server.sent))
    assert (server.sent[0].text, server.sent[0].chat) == ("hello", server.target().chat)
    assert server.sent[0].message_id == receipt.message_id


@pytest.mark.plays("replies")
async def test_an_answer_points_at_what_it_answers(server: FakeServer, inbox: Inbox) -> None:
    server.user_says("hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        asked = await inbox.message()
        await adapter.send(OutboundMessage(server.target(), "hi", reply_to=asked.message_id))
        await server.wait_for(lambda: bool(server.sent))
    assert server.sent[0].reply_to == asked.message_id


async def test_a_long_text_split_at_the_limit_is_taken_whole(server: FakeServer) -> None:
    limits = server.capabilities
    words = " ".join(f"word{number}🙂" for number in range(limits.text_limit // 4))
    parts = split(words, limits.text_limit, limits.text_unit)
    assert len(parts) >= 2
    async with server.adapter() as adapter:
        for part in parts:
            await adapter.send(saying(server, part))
        await server.wait_for(lambda: len(server.sent) >= len(parts))
    assert " ".join(sent.text for sent in server.sent) == words


async def test_a_part_of_exactly_the_limit_is_taken_even_with_the_mark_of_a_repeat(server: FakeServer) -> None:
    text = "x" * server.capabilities.text_limit
    async with server.adapter() as adapter:
        await adapter.send(OutboundMessage(server.target(), text, is_repeat=True))
        await server.wait_for(lambda: bool(server.sent))
    assert server.sent[-1].text.endswith(text)


async def test_a_repeat_is_marked_or_shown_once(server: FakeServer) -> None:
    message = OutboundMessage(server.target(), "hello", idempotency_key="ob_1")
    again = OutboundMessage(server.target(), "hello", idempotency_key="ob_1", is_repeat=True)
    async with server.adapter() as adapter:
        first = await adapter.send(message)
        second = await adapter.send(again)
        await server.wait_for(lambda: bool(server.sent))
    if server.capabilities.idempotent_sends:
        assert first == second
        assert [sent.text for sent in server.sent] == ["hello"]
    else:
        assert [sent.text for sent in server.sent] == ["hello", "↻ hello"]


async def test_a_message_of_ours_is_replaced_in_place(server: FakeServer) -> None:
    if not server.capabilities.edits:
        pytest.skip("no edits here")
    async with server.adapter() as adapter:
        receipt = await adapter.send(saying(server, "thinking"))
        for text in ("the answer", "the answer"):  # the second changes nothing, which is fine
            edit = OutboundMessage(server.target(), text, replaces=receipt.message_id)
            assert (await adapter.send(edit)).message_id == receipt.message_id
        await server.wait_for(lambda: bool(server.sent) and server.sent[0].text == "the answer")
    assert [sent.text for sent in server.sent] == ["the answer"]
    assert server.sent[0].edits[0] == "thinking"


@pytest.mark.parametrize("letter", ["字", "&", "🙂"], ids=["three bytes", "escaped", "a pair"])
async def test_a_message_of_ours_is_replaced_by_one_of_full_length(server: FakeServer, letter: str) -> None:
    if not server.capabilities.edits:
        pytest.skip("no edits here")
    async with server.adapter() as adapter:
        can = adapter.capabilities
        whole = split(letter * min(can.text_limit, 10_000), can.text_limit, can.text_unit)[0]
        receipt = await adapter.send(saying(server, "thinking"))
        await adapter.send(OutboundMessage(server.target(), whole, replaces=receipt.message_id))
        await server.wait_for(lambda: bool(server.sent) and server.sent[0].text != "thinking")
    [sent] = server.sent
    assert "".join(sent.text.split()).endswith(whole)


async def test_typing_is_shown_to_whoever_wrote(server: FakeServer, inbox: Inbox) -> None:
    server.user_says("hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await inbox.message()
        assert isinstance(adapter, ShowsTyping) == server.capabilities.typing
        if isinstance(adapter, ShowsTyping):
            await adapter.typing(server.target())
            assert server.typings == 1


async def test_it_can_say_who_it_is(server: FakeServer) -> None:
    async with server.adapter() as adapter:
        assert isinstance(adapter, Describes)
        assert await adapter.describe()


async def test_buttons_are_shown_and_a_press_is_answered_even_when_late(server: FakeServer, inbox: Inbox) -> None:
    if not server.capabilities.buttons:
        pytest.skip("no buttons here")
    buttons = ((Button("Allow", "x" * 64),), (Button("Refuse", "no"),))
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await adapter.send(OutboundMessage(server.target(), "May I?", buttons=buttons))
        assert server.sent[0].buttons == buttons
        server.user_presses(server.sent[0], "no")
        press = await inbox.press()
        assert isinstance(adapter, AnswersPresses)
        assert await adapter.answer_press(press.press_id, "Refused.") == ("whispers" in server.plays)
        assert not await adapter.answer_press("123456", "from before a long outage")


async def test_a_file_goes_out_as_it_is(server: FakeServer, tmp_path: Path) -> None:
    if not server.capabilities.media:
        pytest.skip("no media here")
    path = tmp_path / "report é.pdf"
    path.write_bytes(b"%PDF" + bytes(range(256)) * 400)
    file = Attachment(AttachmentKind.DOCUMENT, path=str(path), name=path.name, mime="application/pdf")
    caption = "the *report*" if server.capabilities.caption_limit else ""
    async with server.adapter() as adapter:
        receipt = await adapter.send(OutboundMessage(server.target(), caption, attachment=file))
    sent = server.sent[0]
    assert (sent.file, sent.file_name, sent.message_id) == (path.read_bytes(), path.name, receipt.message_id)
    assert sent.text == caption.replace("*", "")


async def test_pictures_that_belong_together_are_shown_together(server: FakeServer, tmp_path: Path) -> None:
    if server.capabilities.album_limit < 2:
        pytest.skip("no albums here")
    files = []
    for number in range(3):
        path = tmp_path / f"{number}.png"
        path.write_bytes(png(number + 2))
        files.append(Attachment(AttachmentKind.IMAGE, path=str(path), name=path.name, mime="image/png"))
    message = OutboundMessage(server.target(), "a *trip*", attachment=files[0], album=tuple(files[1:]))
    async with server.adapter() as adapter:
        receipt = await adapter.send(message)
    assert [sent.file_name for sent in server.sent] == ["0.png", "1.png", "2.png"]
    assert (server.sent[0].text, server.sent[0].message_id) == ("a trip", receipt.message_id)


async def test_speech_is_shown_as_a_voice_message(server: FakeServer, tmp_path: Path) -> None:
    if not server.capabilities.voice:
        pytest.skip("no voice messages here")
    path = tmp_path / "memo.ogg"
    path.write_bytes(OPUS)
    speech = Attachment(AttachmentKind.VOICE, path=str(path), name=path.name, mime="audio/ogg")
    async with server.adapter() as adapter:
        await adapter.send(OutboundMessage(server.target(), "", attachment=speech))
    assert [(sent.file, sent.is_voice) for sent in server.sent] == [(OPUS, True)]


async def test_a_file_over_the_upload_limit_is_refused_in_words(server: FakeServer, tmp_path: Path) -> None:
    if not server.capabilities.media:
        pytest.skip("no media here")
    path = tmp_path / "film.bin"
    with path.open("wb") as file:
        file.truncate(server.capabilities.upload_limit_bytes + 1)
    huge = Attachment(AttachmentKind.DOCUMENT, path=str(path), name=path.name)
    async with server.adapter() as adapter:
        with pytest.raises(RejectedError, match=r"film\.bin"):
            await adapter.send(OutboundMessage(server.target(), "", attachment=huge))
    assert server.sent == []


async def test_a_file_that_is_gone_is_told_and_not_silently_left_out(server: FakeServer, tmp_path: Path) -> None:
    if not server.capabilities.media:
        pytest.skip("no media here")
    file = Attachment(AttachmentKind.DOCUMENT, path=str(tmp_path / "gone.pdf"), name="gone.pdf")
    async with server.adapter() as adapter:
        with pytest.raises(PlatformError, match=r"gone\.pdf"):
            await adapter.send(OutboundMessage(server.target(), "", attachment=file))
    assert server.sent == []


async def test_a_file_that_came_in_can_be_fetched(server: FakeServer, inbox: Inbox, tmp_path: Path) -> None:
    if not server.capabilities.media:
        pytest.skip("no media here")
    data = bytes(range(256)) * 3000
    server.user_sends(data, "holiday.txt", "look")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        message = await inbox.message()
        assert message.text == "look"
        assert isinstance(adapter, FetchesFiles)
        paths = [await adapter.fetch(message.attachments[0], tmp_path / "in") for _ in range(2)]
    assert [path.read_bytes() for path in paths] == [data, data]
    assert paths[0] != paths[1]
    assert paths[0].name == "holiday.txt"


async def test_a_voice_message_and_a_picture_come_as_what_they_are(
    server: FakeServer, inbox: Inbox, tmp_path: Path
) -> None:
    if not server.capabilities.media:
        pytest.skip("no media here")
    server.user_shows(png())
    kinds = [AttachmentKind.IMAGE]
    if server.capabilities.voice:
        server.user_speaks(OPUS)
        kinds.append(AttachmentKind.VOICE)
    async with server.adapter() as adapter, receiving(adapter, inbox):
        assert isinstance(adapter, FetchesFiles)
        for kind, data in zip(kinds, (png(), OPUS), strict=False):
            [attachment] = (await inbox.message()).attachments
            assert attachment.kind is kind
            assert (await adapter.fetch(attachment, tmp_path / kind)).read_bytes() == data


async def test_a_file_over_the_download_limit_is_refused_in_words(
    server: FakeServer, inbox: Inbox, tmp_path: Path
) -> None:
    if not server.capabilities.media:
        pytest.skip("no media here")
    server.user_sends(b"x", "film.mp4")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        assert isinstance(adapter, FetchesFiles)
        [small] = (await inbox.message()).attachments
        huge = replace(small, size=server.capabilities.download_limit_bytes + 1)
        with pytest.raises(RejectedError, match=r"film\.mp4"):
            await adapter.fetch(huge, tmp_path / "in")
    assert not (tmp_path / "in").exists()


@pytest.mark.plays("rate")
async def test_flood_control_says_how_long_to_wait(server: FakeServer) -> None:
    server.limit_next_send(7)
    async with server.adapter() as adapter:
        with pytest.raises(RateLimitedError) as refused:
            await adapter.send(saying(server, "hello"))
        assert refused.value.retry_after == 7
        assert server.sent == []
        await adapter.send(saying(server, "hello"))


@pytest.mark.plays("credentials")
async def test_sending_with_bad_credentials_is_told_as_such(server: FakeServer) -> None:
    server.refuse_credentials()
    async with server.adapter() as adapter:
        with pytest.raises(CredentialsError):
            await adapter.send(saying(server, "hello"))


@pytest.mark.plays("hold", "drop")
async def test_a_connection_lost_after_the_request_left_is_an_unknown_outcome(server: FakeServer) -> None:
    hold = server.hold_sends()
    async with server.adapter() as adapter:
        sending = asyncio.create_task(adapter.send(saying(server, "hello")))
        await hold.reached()
        server.drop_connection()
        with pytest.raises(OutcomeUnknownError):
            await sending
    assert len(server.sent) == 1


@pytest.mark.plays("outage")
async def test_no_error_repeats_a_secret(server: FakeServer) -> None:
    await server.stop()
    async with server.adapter() as adapter:
        with pytest.raises(PlatformError) as failed:
            await adapter.send(saying(server, "hello"))
    told = "".join(traceback.format_exception(failed.value))
    assert not [secret for secret in server.secrets if secret in told]
