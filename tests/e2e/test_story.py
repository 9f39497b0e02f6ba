"""The whole story, in both languages, with real processes: from a stranger's first word to the day they are refused.

Told once; each language brings what people write and what they read. A new feature joins as one more scene.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes.hosting import paths
from tests.e2e.terminal import Terminal
from tests.fakes.files import OPUS, png
from tests.fakes.model import FakeModel, Refusal, Reply, calls_tools
from tests.fakes.server import Sent
from tests.fakes.speech import FakeSpeech
from tests.fakes.telegram import UNPACED, FakeTelegram

ANA, BEN, EVE = 5550142, 5550188, 66
SECONDS = 30
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Telling:
    """What people write, what the model says, and what Hermes itself says, in one language."""

    language: str
    greeting: str
    name: str
    pairing: str
    welcome: str
    answer: str
    home: str
    at_the_door: str
    refuse: str
    sent_away: str
    status: str
    help: str
    unknown: str
    long_answer: tuple[str, ...]
    voice_on: str
    spoken: str
    picture: str
    document: str
    may_i: str
    danger: str
    approve: str
    approved: str
    approved_by: str
    failure: str
    stopped: str
    nothing_running: str


ENGLISH = Telling(
    language="en",
    greeting="hi, are you there?",
    name="Ana",
    pairing="Here's your pairing code: (\\w{8})\nAsk the bot owner to run:\nhermes pairing approve telegram \\1",
    welcome="You're in, Ana! Ask me anything, or /help.",
    answer="Good morning!",
    home="This chat is home now: reminders and alerts come here.",
    at_the_door="Eve (telegram 66) would like to talk to me.",
    refuse="Refuse",
    sent_away="Eve was refused, without a message.",
    status="I'm here, nothing running.",
    help="/sethome",
    unknown="There is no command /stauts. Did you mean /status?",
    long_answer=("Once ", "upon ", "a ", "time ", "there ", "was ", "a ", "patient ", "reader."),
    voice_on="on: a voice message is answered aloud too.",
    spoken="It is noon.",
    picture="A black square.",
    document="Here it is.",
    may_i="May I run terminal on this machine",
    danger="It deletes folders with everything in them.",
    approve="Approve",
    approved="Approved, going on.",
    approved_by="✓ Approved by Ana.",
    failure="My model (openai) does not accept the key, and there is no fallback. Owner: check the key",
    stopped="Stopped. The turn that was running has been stopped.",
    nothing_running="Nothing was running.",
)
CHINESE_TOO = Telling(
    language="zh",
    greeting="你好，在吗？",
    name="小安",
    pairing="这是你的配对码：(\\w{8})\n请让机器人的主人运行：\nhermes pairing approve telegram \\1",
    welcome="欢迎你，小安！有事尽管说",
    answer="早上好！",
    home="这个聊天现在是主聊天，提醒和通知都会发到这里。",
    at_the_door="Eve (telegram 66) 想和我聊天。",
    refuse="拒绝",
    sent_away="已经悄悄回绝 Eve。",
    status="我在，现在没有在忙的事。",
    help="/sethome",
    unknown="没有 /stauts 这个命令。你是想用 /status 吗？",
    long_answer=("从前", "有一位", "很有耐心的", "读者，", "一个字", "一个字地", "等着", "看完", "故事。"),
    voice_on="on：你发语音，我也用语音回答。",
    spoken="现在是中午。",
    picture="一个黑色的方块。",
    document="文件在这里。",
    may_i="可以运行 terminal（本机，",
    danger="它会删除文件夹和里面的一切。",
    approve="同意",
    approved="已同意，我接着做。",
    approved_by="✓ 小安 已同意。",
    failure="我的模型（openai）不接受这个密钥，也没有备用模型。请主人检查密钥",
    stopped="已停下。刚才在做的事已经停了。",
    nothing_running="现在没有在忙的事。",
)


@pytest.fixture
async def speech() -> AsyncIterator[FakeSpeech]:
    async with FakeSpeech() as fake:
        yield fake


@dataclass(frozen=True, slots=True)
class Scene:
    telling: Telling
    terminal: Terminal
    telegram: FakeTelegram
    model: FakeModel
    speech: FakeSpeech
    work: Path

    async def hermes(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = await asyncio.to_thread(self.terminal.hermes, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    async def reads(self, chat: int, expect: str, *, since: int = 0) -> Sent:
        """Wait until somebody reads this in their chat, in a message after the first ``since``."""

        def found() -> list[Sent]:
            return [sent for sent in self.of(chat)[since:] if expect in sent.text]

        try:
            await self.telegram.wait_for(lambda: bool(found()), SECONDS)
        except TimeoutError:
            raise AssertionError(f"{expect!r} is not in {self.telegram.texts(chat)[since:]}") from None
        return found()[0]

    def of(self, chat: int) -> list[Sent]:
        return [sent for sent in self.telegram.sent if sent.chat == str(chat)]

    async def says(self, text: str, expect: str, *, chat: int = ANA) -> Sent:
        """Somebody writes, and reads the answer."""
        before = len(self.of(chat))
        self.telegram.user_says(text, chat=chat, name=self.name_of(chat))
        return await self.reads(chat, expect, since=before)

    def name_of(self, chat: int) -> str:
        return {ANA: self.telling.name, BEN: "Ben", EVE: "Eve"}[chat]

    async def code_for(self, chat: int) -> str:
        hint = self.telling.pairing.partition("(")[0]
        shown = await self.says(self.telling.greeting, hint, chat=chat)
        found = re.search(self.telling.pairing, shown.text)
        assert found is not None, shown.text
        return found[1]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("telling", [ENGLISH, CHINESE_TOO], ids=lambda telling: telling.language)
async def test_the_story_of_a_chat(
    telling: Telling, tmp_path: Path, telegram: FakeTelegram, model: FakeModel, speech: FakeSpeech
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environ = {
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_BASE_URL": telegram.url,
        "OPENAI_BASE_URL": model.url,
        "MESSAGING_CWD": str(work),
        "TTS_PROVIDER": "openai",
        "TTS_BASE_URL": speech.url,
        "STT_BASE_URL": speech.url,
        **UNPACED,
    }
    with Terminal(tmp_path, **environ) as terminal:
        await asyncio.to_thread(terminal.start_gateway)
        scene = Scene(telling, terminal, telegram, model, speech, work)
        await a_stranger_is_let_in_from_the_command_line(scene)
        await another_is_let_in_by_a_process_that_cannot_reach_the_socket(scene)
        await the_chat_becomes_home_and_hears_of_strangers(scene)
        await commands_are_answered(scene)
        await a_long_answer_grows_by_edits(scene)
        await a_voice_note_is_heard_and_answered_aloud(scene)
        await a_picture_comes_in_and_a_document_goes_out(scene)
        await a_question_is_asked_and_answered(scene)
        await a_model_that_fails_is_told_of(scene)
        await work_is_stopped(scene)
        await who_is_revoked_is_refused(scene)
    if telling.language == "zh":
        assert not [sent.text for sent in telegram.sent if sent.text and not CHINESE.search(sent.text)]


async def a_stranger_is_let_in_from_the_command_line(scene: Scene) -> None:
    code = await scene.code_for(ANA)
    await scene.hermes("pairing", "approve", "telegram", code)
    await scene.reads(ANA, scene.telling.welcome)
    scene.model.script([scene.telling.answer])
    await scene.says(scene.telling.greeting, scene.telling.answer)


async def another_is_let_in_by_a_process_that_cannot_reach_the_socket(scene: Scene) -> None:
    code = await scene.code_for(BEN)
    with hidden(paths.socket(str(scene.terminal.home))):
        await scene.hermes("pairing", "approve", "telegram", code)
    scene.model.script([scene.telling.answer])
    await scene.says(scene.telling.greeting, scene.telling.answer, chat=BEN)


@contextmanager
def hidden(path: str) -> Iterator[None]:
    """As in a second container: the same folder, and no socket that leads anywhere."""
    os.rename(path, f"{path}.hidden")
    try:
        yield
    finally:
        os.rename(f"{path}.hidden", path)


async def the_chat_becomes_home_and_hears_of_strangers(scene: Scene) -> None:
    await scene.says("/sethome", scene.telling.home)
    await scene.code_for(EVE)
    card = await scene.reads(ANA, scene.telling.at_the_door)
    scene.telegram.user_presses(card, scene.telling.refuse, name=scene.telling.name)
    await scene.reads(ANA, scene.telling.sent_away)


async def commands_are_answered(scene: Scene) -> None:
    await scene.says("/status", scene.telling.status)
    await scene.says("/help", scene.telling.help)
    await scene.says("/stauts", scene.telling.unknown)


async def a_long_answer_grows_by_edits(scene: Scene) -> None:
    pieces = scene.telling.long_answer
    scene.model.script([Reply(tokens=pieces, tokens_per_second=4)])
    shown = await scene.says(scene.telling.greeting, "".join(pieces).strip())
    assert len(shown.edits) >= 1
    assert all("".join(pieces).startswith(text.rstrip(" ▌")) for text in shown.edits), shown.edits


async def a_voice_note_is_heard_and_answered_aloud(scene: Scene) -> None:
    telling = scene.telling
    await scene.says("/voice on", telling.voice_on)
    scene.speech.words = telling.greeting
    scene.model.script([telling.spoken])
    scene.telegram.user_speaks(OPUS, chat=ANA)
    await scene.telegram.wait_for(lambda: scene.of(ANA)[-1].is_voice, SECONDS)
    assert telling.greeting in str(scene.model.last_request["messages"][-1]["content"])
    assert scene.speech.spoken[-1]["input"] == telling.spoken
    assert scene.of(ANA)[-1].file == OPUS


async def a_picture_comes_in_and_a_document_goes_out(scene: Scene) -> None:
    scene.model.script([scene.telling.picture])
    before = len(scene.of(ANA))
    scene.telegram.user_shows(png(), scene.telling.greeting, chat=ANA)
    await scene.reads(ANA, scene.telling.picture, since=before)
    assert "image_url" in str(scene.model.last_request["messages"][-1]["content"])
    (scene.work / "report.csv").write_text("a,b\n", encoding="utf-8")
    scene.model.script([f"{scene.telling.document}\nMEDIA:report.csv"])
    sent = await scene.says(scene.telling.greeting, scene.telling.document)
    assert (sent.file_name, sent.file) == ("report.csv", b"a,b\n")


async def a_question_is_asked_and_answered(scene: Scene) -> None:
    telling = scene.telling
    (scene.work / "build").mkdir()
    scene.model.script([calls_tools(("terminal", {"command": "rm -rf build"})), telling.answer])
    card = await scene.says(telling.greeting, telling.may_i)
    assert telling.danger in card.text
    before = len(scene.of(ANA))
    scene.telegram.user_presses(card, telling.approve, name=telling.name)
    await scene.reads(ANA, telling.approved, since=before)
    await scene.reads(ANA, telling.answer, since=before)
    await scene.reads(ANA, telling.approved_by)
    assert not (scene.work / "build").exists()


async def a_model_that_fails_is_told_of(scene: Scene) -> None:
    scene.model.script([Refusal(401, "Incorrect API key provided")])
    await scene.says(scene.telling.greeting, scene.telling.failure)


async def work_is_stopped(scene: Scene) -> None:
    scene.model.hold()
    scene.telegram.user_says(scene.telling.greeting, chat=ANA)
    await scene.model.is_holding()
    await scene.says("/stop", scene.telling.stopped)
    scene.model.release()
    await scene.says("/stop", scene.telling.nothing_running)


async def who_is_revoked_is_refused(scene: Scene) -> None:
    await scene.hermes("pairing", "revoke", "telegram", str(BEN))
    asked = len(scene.model.requests)
    await scene.code_for(BEN)
    assert len(scene.model.requests) == asked
