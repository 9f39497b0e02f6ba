"""The connection to QQ under a real supervisor: whatever ends it, it comes back, and nothing that was said is lost.

The loop's clock jumps, so a minute of waiting costs nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hermes.core.errors import UnreachableError
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Unreadable
from hermes.platforms.qq import session
from hermes.platforms.qq.api import Api
from hermes.platforms.qq.config import QQConfig
from hermes.platforms.qq.connection import MAX_WAITING, connected
from hermes.platforms.qq.session import ALL_INTENTS, FEWER_INTENTS
from hermes.services.adapters.account import Link
from tests.contract.adapters.conftest import Inbox, saying
from tests.fakes.jumping import JumpingLoop, LoopClock, run_in_jumps
from tests.fakes.qq import FakeQQ
from tests.integration.qq_line import Line, line, play
from tests.unit.platforms.qq.test_parse import FRAMES, mutated


@pytest.mark.parametrize("answers", [["silence"] * 2, ["4009"] * 2, ["1000"] * 2, ["silence", "4009"]])
def test_a_dead_session_leads_to_identify_within_two_failed_resumes(tmp_path: Path, answers: list[str]) -> None:
    async def story(held: Line) -> None:
        await held.hears("before")
        await held.loop.sleep(60)
        began = held.loop.time()
        held.qq.resume_answers.extend(answers)
        await held.qq.time_out()
        await held.is_away()
        await held.qq.wait_for(lambda: held.qq.identified == 2, 300)
        assert held.loop.time() - began < 40
        await held.listens()
        await held.hears("after")

    qq = play(tmp_path, story)
    assert (qq.identified, qq.resumed) == (2, 0)


@pytest.mark.parametrize("answer", ["invalid", "4902", "4900", "4913", "4006", "4007"])
def test_where_qq_says_that_the_session_is_over_it_identifies_at_once(tmp_path: Path, answer: str) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        held.qq.resume_answers.append(answer)
        await held.qq.time_out()
        await held.qq.wait_for(lambda: held.qq.identified == 2, 300)
        await held.listens()
        await held.hears("after")

    qq = play(tmp_path, story)
    assert (len(qq.resume_answers), qq.resumed) == (0, 0)


@pytest.mark.parametrize("frame", [{"op": 7}, {"op": 9, "d": True}, None])
def test_asked_to_reconnect_it_resumes_and_what_was_said_meanwhile_arrives(
    tmp_path: Path, frame: dict[str, Any] | None
) -> None:
    async def story(held: Line) -> None:
        await held.hears("before")
        await held.loop.sleep(600)
        if frame is None:
            held.qq.drop_connection()
        else:
            await held.qq.tell(frame)
        await held.qq.wait_for(lambda: held.qq.sockets == 0)
        held.qq.user_says("meanwhile")
        await held.listens()
        await held.qq.wait_for(lambda: "meanwhile" in held.texts)

    qq = play(tmp_path, story)
    assert (qq.identified, qq.resumed, qq.nowhere) == (1, 1, 0)


@pytest.mark.parametrize("code", [4009, 4008, 1001])
def test_after_a_close_that_allows_it_the_session_is_resumed(tmp_path: Path, code: int) -> None:
    async def story(held: Line) -> None:
        await held.hears("before")
        await held.loop.sleep(600)
        began = held.loop.time()
        await held.qq.close(code, "bye")
        held.qq.user_says("meanwhile")
        await held.is_away()
        await held.listens()
        await held.qq.wait_for(lambda: "meanwhile" in held.texts)
        assert (held.loop.time() - began > 60) == (code == 4008), "after 4008 it waits for a minute"

    qq = play(tmp_path, story)
    assert (qq.identified, qq.resumed) == (1, 1)


def test_what_came_before_the_end_of_a_session_is_stored(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        for number in range(50):
            held.qq.user_says(f"number {number}")
        await held.qq.close(4006, "session invalid")
        await held.qq.wait_for(lambda: held.qq.identified == 2, 300)
        assert held.texts == [f"number {number}" for number in range(50)]

    play(tmp_path, story)


def test_a_connection_that_only_looks_open_is_noticed_and_resumed(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        await held.hears("before")
        held.qq.answers_heartbeats = False
        began = held.loop.time()
        await held.is_away()
        assert held.loop.time() - began < 90
        assert "heartbeat" in str(held.status["note"])
        held.qq.answers_heartbeats = True
        await held.listens()

    qq = play(tmp_path, story)
    assert (qq.identified, qq.resumed) == (1, 1)


def test_silence_instead_of_hello_or_of_ready_is_not_waited_out_for_ever(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        held.qq.end_session()
        held.qq.says_hello = False
        await held.qq.time_out()
        await held.loop.sleep(60)
        held.qq.says_hello = True
        held.qq.resume_answers.append("invalid")
        held.qq.identify_answers.append("silence")
        await held.listens()
        await held.hears("after")

    assert play(tmp_path, story).identified == 2


@pytest.mark.parametrize(
    "code, word, cure",
    [
        (4914, "sandbox", "publish the bot"),
        (4915, "banned", "why the bot is banned"),
        (4010, "shard", "update hermes-gateway"),
        (4013, "intents", "update hermes-gateway"),
    ],
)
def test_where_only_the_operator_can_help_it_says_so_and_stops(tmp_path: Path, code: int, word: str, cure: str) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        await held.qq.close(code, "no")
        await held.qq.wait_for(lambda: held.status["state"] == Link.SIGNED_OUT, 300)
        assert word in str(held.status["note"])
        assert cure in str(held.status["cure"])
        await held.loop.sleep(600)
        assert held.qq.sockets == 0

    play(tmp_path, story)


def test_a_token_that_is_refused_three_times_is_told_as_bad_credentials(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        held.qq.resume_answers.extend(["4004"] * 2)
        await held.qq.close(4004, "authentication fail")
        await held.qq.wait_for(lambda: held.status["state"] == Link.SIGNED_OUT, 300)
        assert "QQ_CLIENT_SECRET" in str(held.status["note"])

    play(tmp_path, story)


def test_intents_that_the_bot_lacks_are_left_out(tmp_path: Path) -> None:
    async def main(loop: JumpingLoop, clock: LoopClock) -> FakeQQ:
        async with FakeQQ(now=clock.now) as qq:
            qq.granted_intents = FEWER_INTENTS
            async with line(tmp_path, loop, clock, qq) as held:
                await held.listens()
                await held.hears("hello")
            return qq

    qq = run_in_jumps(main)
    assert [frame["intents"] for frame in qq.identify_frames] == [ALL_INTENTS, FEWER_INTENTS]


def test_three_connections_that_end_at_once_make_it_wait_and_say_what_to_check(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        await held.loop.sleep(60)
        held.qq.end_session()
        held.qq.resume_answers.append("4006")
        held.qq.identify_answers.extend(["1000"] * 2)
        await held.qq.time_out()
        await held.qq.wait_for(lambda: "check the bot's permissions" in str(held.status["note"]), 300)
        began = held.loop.time()
        await held.listens()
        assert held.loop.time() - began > 55

    play(tmp_path, story)


def test_a_long_connection_renews_its_token_and_status_tells_the_truth(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        for hour in range(7):
            await held.loop.sleep(3600)
            adapter = held.supervisor.adapter_of(held.qq.target())
            assert adapter is not None
            await adapter.send(saying(held.qq, f"hour {hour}"))
            assert held.status["last_frame_age"] < 60
            assert held.status["state"] == Link.CONNECTED

    qq = play(tmp_path, story)
    assert len(qq.sent) == 7
    assert (qq.identified, qq.tokens_given) == (1, 4)


def test_a_burst_that_the_inbox_cannot_keep_up_with_arrives_whole(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        for number in range(4500):
            held.qq.user_says(f"number {number}")
        await held.qq.wait_for(lambda: len(held.texts) >= 4500, 300)
        assert held.texts == [f"number {number}" for number in range(4500)]
        assert held.inbox.batches < 1000

    play(tmp_path, story)


def test_five_hundred_strange_frames_cost_no_neighbour_its_place(tmp_path: Path) -> None:
    chance = random.Random(500)

    async def story(held: Line) -> None:
        await held.listens()
        for number in range(500):
            held.qq.user_says(f"number {number}")
            held.qq.deliver_raw(strange(chance, number))
        held.qq.user_says("the last")
        await held.qq.wait_for(lambda: "the last" in held.texts, 600)
        ours = [text for text in held.texts if text.startswith("number ")]
        assert list(dict.fromkeys(ours)) == [f"number {number}" for number in range(500)]
        assert [event for event in held.inbox.events if isinstance(event, Unreadable)]

    qq = play(tmp_path, story)
    assert qq.identified == 1


def strange(chance: random.Random, number: int) -> Callable[[int], str]:
    def text(seq: int) -> str:
        if number % 5 == 0:
            whole = json.dumps(FRAMES[number % len(FRAMES)])
            return whole[: chance.randrange(len(whole))] + chance.choice(["", "\x00", "}", "\u2028"])
        frame = mutated(chance, FRAMES[number % len(FRAMES)])
        if isinstance(frame, dict):
            frame |= {"op": 0, "s": chance.choice([seq, seq, seq, "many", None, -1, 2**70])}
        return json.dumps(frame)

    return text


def test_a_routine_end_is_logged_once_in_the_words_that_people_search_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(held: Line) -> None:
        await held.listens()
        await held.loop.sleep(60)
        held.qq.resume_answers.append("4009")
        await held.qq.time_out()
        await held.qq.wait_for(lambda: held.qq.resumed == 1, 300)
        await held.listens()
        assert held.status["note"] == "resumed once, as QQ makes everyone do"

    with caplog.at_level(logging.INFO, logger="hermes"):
        play(tmp_path, story)
    told = [record for record in caplog.records if record.getMessage() == "Disconnected"]
    assert [(record.levelname, getattr(record, "platform", ""), getattr(record, "reason", "")) for record in told] == [
        ("WARNING", "qq", "WebSocket closed: code=4009 reason=Session timed out")
    ]


def test_a_heartbeat_tells_of_the_last_stored_event_and_is_sent_when_it_is_asked_for(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        await held.hears("one")
        await held.hears("two")
        await held.qq.tell({"op": 1, "d": None})
        await held.qq.wait_for(lambda: held.qq.heartbeats == 1)
        assert held.qq.heard_of == 3, "READY and two messages"

    play(tmp_path, story)


def test_failed_resumes_far_apart_do_not_add_up(tmp_path: Path) -> None:
    async def story(held: Line) -> None:
        for number in range(3):
            await held.hears(f"number {number}")
            await held.loop.sleep(60)
            held.qq.resume_answers.append("silence")
            await held.qq.time_out()
            await held.is_away()
            await held.listens()
        await held.hears("after")

    qq = play(tmp_path, story)
    assert (qq.identified, qq.resumed) == (1, 3)


def test_a_gateway_that_answers_heartbeats_and_no_identify_is_not_taken_for_a_connection() -> None:
    signs: list[None] = []

    async def main(loop: JumpingLoop, clock: LoopClock) -> None:
        async with FakeQQ(now=clock.now, heartbeat_ms=2000) as qq:
            qq.identify_answers.append("silence")
            async with qq.adapter(alive=lambda: signs.append(None)) as adapter:
                with pytest.raises(UnreachableError, match="Identify"):
                    await adapter.run(Inbox())
            assert qq.heartbeats >= 3

    run_in_jumps(main)
    assert signs == []


async def test_while_the_store_is_away_no_more_is_held_than_there_is_room_for() -> None:
    async with FakeQQ() as qq, aiohttp.ClientSession() as http:
        config = QQConfig.of(AdapterParts("main", qq.settings(), http, lambda: None, {}))
        token = await Api(config, http).token()
        address = f"ws://127.0.0.1:{qq.port}/websocket/"
        async with connected(http, address, lambda: None) as link:
            await link.begin(session.identify(token, ALL_INTENTS), await link.hello())
            await qq.wait_for(lambda: qq.is_listening)
            for number in range(MAX_WAITING + 500):
                qq.user_says(f"number {number}")
            await qq.wait_for(lambda: len(link._waiting) >= MAX_WAITING)
            await asyncio.gather(*qq._sending)  # all is written; whoever reads on would have read it by now
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(link._waiting) == MAX_WAITING
            taken: list[object] = []
            while len(taken) < MAX_WAITING + 501:
                taken += await link.frames()
        texts = [frame["d"]["content"] for frame in taken if isinstance(frame, dict) and frame["t"] != "READY"]
    assert texts == [f"number {number}" for number in range(MAX_WAITING + 500)]


@pytest.mark.parametrize("session_id", ["", "\x00", "s" * 5000, 5, None])
def test_a_session_without_a_name_that_can_be_kept_is_lived_in_and_not_resumed(
    tmp_path: Path, session_id: object
) -> None:
    class Nameless(FakeQQ):
        async def _catch_up(self, socket: Any, session: Any, seq: int) -> None:
            number, ready = session.log[0]
            session.log[0] = (number, ready.replace(f'"{session.id}"', json.dumps(session_id)))
            await super()._catch_up(socket, session, seq)

    async def story(held: Line) -> None:
        await held.hears("before")
        await held.qq.time_out()
        await held.is_away()
        await held.listens()
        await held.hears("after")

    qq = play(tmp_path, story, Nameless)
    assert (qq.identified, qq.resumed) == (2, 0)


async def test_an_address_that_is_no_gateway_is_unreachable_in_words() -> None:
    async with FakeQQ() as qq, qq.adapter() as adapter:
        for answer in ({"url": 5}, {"url": "http://127.0.0.1/"}, {}):
            qq.gateway_answer = answer
            with pytest.raises(UnreachableError, match="does not say where"):
                await adapter.run(Inbox())
