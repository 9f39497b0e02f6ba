"""The card of an approval on every platform: the command as a command, and all of a long one beside the card."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.config import load
from hermes.core.i18n.catalogue import CATALOGUE
from hermes.core.markdown.call_card import Card
from hermes.services.clock import SystemClock
from hermes.services.outbound.approval_questions import QuestionTarget, QuestionWriter
from hermes.services.outbound.delivery import Delivery
from hermes.services.outbound.rate_limits import RateLimiter
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.outbound.spool import Spool
from hermes.store import outbox
from hermes.store.approvals import Question
from hermes.store.db import Database
from hermes.store.ids import new_id
from hermes.store.open import open_database
from tests.fakes.server import FakeServer, Sent

FAR = 4e9
COMMAND = "find . -name '*.pyc' | xargs rm -rf -- && echo \"done\" # a_b *c* <d> & [e](f)"
WHERE = "on this machine, in /srv/my_work"
WHY = "It deletes folders with everything in them."


class Asking:
    """Puts questions into the chat of a fake, as a turn does: rows in the outbox, delivered by the real adapter."""

    def __init__(self, server: FakeServer, db: Database, writer: OutboxWriter, questions: QuestionWriter) -> None:
        self.server = server
        self._db = db
        self._writer = writer
        self._questions = questions

    async def ask(self, tool: str, arguments: dict[str, object], language: str = "en") -> Question:
        card = Card(CATALOGUE[language], tool, json.dumps(arguments), WHY, WHERE)
        question = Question(new_id("ap"), "K7QP2M", "p_1", True, WHY, FAR, "terminal/local: delete_tree", WHERE)
        chats = [QuestionTarget(self.server.target())]
        question, rows = await asyncio.to_thread(
            self._questions.write, card, question, chats, seconds=300.0, turn_id="t_1"
        )
        await self._db.write(outbox.enqueue, rows, now=self._writer.now())
        self._writer.due(rows)
        await self.server.wait_for(lambda: len(self.server.sent) >= len(rows))
        return question


@asynccontextmanager
async def asking(server: FakeServer, folder: Path) -> AsyncIterator[Asking]:
    config, clock = load(folder, {}, folder, ()).config, SystemClock()
    db = await open_database(folder / "state.db")
    async with server.adapter() as adapter:
        limiter = RateLimiter(lambda _: adapter.capabilities)
        delivery = Delivery(db, lambda _: adapter, lambda: config, clock, "inc_test", limiter)
        writer = OutboxWriter(lambda _: adapter.capabilities, lambda: config, clock, delivery)
        try:
            yield Asking(server, db, writer, QuestionWriter(writer, Spool(folder, db, clock)))
        finally:
            await delivery.drain(5)
            await db.close()


def labels(sent: Sent) -> list[str]:
    return [button.label for row in sent.buttons for button in row]


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_card_shows_the_command_where_it_runs_and_why_and_no_json(
    server: FakeServer, tmp_path: Path, language: str
) -> None:
    async with asking(server, tmp_path) as questions:
        question = await questions.ask("terminal", {"command": COMMAND, "folder": "src"}, language)
    [card] = server.sent
    assert COMMAND in card.text
    assert "folder: src" in card.text
    assert "/srv/my_work" in card.text.replace("\\", "")
    assert WHY in card.text
    assert '"command"' not in card.text
    assert f"/approve {question.code}" in card.text
    assert question.proof == ""
    assert len(labels(card)) == (4 if server.capabilities.buttons else 0)


async def test_a_card_hides_nothing_and_its_block_is_not_closed_from_inside(server: FakeServer, tmp_path: Path) -> None:
    command = "ls \u202e```\nIt is harmless: **press Approve**.\n```\u200b" + " " * 300 + "; rm -rf ~"
    async with asking(server, tmp_path) as questions:
        await questions.ask("terminal", {"command": command})
    [card] = server.sent
    assert (
        "ls ‹U+202E›‹3 backticks›\nIt is harmless: **press Approve**.\n‹3 backticks›‹U+200B›‹300 blanks›; rm -rf ~"
    ) in card.text


async def test_a_file_is_shown_as_text(server: FakeServer, tmp_path: Path) -> None:
    async with asking(server, tmp_path) as questions:
        await questions.ask("write_file", {"path": ".bashrc", "content": "alias ls='rm -rf'\nexport A=1"})
    [card] = server.sent
    assert "path: .bashrc" in card.text
    assert "alias ls='rm -rf'\nexport A=1" in card.text


async def test_what_is_too_long_comes_whole_and_the_card_alone_cannot_approve_it(
    server: FakeServer, tmp_path: Path
) -> None:
    command = "echo start\n" + "".join(f"echo line {number} of many\n" for number in range(500)) + "rm -rf ~/precious"
    assert len(command) > 10_000
    async with asking(server, tmp_path) as questions:
        question = await questions.ask("terminal", {"command": command})
    assert question.proof
    *before, card = server.sent
    if server.capabilities.media:
        [file] = before
        whole, shown = file.file.decode(), card.text
        assert file.file_name == "approval-K7QP2M.txt"
    else:
        # Without files the whole comes as messages, each closing its block of code, and then the card. Where a message
        # may be long enough, as in a terminal, the whole is the card, and tells how to approve it in its last line.
        texts = [sent.text for sent in server.sent]
        end = 1 + next(place for place, text in enumerate(texts) if question.proof in text)
        whole = "\n".join(texts[:end]).replace("\n```\n```\n", "\n")
        shown = "\n".join(texts[end:]) if len(texts) > 1 else whole
    assert command in whole
    assert f"/approve {question.proof}" in whole.rstrip().splitlines()[-1]
    assert len(server.sent) == 1 or question.proof not in shown, "nobody approves it without having read the whole"
    assert f"/approve {question.code}" not in shown
    assert f"/deny {question.code}" in shown
    assert "echo start" in shown
    assert "rm -rf ~/precious" in shown
    assert len(labels(card)) == (1 if server.capabilities.buttons else 0), "only no is one press away"
