"""Files that come with a message reach the model, or it is told why not."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start


async def test_a_document_is_in_the_workspace_before_the_model_reads(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start():
        telegram.user_sends(b"dear diary", "notes.txt", caption="read this")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1)
    found = list((tmp_path / "work" / "hermes-files").rglob("*notes.txt"))
    assert [file.read_bytes() for file in found] == [b"dear diary"]
    told = [message["content"] for message in model.last_request["messages"] if message["role"] == "user"]
    assert "read this" in told[0]
    assert str(found[0].relative_to(tmp_path / "work")) in told[-1]


async def test_a_file_that_cannot_be_fetched_is_told_to_the_model(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    telegram.refuse_next("getFile", 400, "Bad Request: file is too big")
    async with start():
        telegram.user_sends(b"x", "film.mp4", kind="video", mime="video/mp4")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1)
    told = [message["content"] for message in model.last_request["messages"] if message["role"] == "user"]
    assert "could not be fetched" in told[-1]
    assert "file is too big" in told[-1]


async def test_a_link_in_the_workspace_does_not_lead_a_file_out(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    async with start():
        (tmp_path / "work" / "hermes-files").symlink_to(tmp_path / "elsewhere")
        telegram.user_sends(b"dear diary", "notes.txt", caption="read this")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    told = [message["content"] for message in model.last_request["messages"] if message["role"] == "user"]
    assert "could not be fetched" in told[-1]
    assert "outside the workspace" in told[-1]
