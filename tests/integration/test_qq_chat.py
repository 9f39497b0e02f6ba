"""What people on QQ see: answers that come late, questions that outlive a connection and a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes.services.gateway import Gateway
from hermes.store.db import Tx
from tests.fakes.jumping import JumpingLoop, LoopClock, run_in_jumps
from tests.fakes.qq import FakeQQ, openid
from tests.integration.qq_chat import AskingModel, gateway_on

ANA = openid(7)
GROUP = "group/G1"


@dataclass(frozen=True, slots=True)
class Scene:
    folder: Path
    qq: FakeQQ
    model: AskingModel
    loop: JumpingLoop
    clock: LoopClock

    def gateway(self) -> Any:
        return gateway_on(self.folder, self.qq, self.model, self.loop, self.clock)

    async def check_shows(self, chat: str, *texts: str) -> None:
        """These stand at the end of a chat, in this order."""

        def is_so() -> bool:
            last = self.qq.texts(chat)[-len(texts) :]
            return len(last) == len(texts) and all(part in text for part, text in zip(texts, last, strict=True))

        try:
            await self.qq.wait_for(is_so, 60)
        except TimeoutError:
            raise AssertionError(f"{self.qq.texts(chat)} instead of {texts}") from None


def play(folder: Path, story: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def main(loop: JumpingLoop, clock: LoopClock) -> None:
        async with FakeQQ(now=clock.now) as qq, AskingModel() as model:
            await story(Scene(folder, qq, model, loop, clock))

    run_in_jumps(main)


async def parked(gateway: Gateway) -> int:
    def count(tx: Tx) -> int:
        return int(tx.value("SELECT COUNT(*) FROM outbox WHERE state = 'parked'"))

    return await gateway.db.read(count)


async def answers_too_late(scene: Scene, gateway: Gateway) -> None:
    """The model takes longer than QQ waits; the answer is parked, and nothing is seen of it."""
    scene.qq.unasked_left = 0
    scene.qq.windows["groups"] = 60.0  # a model that says nothing for as long as QQ really waits is given up
    scene.model.hold()
    scene.qq.user_says("think hard", chat=GROUP)
    await scene.loop.sleep(100)
    scene.model.release()
    async with asyncio.timeout(60):
        while not await parked(gateway):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(1)
    assert scene.qq.texts(GROUP) == []


def test_an_answer_that_took_too_long_waits_for_the_next_message_and_goes_first(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        async with scene.gateway() as gateway:
            await answers_too_late(scene, gateway)
            await scene.qq.time_out()
            await scene.loop.sleep(3600)
            scene.qq.user_says("still there?", chat=GROUP)
            await scene.check_shows(GROUP, "echo: think hard", "echo: still there?")
            assert await parked(gateway) == 0
        assert len(scene.qq.sent) == 2

    play(tmp_path, story)


def test_a_late_answer_also_outlives_the_process(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        async with scene.gateway() as gateway:
            await answers_too_late(scene, gateway)
        scene.qq.user_says("still there?", chat=GROUP)  # while nobody listens
        async with scene.gateway():
            await scene.check_shows(GROUP, "echo: think hard", "echo: still there?")

    play(tmp_path, story)


@pytest.mark.parametrize("chat", [ANA, GROUP])
def test_a_question_is_answered_across_a_4009_and_a_restart_by_whom_it_was_asked_of(tmp_path: Path, chat: str) -> None:
    async def story(scene: Scene) -> None:
        scene.qq.unasked_left = 0
        async with scene.gateway():
            scene.qq.user_says("note this", chat=chat)
            await scene.check_shows(chat, "May I note 'note this'?")
            asked = scene.qq.sent[-1]
            assert asked.buttons
            await scene.qq.time_out()
        scene.qq.user_presses(asked, "Approve", user=8)
        async with scene.gateway():
            await scene.check_shows(chat if chat == GROUP else openid(8), "not yours")
            await scene.qq.time_out()
            scene.qq.user_presses(asked, "Approve")  # while nobody listens
            await scene.check_shows(chat, "Approved", "echo: note this (Noted 'note this'.)")
        assert set(scene.qq.acks.values()) == {0}

    play(tmp_path, story)


def test_a_stranger_gets_a_code_and_nothing_else(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        async with scene.gateway():
            scene.qq.user_says("hello", chat=99)
            await scene.qq.wait_for(lambda: bool(scene.qq.texts(99)), 60)
            assert "hermes pairing approve qq" in scene.qq.texts(99)[0]
        assert scene.model.requests == []

    play(tmp_path, story)


def test_a_voice_message_that_qq_wrote_down_needs_no_ears(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        async with scene.gateway():
            scene.qq.user_sends(b"RIFF a voice", "", kind="voice", asr_refer_text="what is the time")
            await scene.qq.wait_for(lambda: bool(scene.qq.texts(ANA)), 60)
        [answer] = scene.qq.texts(ANA)
        assert "could not hear" not in answer
        assert "what is the time" in str(scene.model.last_request["messages"])

    play(tmp_path, story)
