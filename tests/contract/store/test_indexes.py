"""What runs with every message never reads a whole table: it costs the same with ten thousand sessions stored."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.core.keys import AccountKey
from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.store import approvals, claims, grants, inbox, outbox, outbox_files, outbox_sending, people
from hermes.store.db import SQLITE, Cursor, Tx
from hermes.store.inbox import InboxState
from hermes.store.reports import stats, usage
from hermes.store.sessions import sessions, transcripts
from hermes.store.turns import end as turn_end
from hermes.store.turns import lanes, steps, tool_calls, turns
from tests.contract.store.rows import (
    DONE,
    LANE,
    NOW,
    OWNER,
    TARGET,
    compose,
    incoming,
    letter,
    question,
    take,
)

BIG = ("inbox", "outbox", "dedupe", "lanes", "targets", "transcript", "turns", "tool_calls", "approvals", "sessions",
       "grants")  # fmt: skip
SCAN = re.compile(rf"^SCAN ({'|'.join(BIG)})(?! USING (?:COVERING )?INDEX \w+_(?:due|waiting|owned|processes|dead)\b)")


class Planner:
    """A transaction that asks for the plan of every statement before it runs it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.scans: list[str] = []
        self.tx = Tx(SQLITE, self._execute)

    def _execute(self, sql: str, params: dict[str, Any]) -> Cursor:
        for *_, detail in self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", params):
            if SCAN.match(detail):
                self.scans.append(f"{detail}: {' '.join(sql.split())}")
        return self._connection.execute(sql, params)


@pytest.fixture
def planner() -> Iterator[Planner]:
    connection = sqlite3.connect(":memory:")
    for schema in sorted((Path(turns.__file__).parents[1] / "migrations").glob("*.sql")):
        connection.executescript(schema.read_text())
    yield Planner(connection)
    connection.close()


def test_a_message_from_accept_to_sent_scans_no_table(planner: Planner) -> None:
    tx = planner.tx
    inbox.accept(tx, [incoming("hi"), incoming("more")], now=NOW)
    claims.due(tx, "lanes", now=NOW)
    begun = take(tx)
    assert begun is not None
    inbox.accept(tx, [incoming("while it runs")], now=NOW)
    lanes.busy_mode(tx, LANE)
    steps.steer(tx, begun.claim, begun.turn, compose=compose, now=NOW)
    call = tool_calls.NewCall("c1", ToolCall("call_1", "danger", "{}"), question("ap_1"))
    said = ChatMessage(Role.ASSISTANT, "", tool_calls=(call.call,))
    [row] = steps.add_step(tx, begun.claim, begun.turn, said, [call], usage=turns.NO_USAGE, now=NOW)
    assert steps.wait_for_approval(tx, begun.claim, replace(begun.turn, steps=1), now=NOW)
    assert approvals.waiting_in(tx, target=TARGET, lane=LANE)
    approvals.answer(tx, "ap_1", allow=True, by="Ana", reason="", now=NOW)
    grants.covering(tx, person_id="p_7", session_id="s_1", subject="danger", touches_host=True)
    approvals.timeouts(tx, begun.turn.id, name="danger", arguments="{}", subject="")
    resumed = take(tx)
    assert resumed is not None
    tool_calls.start(tx, resumed.claim, row.id, now=NOW)
    tool_calls.note_process(tx, row.id, group=9, started="1")
    tool_calls.finish(tx, resumed.claim, resumed.turn, row, outcome="ok", result="x", now=NOW)
    ending = turn_end.Ending(DONE.state, DONE.inbox_state, "", DONE.messages, [letter(turn_id=resumed.turn.id)])
    assert turn_end.finish(tx, resumed.claim, resumed.turn, ending, now=NOW)
    claims.due(tx, "targets", now=NOW)
    sending = outbox_sending.take(tx, TARGET, owner=OWNER, now=NOW)
    assert sending is not None
    assert sending.sending is not None
    outbox_sending.record_sent(tx, sending.sending.id, message_id="1", note="", now=NOW)
    outbox_sending.rest(tx, sending.claim)
    outbox_sending.begin_next(tx, sending.claim, now=NOW)
    assert planner.scans == []


def test_what_goes_wrong_scans_no_table(planner: Planner) -> None:
    tx = planner.tx
    stop = incoming("/stop", state=InboxState.ACTING, kind="command")
    inbox.accept(tx, [incoming("hi"), stop], now=NOW)
    inbox.set_aside_queued(tx, LANE, reason="stopped", now=NOW, up_to=1)
    inbox.settle(tx, stop.id, state=InboxState.ANSWERED, now=NOW)
    inbox.acting(tx)
    turn_end.cancel_waiting(tx, LANE, DONE, now=NOW)
    outbox.enqueue(tx, [letter(row_id="ob_a", turn_id="t_1")], now=NOW)
    begun = outbox_sending.take(tx, TARGET, owner=OWNER, now=NOW)
    assert begun is not None
    outbox_sending.record_not_sent(tx, "ob_a", not_before=NOW, reason="")
    outbox_sending.record_unknown(tx, "ob_a", not_before=NOW, reason="")
    outbox_sending.record_rejected(tx, "ob_a", reason="no", now=NOW)
    outbox.record_parked(tx, "ob_a", expires_at=NOW + 9, reason="")
    outbox.unpark(tx, TARGET, now=NOW)
    outbox.hasten(tx, "telegram", now=NOW)
    outbox.preview_of_turn(tx, "t_1")
    outbox.of_turn(tx, "t_1")
    claims.held_by(tx, "lanes", owner=OWNER)
    claims.free_older(tx, "targets", owner="inc_2", now=NOW)
    claims.next_due(tx, "targets")
    inbox.forget_keys(tx, before=NOW)
    tool_calls.leftover_processes(tx)
    approvals.pending(tx, LANE)
    approvals.by_code(tx, "K7QP2M")
    sessions.leave(tx, LANE, reason="/new", now=NOW)
    transcripts.lines(tx, "s_1")
    assert planner.scans == []


def test_what_runs_every_minute_and_what_the_status_asks_scan_no_table(planner: Planner) -> None:
    tx = planner.tx
    outbox.expire_parked(tx, now=NOW)
    inbox.forget_keys(tx, before=NOW)
    outbox.states(tx, ["ob_a", "ob_b"])
    outbox_files.take_lost(tx, LANE)
    outbox_files.sweep(tx)
    outbox.dead_letters(tx, limit=5)
    stats.counts(tx, now=NOW)
    inbox.arrived_counts(tx, since=NOW - 1, before=NOW)
    stats.sent_counts(tx, since=NOW - 1, before=NOW)
    counted = "SCAN sessions USING COVERING INDEX"  # to count them all they have to be passed by, in the shortest form
    assert [scan for scan in planner.scans if not scan.startswith(counted)] == []


def test_what_is_looked_at_every_ten_minutes_and_what_a_person_asks_about_a_day_scan_no_table(planner: Planner) -> None:
    tx = planner.tx
    people.chats_of_admins(tx, AccountKey("telegram"))
    usage.of_session(tx, "s_1")
    usage.of_person(tx, "p_7", since=NOW)
    usage.by_person(tx, since=NOW)
    assert planner.scans == []
