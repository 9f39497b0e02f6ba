"""Files the agent names in its answer go out in their place, or it is told why not: to the person and to the model."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.services.outbound.presenter import PresenterTiming
from hermes.services.outbound.spool import Spool
from tests.fakes.clock import FakeClock
from tests.fakes.files import OPUS, png, wav
from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.fakes.server import Sent
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start, crash
from tests.integration.watching import answered, make, outbox_rows, results, until


def told(model: FakeModel) -> str:
    """All that the model read of the person and of us, in its last request."""
    return "\n".join(str(message["content"]) for message in model.last_request["messages"] if message["role"] == "user")


async def sent(telegram: FakeTelegram, count: int) -> list[Sent]:
    await telegram.wait_for(lambda: len(telegram.sent) >= count, 10)
    return telegram.sent


async def test_files_go_out_in_the_order_of_the_text(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.says("The table:\nMEDIA:out/table.csv\nAnd a note.\nMEDIA:song.mp3\nThat is all.")
    async with start() as gateway:
        (tmp_path / "work" / "out").mkdir()
        (tmp_path / "work" / "out" / "table.csv").write_text("a,b\n")
        (tmp_path / "work" / "song.mp3").write_bytes(b"ID3\4" + bytes(50))
        telegram.user_says("send me the files")
        all_sent = await sent(telegram, 5)
        await until(lambda: _all_sent(gateway))
    assert [(one.method, one.text, one.file_name) for one in all_sent] == [
        ("sendMessage", "The table:", ""),
        ("sendDocument", "", "table.csv"),
        ("sendMessage", "And a note.", ""),
        ("sendAudio", "", "song.mp3"),
        ("sendMessage", "That is all.", ""),
    ]
    assert all_sent[1].file == b"a,b\n"
    assert [bool(one.reply_to) for one in all_sent] == [True, False, False, False, False]


async def _all_sent(gateway: Gateway) -> bool:
    return all(row.state == "sent" for row in await outbox_rows(gateway))


async def test_a_short_text_before_one_file_is_its_caption(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.says("A *black* square.\nMEDIA:square.png")
    async with start():
        (tmp_path / "work" / "square.png").write_bytes(png())
        telegram.user_says("draw")
        [one] = await sent(telegram, 1)
    assert (one.method, one.text, one.file) == ("sendPhoto", "A black square.", png())


async def test_pictures_in_a_row_are_one_album(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    names = [f"{number}.png" for number in range(12)]
    model.says("\n".join(f"MEDIA:{name}" for name in names))
    async with start():
        for name in names:
            (tmp_path / "work" / name).write_bytes(png())
        telegram.user_says("all of them")
        all_sent = await sent(telegram, 12)
    assert telegram.counts["sendMediaGroup"] == 2
    assert [one.file_name for one in all_sent] == names


async def test_tags_say_how_a_file_is_sent(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.says("MEDIA:square.png [[as_document]]\nMEDIA:memo.ogg [[audio_as_voice]]\nMEDIA:memo.ogg")
    async with start():
        (tmp_path / "work" / "square.png").write_bytes(png())
        (tmp_path / "work" / "memo.ogg").write_bytes(OPUS)
        telegram.user_says("go")
        all_sent = await sent(telegram, 3)
    # Telegram plays MP3 and M4A as music; an OGG that is no voice message is a file to it.
    assert [one.method for one in all_sent] == ["sendDocument", "sendVoice", "sendDocument"]


@pytest.mark.parametrize(
    "path,reason",
    [
        ("/etc/passwd", "outside the workspace"),
        ("~/.hermes/.env", "outside the workspace"),
        ("../home/.env", "outside the workspace"),
        ("link.txt", "outside the workspace"),
        ("twin.env", "closed to tools"),
        ("folder", "is a folder"),
        ("pipe", "not a regular file"),
        ("missing.pdf", "There is no file"),
        ("empty.txt", "it is empty"),
        ("https://example.com/a.png", "is an address"),
        ("huge.bin", "it has 50 MB, and 50 MB is the most"),
    ],
)
async def test_a_file_that_is_not_for_sending_is_refused_and_told(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, path: str, reason: str
) -> None:
    work = tmp_path / "work"
    model.script([f"Here you are:\nMEDIA:{path}", "Sorry."])
    async with start():
        (tmp_path / "home" / ".env").write_text("SECRET=hunter2\n")
        (tmp_path / "outside.txt").write_text("not yours")
        (work / "link.txt").symlink_to(tmp_path / "outside.txt")
        os.link(tmp_path / "home" / ".env", work / "twin.env")
        (work / "folder").mkdir()
        os.mkfifo(work / "pipe")
        (work / "empty.txt").touch()
        with (work / "huge.bin").open("wb") as huge:
            huge.truncate(50_000_001)
        telegram.user_says("send it")
        [answer] = await sent(telegram, 1)
        assert list((tmp_path / "home" / "spool").glob("*")) == []
        telegram.user_says("well?")
        await answered(telegram, "Sorry.")
    assert answer.method == "sendMessage"
    assert answer.text.startswith("Here you are:\n(")
    assert reason in answer.text
    assert reason in told(model)
    assert "[undelivered files]" in told(model)
    assert not [one for one in telegram.sent if one.file]


async def test_the_home_of_hermes_is_closed_also_inside_the_owners_workspace(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.says(f"MEDIA:{tmp_path}/home/.env")
    async with start(MESSAGING_CWD=str(tmp_path)) as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        (tmp_path / "home" / ".env").write_text("SECRET=hunter2\n")
        telegram.user_says("send it")
        [answer] = await sent(telegram, 1)
    assert "closed to tools" in answer.text
    assert not answer.file


async def test_what_the_platform_refuses_is_told_and_the_words_behind_it_still_come(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    telegram.refuse_next("sendDocument", 400, "Bad Request: FILE_PARTS_INVALID")
    model.script(["MEDIA:a.pdf\nThere it is.", "Oh."])
    async with start():
        (tmp_path / "work" / "a.pdf").write_bytes(b"%PDF-1.4")
        telegram.user_says("send it")
        first, second = await sent(telegram, 2)
        telegram.user_says("I have nothing")
        await answered(telegram, "Oh.")
    assert first.text == "There it is."
    assert "a.pdf did not arrive" in second.text
    assert "FILE_PARTS_INVALID" in second.text
    assert "a.pdf did not reach the person" in told(model)
    assert "FILE_PARTS_INVALID" in told(model)


async def test_a_caption_is_not_lost_with_its_file(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    telegram.refuse_next("sendDocument", 400, "Bad Request: FILE_PARTS_INVALID")
    model.says("The answer is 42.\nMEDIA:a.pdf")
    async with start():
        (tmp_path / "work" / "a.pdf").write_bytes(b"%PDF-1.4")
        telegram.user_says("send it")
        [one] = await sent(telegram, 1)
    assert one.text.startswith("The answer is 42.")
    assert "a.pdf did not arrive" in one.text


async def test_a_file_outlives_a_crash_between_the_answer_and_its_sending_and_cannot_be_swapped(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.says("First words.\nMEDIA:a.txt\nLast words.")
    hold = telegram.hold_sends()
    async with start() as gateway:
        (tmp_path / "work" / "a.txt").write_text("as it was")
        telegram.user_says("send it")
        await hold.reached()  # the answer is stored, and its first part is on its way
        await crash(gateway)
        telegram.release("sendMessage")
    (tmp_path / "work" / "a.txt").write_text("swapped")
    async with start() as gateway:
        await telegram.wait_for(lambda: "Last words." in telegram.texts(), 10)
        await until(lambda: _all_sent(gateway))
    [file] = [one for one in telegram.sent if one.file]
    assert file.file == b"as it was"


async def test_the_spool_is_emptied_of_what_was_sent(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.says("MEDIA:a.txt")
    async with start() as gateway:
        (tmp_path / "work" / "a.txt").write_text("x")
        telegram.user_says("send it")
        await sent(telegram, 1)
        await until(lambda: _all_sent(gateway))
        spool = tmp_path / "home" / "spool"
        assert len(list(spool.iterdir())) == 1
        await Spool(tmp_path / "home", gateway.db, gateway.clock).sweep()
        assert list(spool.iterdir()) == []
        assert await gateway.db.read(lambda tx: tx.value("SELECT COUNT(*) FROM files_out")) == 0


async def test_a_preview_never_shows_a_path(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    tokens = ("Looking at it now.\nMEDIA:", "a.txt", "\nDone.")
    model.script([Reply(tokens=tokens)])
    model.hold()
    async with start(pace=PresenterTiming(first_sign_seconds=0.0, preview_after_seconds=0.0)):
        (tmp_path / "work" / "a.txt").write_text("x")
        telegram.user_says("send it")
        await sent(telegram, 1)
        model.release()
        all_sent = await sent(telegram, 3)
    assert [one.text for one in all_sent] == ["Looking at it now.", "", "Done."]
    assert all_sent[0].edits == ["Looking at it now. ▌"]


async def test_audio_that_is_no_opus_is_still_sent_when_asked_for_as_voice(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.says("MEDIA:memo.wav [[audio_as_voice]]")
    async with start():
        (tmp_path / "work" / "memo.wav").write_bytes(wav())
        telegram.user_says("say it")
        [one] = await sent(telegram, 1)
    assert one.file


async def test_a_message_sent_by_the_tool_can_carry_files_too(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    text = "The table, as promised.\nMEDIA:table.csv\nMEDIA:/etc/passwd"
    model.script([calls_tools(("send_message", {"text": text})), "Sent."])
    async with start():
        (tmp_path / "work" / "table.csv").write_text("a,b\n")
        telegram.user_says("send it to me")
        await answered(telegram, "Sent.")
    assert [(one.method, one.file) for one in telegram.sent[:2]] == [("sendMessage", b""), ("sendDocument", b"a,b\n")]
    assert "passwd was not sent" in telegram.sent[2].text
    assert "passwd was not sent" in results(model)[0]


async def test_a_file_whose_time_ran_out_is_told_with_the_next_message(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.script(["MEDIA:a.pdf", "Oh."])
    clock = FakeClock(time.time())
    async with start(clock=clock) as gateway:
        (tmp_path / "work" / "a.pdf").write_bytes(b"%PDF-1.4")
        telegram.refuse_next("sendDocument", 429, "Too Many Requests: retry after 30", {"retry_after": 30})
        telegram.user_says("send it")
        await until(lambda: _is_refused(telegram))
        clock.advance(7 * 3600)
        gateway.delivery.wake("telegram:7")
        await until(lambda: _is_dead(gateway))
        telegram.user_says("well?")
        await answered(telegram, "Oh.")
    assert [text for text in telegram.texts() if "a.pdf did not arrive: expired" in text]
    assert "a.pdf did not reach the person: expired" in told(model)


async def _is_refused(telegram: FakeTelegram) -> bool:
    return telegram.counts["sendDocument"] == 1


async def _is_dead(gateway: Gateway) -> bool:
    return any(row.state == "dead" for row in await outbox_rows(gateway))


@pytest.mark.parametrize(
    "role, name, why",
    [
        (PersonRole.GUEST, "plan.txt", "guests are sent no files"),
        (PersonRole.OWNER, ".env", "hold keys or passwords"),
        (PersonRole.OWNER, "link", "hold keys or passwords"),
    ],
)
async def test_what_a_tool_would_not_read_unasked_is_not_sent_either(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, role: PersonRole, name: str, why: str
) -> None:
    model.says(f"Here:\nMEDIA:{name}")
    async with start() as gateway:
        for each in ("plan.txt", ".env"):
            (tmp_path / "work" / each).write_text("CANARY")
        (tmp_path / "work" / "link").symlink_to(".env")
        await make(gateway, USER, role)
        telegram.user_says("give it to me")
        [only] = await sent(telegram, 1)
    assert why in only.text
    assert not only.file
