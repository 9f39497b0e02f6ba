"""Tasks handed on: turns of their own lanes, done once, stopped with the turn that asked for them."""

from __future__ import annotations

from pathlib import Path

from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.store import outbox
from hermes.store.turns.turns import Turn
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.fakes.tools import GO_ON
from tests.integration.conftest import USER, Start, crash
from tests.integration.watching import (
    SECONDS,
    all_turns,
    answered,
    calls,
    code_in,
    dangers,
    make,
    question,
    results,
    until,
)

TWO = calls_tools(("delegate_task", {"tasks": ["count the apples", "count the pears"]}))


async def subtasks(gateway: Gateway) -> list[Turn]:
    return [turn for turn in await all_turns(gateway) if ":task:" in turn.lane]


async def test_two_tasks_are_done_at_once_in_lanes_of_their_own_and_reported(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.when("^how many", TWO)
    model.when("^count the apples", "There are 3 apples.")
    model.when("^count the pears", "There are 4 pears.")
    model.when_told("Task 1, done", "Seven in all.")
    async with start() as gateway:
        telegram.user_says("how many?")
        await answered(telegram, "Seven in all.")
        made = await subtasks(gateway)
    assert results(model) == ["Task 1, done:\nThere are 3 apples.\n\nTask 2, done:\nThere are 4 pears."]
    assert len({turn.lane for turn in made}) == 2
    assert {turn.person_id for turn in made} == {f"p_telegram_{USER}"}
    assert [sent.text for sent in telegram.sent] == ["Seven in all."], "an errand has no chat of its own"


async def test_errands_are_stopped_with_their_turn(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.when("^how many", TWO)
    model.when("^count the", calls_tools(("linger", {})))
    async with start() as gateway:
        telegram.user_says("how many?")

        async def both_linger() -> bool:
            return [call.state for call in await calls(gateway) if call.name == "linger"] == ["started"] * 2

        await until(both_linger)
        telegram.user_says("/stop")
        await telegram.wait_for(lambda: any(sent.text.startswith("Stopped.") for sent in telegram.sent), SECONDS)
        assert {turn.state for turn in await all_turns(gateway)} == {"stopped"}


async def test_after_a_crash_a_task_is_not_handed_on_twice(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.when("^how many", TWO)
    model.when("^count the apples", "There are 3 apples.")
    model.when("^count the pears", calls_tools(("linger", {})))
    model.when_told("Done lingering", "There are 4 pears.")
    model.when_told("Task 1, done", "Seven in all.")
    async with start() as gateway:
        telegram.user_says("how many?")

        async def one_is_done() -> bool:
            made = await subtasks(gateway)
            lingers = [call for call in await calls(gateway) if call.name == "linger" and call.state == "started"]
            return bool(lingers) and any(turn.state == "done" for turn in made)

        await until(one_is_done)
        await crash(gateway)
    (tmp_path / "work" / GO_ON).touch()
    async with start() as gateway:
        await answered(telegram, "Seven in all.")
        made = await subtasks(gateway)
    assert [turn.state for turn in made] == ["done", "done"]


async def test_a_question_of_an_errand_is_put_in_the_chat_that_asked(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.when("^do it", calls_tools(("delegate_task", {"tasks": ["blow it up"]})))
    model.when("^blow it up", calls_tools(("danger", {"text": "bang"})))
    model.when_told("^Wrote", "Blown up.")
    model.when_told("Task 1, done", "It is done.")
    async with start() as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("do it")
        asked = await question(telegram)
        telegram.user_says(f"/approve {code_in(asked)}")
        await answered(telegram, "It is done.")
    assert dangers(tmp_path) == ["bang"]


async def test_tasks_are_bounded_in_number_and_depth(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.when("^many", calls_tools(("delegate_task", {"tasks": ["x"] * 6})))
    model.when_told("At most 5 tasks", calls_tools(("delegate_task", {"tasks": ["deeper 1"]})))
    model.when("^deeper", calls_tools(("delegate_task", {"tasks": ["deeper 2"]})))
    model.when_told("as deep as that goes", "I did it myself.")
    model.when_told("Task 1, done", "All done.")
    async with start() as gateway:
        telegram.user_says("many")
        await answered(telegram, "All done.")
        made = await subtasks(gateway)
    assert len(made) == 2


# Messages of the agent's own accord


async def test_a_message_is_stored_with_the_result_and_delivered_once(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("send_message", {"text": "By the way.", "target": "origin"})), "Sent."])
    async with start() as gateway:
        telegram.user_says("tell me something")
        await answered(telegram, "Sent.")
        await answered(telegram, "By the way.")
        [call] = await calls(gateway)
        row = await gateway.db.read(outbox.get, f"ob_{call.id}.0")
    assert row is not None
    assert [sent.text for sent in telegram.sent].count("By the way.") == 1


async def test_a_user_reaches_no_other_chat_and_the_owner_is_asked_first(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    telegram.private_chat(99)
    to_bob = calls_tools(("send_message", {"text": "Hello Bob.", "target": "telegram:99"}))
    model.script([to_bob, "I may not.", to_bob, "Told Bob."])
    async with start() as gateway:
        telegram.user_says("tell Bob")
        await answered(telegram, "I may not.")
        assert results(model) == [
            "Only the owner and admins may have messages sent to other chats; here only 'origin' works."
        ]
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("tell Bob now")
        asked = await question(telegram)
        assert "telegram:99" in asked.text
        telegram.user_says(f"/approve {code_in(asked)}")
        await answered(telegram, "Told Bob.")
        await telegram.wait_for(lambda: "Hello Bob." in [sent.text for sent in telegram.sent], SECONDS)
