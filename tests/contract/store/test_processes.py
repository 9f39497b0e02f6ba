"""Commands in the background, on both databases: whose they are, how they ended, what is forgotten."""

from __future__ import annotations

from dataclasses import replace

from hermes.store import processes
from hermes.store.db import Database
from hermes.store.processes import Process

SERVER = Process(
    "p_1", "s_1", "agent:main:local:dm:me", "ana", "python3 -m http.server", "local", "/srv", "p_1.log", "host-a",
    4242, "777", 10.0,
)  # fmt: skip


async def test_a_process_is_known_until_its_end_and_after(database: Database) -> None:
    await database.write(processes.record, SERVER)
    await database.write(processes.record, replace(SERVER, command="something else"))
    mine = {"person_id": "ana", "session_id": "s_2"}
    assert await database.read(processes.get, "p_1", **mine) == SERVER
    assert SERVER.is_running
    assert await database.write(processes.end, "p_1", exit_code=3, now=20.0)
    assert not await database.write(processes.end, "p_1", exit_code=4, now=21.0)
    [ended] = await database.read(processes.listed, **mine, limit=5)
    assert ended == replace(SERVER, ended_at=20.0, exit_code=3)
    assert not ended.is_running


async def test_nobody_sees_what_is_somebody_elses(database: Database) -> None:
    await database.write(processes.record, SERVER)
    await database.write(processes.record, replace(SERVER, id="p_2", person_id="", session_id="s_7"))
    for stranger in ({"person_id": "bob", "session_id": "s_1"}, {"person_id": "", "session_id": "s_1"}):
        assert await database.read(processes.get, "p_1", **stranger) is None
        assert await database.read(processes.get, "p_2", **stranger) is None
        assert await database.read(processes.listed, **stranger, limit=5) == []
    nameless = {"person_id": "", "session_id": "s_7"}
    assert [row.id for row in await database.read(processes.listed, **nameless, limit=5)] == ["p_2"]
    assert await database.read(processes.get, "p_2", **nameless) is not None


async def test_the_newest_come_first_and_only_so_many(database: Database) -> None:
    for number in range(4):
        await database.write(processes.record, replace(SERVER, id=f"p_{number}", started_at=float(number)))
    found = await database.read(processes.listed, person_id="ana", session_id="", limit=2)
    assert [row.id for row in found] == ["p_3", "p_2"]


async def test_what_a_machine_left_open_is_that_machines(database: Database) -> None:
    await database.write(processes.record, SERVER)
    await database.write(processes.record, replace(SERVER, id="p_2", host="host-b"))
    await database.write(processes.record, replace(SERVER, id="p_3", ended_at=11.0))
    assert [row.id for row in await database.read(processes.left_open, "host-a")] == ["p_1"]


async def test_what_ended_long_ago_is_forgotten_with_its_output(database: Database) -> None:
    await database.write(processes.record, SERVER)
    await database.write(processes.record, replace(SERVER, id="p_2", log="p_2.log", ended_at=50.0))
    await database.write(processes.record, replace(SERVER, id="p_3", log="p_3.log", ended_at=90.0))
    assert await database.read(processes.has_old, host="host-a", before=80.0)
    assert not await database.read(processes.has_old, host="host-a", before=50.0)
    assert await database.write(processes.forget, host="host-b", before=80.0) == []
    assert await database.write(processes.forget, host="host-a", before=80.0) == ["p_2.log"]
    left = await database.read(processes.listed, person_id="ana", session_id="", limit=5)
    assert {row.id for row in left} == {"p_1", "p_3"}
