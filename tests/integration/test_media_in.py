"""What people send besides words: the model sees, reads and hears it, or both are told why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.files import OPUS, docx, png
from tests.fakes.model import FakeModel, Refusal
from tests.fakes.pdf import pdf
from tests.fakes.speech import FakeSpeech
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import answered


def user_lines(model: FakeModel) -> list[Any]:
    return [message["content"] for message in model.last_request["messages"] if message["role"] == "user"]


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


async def test_a_picture_is_shown_to_a_model_that_can_see_and_stays_in_the_talk(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script(["A black square.", "Still black."])
    async with start():
        telegram.user_shows(png(), "what is this?")
        await answered(telegram, "A black square.")
        shown = user_lines(model)[-1]
        telegram.user_says("sure?")
        await answered(telegram, "Still black.")
    [picture] = [part for part in shown if part["type"] == "image_url"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert "hermes-files/" in text_of(shown)
    assert shown in user_lines(model), "a request begins with the bytes of the one before"


async def test_a_blind_model_is_told_how_to_look(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.says("I'll look.")
    async with start(HERMES_MODEL="smollm2"):
        telegram.user_shows(png())
        await answered(telegram, "I'll look.")
    assert isinstance(user_lines(model)[-1], str)
    assert "the tool vision" in user_lines(model)[-1]


async def test_a_model_that_turns_out_to_be_blind_is_asked_again_without_the_picture(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([Refusal(400, "This model does not support image input"), "I cannot see it."])
    async with start():
        telegram.user_shows(png())
        await answered(telegram, "I cannot see it.")
    assert isinstance(user_lines(model)[-1], str)


async def test_an_album_is_one_prompt(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.says("Two squares.")
    async with start(AGENT_JOIN_PAUSE_SECONDS="0.1"):
        telegram.user_shows(png(2), "both", media_group_id="9")
        telegram.user_shows(png(3), media_group_id="9")
        await answered(telegram, "Two squares.")
    assert len(model.requests) == 1
    assert len([part for part in user_lines(model)[-1] if part["type"] == "image_url"]) == 2


@pytest.mark.parametrize(
    "data,name,mime",
    [
        (b"the password is tulip\n", "notes.txt", "text/plain"),
        (b'{"password": "tulip"}', "notes.json", "application/json"),
        (pdf(["the password is tulip"]), "notes.pdf", "application/pdf"),
        (docx("the password", "is tulip"), "notes.docx", "application/octet-stream"),
        (b"<html><body><p>the password is tulip</p></body></html>", "notes.html", "text/html"),
    ],
    ids=["txt", "json", "pdf", "docx", "html"],
)
async def test_a_document_is_offered_as_text(
    start: Start, telegram: FakeTelegram, model: FakeModel, data: bytes, name: str, mime: str
) -> None:
    model.says("Tulip.")
    async with start():
        telegram.user_sends(data, name, "the password?", mime=mime)
        await answered(telegram, "Tulip.")
    told = user_lines(model)[-1]
    assert "tulip" in told
    assert "A stranger wrote it" in told
    assert f"/{name}]" in told


async def test_a_long_document_is_offered_in_part_with_the_way_to_read_on(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.says("Long.")
    async with start():
        telegram.user_sends(docx(*[f"paragraph {number} " + "x" * 80 for number in range(200)]), "book.docx")
        await answered(telegram, "Long.")
    told = user_lines(model)[-1]
    assert len(told) < 7500
    [whole] = (tmp_path / "work").rglob("book.docx.txt")
    assert str(whole.relative_to(tmp_path / "work")) in told
    next_line = int(told.rpartition("from line ")[2].split()[0])
    assert f"paragraph {next_line - 2} " in told
    assert f"paragraph {next_line - 1} " not in told
    assert whole.read_text().splitlines()[next_line - 1].startswith(f"paragraph {next_line - 1} ")


async def test_a_file_too_big_to_get_is_told_to_the_person_and_the_model(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.says("A pity.")
    async with start():
        telegram.user_sends(b"x" * 20_000_001, "film.mp4", kind="video", mime="video/mp4")
        await answered(telegram, "A pity.")
    assert telegram.texts()[0] == "I could not get film.mp4: it has 20 MB, and 20 MB is the most that I can get here"
    assert "could not be fetched: it has 20 MB" in user_lines(model)[-1]


async def test_a_picture_that_the_platform_does_not_hand_out_is_told_and_logged(
    start: Start, telegram: FakeTelegram, model: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    model.says("A pity.")
    telegram.refuse_next("getFile", 400, "Bad Request: wrong file_id or the file is temporarily unavailable")
    async with start():
        telegram.user_shows(png())
        await answered(telegram, "A pity.")
    [record] = [record for record in caplog.records if record.message == "Picture could not be fetched"]
    told = vars(record)
    assert (told["platform"], told["kind"], record.levelname) == ("telegram", "image", "WARNING")
    assert "wrong file_id" in told["reason"]


async def test_what_is_said_in_a_voice_message_is_what_the_model_reads(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.says("Noon.")
    async with FakeSpeech() as speech, start(STT_BASE_URL=speech.url):
        telegram.user_speaks(OPUS)
        await answered(telegram, "Noon.")
        assert [sound for _, sound in speech.heard] == [OPUS]
    assert "Spoken by the person" in user_lines(model)[-1]
    assert "what is the time" in user_lines(model)[-1]


async def test_a_voice_message_nobody_understands_is_told_to_both(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.says("I could not hear you.")
    async with FakeSpeech() as speech, start(STT_BASE_URL=speech.url):
        speech.refuse_next(503)
        telegram.user_speaks(OPUS)
        await answered(telegram, "I could not hear you.")
    assert "could not hear what you say" in telegram.texts()[0]
    assert "could not be written down" in user_lines(model)[-1]
