"""Five calls in one batch, killed at every state of every one of them: it goes on, and nothing happens twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.core.roles import PersonRole
from hermes.core.turn import INTERRUPTED_BY_RESTART
from hermes.store import approvals, inbox, people
from hermes.store.db import Database, Tx
from hermes.store.home import make_home
from hermes.store.open import open_database
from hermes.store.turns import steps, tool_calls, turns
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.tool_calls import NewCall
from tests.contract.store import rows
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import a_model_accepts, answered, calls, dangers, results, transcript

NOW = 1_000.0
# What may run again and what may not, what asks first and what does not, in one batch.
BATCH = (
    ("read_file", {"path": "a.txt"}),
    ("danger", {"text": "one"}),
    ("tally", {"name": "two"}),
    ("danger", {"text": "three"}),
    ("read_file", {"path": "b.txt"}),
)
ASKS = frozenset({"danger"})
STATES = ("proposed", "waiting", "allowed", "refused", "started", "done")


def _can_be(name: str, state: str) -> bool:
    return name in ASKS if state in ("waiting", "allowed", "refused") else name not in ASKS or state != "proposed"


CASES = [
    pytest.param(index, state, id=f"call {index} ({name}) {state}")
    for index, (name, _) in enumerate(BATCH)
    for state in STATES
    if _can_be(name, state)
]


async def plant(home: Path, index: int, state: str) -> None:
    """A home whose process died with the calls before ``index`` done and this one in ``state``."""
    make_home(home)
    db = await open_database(home / "state.db")
    try:
        await _plant(db, index, state)
    finally:
        await db.close()


async def _plant(db: Database, index: int, state: str) -> None:
    row = rows.incoming("do it all", ready_at=NOW)
    somebody = {"platform": row.platform, "user_id": row.sender_id, "name": "Ana", "role": PersonRole.OWNER.value}
    await db.write(people.ensure, "p_ana", **somebody, now=NOW)
    await db.write(inbox.accept, [row], now=NOW)
    begun = await db.write(rows.take, now=NOW)
    assert begun is not None
    new = [_new(begun, number) for number in range(len(BATCH))]
    said = ChatMessage(Role.ASSISTANT, "", tool_calls=tuple(one.call for one in new))
    made = await db.write(steps.add_step, begun.claim, begun.turn, said, new, usage=turns.NO_USAGE, now=NOW)
    for number, call in enumerate(made):
        wanted = "done" if number < index else state if number == index else "allowed"
        await db.write(_bring_to, begun, call, wanted)


def _new(begun: BegunTurn, number: int) -> NewCall:
    name, arguments = BATCH[number]
    call = ToolCall(f"call_{number}", name, json.dumps(arguments))
    question = rows.question(f"ap_{number}", code=f"CODE{number}", expires_at=4e9)
    wants = f"May I write {arguments.get('text')!r} into danger.txt?"
    asked = replace(question, question=wants) if name in ASKS else None
    return NewCall(f"{begun.turn.id}:1:{number}", call, asked)


def _bring_to(tx: Tx, begun: BegunTurn, call: tool_calls.StoredCall, state: str) -> None:
    if call.approval_id and state != "waiting":
        approvals.answer(tx, call.approval_id, allow=state != "refused", by="Ana", reason="", now=NOW)
    if state in ("started", "done"):
        tool_calls.start(tx, begun.claim, call.id, now=NOW)
    if state == "done":
        tool_calls.finish(tx, begun.claim, begun.turn, call, outcome="ok", result="before the crash", now=NOW)


def _runs_after_the_crash(number: int, index: int, state: str) -> bool:
    """Whether the restart has to run this call itself: not what was done, refused or begun and never to be repeated."""
    if number < index:
        return False
    if number > index:
        return True
    is_repeatable = BATCH[number][0] == "read_file"
    return state in ("proposed", "waiting", "allowed") or (state == "started" and is_repeatable)


@pytest.mark.parametrize("index, state", CASES)
async def test_a_batch_goes_on_from_wherever_it_was_killed(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, index: int, state: str
) -> None:
    await plant(tmp_path / "home", index, state)
    (tmp_path / "work").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "work" / name).write_text(f"inside {name}\n")
    model.says("All done.")
    async with start() as gateway:
        if state == "waiting":
            telegram.user_says(f"/approve CODE{index}")
        await answered(telegram, "All done.")
        lines = await transcript(gateway)
        rows_ = await calls(gateway)
        tallied = await gateway.db.read(lambda tx: tx.all("SELECT value FROM meta WHERE key = 'tally.two'", str))
    assert a_model_accepts(lines)
    assert [row.state for row in rows_] == ["done"] * len(BATCH)
    runs = [_runs_after_the_crash(number, index, state) for number in range(len(BATCH))]
    assert sorted(dangers(tmp_path)) == [text for number, text in ((1, "one"), (3, "three")) if runs[number]]
    assert len(tallied) == runs[2]
    told = results(model)
    for number, row in enumerate(rows_):
        assert row.result in told
        if number == index and state == "started" and not runs[number]:
            assert row.result == INTERRUPTED_BY_RESTART
