"""Approvals: asked once, answered by whoever may, on any surface, before or after a restart; the call runs once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.core.markdown.streaming import CURSOR
from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.core.roles import PersonRole
from hermes.core.turn import INTERRUPTED_BY_RESTART
from hermes.services.gateway import Gateway
from hermes.services.outbound.presenter import PresenterTiming
from hermes.store import approvals, inbox, people
from hermes.store.db import Database, Tx
from hermes.store.home import make_home
from hermes.store.open import open_database
from hermes.store.turns import steps, tool_calls, turns
from hermes.store.turns.begin import BegunTurn
from tests.contract.store import rows
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.fakes.tools import GO_ON
from tests.integration.conftest import Start, crash
from tests.integration.watching import (
    SECONDS,
    a_model_accepts,
    all_turns,
    answered,
    calls,
    code_in,
    dangers,
    inbox_states,
    make,
    outbox_rows,
    question,
    results,
    transcript,
    turn_is,
    until,
)

DANGER = calls_tools(("danger", {"text": "bang"}))


async def ask(gateway: Gateway, telegram: FakeTelegram, model: FakeModel) -> str:
    """The owner lets the model ask; returns the code of the question. The turn sleeps on it."""
    await make(gateway, 7, PersonRole.OWNER)
    model.script([DANGER, "All done."])
    telegram.user_says("do it")
    asked = await question(telegram)
    await turn_is(gateway, "waiting")
    return code_in(asked)


async def test_a_button_lets_the_call_run_once(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await ask(gateway, telegram, model)
        asked = await question(telegram)
        assert "danger" in asked.text
        assert "bang" in asked.text
        assert dangers(tmp_path) == []
        telegram.user_presses(asked, "Approve")
        telegram.user_presses(asked, "Approve")
        await answered(telegram, "All done.")
        await telegram.wait_for(lambda: len(telegram.answered_presses) >= 2, SECONDS)
        assert a_model_accepts(await transcript(gateway))
    assert dangers(tmp_path) == ["bang"]
    assert sorted(telegram.answered_presses.values()) == ["Approved, going on.", "It was already allowed by Ana."]


async def test_who_pressed_in_vain_is_told_at_the_button_and_the_chat_is_not_told_again(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        await ask(gateway, telegram, model)
        asked = replace(await question(telegram))  # as a client shows it that was not told of the edit
        telegram.user_presses(asked, "Approve", user=8, name="Bo")
        await telegram.wait_for(lambda: len(telegram.answered_presses) >= 1, SECONDS)
        telegram.user_presses(asked, "Approve")
        await answered(telegram, "All done.")
        telegram.user_presses(asked, "Approve")
        await telegram.wait_for(lambda: len(telegram.answered_presses) >= 3, SECONDS)
        await until(lambda: _all_answered(gateway))
        letters = [row.body for row in await outbox_rows(gateway)]
    told = list(telegram.answered_presses.values())
    assert "not yours" in told[0]
    assert told[1:] == ["Approved, going on.", "It was already allowed by Ana."]
    assert any(told[1] in body for body in letters), "what happened is told to everybody"
    assert not [body for body in letters if told[0] in body or told[2] in body]


async def test_a_press_that_telegram_lets_nobody_answer_any_more_is_answered_in_the_chat(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        await ask(gateway, telegram, model)
        telegram.refuse_next("answerCallbackQuery", 400, "Bad Request: query is too old and response timeout expired")
        telegram.user_presses(await question(telegram), "Approve", user=8, name="Bo")
        await telegram.wait_for(lambda: any("not yours" in text for text in telegram.texts()), SECONDS)
    assert telegram.answered_presses == {}


async def test_a_question_answered_before_the_turn_sleeps_leaves_no_half_preview(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    """The turn closes its preview before it sleeps. Answered meanwhile, it goes on, and so does that message."""
    words = tuple(f"w{number} " for number in range(30))
    model.script([replace(DANGER, tokens=words, tokens_per_second=20), "All done."])
    hold = telegram.hold("editMessageText")
    async with start(pace=PresenterTiming(first_sign_seconds=0.01, preview_after_seconds=0.0)) as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        telegram.user_says("do it")
        await hold.reached()
        await until(lambda: has_asked(gateway))
        [asked] = await gateway.db.read(approvals.pending)
        telegram.user_says(f"/approve {asked.code}")
        await until(lambda: is_answered(gateway, asked.id))
        telegram.release_all()
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == ["bang"]
    assert not [sent.text for sent in telegram.sent if sent.text.endswith(CURSOR)]


async def has_asked(gateway: Gateway) -> bool:
    return await gateway.db.read(approvals.pending_count) > 0


async def is_answered(gateway: Gateway, approval_id: str) -> bool:
    approval = await gateway.db.read(approvals.get, approval_id)
    return approval is not None and approval.state == "allowed"


async def test_a_question_hides_nothing_and_what_it_leaves_out_is_in_its_file(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    long = "```\nIt is harmless, /approve it.\u202e" + "x" * 100_000
    model.script([calls_tools(("danger", {"text": long}))])
    async with start() as gateway:
        telegram.user_says("do it")
        asked = await question(telegram)
        await turn_is(gateway, "waiting")
    [file, card] = telegram.sent
    assert card is asked
    assert "characters are not shown here" in asked.text
    assert "‹3 backticks›\nIt is harmless" in asked.text
    assert "‹U+202E›" in asked.text
    assert "/deny" in asked.text
    assert f"‹U+202E›{'x' * 100_000}" in file.file.decode()


async def test_a_typed_answer_lets_the_call_run_once(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        code = await ask(gateway, telegram, model)
        telegram.user_says(f"/approve {code.lower()}")
        await answered(telegram, "All done.")
        telegram.user_says(f"/approve {code}")
        await answered(telegram, "It was already allowed by Ana.")
    assert dangers(tmp_path) == ["bang"]


@pytest.mark.parametrize("by", ["button", "code", "no code"])
@pytest.mark.parametrize("dies", [False, True], ids=["clean stop", "crash"])
async def test_a_question_outlives_the_process_and_is_answered_after_a_restart(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, by: str, dies: bool
) -> None:
    async with start() as gateway:
        code = await ask(gateway, telegram, model)
        if dies:
            await crash(gateway)
    async with start() as gateway:
        await telegram.wait_for(lambda: telegram.polls > 2, SECONDS)
        assert [turn.state for turn in await all_turns(gateway)] == ["waiting"]
        assert len([sent for sent in telegram.sent if sent.buttons]) == 1, "it is not asked again"
        if by == "button":
            telegram.user_presses(await question(telegram), "Approve")
        else:
            telegram.user_says(f"/approve {code}" if by == "code" else "/approve")
        await answered(telegram, "All done.")
        assert a_model_accepts(await transcript(gateway))
    assert dangers(tmp_path) == ["bang"]


async def test_an_answer_given_while_nobody_was_there_counts(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await ask(gateway, telegram, model)
    telegram.user_presses(await question(telegram), "Approve")
    async with start():
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == ["bang"]


async def test_a_question_is_answered_after_a_reconnect(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await ask(gateway, telegram, model)
        telegram.drop_connection()
        telegram.user_presses(await question(telegram), "Approve")
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == ["bang"]


async def test_no_with_a_reason_is_told_to_the_model(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        code = await ask(gateway, telegram, model)
        telegram.user_says(f"/deny {code} not on a Sunday")
        await answered(telegram, "All done.")
        assert a_model_accepts(await transcript(gateway))
    assert "not on a Sunday" in results(model)[0]
    assert "Do not try it again" in results(model)[0]
    assert dangers(tmp_path) == []


async def test_a_question_nobody_answers_ends_in_a_no_and_the_turn_goes_on(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, clock: FakeClock
) -> None:
    async with start(clock=clock) as gateway:
        code = await ask(gateway, telegram, model)
        clock.advance(301)
        await answered(telegram, "All done.")
        telegram.user_says(f"/approve {code}")
        await answered(telegram, "Too late: nobody answered in time, so it did not run.")
    assert "Nobody answered in 5 minutes" in results(model)[0]
    assert "Do not" in results(model)[0]
    assert dangers(tmp_path) == []


@pytest.mark.parametrize("surface", ["button", "typed"])
async def test_nobody_else_may_answer(
    start: Start,
    telegram: FakeTelegram,
    model: FakeModel,
    tmp_path: Path,
    surface: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        code = await ask(gateway, telegram, model)
        asked = await question(telegram)
        if surface == "button":
            telegram.user_presses(asked, "Approve", user=8, name="Bo")
            await telegram.wait_for(lambda: bool(telegram.answered_presses), SECONDS)
            assert "not yours" in next(iter(telegram.answered_presses.values()))
        else:
            telegram.user_says(f"/approve {code}", chat=8, user=8, name="Bo")
            await answered(telegram, "There is no such question here.")
        assert [turn.state for turn in await all_turns(gateway)] == ["waiting"]
        assert dangers(tmp_path) == []
    assert REJECTED.format(session="agent:main:telegram:dm:7", operator="8") in caplog.messages


async def test_what_touches_the_host_is_not_the_users_to_allow_but_an_admins_from_anywhere(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        await make(gateway, 7, PersonRole.USER)
        await make(gateway, 8, PersonRole.ADMIN)
        model.script([DANGER, "All done."])
        telegram.user_says("do it")
        asked = await question(telegram)
        telegram.user_presses(asked, "Approve")
        await telegram.wait_for(lambda: bool(telegram.answered_presses), SECONDS)
        assert "needs an admin or the owner" in next(iter(telegram.answered_presses.values()))
        assert dangers(tmp_path) == []
        telegram.user_says(f"/approve {code_in(asked)}", chat=8, user=8, name="Bo")
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == ["bang"]
    assert not [words for words in caplog.messages if "Rejected" in words], "it was asked of the one who pressed"


REJECTED = "Rejected unauthorized approval click for session {session} (operator={operator})"


async def test_a_stranger_who_presses_is_refused(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with start() as gateway:
        await ask(gateway, telegram, model)
        telegram.user_presses(await question(telegram), "Approve", user=666, name="Eve")
        await until(lambda: _refused(gateway))
        assert [turn.state for turn in await all_turns(gateway)] == ["waiting"]
    assert dangers(tmp_path) == []
    assert REJECTED.format(session="agent:main:telegram:dm:7", operator="666") in caplog.messages


async def _all_answered(gateway: Gateway) -> bool:
    return {state for state, _ in await inbox_states(gateway)} == {"answered"}


async def _refused(gateway: Gateway) -> bool:
    return ("refused", "not_paired") in await inbox_states(gateway) or ("refused", "not_listed") in await inbox_states(
        gateway
    )


async def test_of_two_questions_one_answer_is_acted_on_at_once(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        model.script([calls_tools(("danger", {"text": "one"}), ("danger", {"text": "two"})), "Both settled."])
        telegram.user_says("do both")
        second = await question(telegram, 2)
        telegram.user_presses(second, "Approve")
        await until(lambda: _did(tmp_path, ["two"]))
        await turn_is(gateway, "waiting")
        telegram.user_presses(await question(telegram, 1), "Deny")
        await answered(telegram, "Both settled.")
        assert a_model_accepts(await transcript(gateway))
    assert dangers(tmp_path) == ["two"]


async def _did(folder: Path, what: list[str]) -> bool:
    return dangers(folder) == what


async def test_calls_that_need_no_approval_run_while_a_question_waits(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        (tmp_path / "work" / GO_ON).write_text("")
        model.script([calls_tools(("danger", {"text": "x"}), ("linger", {})), "Done."])
        telegram.user_says("go")
        await turn_is(gateway, "waiting")
        assert [call.state for call in await calls(gateway)] == ["waiting", "done"]


# While it waits


async def test_a_message_while_a_question_waits_queues_and_is_told_so_once(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        await ask(gateway, telegram, model)
        telegram.user_says("are you there?")
        await telegram.wait_for(lambda: len(telegram.sent) >= 2, SECONDS)
        telegram.user_says("hello?")
        await telegram.wait_for(lambda: telegram.unconfirmed == 0, SECONDS)
    async with start() as gateway:
        telegram.user_says("still there?")
        telegram.user_presses(await question(telegram), "Approve")
        await telegram.wait_for(lambda: telegram.texts()[-1].startswith("echo:"), SECONDS)
        waiting = [text for text in telegram.texts() if "waits in line" in text]
    assert len(waiting) == 1
    assert telegram.texts()[-1] == "echo: are you there?\nhello?\nstill there?"


@pytest.mark.parametrize("command, reason", [("/stop", "stopped"), ("/new", "a fresh session was started")])
async def test_stop_and_new_withdraw_the_question(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, command: str, reason: str
) -> None:
    async with start() as gateway:
        code = await ask(gateway, telegram, model)
        telegram.user_says(command)
        await telegram.wait_for(lambda: "has been stopped" in telegram.texts()[-1], SECONDS)
        turn = await turn_is(gateway, "stopped")
        assert a_model_accepts(await transcript(gateway))
        telegram.user_says(f"/approve {code}")
        await answered(telegram, f"That question was withdrawn ({reason}).")
        telegram.user_says("next")
        await answered(telegram, "All done.")
    assert turn.reason == reason
    assert dangers(tmp_path) == []
    seen = [message["content"] for message in model.last_request["messages"][1:] if message["role"] == "user"]
    assert seen == (["next"] if command == "/new" else ["do it", "next"])


# A crash at every state of a call


async def plant(home: Path, name: str, arguments: str, state: str) -> None:
    """A home whose process died while a call was in this state."""
    make_home(home)
    db = await open_database(home / "state.db")
    try:
        await _plant(db, name, arguments, state)
    finally:
        await db.close()


async def _plant(db: Database, name: str, arguments: str, state: str) -> None:
    now = 1_000.0
    question = replace(rows.question("ap_1", code="K7QP2M", expires_at=4e9), question=WRITES_BANG)
    asked = question if state in ("waiting", "allowed", "refused") else None
    row = rows.incoming("do it", ready_at=now)
    somebody = {"platform": row.platform, "user_id": row.sender_id, "name": "Ana", "role": PersonRole.USER.value}
    await db.write(people.ensure, "p_ana", **somebody, now=now)
    await db.write(inbox.accept, [row], now=now)
    begun = await db.write(rows.take, now=now)
    assert begun is not None
    call = ToolCall("call_1", name, arguments)
    said = ChatMessage(Role.ASSISTANT, "", tool_calls=(call,))
    new = tool_calls.NewCall(f"{begun.turn.id}:1:0", call, asked)
    await db.write(steps.add_step, begun.claim, begun.turn, said, [new], usage=turns.NO_USAGE, now=now)
    await db.write(_bring_to, begun, new.id, state, now)


def _bring_to(tx: Tx, begun: BegunTurn, call_id: str, state: str, now: float) -> None:
    if state in ("allowed", "refused"):
        approvals.answer(tx, "ap_1", allow=state == "allowed", by="Ana", reason="", now=now)
    if state == "started":
        tool_calls.start(tx, begun.claim, call_id, now=now)


BANG = '{"text": "bang"}'
WRITES_BANG = "May I write 'bang' into danger.txt?"


@pytest.mark.parametrize(
    "name, arguments, state, told, done",
    [
        ("read_file", '{"path": "a.txt"}', "proposed", "hello", []),
        ("read_file", '{"path": "a.txt"}', "started", "hello", []),
        ("danger", BANG, "allowed", "Wrote 'bang'.", ["bang"]),
        ("danger", BANG, "refused", "Do not try it again", []),
        ("danger", BANG, "started", INTERRUPTED_BY_RESTART, []),
    ],
    ids=["proposed", "started and repeatable", "allowed", "refused", "started and not repeatable"],
)
async def test_a_call_goes_on_after_a_crash_from_the_state_it_was_in(
    start: Start,
    telegram: FakeTelegram,
    model: FakeModel,
    tmp_path: Path,
    name: str,
    arguments: str,
    state: str,
    told: str,
    done: list[str],
) -> None:
    await plant(tmp_path / "home", name, arguments, state)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("hello\n")
    model.says("All done.")
    async with start() as gateway:
        await answered(telegram, "All done.")
        assert a_model_accepts(await transcript(gateway))
        assert [call.state for call in await calls(gateway)] == ["done"]
    assert told in results(model)[0]
    assert dangers(tmp_path) == done


async def test_a_call_that_waited_at_the_crash_waits_on_and_runs_once(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    """The process died after asking and before its turn fell asleep."""
    await plant(tmp_path / "home", "danger", BANG, "waiting")
    model.says("All done.")
    async with start() as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        await turn_is(gateway, "waiting")
        telegram.user_says("/approve K7QP2M")
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == ["bang"]


async def test_a_crash_while_a_call_that_may_not_repeat_runs_is_told_to_the_model(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    """The same as above, reached by a real crash in the middle of a real call that may repeat."""
    model.script([calls_tools(("linger", {}))])
    async with start() as gateway:
        telegram.user_says("go")
        await until(lambda: _is_started(gateway))
        await crash(gateway)
    (tmp_path / "work" / GO_ON).write_text("")
    model.says("All done.")
    async with start() as gateway:
        await answered(telegram, "All done.")
        assert a_model_accepts(await transcript(gateway))
    assert results(model) == ["Done lingering."]


async def _is_started(gateway: Gateway) -> bool:
    return any(call.state == "started" for call in await calls(gateway))


async def test_a_stop_that_comes_while_the_question_is_put_counts_though_it_was_answered_before(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.script([DANGER, "All done."])
    async with start(pace=PresenterTiming(first_sign_seconds=0.0)) as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        hold = telegram.hold("sendChatAction")
        telegram.user_says("do it")
        await hold.reached()
        telegram.user_presses(await question(telegram), "Approve")  # the turn waits for its sign of life to end
        await telegram.wait_for(lambda: len(telegram.answered_presses) >= 1, SECONDS)
        telegram.user_says("/queue and then this")
        telegram.user_says("/stop")

        async def has_set_aside() -> bool:
            return ("set_aside", "stopped") in await inbox_states(gateway)

        await until(has_set_aside)
        telegram.release("sendChatAction")
        await telegram.wait_for(lambda: any(text.startswith("Stopped.") for text in telegram.texts()), SECONDS)
        assert (await turn_is(gateway, "stopped")).reason == "stopped"
        assert a_model_accepts(await transcript(gateway))
    assert dangers(tmp_path) == []
