"""How far an answer reaches, what a question becomes once it has ended, and which answers count for nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.core.roles import PersonRole
from hermes.hosting.control.handlers.gateway import verbs_of
from hermes.services.gateway import Gateway
from hermes.store import grants
from hermes.store.db import Tx
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.server import Sent
from tests.fakes.telegram import FakeTelegram
from tests.fakes.tools import NEVER
from tests.integration.conftest import Start
from tests.integration.watching import (
    SECONDS,
    all_turns,
    answered,
    code_in,
    dangers,
    make,
    question,
    results,
    turn_is,
    until,
)


def scribble(text: str, *, host: bool = True) -> Any:
    return calls_tools(("scribble", {"text": text, "host": host}))


async def ask(
    gateway: Gateway,
    telegram: FakeTelegram,
    model: FakeModel,
    text: str = "one",
    *,
    role: PersonRole = PersonRole.OWNER,
    host: bool = True,
    number: int = 1,
) -> Sent:
    await make(gateway, 7, role)
    model.script([scribble(text, host=host), f"Did {text}."])
    telegram.user_says(f"do {text}")
    asked = await question(telegram, number)
    await turn_is(gateway, "waiting")
    return asked


def cards(telegram: FakeTelegram) -> list[Sent]:
    """Every message that was a question, also those that have ended."""
    return [sent for sent in telegram.sent if sent.buttons or sent.edits]


async def asked_so_often(telegram: FakeTelegram, number: int) -> None:
    await telegram.wait_for(lambda: len(cards(telegram)) == number, SECONDS)


async def ends_as(telegram: FakeTelegram, asked: Sent, words: str) -> None:
    await telegram.wait_for(lambda: words in asked.text and not asked.buttons, SECONDS)


async def do(gateway: Gateway, telegram: FakeTelegram, model: FakeModel, text: str, *, host: bool = True) -> None:
    """One more turn that needs no answer."""
    model.script([scribble(text, host=host), f"Did {text}."])
    telegram.user_says(f"do {text}")
    await answered(telegram, f"Did {text}.")
    assert (await all_turns(gateway))[-1].state == "done"


class Quiet:
    """A control socket's line on which nobody listens."""

    async def event(self, _told: Mapping[str, Any]) -> None:
        return


async def command_line(gateway: Gateway, verb: str, **args: Any) -> Any:
    return await verbs_of(gateway)[verb](args, Quiet())


# The question


async def test_a_question_shows_what_would_run_where_and_every_way_to_answer(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model, "a\u200bb")
    labels = [button.label for row in asked.buttons for button in row]
    assert labels == ["Approve", "Approve for session", "Always", "Deny"]
    code = code_in(asked)
    assert "scribble on local in the workspace" in asked.text
    assert "u200b" in asked.text or "‹U+200B›" in asked.text
    for typed in (f"/approve {code}", f"/approve {code} session", f"/approve {code} always", f"/deny {code}"):
        assert typed in asked.text
    assert "5 minutes" in asked.text


async def test_what_cannot_be_granted_offers_only_yes_and_no(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        model.script([calls_tools(("danger", {"text": "bang"})), "Done."])
        telegram.user_says("go")
        asked = await question(telegram)
        assert [button.label for row in asked.buttons for button in row] == ["Approve", "Deny"]
        telegram.user_says(f"/approve {code_in(asked)} always")
        await telegram.wait_for(lambda: any("Only this once" in text for text in telegram.texts()), SECONDS)
        assert await gateway.db.read(grants.standing) == []


# Scopes


@pytest.mark.parametrize("by", ["button", "typed", "command line"])
async def test_an_approval_for_the_session_asks_no_more_until_a_new_one(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, by: str
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        if by == "button":
            telegram.user_presses(asked, "Approve for session")
        elif by == "typed":
            telegram.user_says(f"/approve {code_in(asked)} session")
        else:
            await command_line(gateway, "approvals.answer", id=code_in(asked), allow=True, scope="session")
        await answered(telegram, "Did one.")
        await do(gateway, telegram, model, "two")
        assert dangers(tmp_path) == ["one", "two"]
        await ends_as(telegram, asked, "for this session too")
        telegram.user_says("/new")
        await telegram.wait_for(lambda: "Fresh session" in telegram.texts()[-1], SECONDS)
        await ask(gateway, telegram, model, "three")
    assert dangers(tmp_path) == ["one", "two"]


async def test_always_outlives_the_session_and_the_process_and_is_revoked_in_the_chat(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        telegram.user_presses(asked, "Always")
        await answered(telegram, "Did one.")
    async with start() as gateway:
        telegram.user_says("/new")
        await telegram.wait_for(lambda: "Fresh session" in telegram.texts()[-1], SECONDS)
        await do(gateway, telegram, model, "two")
        [grant] = await gateway.db.read(grants.standing)
        assert (grant.person_id, grant.granted_by, grant.scope) == ("p_telegram_7", "p_telegram_7", "always")
        assert code_in_reason(grant.reason)
        telegram.user_says("/approvals")
        await answered(telegram, f"{grant.id}: test: write (always)")
        telegram.user_says(f"/approvals revoke {grant.id}")
        await telegram.wait_for(lambda: "I ask again" in telegram.texts()[-1], SECONDS)
        await ask(gateway, telegram, model, "three")
    assert dangers(tmp_path) == ["one", "two"]


def code_in_reason(reason: str) -> bool:
    return reason.startswith("asked as ") and "May I write" in reason


async def test_grants_are_listed_and_revoked_from_the_command_line(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        [waiting] = await command_line(gateway, "approvals.list")
        assert (waiting["code"], waiting["tool"], waiting["person"]) == (code_in(asked), "scribble", "Ana")
        assert json.loads(waiting["arguments"]) == {"text": "one", "host": True}
        told = await command_line(gateway, "approvals.answer", id=waiting["code"], allow=True, scope="always")
        assert "not ask about this kind again" in told["text"]
        await answered(telegram, "Did one.")
        await ends_as(telegram, asked, "Approved by the owner")
        [grant] = await command_line(gateway, "grants.list")
        assert (grant["subject"], grant["person"], grant["by"]) == ("test: write", "Ana", "p_local_local")
        await command_line(gateway, "grants.revoke", id=grant["id"])
        assert await command_line(gateway, "grants.list") == []
        await ask(gateway, telegram, model, "two")


async def test_a_grant_never_lets_the_hard_list_through(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        telegram.user_presses(asked, "Always")
        await answered(telegram, "Did one.")
        await do(gateway, telegram, model, NEVER)
    assert dangers(tmp_path) == ["one"]
    assert results(model)[-1] == "That is refused to everybody."


async def test_what_a_user_grants_in_their_sandbox_does_not_reach_the_host(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model, role=PersonRole.USER, host=False)
        telegram.user_presses(asked, "Always")
        await answered(telegram, "Did one.")
        await do(gateway, telegram, model, "two", host=False)
        await ask(gateway, telegram, model, "three", role=PersonRole.USER, host=True)
    assert dangers(tmp_path) == ["one", "two"]


async def test_a_grant_for_the_host_ends_with_the_role_of_who_gave_it(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        await make(gateway, 8, PersonRole.ADMIN)
        asked = await ask(gateway, telegram, model, role=PersonRole.USER)
        telegram.user_says(f"/approve {code_in(asked)} always", chat=8, user=8, name="Bo")
        await answered(telegram, "Did one.")
        await do(gateway, telegram, model, "two")
        await make(gateway, 8, PersonRole.USER)
        await ask(gateway, telegram, model, "three", role=PersonRole.USER)
    assert dangers(tmp_path) == ["one", "two"]


async def test_one_persons_grant_is_not_anothers(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        asked = await ask(gateway, telegram, model)
        telegram.user_presses(asked, "Always")
        await answered(telegram, "Did one.")
        await make(gateway, 8, PersonRole.ADMIN)
        model.script([scribble("theirs"), "Did theirs."])
        telegram.user_says("do theirs", chat=8, user=8, name="Bo")
        await telegram.wait_for(lambda: any(sent.buttons and sent.chat == "8" for sent in telegram.sent), SECONDS)
        [grant] = await gateway.db.read(grants.standing)
        telegram.user_says(f"/approvals revoke {grant.id}", chat=8, user=8, name="Bo")
        await telegram.wait_for(lambda: "I ask again" in telegram.texts()[-1], SECONDS)
        assert await gateway.db.read(grants.standing) == []


async def test_a_user_neither_sees_nor_revokes_what_others_granted(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        asked = await ask(gateway, telegram, model)
        telegram.user_presses(asked, "Always")
        await answered(telegram, "Did one.")
        [grant] = await gateway.db.read(grants.standing)
        telegram.user_says("/approvals", chat=8, user=8, name="Bo")
        await answered(telegram, "Nothing waits for an answer, and nothing is granted for longer.")
        telegram.user_says(f"/approvals revoke {grant.id}", chat=8, user=8, name="Bo")
        await answered(telegram, "There is no such grant.")
        assert await gateway.db.read(grants.standing) == [grant]


# What a question becomes


@pytest.mark.parametrize(
    "answer, words", [("Approve", "✓ Approved by Ana."), ("Deny", "✗ Denied by Ana.")], ids=["approved", "denied"]
)
async def test_an_answered_question_loses_its_buttons_and_says_who_answered(
    start: Start, telegram: FakeTelegram, model: FakeModel, answer: str, words: str
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        telegram.user_presses(asked, answer)
        await ends_as(telegram, asked, words)
        await answered(telegram, "Did one.")
    assert "scribble" in asked.text
    assert len(cards(telegram)) == 1


async def test_a_question_that_expires_says_so_in_its_place(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, clock: FakeClock
) -> None:
    async with start(clock=clock) as gateway:
        asked = await ask(gateway, telegram, model)
        clock.advance(301)
        await ends_as(telegram, asked, "⌛ Expired: nobody answered in 5 minutes, so it did not run.")
        await answered(telegram, "Did one.")
    assert "Do not try it again" in results(model)[0]
    assert dangers(tmp_path) == []


async def test_a_question_that_is_withdrawn_says_so_in_its_place(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        telegram.user_says("/stop")
        await ends_as(telegram, asked, "Withdrawn (stopped); it did not run.")
        assert asked.buttons == ()


async def test_an_expiry_is_told_even_when_the_question_itself_could_not_be_sent(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with start(clock=clock) as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        model.script([scribble("one"), "Did one."])
        telegram.refuse_next("sendMessage", 429, "Too Many Requests: retry after 9", {"retry_after": 9})
        telegram.user_says("do one")
        await turn_is(gateway, "waiting")
        await telegram.wait_for(lambda: telegram.counts["sendMessage"] >= 1, SECONDS)
        clock.advance(301)
        await telegram.wait_for(lambda: any("Expired" in text for text in telegram.texts()), SECONDS)
        assert not any(sent.buttons for sent in telegram.sent), "it is not asked after its time"


async def test_how_long_a_question_waits_is_set_for_each_platform(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, clock: FakeClock
) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.yaml").write_text("approvals:\n  timeout_by_platform:\n    telegram: 8h\n")
    async with start(clock=clock) as gateway:
        asked = await ask(gateway, telegram, model)
        assert "8 hours" in asked.text
        clock.advance(8 * 3600 - 5)
        telegram.user_presses(asked, "Approve")
        await answered(telegram, "Did one.")
    assert dangers(tmp_path) == ["one"]


async def test_the_same_question_unanswered_twice_ends_the_turn(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, clock: FakeClock
) -> None:
    async with start(clock=clock) as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        model.script([scribble("one"), scribble("one again"), "never said"])
        telegram.user_says("do it")
        for number in (1, 2):
            await asked_so_often(telegram, number)
            await turn_is(gateway, "waiting")
            clock.advance(301)
        turn = await turn_is(gateway, "failed")
        await telegram.wait_for(lambda: "nobody answered" in telegram.texts()[-1], SECONDS)
    assert turn.reason == "nobody answered what it asked"
    assert "I asked 2 times" in telegram.texts()[-1]
    assert dangers(tmp_path) == []


# Which answers count


async def test_a_bare_yes_counts_for_none_of_two(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start() as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        model.script([calls_tools(("scribble", {"text": "one"}), ("scribble", {"text": "two"})), "Both."])
        telegram.user_says("do both")
        second = await question(telegram, 2)
        telegram.user_says("/approve")
        await telegram.wait_for(lambda: telegram.texts()[-1].startswith("Which one?"), SECONDS)
        assert code_in(second) in telegram.texts()[-1]
        telegram.user_says("/approve all")
        await answered(telegram, "Both.")
        assert "Approved 2 of 2." in telegram.texts()


async def test_no_to_all_gives_each_call_the_reason(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        model.script([calls_tools(("scribble", {"text": "one"}), ("scribble", {"text": "two"})), "Both."])
        telegram.user_says("do both")
        await question(telegram, 2)
        telegram.user_says("/deny all not on a Sunday")
        await answered(telegram, "Both.")
    assert all("not on a Sunday" in result for result in results(model))
    assert dangers(tmp_path) == []


async def test_a_bare_no_takes_its_words_as_the_reason(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await ask(gateway, telegram, model)
        telegram.user_says("/deny use the other folder")
        await answered(telegram, "Did one.")
    assert "use the other folder" in results(model)[0]
    assert dangers(tmp_path) == []


async def test_a_bare_yes_written_before_the_question_was_shown_is_not_about_it(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    """Its platform handed it out late: it was typed an hour ago, for something else."""
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        telegram.user_says("/approve", date=1_700_000_000)
        await telegram.wait_for(lambda: telegram.texts()[-1].startswith("Which one?"), SECONDS)
        assert dangers(tmp_path) == []
        telegram.user_says(f"/approve {code_in(asked)}", date=1_700_000_001)
        await answered(telegram, "Did one.")
    assert dangers(tmp_path) == ["one"]


async def test_a_bare_yes_before_the_question_was_delivered_is_not_about_it(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        model.script([scribble("one"), "Did one."])
        held = telegram.hold_sends()
        telegram.user_says("do it")
        await turn_is(gateway, "waiting")
        await held.reached(SECONDS)
        telegram.user_says("/approve")
        await until(lambda: settled(gateway, "/approve"))
        telegram.release_all()
        await telegram.wait_for(lambda: any(text.startswith("Which one?") for text in telegram.texts()), SECONDS)
    assert dangers(tmp_path) == []


async def settled(gateway: Gateway, text: str) -> bool:
    def read(tx: Tx) -> bool:
        sql = "SELECT COUNT(*) FROM inbox WHERE kind = 'command' AND state = 'answered' AND body LIKE :text"
        return bool(tx.value(sql, text=f"%{text}%"))

    return await gateway.db.read(read)


async def test_a_message_edited_into_a_bare_yes_counts_for_nothing(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        await ask(gateway, telegram, model)
        said = telegram.user_says("hm, let me see")
        await telegram.wait_for(lambda: "waits in line" in telegram.texts()[-1], SECONDS)
        telegram.user_edits(said, "/approve")
        await telegram.wait_for(lambda: telegram.unconfirmed == 0, SECONDS)
        telegram.user_says("/status")
        await telegram.wait_for(lambda: len(telegram.sent) >= 3, SECONDS)
        assert (await all_turns(gateway))[-1].state == "waiting"
    assert dangers(tmp_path) == []


@pytest.mark.parametrize(
    "data", ["ap:allow:ap_nobody", "ap:forever:{id}", "ap:allow", "allow:{id}", "ap:allow:{id}\u200b"]
)
async def test_forged_buttons_answer_nothing(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, data: str
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        approval_id = asked.buttons[0][0].data.rpartition(":")[2]
        press = {
            "id": "777",
            "from": {"id": 7, "is_bot": False, "first_name": "Ana"},
            "message": {"message_id": 1, "date": 1, "chat": {"id": 7, "type": "private"}},
            "chat_instance": "-1",
            "data": data.format(id=approval_id),
        }
        telegram.deliver("callback_query", press)
        await telegram.wait_for(
            lambda: any(text.startswith(("There is no such", "That button")) for text in telegram.texts()), SECONDS
        )
        assert (await all_turns(gateway))[-1].state == "waiting"
    assert dangers(tmp_path) == []


async def test_of_two_people_at_once_one_wins_and_the_other_is_told_who(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        asked = await ask(gateway, telegram, model)
        await make(gateway, 8, PersonRole.ADMIN)
        await gateway.db.write(name, "p_telegram_8", "Bo")
        telegram.user_presses(asked, "Approve", user=7)
        telegram.user_presses(asked, "Deny", user=8, name="Bo")
        await telegram.wait_for(lambda: len(telegram.answered_presses) >= 2, SECONDS)
        await answered(telegram, "Did one.")
    told = sorted(telegram.answered_presses.values())
    assert told in (
        ["Approved, going on.", "It was already allowed by Ana."],
        ["Denied. I'll find another way.", "It was already denied by Bo."],
    )
    assert dangers(tmp_path) == (["one"] if "Approved, going on." in told else [])


def name(tx: Tx, person_id: str, called: str) -> None:
    tx.run("UPDATE people SET name = :name WHERE id = :id", id=person_id, name=called)


async def test_an_answer_from_the_command_line_and_one_from_the_chat_meet(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        telegram.user_presses(asked, "Approve")
        outcomes = await asyncio.gather(
            command_line(gateway, "approvals.answer", id=code_in(asked), allow=True), return_exceptions=True
        )
        await answered(telegram, "Did one.")
        await telegram.wait_for(lambda: len(telegram.answered_presses) >= 1, SECONDS)
    [pressed] = telegram.answered_presses.values()
    by_command = outcomes[0]["text"] if isinstance(outcomes[0], dict) else str(outcomes[0])
    assert {pressed, by_command} in (
        {"Approved, going on.", "It was already allowed by Ana."},
        {"Approved, going on.", "It was already allowed by the owner."},
    )
    assert dangers(tmp_path) == ["one"]


# The story S1: the connection is cut while the question waits


async def test_a_button_pressed_after_the_poll_was_cut_is_the_persons_own_and_counts(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with start() as gateway:
        asked = await ask(gateway, telegram, model)
        polls = telegram.polls
        telegram.drop_connection()
        await telegram.wait_for(lambda: telegram.polls > polls, SECONDS)
        await telegram.stop()
        telegram.user_presses(asked, "Approve")  # during the outage, on the card that was sent before it
        await telegram.start()
        await answered(telegram, "Did one.")
        await ends_as(telegram, asked, "✓ Approved by Ana.")
    assert list(telegram.answered_presses.values()) == ["Approved, going on."]
    assert dangers(tmp_path) == ["one"]
    assert "nauthorized" not in caplog.text, "never said to the person it was asked of"


# Admins


async def test_what_takes_an_admin_is_put_into_the_home_channel_too(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    telegram.private_chat(8, "Bo")
    async with start(TELEGRAM_ALLOWED_USERS="7,8", TELEGRAM_HOME_CHANNEL="8") as gateway:
        await make(gateway, 8, PersonRole.ADMIN)
        await ask(gateway, telegram, model, role=PersonRole.USER)
        await telegram.wait_for(lambda: len([sent for sent in telegram.sent if sent.buttons]) >= 2, SECONDS)
        asked, copy = sorted((sent for sent in telegram.sent if sent.buttons), key=lambda sent: sent.chat)
        assert (asked.chat, copy.chat) == ("7", "8")
        assert "an admin or the owner must answer" in asked.text
        assert code_in(copy) == code_in(asked)
        telegram.user_presses(copy, "Approve", user=8, name="Bo")
        await answered(telegram, "Did one.")
        await ends_as(telegram, asked, "✓ Approved by Ana.")  # every person of these tests is called so
        await ends_as(telegram, copy, "✓ Approved by Ana.")
    assert dangers(tmp_path) == ["one"]
