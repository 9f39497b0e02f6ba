"""Ten thousand questions wait: no task, no thread and hardly any memory waits with them, and each can be answered."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from pathlib import Path
from typing import cast

import pytest

from hermes.agent.toolkit.context import ToolContext
from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.core.roles import PersonRole
from hermes.store import approvals, inbox, people
from hermes.store.db import Tx
from hermes.store.turns import steps, tool_calls, turns
from tests.contract.store import rows
from tests.fakes.holding import lasting_threads
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.fakes.tools import ask_by_kind
from tests.integration.conftest import Start
from tests.integration.test_approval_scopes import command_line
from tests.integration.watching import dangers, until

COUNT = 10_000
LANE = "agent:main:telegram:dm:7"
MOST_MEGABYTES = 30.0
FAR = 4e9


def resident_megabytes() -> float:
    """What of this process is in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def plant(tx: Tx, now: float) -> None:
    """One turn that sleeps on its question, and ten thousand like it, each in a chat of its own."""
    inbox.accept(tx, [rows.incoming("do it", lane=LANE, ready_at=now)], now=now)
    begun = rows.take(tx, lane=LANE, now=now)
    assert begun is not None
    call = ToolCall("call_1", "scribble", json.dumps({"text": "line 0"}))
    need = ask_by_kind(cast(ToolContext, None), "line 0")
    asked = approvals.Question("ap_", "N", "p_7", True, need.question, FAR, need.subject, need.where)
    said = ChatMessage(Role.ASSISTANT, "", tool_calls=(call,))
    new = tool_calls.NewCall(f"{begun.turn.id}:1:0", call, asked)
    steps.add_step(tx, begun.claim, begun.turn, said, [new], usage=turns.NO_USAGE, now=now)
    stored = turns.get(tx, begun.turn.id)
    assert stored is not None
    assert steps.wait_for_approval(tx, begun.claim, stored, now=now)
    for table, numbered in CLONED.items():
        clone(tx, table, numbered)
    for table, column in (("tool_calls", "arguments"), ("approvals", "question")):
        tx.run(f"UPDATE {table} SET {column} = replace({column}, 'line 0', 'line ' || substr(id, -5))")


CLONED = {
    "inbox": ("id", "lane", "turn_id"),
    "lanes": ("key", "turn_id", "session_id"),
    "sessions": ("id", "key"),
    "transcript": ("session_id", "turn_id"),
    "turns": ("id", "lane", "session_id"),
    "approvals": ("id", "code", "lane", "turn_id", "tool_call_id", "session_id"),
    "tool_calls": ("id", "turn_id", "approval_id"),
}


def clone(tx: Tx, table: str, numbered: tuple[str, ...]) -> None:
    """Ten thousand more of each row, with a number behind each of these columns."""
    columns = tx.all(f"SELECT name FROM pragma_table_info('{table}')", str)
    chosen = [f"{name} || substr('00000' || n.i, -5)" if name in numbered else name for name in columns]
    tx.run(
        f"""
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {COUNT})
        INSERT INTO {table} ({", ".join(columns)}) SELECT {", ".join(chosen)} FROM {table}, n
        """
    )


def meet_owner(tx: Tx) -> None:
    people.ensure(tx, "p_7", platform="telegram", user_id="7", name="Ana", role=PersonRole.OWNER.value, now=0.0)


async def settled() -> tuple[float, int, int]:
    """Memory, threads and tasks when nothing is going on."""
    await asyncio.sleep(0.2)
    gc.collect()
    return resident_megabytes(), lasting_threads(), len(asyncio.all_tasks())


@pytest.mark.slow
async def test_ten_thousand_pending_approvals_cost_less_than_thirty_megabytes_and_no_thread(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    telegram.any_chat = True
    async with start() as gateway:
        now = gateway.clock.now()
        await gateway.db.write(meet_owner)
        memory, threads, tasks = await settled()
        await gateway.db.write(plant, now)
        later, threads_later, tasks_later = await settled()
        assert await gateway.db.read(approvals.pending_count) == COUNT + 1
        assert threads_later <= threads
        assert tasks_later <= tasks
        assert later - memory < MOST_MEGABYTES, f"{later - memory:.1f} MB more"
        for number in (1, COUNT):
            await command_line(gateway, "approvals.answer", id=f"N{number:05d}", allow=True)
        await until(lambda: _has_lines(tmp_path, 2))
    assert sorted(dangers(tmp_path)) == ["line 00001", f"line {COUNT:05d}"]
    assert model.requests


async def _has_lines(folder: Path, count: int) -> bool:
    return len(dangers(folder)) == count
