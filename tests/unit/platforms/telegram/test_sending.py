"""What goes to Telegram, what it says no to, and what is mended before anyone hears of it."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import orjson
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp_socks import ProxyConnectionError, ProxyConnector

from hermes.core.errors import (
    ConflictError,
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.keys import Target
from hermes.core.messages import Attachment, AttachmentKind, Button, Json, OutboundMessage
from hermes.core.secret import Secret
from hermes.platforms.shared.http_errors import nothing_was_sent
from hermes.platforms.telegram import media, wire
from hermes.platforms.telegram.adapter import TelegramAdapter
from hermes.platforms.telegram.config import TelegramConfig
from tests.contract.adapters.conftest import Inbox, receiving
from tests.fakes.files import png
from tests.fakes.jumping import JumpingLoop, LoopClock, run_in_jumps
from tests.fakes.telegram import FakeTelegram

HERE = Target("telegram", "7")


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


def adapter_for(url: str, http: aiohttp.ClientSession) -> TelegramAdapter:
    return TelegramAdapter(TelegramConfig("main", Secret("42:TEST-token"), url, 1), http, lambda: None)


@pytest_asyncio.fixture
async def adapter(fake: FakeTelegram) -> AsyncIterator[TelegramAdapter]:
    async with aiohttp.ClientSession() as http:
        yield adapter_for(fake.url, http)


def text(words: str, **more: object) -> OutboundMessage:
    return OutboundMessage(**{"target": HERE, "text": words, **more})  # type: ignore[arg-type]


async def test_markdown_is_sent_formatted(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    receipt = await adapter.send(text("**Hello** there."))
    assert (fake.sent[0].text, fake.sent[0].parse_mode, receipt.note) == ("Hello there.", "MarkdownV2", "")


async def test_plain_text_is_sent_without_a_parse_mode(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    await adapter.send(text("2 * 3 = 6!"))
    assert (fake.sent[0].raw, fake.sent[0].parse_mode) == ("2 * 3 = 6!", "")


async def test_markup_that_telegram_cannot_read_is_sent_plainly(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    fake.refuse_next("sendMessage", 400, "Bad Request: can't parse entities: Character '.' is reserved")
    receipt = await adapter.send(text("**Hello**"))
    assert (fake.sent[0].text, fake.sent[0].parse_mode) == ("**Hello**", "")
    assert receipt.note == "sent without formatting"


@pytest.mark.parametrize("words", ["```\n```", "> ", "`  `"])
async def test_marks_around_nothing_are_sent_as_they_are(
    fake: FakeTelegram, adapter: TelegramAdapter, words: str
) -> None:
    await adapter.send(text(words))
    assert (fake.sent[0].raw, fake.sent[0].parse_mode) == (words, "")


async def test_a_table_that_would_grow_beyond_the_limit_is_a_table_that_is_not_aligned(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    table = "|a|b|\n|-|-|\n|" + "x" * 300 + "|1|\n" + "|y|2|\n" * 60
    await adapter.send(text(f"**Here:**\n{table}"))
    assert fake.sent[0].text == "Here:\na|b\n" + "x" * 300 + "|1\n" + "\n".join(["y|2"] * 60)


async def test_a_repeat_carries_the_mark_and_a_repeated_edit_does_not(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    receipt = await adapter.send(text("**one**", is_repeat=True))
    assert fake.sent[0].text == "↻ one"
    await adapter.send(text("two", is_repeat=True, replaces=receipt.message_id))
    assert fake.sent[0].text == "two"


async def test_a_topic_that_is_gone_is_left_out(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    forum = fake.group(is_forum=True)
    fake.delete_topic(forum, 5)
    receipt = await adapter.send(text("hi", target=Target("telegram", str(forum), "5")))
    assert (fake.sent[0].thread, receipt.note) == ("", "the topic is gone; sent to the chat")


async def test_the_general_topic_is_left_out_of_sends_and_named_when_typing(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    target = Target("telegram", str(fake.group(is_forum=True)), "1")
    await adapter.send(text("hi", target=target))
    await adapter.typing(target)
    assert "message_thread_id" not in fake.called("sendMessage")[0]
    assert fake.called("sendChatAction")[0]["message_thread_id"] == 1


async def test_another_topic_is_named_in_both(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    target = Target("telegram", str(fake.group(is_forum=True)), "5")
    await adapter.send(text("hi", target=target))
    await adapter.typing(target)
    assert fake.sent[0].thread == "5"
    assert fake.called("sendChatAction")[0]["message_thread_id"] == 5


async def test_in_a_topic_too_an_answer_to_a_deleted_message_goes_out(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    forum = fake.group(is_forum=True)
    message = OutboundMessage(Target("telegram", str(forum), "5"), "hi", reply_to="12345")
    assert (await adapter.send(message)).note == "the message it answers is gone"
    assert [(sent.thread, sent.reply_to) for sent in fake.sent] == [("5", "")]


async def test_an_answer_to_a_deleted_message_still_goes_out(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    assert (await adapter.send(text("hi", reply_to="12345"))).note == "", "Telegram was told that it may be gone"
    fake.refuse_next("sendMessage", 400, "Bad Request: message to be replied not found")
    receipt = await adapter.send(text("hi", reply_to="12345"))
    assert [sent.reply_to for sent in fake.sent] == ["", ""]
    assert receipt.note == "the message it answers is gone"


async def test_a_group_that_moved_is_followed(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    fake.migrate(fake.group(-55), -10055)
    receipt = await adapter.send(text("hi", target=Target("telegram", "-55")))
    assert fake.sent[0].chat == "-10055"
    assert "-10055" in receipt.note


async def test_several_troubles_at_once_are_all_mended(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    fake.migrate(fake.group(-55), -10055)
    fake.delete_topic(-10055, 9)
    fake.refuse_next("sendMessage", 400, "Bad Request: can't parse entities: no")
    receipt = await adapter.send(text("**hi**", target=Target("telegram", "-55", "9")))
    assert fake.sent[0].text == "**hi**"
    assert receipt.note.count(";") >= 2


async def test_a_chat_that_moves_for_ever_ends_as_refused(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    for number in range(20):
        moved = {"migrate_to_chat_id": -number - 1}
        fake.refuse_next("sendMessage", 400, "Bad Request: group chat was upgraded", moved)
    with pytest.raises(RejectedError):
        await adapter.send(text("hi"))
    assert fake.counts["sendMessage"] == 6


async def test_a_chat_that_moved_to_where_it_is_ends_as_refused_at_once(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    fake.refuse_next("sendMessage", 400, "Bad Request: group chat was upgraded", {"migrate_to_chat_id": 7})
    with pytest.raises(RejectedError):
        await adapter.send(text("hi"))
    assert fake.counts["sendMessage"] == 1


async def test_an_edit_that_changes_nothing_is_a_success(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    receipt = await adapter.send(text("hi"))
    assert (await adapter.send(text("hi", replaces=receipt.message_id))) == receipt


@pytest.mark.parametrize("why", ["message to edit not found", "message can't be edited", "MESSAGE_ID_INVALID"])
async def test_an_edit_of_what_cannot_be_changed_is_refused_for_good(
    fake: FakeTelegram, adapter: TelegramAdapter, why: str
) -> None:
    fake.refuse_next("editMessageText", 400, f"Bad Request: {why}")
    with pytest.raises(RejectedError, match=why):
        await adapter.send(text("hi", replaces="99"))
    assert fake.sent == []


async def test_an_edit_without_buttons_takes_them_away(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    receipt = await adapter.send(text("May I?", buttons=((Button("Yes", "y"),),)))
    await adapter.send(text("Allowed.", replaces=receipt.message_id))
    assert fake.sent[0].buttons == ()


@pytest.mark.parametrize(
    "code,description,error",
    [
        (401, "Unauthorized", CredentialsError),
        (404, "Not Found", CredentialsError),
        (409, "Conflict: terminated by other getUpdates request", ConflictError),
        (400, "Bad Request: chat not found", RejectedError),
        (400, "Bad Request: message is too long", RejectedError),
        (403, "Forbidden: bot was blocked by the user", RejectedError),
        (413, "Request Entity Too Large", RejectedError),
        (429, "Too Many Requests: retry after 3", RateLimitedError),
        (500, "Internal Server Error", OutcomeUnknownError),
        (502, "Bad Gateway", OutcomeUnknownError),
    ],
)
async def test_each_refusal_says_who_acts(
    fake: FakeTelegram, adapter: TelegramAdapter, code: int, description: str, error: type[PlatformError]
) -> None:
    fake.refuse_next("sendMessage", code, description)
    with pytest.raises(error, match=description.split(":")[0]) as refused:
        await adapter.send(text("hi"))
    if isinstance(refused.value, RateLimitedError):
        assert refused.value.retry_after == 5, "it did not say how long"


@pytest.mark.parametrize(
    "parameters, seconds",
    [({"retry_after": 3}, 3), ({"retry_after": 10**400}, 86400), ({"retry_after": -1}, 5), ({"retry_after": "9"}, 5)],
)
def test_a_wait_is_as_long_as_telegram_says_within_reason(parameters: Json, seconds: float) -> None:
    refused = wire.refusal("sendMessage", {"error_code": 429, "parameters": parameters})
    assert isinstance(refused, RateLimitedError)
    assert refused.retry_after == seconds
    assert isinstance(wire.refusal("sendMessage", {"error_code": 429, "parameters": [5]}), RateLimitedError)


async def test_a_method_that_a_server_of_ones_own_lacks_is_no_bad_token(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    fake.refuse_next("setMyCommands", 404, "Not Found: method not found")
    with pytest.raises(RejectedError, match="method not found"):
        await adapter.set_commands([])


async def test_a_refusal_that_repeats_the_token_is_told_without_it(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    fake.refuse_next("sendMessage", 400, f"Bad Request: no such path /bot{fake.token}/sendMessage")
    with pytest.raises(RejectedError, match="no such path") as refused:
        await adapter.send(text("hi"))
    assert "TEST-token" not in str(refused.value)


async def test_an_edit_and_a_poll_that_got_no_answer_are_simply_tried_again(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    fake.refuse_next("editMessageText", 502, "Bad Gateway")
    with pytest.raises(UnreachableError):
        await adapter.send(text("hi", replaces="1"))
    fake.refuse_next("getUpdates", 500, "Internal Server Error")
    with pytest.raises(UnreachableError):
        await adapter.run(_nobody)
    fake.refuse_next("sendChatAction", 502, "Bad Gateway")
    with pytest.raises(UnreachableError):
        await adapter.typing(HERE)


async def _nobody(events: object, cursor: object = None) -> None:
    raise AssertionError("nothing was said")


async def test_flood_control_on_receiving_says_how_long_to_wait(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    fake.refuse_next("getUpdates", 429, "Too Many Requests: retry after 2", {"retry_after": 2})
    with pytest.raises(RateLimitedError) as refused:
        await adapter.run(_nobody)
    assert refused.value.retry_after == 2


async def test_a_webhook_in_the_way_is_told_with_what_to_do(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    fake.webhook_is_set = True
    with pytest.raises(ConflictError, match="Another program set a webhook"):
        await adapter.run(_nobody)
    assert fake.webhook_is_set  # it may be another program's: ours to tell, not to delete


PAGE = b"<html>Please log in</html>"


@pytest.mark.parametrize(
    "status, body, error",
    [
        (200, PAGE, UnreachableError),  # a page took nothing: the answer waits as long as answers wait
        (403, PAGE, UnreachableError),
        (502, PAGE, OutcomeUnknownError),  # this may be Telegram's own front
        *((200, body, OutcomeUnknownError) for body in (b"", b"[]", b'{"ok":true}', b'"ok"', b"[" * 100_000)),
    ],
)
async def test_something_else_than_telegram_answering_is_not_mistaken_for_it(
    status: int, body: bytes, error: type[PlatformError]
) -> None:
    async def portal(_: web.BaseRequest) -> web.Response:
        return web.Response(status=status, body=body)

    runner = web.ServerRunner(web.Server(portal), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with aiohttp.ClientSession() as http:
            adapter = adapter_for(f"http://127.0.0.1:{runner.addresses[0][1]}", http)
            with pytest.raises(error):
                await adapter.send(text("hi"))
            with pytest.raises(UnreachableError):
                await adapter.run(_nobody)
    finally:
        await runner.cleanup()


async def test_when_nothing_was_sent_it_is_unreachable_and_the_token_is_told_nowhere(unused_tcp_port: int) -> None:
    async with aiohttp.ClientSession() as http:
        refused = adapter_for(f"http://127.0.0.1:{unused_tcp_port}", http)
        with pytest.raises(UnreachableError) as error:
            await refused.send(text("hi"))
    assert "TEST-token" not in "".join(traceback.format_exception(error.value))


async def test_a_proxy_that_is_down_means_nothing_was_sent(unused_tcp_port: int) -> None:
    connector = ProxyConnector.from_url(f"socks5://127.0.0.1:{unused_tcp_port}")
    async with aiohttp.ClientSession(connector=connector) as http:
        behind = adapter_for("http://127.0.0.1:9", http)
        with pytest.raises(UnreachableError):
            await behind.send(text("hi"))


def test_a_proxy_error_counts_as_nothing_sent() -> None:
    assert nothing_was_sent(ProxyConnectionError(111, "refused"))
    assert not nothing_was_sent(aiohttp.ServerDisconnectedError())


async def test_a_call_has_a_deadline(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    fake.hold("sendMessage")
    with pytest.raises(OutcomeUnknownError, match="no answer in time"):
        await adapter._bot.call("sendMessage", {"chat_id": 7, "text": "hi"}, seconds=0.05)
    assert fake.texts() == ["hi"]
    fake.hold("getUpdates")
    with pytest.raises(UnreachableError, match="no answer in time"):
        await adapter._bot.call("getUpdates", {}, seconds=0.05)


async def test_text_that_cannot_be_encoded_is_made_sendable(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    await adapter.send(text("a\ud800b\0c"))
    assert fake.sent[0].text == "a\ufffdb\u2400c"


@pytest.mark.parametrize(
    "message",
    [text("x", reply_to="abc"), text("x", replaces="abc"), text("x", target=Target("telegram", "7", "abc")),
     text("x", target=Target("telegram", "9" * 30)), text("  "), text("x", target=Target("telegram", "nobody")),
     text("x" * 4097), text("x", replaces="12345"), text("x", buttons=((Button("Yes", "y" * 65),),)),
     text("x", buttons=((Button(" ", "y"),),))],
)  # fmt: skip
async def test_what_can_never_be_sent_is_refused_for_good(adapter: TelegramAdapter, message: OutboundMessage) -> None:
    with pytest.raises(RejectedError):
        await adapter.send(message)


async def test_bad_bytes_in_one_update_do_not_stop_the_others(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    said = fake.user_says("before")
    sender = b'"from":{"id":7,"first_name":"A"},"chat":{"id":7,"type":"private"},"date":1700000000'
    for number, words in ((50, b"half \\ud83d pair"), (51, b"bad \xff\xfe byte"), (52, b"nul \\u0000 \x01")):
        fake.deliver_raw(
            lambda update, n=number, w=words: (
                b'{"update_id":%d,"message":{"message_id":%d,%s,"text":"%s"}}'  # type: ignore[misc]
                % (update, n, sender, w)
            )
        )
    after = fake.user_says("after")
    seen: list[str] = []

    async def keep(events: list[object], cursor: object = None) -> None:
        seen.extend(key for event in events for key in event.keys)  # type: ignore[attr-defined]
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await adapter.run(keep)  # type: ignore[arg-type]
    assert seen == [said.key, "msg:7:50", "msg:7:51", "msg:7:52", after.key]


async def test_updates_without_ids_are_not_asked_for_in_a_hot_loop(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    fake.deliver_raw(lambda _: b'{"message":{}}')

    async def keep(events: object, cursor: object = None) -> None: ...

    with pytest.raises(UnreachableError, match="without ids"):
        await adapter.run(keep)


async def test_ids_of_updates_that_start_anew_lower_lose_nothing(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    """As Telegram's do after a quiet week."""
    seen: list[str] = []

    async def keep(events: list[object], cursor: object = None) -> None:
        seen.extend(event.text for event in events)  # type: ignore[attr-defined]
        if seen[-1] == "two":
            fake.user_says("three")  # before the next poll

    fake.user_says("one")
    running = asyncio.create_task(adapter.run(keep))  # type: ignore[arg-type]
    await fake.wait_for(lambda: fake.polls == 2 and fake.unconfirmed == 0)
    fake._next_update = 5
    fake.user_says("two")
    await fake.wait_for(lambda: seen == ["one", "two", "three"] and fake.unconfirmed == 0)
    running.cancel()
    await asyncio.wait({running})
    assert seen == ["one", "two", "three"]


def test_the_first_look_waits_for_nothing_and_the_next_follows_at_once() -> None:
    async def story(loop: JumpingLoop, _: LoopClock) -> float:
        async with FakeTelegram() as fake, aiohttp.ClientSession() as http:
            running = asyncio.create_task(adapter_for(fake.url, http).run(_nobody))
            began = loop.time()
            await fake.wait_for(lambda: fake.polls == 2)
            running.cancel()
            await asyncio.wait({running})
            return loop.time() - began

    assert run_in_jumps(story) < 0.5


def test_a_server_that_does_not_wait_for_news_is_not_asked_in_a_hot_loop() -> None:
    async def story(_: JumpingLoop, __: LoopClock) -> int:
        async with FakeTelegram() as fake, aiohttp.ClientSession() as http:
            fake.waits_for_news = False
            running = asyncio.create_task(adapter_for(fake.url, http).run(_nobody))
            await asyncio.sleep(60)
            running.cancel()
            await asyncio.wait({running})
            return fake.polls

    assert 50 < run_in_jumps(story) < 70


# ---- files -----------------------------------------------------------------------------------------------------


def a_file(path: Path, kind: AttachmentKind, data: bytes = b"data") -> Attachment:
    path.write_bytes(data)
    return Attachment(kind, path=str(path), name=path.name, size=len(data))


@pytest.mark.parametrize(
    "kind,method",
    [
        (AttachmentKind.IMAGE, "sendPhoto"),
        (AttachmentKind.VOICE, "sendVoice"),
        (AttachmentKind.AUDIO, "sendAudio"),
        (AttachmentKind.VIDEO, "sendVideo"),
        (AttachmentKind.DOCUMENT, "sendDocument"),
    ],
)
async def test_each_kind_of_file_goes_its_own_way(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path, kind: AttachmentKind, method: str
) -> None:
    buttons, data = ((Button("Yes", "y"),),), png(3, 2) if kind is AttachmentKind.IMAGE else b"data"
    await adapter.send(text("", attachment=a_file(tmp_path / "f.bin", kind, data), buttons=buttons))
    sent = fake.sent[0]
    assert (sent.method, sent.file, sent.file_name, sent.buttons) == (method, data, "f.bin", buttons)


@pytest.mark.parametrize(
    "kind,mime",
    [
        (AttachmentKind.AUDIO, "audio/wav"),
        (AttachmentKind.VIDEO, "video/webm"),
        (AttachmentKind.IMAGE, "image/gif"),
        (AttachmentKind.VOICE, "audio/flac"),
    ],
)
async def test_what_telegram_cannot_play_goes_as_a_file(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path, kind: AttachmentKind, mime: str
) -> None:
    await adapter.send(text("", attachment=replace(a_file(tmp_path / "f.bin", kind), mime=mime)))
    assert [sent.method for sent in fake.sent] == ["sendDocument"]


async def test_an_album_telegram_cannot_show_goes_as_files(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    one, two = (a_file(tmp_path / f"{n}.png", AttachmentKind.IMAGE, png(width, 1)) for n, width in ((1, 2), (2, 9000)))
    receipt = await adapter.send(text("*both*", attachment=one, album=(two,)))
    assert receipt.note == "sent as files"
    assert [entry["type"] for entry in fake.called("sendMediaGroup")[-1]["media"]] == ["document", "document"]
    assert [sent.text for sent in fake.sent] == ["both", ""]


async def test_an_album_whose_caption_telegram_cannot_read_goes_with_plain_words(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    one, two = (a_file(tmp_path / f"{n}.png", AttachmentKind.IMAGE, png(2, 1)) for n in (1, 2))
    fake.refuse_next("sendMediaGroup", 400, "Bad Request: can't parse entities: no")
    receipt = await adapter.send(text("*both*", attachment=one, album=(two,)))
    assert ([sent.text for sent in fake.sent], receipt.note) == (["*both*", ""], "sent without formatting")


async def test_a_file_that_is_refused_even_as_a_file_is_refused(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    fake.refuse_next("sendDocument", 400, "Bad Request: wrong file type", times=3)
    with pytest.raises(RejectedError, match="wrong file type"):
        await adapter.send(text("", attachment=a_file(tmp_path / "f.bin", AttachmentKind.DOCUMENT)))
    assert fake.counts["sendDocument"] == 1


async def test_a_file_whose_place_leads_elsewhere_is_not_fetched(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    fake._files["FILE1"] = ("documents/../../getMe", b"data")
    with pytest.raises(RejectedError, match="does not say where"):
        await adapter.fetch(Attachment(AttachmentKind.DOCUMENT, "FILE1"), tmp_path)
    assert fake.counts["file"] == 0


async def test_a_picture_too_large_for_a_photo_goes_as_a_file(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    await adapter.send(text("", attachment=a_file(tmp_path / "f.png", AttachmentKind.IMAGE, b"x" * 10_000_001)))
    assert fake.sent[0].method == "sendDocument"


async def test_a_picture_that_telegram_cannot_show_goes_as_a_file(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    banner = png(9000, 100)
    receipt = await adapter.send(text("look", attachment=a_file(tmp_path / "f.png", AttachmentKind.IMAGE, banner)))
    assert (fake.sent[0].method, fake.sent[0].file, receipt.note) == ("sendDocument", banner, "sent as a file")


async def test_a_file_too_large_for_telegram_is_told(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    huge = tmp_path / "huge.bin"
    with huge.open("wb") as file:
        file.truncate(media.UPLOAD_LIMIT + 1)
    with pytest.raises(RejectedError, match=r"huge\.bin has 50000001 bytes"):
        await adapter.send(text("", attachment=Attachment(AttachmentKind.DOCUMENT, path=str(huge), name=huge.name)))
    assert fake.counts["sendDocument"] == 0


async def test_a_file_that_telegram_already_has_is_sent_by_its_id(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    fake.user_sends(b"data", "notes.txt")
    await adapter.send(text("back to you", attachment=Attachment(AttachmentKind.DOCUMENT, file_id="FILE1")))
    assert fake.sent[0].file == b"data"


async def test_a_download_that_is_too_large_leaves_nothing_behind(
    fake: FakeTelegram, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    fake.user_sends(b"x" * 1000, "big.bin")
    with pytest.raises(RejectedError, match="larger than 10 bytes"):
        await adapter._bot.download("documents/FILE1_big.bin", tmp_path, "big.bin", 10)
    assert "big.bin" not in os.listdir(tmp_path)
    with pytest.raises(RejectedError, match="bots may fetch"):
        await adapter.fetch(Attachment(AttachmentKind.DOCUMENT, "FILE1", size=30_000_000), tmp_path)


async def test_a_file_that_telegram_no_longer_has_is_told(adapter: TelegramAdapter, tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="no longer"):
        await adapter._bot.download("documents/gone", tmp_path, "gone", 10)
    with pytest.raises(RejectedError, match="wrong file_id"):
        await adapter.fetch(Attachment(AttachmentKind.DOCUMENT, "FILE99"), tmp_path)


# ---- asking ----------------------------------------------------------------------------------------------------


async def test_it_asks_only_for_what_it_reads_and_confirms_what_was_stored(
    fake: FakeTelegram, adapter: TelegramAdapter
) -> None:
    for number in range(3):
        fake.user_says(f"number {number}")

    async def keep(events: object, cursor: object = None) -> None: ...

    running = asyncio.create_task(adapter.run(keep))
    await fake.wait_for(lambda: fake.polls == 2)
    running.cancel()
    await asyncio.wait({running})
    first, second = fake.called("getUpdates")
    assert (first["offset"], first["timeout"]) == (0, 0)
    assert (second["offset"], second["timeout"]) == (104, 1)
    assert "callback_query" in first["allowed_updates"]
    assert fake.unconfirmed == 0


@pytest.mark.parametrize("is_dated", [False, True])
async def test_a_reaction_to_a_message_that_is_told_as_an_edit_is_not_heard_as_words(
    fake: FakeTelegram, adapter: TelegramAdapter, is_dated: bool
) -> None:
    inbox = Inbox()
    async with receiving(adapter, inbox):
        said = fake.user_says("hello")
        await inbox.until(1)
        message = fake._said[said.chat, said.message_id]
        fake.deliver("edited_message", {**message, "edit_date": message["date"] + 9} if is_dated else message)
        last = fake.user_says("and?")
        await inbox.until(2)
    assert inbox.keys == [said.key, last.key]


async def test_it_says_its_name(adapter: TelegramAdapter) -> None:
    assert await adapter.describe() == "@test_bot"
    assert adapter.identity == "42"


async def test_a_press_is_answered_within_telegrams_limit(fake: FakeTelegram, adapter: TelegramAdapter) -> None:
    await adapter.send(text("May I?", buttons=((Button("Yes", "y"),),)))
    fake.user_presses(fake.sent[0], "y")
    await adapter.answer_press("999", "x" * 500)
    assert len(fake.answered_presses["999"]) == 200
    fake.refuse_next("answerCallbackQuery", 403, "Forbidden: no")
    with pytest.raises(RejectedError):
        await adapter.answer_press("1", "x")


def test_json_is_read_even_where_it_is_not_quite_json() -> None:
    assert wire.decode(b'{"a":"\\ud800"}') == {"a": "\ud800"}
    assert wire.decode(b'{"a":"\xff"}') == {"a": "\ufffd"}
    update: Json = orjson.loads(b'{"a":1}')
    assert wire.decode(b'{"a":1}') == update
