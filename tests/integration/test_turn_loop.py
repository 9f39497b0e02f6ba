"""The turn loop: model, tools, results, again; whatever goes wrong, the transcript stays one a model accepts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.core.messages import Role
from hermes.core.turn import MAX_DEATHS, WARNED_CALLS
from hermes.services.events import TextArrived, TurnEvent
from hermes.services.gateway import Gateway
from hermes.services.outbound.presenter import PresenterTiming
from hermes.services.turns import StopReason
from hermes.store.sessions import sessions
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.watching import (
    SECONDS,
    a_model_accepts,
    all_turns,
    answered,
    calls,
    inbox_states,
    results,
    transcript,
    turn_is,
    until,
)


async def test_a_tool_call_goes_out_and_its_result_comes_back(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.script([calls_tools(("read_file", {"path": "a.txt"}), text="Let me look."), "It says hello."])
    async with start() as gateway:
        (tmp_path / "work" / "a.txt").write_text("hello\n")
        telegram.user_says("what is in a.txt?")
        await answered(telegram, "It says hello.")
        lines = await transcript(gateway)
        [turn] = await all_turns(gateway)
    assert [line.role for line in lines] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert lines[1].text == "Let me look."
    assert a_model_accepts(lines)
    assert "hello" in results(model)[0]
    assert (turn.steps, turn.prompt_tokens, turn.completion_tokens) == (1, 24, 14)


@pytest.mark.parametrize(
    "call, told",
    [
        (("boom", {}), "boom failed: RuntimeError: the wheel came off"),
        (("read_fil", {"path": "a"}), "There is no tool 'read_fil'. Did you mean 'read_file'?"),
        (("read_file", {"pfad": "a"}), "read_file has no argument 'pfad'"),
        (("read_file", {"path": 5}), "'path' must be text, not 5"),
        (("read_file", {"path": "missing.txt"}), "missing.txt"),
    ],
    ids=["crash", "unknown tool", "unknown argument", "wrong type", "tool error"],
)
async def test_whatever_goes_wrong_in_a_call_is_its_result(
    start: Start, telegram: FakeTelegram, model: FakeModel, call: tuple[str, dict[str, object]], told: str
) -> None:
    model.script([calls_tools(call), "I see."])
    async with start() as gateway:
        telegram.user_says("go")
        await answered(telegram, "I see.")
        [row] = await calls(gateway)
        assert a_model_accepts(await transcript(gateway))
    assert told in results(model)[0]
    assert (row.state, row.outcome) == ("done", "error")


async def test_arguments_that_are_no_json_are_told_to_the_model(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    head = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1",'
    call = head + b'"type":"function","function":{"name":"read_file","arguments":"{\\"path\\": "}}]}}]}\n\n'
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    model.sends_next(call, end)
    model.says("I'll try again.")
    async with start() as gateway:
        telegram.user_says("go")
        await answered(telegram, "I'll try again.")
        assert a_model_accepts(await transcript(gateway))
    assert "not valid JSON" in results(model)[0]


async def test_several_calls_of_one_step_are_all_answered_in_order(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    wanted = [("read_file", {"path": "a.txt"}), ("boom", {}), ("read_file", {"path": "b.txt"})]
    model.script([calls_tools(*wanted), "Done."])
    async with start() as gateway:
        for name in "ab":
            (tmp_path / "work" / f"{name}.txt").write_text(f"this is {name}\n")
        telegram.user_says("go")
        await answered(telegram, "Done.")
        assert a_model_accepts(await transcript(gateway))
    told = results(model)
    assert len(told) == 3
    assert "this is a" in told[0]
    assert "the wheel came off" in told[1]
    assert "this is b" in told[2]


async def test_at_the_last_step_the_model_is_asked_for_a_summary(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("read_file", {"path": str(number)})) for number in range(2)])
    model.says("I looked twice and found nothing.")
    async with start(HERMES_MAX_ITERATIONS="2") as gateway:
        telegram.user_says("look around")
        await answered(telegram, "I looked twice and found nothing.")
        assert a_model_accepts(await transcript(gateway))
    assert len(model.requests) == 3
    assert "tools" not in model.last_request
    assert "Do not call any more tools" in model.last_request["messages"][-1]["content"]


async def test_a_summary_that_calls_tools_all_the_same_ends_the_turn(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("boom", {})), calls_tools(("boom", {}), text="One more!")])
    async with start(HERMES_MAX_ITERATIONS="1") as gateway:
        telegram.user_says("go")
        await answered(telegram, "One more!")
        assert len(await calls(gateway)) == 1
        assert a_model_accepts(await transcript(gateway))


@pytest.mark.parametrize("limit, setting", [(3, ""), (2, "agent:\n  identical_call_limit: 2\n")])
async def test_a_model_that_repeats_one_call_is_warned_and_then_stopped(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, limit: int, setting: str
) -> None:
    (tmp_path / "home").mkdir(mode=0o700, exist_ok=True)
    (tmp_path / "home" / "config.yaml").write_text(setting, encoding="utf-8")
    model.default = calls_tools(("read_file", {"path": "same.txt"}))
    async with start() as gateway:
        telegram.user_says("go")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, SECONDS)
        made = await calls(gateway)
        turn = await turn_is(gateway, "failed")
        assert a_model_accepts(await transcript(gateway))
    assert len(made) == limit + WARNED_CALLS
    assert [call.outcome for call in made].count("repeated") == WARNED_CALLS
    assert "Not run" in results(model)[-1]
    assert f"same call {limit + WARNED_CALLS} times" in telegram.texts()[0]
    assert turn.reason == "the model repeated one call"


async def test_an_empty_answer_is_told_in_words(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.default = Reply(text="")
    async with start():
        telegram.user_says("hello")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, SECONDS)
    assert telegram.texts()[0].strip()


async def test_a_model_that_fails_is_told_in_the_chat_and_the_next_message_is_answered(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.fails_next(401, "Incorrect API key", code="invalid_api_key")
    async with start() as gateway:
        telegram.user_says("hello")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, SECONDS)
        turn = await turn_is(gateway, "failed")
        assert (await inbox_states(gateway))[0][0] == "set_aside"
        telegram.user_says("again")
        await answered(telegram, "echo: again")
    assert "key" in telegram.texts()[0]
    assert turn.reason.startswith("model ")


# Stopping and interrupting


async def test_stop_in_mid_stream_keeps_what_was_said_and_a_valid_transcript(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([Reply(tokens=("Once upon", " a time"))])
    model.hold()
    async with start() as gateway:
        telegram.user_says("tell me a story")
        await model.is_holding()
        await until(lambda: _has_text(gateway))
        telegram.user_says("/stop")
        await answered(telegram, "Stopped. The turn that was running has been stopped.")
        await model.is_hung_up_on()
        model.release()
        turn = await turn_is(gateway, "stopped")
        lines = await transcript(gateway)
        telegram.user_says("and now?")
        await answered(telegram, "echo: and now?")
        states = await inbox_states(gateway)
    assert [line.role for line in lines] == [Role.USER, Role.ASSISTANT]
    assert lines[1].text == "Once upon … (interrupted)"
    assert turn.reason == "stopped"
    assert sorted(states) == [("answered", ""), ("answered", ""), ("set_aside", "stopped")]


async def _has_text(gateway: object) -> bool:
    """A moment for the first token, which is on its way already, to arrive."""
    await asyncio.sleep(0.05)
    return gateway is not None


async def test_stop_in_mid_tool_answers_the_running_call_and_skips_the_others(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("linger", {}), ("boom", {}), text="This takes a while.")])
    async with start() as gateway:
        telegram.user_says("go")
        await until(lambda: _is_started(gateway))
        telegram.user_says("/stop")
        await answered(telegram, "Stopped. The turn that was running has been stopped.")
        assert [call.outcome for call in await calls(gateway)] == ["interrupted", "skipped"]
        lines = await transcript(gateway)
        assert a_model_accepts(lines)
        assert [line.text for line in lines].count("This takes a while.") == 1
        telegram.user_says("what now?")
        await answered(telegram, "echo: what now?")  # the fake refuses a transcript with an open call


async def _is_started(gateway: object) -> bool:
    return any(call.state == "started" for call in await calls(gateway))  # type: ignore[arg-type]


async def test_a_message_in_mid_tool_interrupts_and_comes_next(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("linger", {}), ("boom", {}))])
    async with start() as gateway:
        telegram.user_says("go")
        await until(lambda: _is_started(gateway))
        telegram.user_says("no, wait")
        await answered(telegram, "echo: no, wait")
        assert a_model_accepts(await transcript(gateway))
        states = await inbox_states(gateway)
    assert states == [("set_aside", "interrupted by a newer message"), ("answered", "")]


async def test_stop_with_nothing_running_says_so(start: Start, telegram: FakeTelegram) -> None:
    async with start():
        telegram.user_says("/stop")
        await answered(telegram, "Nothing was running.")
        assert telegram.texts() == ["Nothing was running."]


async def test_what_was_written_after_stop_in_one_breath_is_answered(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    """The gateway was down while all three were written, so that it gets them in one batch."""
    for text in ("write a novel", "/stop", "hello"):
        telegram.user_says(text)
    model.hold()
    async with start() as gateway:
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
        model.release()
        await answered(telegram, "echo: hello")
        await until(lambda: _all_settled(gateway))
        states = await inbox_states(gateway)
    assert ("set_aside", "stopped") in states
    assert states.count(("answered", "")) == 2


async def test_what_was_written_after_new_in_one_breath_is_in_the_fresh_session(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start():
        telegram.user_says("remember this")
        await answered(telegram, "echo: remember this")
    telegram.user_says("/new")
    telegram.user_says("hello")
    async with start():
        await answered(telegram, "echo: hello")
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["hello"]


async def _all_settled(gateway: object) -> bool:
    return all(state not in ("queued", "taken", "acting") for state, _ in await inbox_states(gateway))  # type: ignore[arg-type]


# Crashes


async def test_a_crash_before_the_answer_is_answered_once_after_it(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.hold()
    async with start() as gateway:
        telegram.user_says("hello")
        await model.is_holding()
        await crash(gateway)
    model.release()
    async with start() as gateway:
        await answered(telegram, "echo: hello")
        assert [turn.attempts for turn in await all_turns(gateway)] == [2]
        assert [line.text for line in await transcript(gateway)] == ["hello", "echo: hello"]
    assert telegram.texts() == ["echo: hello"]


async def test_a_clean_stop_in_mid_turn_is_taken_up_again_and_counts_as_no_death(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.hold()
    async with start() as gateway:
        telegram.user_says("hello")
        await model.is_holding()
        await gateway.lanes.drain(0)
    model.release()
    async with start() as gateway:
        await answered(telegram, "echo: hello")
        assert [turn.attempts for turn in await all_turns(gateway)] == [1]


async def test_a_turn_in_hand_at_three_deaths_is_set_aside_and_its_person_told(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    for death in range(MAX_DEATHS):
        model.hold()
        async with start() as gateway:
            if death == 0:
                telegram.user_says("the poisonous one")
            await model.is_holding()
            await crash(gateway)
        model.release()
    async with start() as gateway:
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, SECONDS)
        turn = await turn_is(gateway, "set_aside")
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        states = await inbox_states(gateway)
    assert f"stopped unexpectedly {MAX_DEATHS} times" in telegram.texts()[0]
    assert turn.id in telegram.texts()[0]
    assert states == [("set_aside", "crashed three times while it ran"), ("answered", "")]
    assert len(model.requests) == MAX_DEATHS + 1


async def test_every_line_is_written_exactly_once_over_restarts(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    said = []
    for number in range(3):
        async with start() as gateway:
            telegram.user_says(f"message {number}")
            await answered(telegram, f"echo: message {number}")
            said += [f"message {number}", f"echo: message {number}"]
            telegram.deliver_again_all()
            await telegram.wait_for(lambda: telegram.unconfirmed == 0, SECONDS)
            assert [line.text for line in await transcript(gateway)] == said
    assert [message["content"] for message in model.last_request["messages"][1:]] == said[:-1]
    assert len(telegram.sent) == 3


# Sessions


@pytest.mark.parametrize(
    "environ, seconds, is_fresh",
    [
        ({"SESSION_RESET_MODE": "idle"}, 119 * 60, False),
        ({"SESSION_RESET_MODE": "idle"}, 121 * 60, True),
        ({"SESSION_RESET_MODE": "daily"}, 15 * 3600, False),  # noon to three in the morning
        ({"SESSION_RESET_MODE": "daily"}, 17 * 3600, True),
        ({"SESSION_RESET_MODE": "none"}, 999 * 3600, False),
    ],
    ids=["busy", "idle", "same day", "next day", "never"],
)
async def test_a_session_is_renewed_by_its_policy(
    start: Start,
    telegram: FakeTelegram,
    model: FakeModel,
    clock: FakeClock,
    environ: dict[str, str],
    seconds: float,
    is_fresh: bool,
) -> None:
    async with start(clock=clock, TZ="UTC", **environ) as gateway:
        telegram.user_says("one")
        await answered(telegram, "echo: one")
        clock.advance(seconds)
        telegram.user_says("two")
        await answered(telegram, "echo: two")
        found = await gateway.db.read(sessions.newest)
    assert len(found) == (2 if is_fresh else 1)
    seen = [message["content"] for message in model.last_request["messages"][1:]]
    assert seen == (["two"] if is_fresh else ["one", "echo: one", "two"])


async def test_a_turn_that_breaks_us_ends_in_words_though_a_newer_message_interrupts_its_end(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    broken = asyncio.Event()

    def breaks(event: TurnEvent) -> None:
        if isinstance(event, TextArrived):
            broken.set()
            raise TypeError

    model.hold(silently=True)
    async with start(pace=PresenterTiming(first_sign_seconds=0.0)) as gateway, asyncio.timeout(SECONDS):
        hold = telegram.hold("sendChatAction")
        telegram.user_says("break")
        await hold.reached()
        with gateway.bus.watch(breaks):
            model.release()
            await broken.wait()  # its end waits for the sign of life that is on its way
            telegram.user_says("and now?")
            await until(lambda: _are_open(gateway, 2))
        telegram.release("sendChatAction")
        await answered(telegram, "echo: and now?")
    assert telegram.texts()[0].startswith("Something in me broke while I worked on this. Owner: hermes trace t_")


async def _are_open(gateway: Gateway, count: int) -> bool:
    return bool((await gateway.status())["waiting"]["messages"] == count)


async def test_a_question_to_the_person_ends_the_turn_and_their_next_message_answers_it(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("ponder", {"question": "Which of the two?"})), "The left one, then."])
    async with start() as gateway:
        telegram.user_says("move it")
        await answered(telegram, "Which of the two?")
        [turn] = await all_turns(gateway)
        telegram.user_says("the left one")
        await answered(telegram, "The left one, then.")
        assert a_model_accepts(await transcript(gateway))
    assert turn.state == "done"


async def test_what_a_tool_writes_into_our_own_store_is_committed_with_its_result(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("tally", {"name": "apples"}), ("tally", {"name": "pears"})), "Counted."])
    async with start() as gateway:
        telegram.user_says("count")
        await answered(telegram, "Counted.")
        written = await gateway.db.read(
            lambda tx: tx.all("SELECT value FROM meta WHERE key LIKE 'tally.%' ORDER BY key", str)
        )
        rows = await calls(gateway)
    assert written == [row.id for row in rows]


async def test_a_rule_that_thinks_for_long_does_not_hold_up_the_loop(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("weigh", {"seconds": 0.3})), "Weighed."])
    async with start():
        telegram.user_says("weigh it")
        longest = 0.0
        clock = asyncio.get_running_loop().time
        while "Weighed." not in telegram.texts():
            before = clock()
            await asyncio.sleep(0.005)
            longest = max(longest, clock() - before)
    assert longest < 0.25


async def test_what_cancels_itself_inside_a_turn_ends_it_in_words_and_is_not_tried_for_ever(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    def cancels(event: TurnEvent) -> None:
        if isinstance(event, TextArrived):
            raise asyncio.CancelledError  # as a connection pool that is closed does to who waits for a place in it

    async with start() as gateway, asyncio.timeout(SECONDS):
        with gateway.bus.watch(cancels):
            telegram.user_says("hello")
            await turn_is(gateway, "failed")
        telegram.user_says("and now?")
        await answered(telegram, "echo: and now?")
    assert telegram.texts()[0].startswith("Something in me broke while I worked on this. Owner: hermes trace t_")


async def test_what_was_stopped_stays_stopped_though_the_gateway_ends_before_its_tool_does(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("dawdle", {}))])
    async with start() as gateway, asyncio.timeout(SECONDS):
        telegram.user_says("go")
        await until(lambda: _is_started(gateway))
        [(lane, turn_id)] = gateway.lanes.running()
        assert gateway.lanes.interrupt(lane, turn_id, StopReason.STOPPED)
        await asyncio.sleep(0)
        await gateway.lanes.drain(0)
        turn = await turn_is(gateway, "stopped")
    assert turn.reason == "stopped"
