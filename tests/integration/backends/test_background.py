"""What goes on in the background: known, readable, ended by its person, by the gateway's end, and by its death."""

from __future__ import annotations

import asyncio
import json
import platform
import time
from dataclasses import replace

import pytest

from hermes.agent.backends.process_groups import birth_of
from hermes.agent.backends.terminals import KEPT_SECONDS, MAX_RUNNING, Terminals, end_leftovers
from hermes.agent.toolkit.context import Parts, ToolContext
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole
from hermes.store import processes
from hermes.store.processes import Process
from tests.fakes.clock import FakeClock
from tests.integration.backends.conftest import House, processes_of, running, until_running

OWNER = PersonRole.OWNER


async def begun(house: House, ctx: ToolContext, command: str) -> str:
    told = await house.sh(ctx, command, background=True)
    assert told.startswith("Running in the background as p_"), told
    return told.split(" as ")[1].split(".")[0]


async def look(house: House, ctx: ToolContext, action: str, process_id: str = "", **more: object) -> str:
    return (await house.call(ctx, "process", action=action, id=process_id, **more)).text


async def test_it_is_listed_read_and_ended(house: House, mark: str) -> None:
    ana = house.person(role=OWNER)
    assert await look(house, ana, "list") == "You have started nothing in the background."
    process_id = await begun(house, ana, f"echo up; sleep {mark}")
    assert await look(house, ana, "list") == f"{process_id}  running  local  echo up; sleep {mark}"
    assert await look(house, ana, "log", process_id) == f"up\n[That is all so far. {process_id}: running.]"
    told = await look(house, ana, "wait", process_id, seconds=1)
    assert told == f"{process_id}: running.\nup"
    began = time.monotonic()
    told = await look(house, ana, "kill", process_id)
    assert time.monotonic() - began < 15
    assert told == f"{process_id}: Exit code 143 (SIGTERM).\nup"
    assert not running(mark)
    assert "Exit code 143" in await look(house, ana, "list")
    assert await look(house, ana, "kill", process_id) == told


async def test_it_goes_on_after_the_call_and_tells_how_it_ended(house: House) -> None:
    ana = house.person(role=OWNER)
    process_id = await begun(house, ana, "while [ ! -e go ]; do sleep 0.02; done; echo done; exit 4")
    (ana.workspace / "go").touch()
    told = await look(house, ana, "wait", process_id)
    assert told == f"{process_id}: Exit code 4.\ndone"


async def test_what_ends_at_once_is_told_at_once(house: House) -> None:
    told = await house.sh(house.person(role=OWNER), "echo no such thing; exit 1", background=True)
    assert told.endswith("has ended already. Exit code 1.\nno such thing")


async def test_another_person_knows_nothing_of_it(house: House, mark: str) -> None:
    ana, bob = house.person("ana", OWNER), house.person("bob", OWNER)
    process_id = await begun(house, ana, f"echo secret; sleep {mark}")
    assert await look(house, bob, "list") == "You have started nothing in the background."
    for action in ("log", "wait", "kill"):
        with pytest.raises(ToolError, match="There is no process"):
            await look(house, bob, action, process_id)
    assert running(mark)
    await look(house, ana, "kill", process_id)


async def test_it_is_found_from_another_session_of_the_same_person(house: House, mark: str) -> None:
    ana = house.person(role=OWNER)
    process_id = await begun(house, ana, f"sleep {mark}")
    later = replace(ana, session_id="s_later")
    assert "running" in await look(house, later, "list")
    await look(house, later, "kill", process_id)


async def test_it_ends_when_the_gateway_does(house: House, mark: str) -> None:
    ana = house.person(role=OWNER)
    process_id = await begun(house, ana, f"trap '' TERM; sleep {mark}; sleep {mark}")
    began = time.monotonic()
    await house.terminals.close()
    assert time.monotonic() - began < 15
    assert not running(mark)
    found = await house.terminals.find(ana, process_id)
    assert not found.is_running


async def test_a_long_log_is_read_piece_by_piece_while_it_grows(house: House) -> None:
    ana = house.person(role=OWNER)
    process_id = await begun(house, ana, "seq 1 30000; while [ ! -e go ]; do sleep 0.02; done; echo last")
    page = await look(house, ana, "log", process_id)
    first, _, rest = page.partition("\n")
    assert first == "1"
    offset = int(rest.split("offset=")[1].split(".")[0])
    following = await look(house, ana, "log", process_id, offset=offset)
    assert int(following.split("\n")[0]) == int(page.splitlines()[-2]) + 1
    (ana.workspace / "go").touch()
    assert (await look(house, ana, "wait", process_id)).endswith("last")


async def test_so_many_and_no_more(house: House, mark: str) -> None:
    ana = house.person(role=OWNER)
    ids = await asyncio.gather(*(begun(house, ana, f"sleep {mark}") for _ in range(MAX_RUNNING)))
    with pytest.raises(ToolError, match="16 commands of yours run already"):
        await house.sh(ana, f"sleep {mark}", background=True)
    await begun(house, house.person("bob", OWNER), f"sleep {mark}")
    assert len(set(ids)) == MAX_RUNNING
    await house.terminals.close()


async def test_what_a_dead_gateway_left_is_ended_at_the_next_start(house: House, mark: str) -> None:
    """Should a lease ever fail: the group is recorded, and known by its birth."""
    left = await asyncio.create_subprocess_exec("sleep", mark, start_new_session=True)
    row = Process(
        "p_left", "s_ana", "lane", "ana", "sleep", "local", "/", "p_left.log", platform.node(), left.pid,
        birth_of(left.pid), 1.0,
    )  # fmt: skip
    await house.db.write(processes.record, row)
    reused = replace(row, id="p_reused", process_group=1, process_started="1")
    await house.db.write(processes.record, reused)
    await end_leftovers(house.db, now=9.0)
    assert await left.wait() == -9
    told = await look(house, house.person(role=OWNER), "list")
    assert told.count("ended with the gateway") == 2


async def test_old_outputs_are_forgotten(house: House) -> None:
    clock = FakeClock()
    house.terminals = Terminals(house.home, house.environ, lambda: house.config, house.db, clock)
    ana = replace(house.person(role=OWNER), parts=Parts(house.terminals))
    await house.sh(ana, "seq 1 9000")
    [kept] = (house.home / "outputs").iterdir()
    clock.advance(KEPT_SECONDS + 1)
    looking = asyncio.create_task(house.terminals.run())
    async with asyncio.timeout(20):
        while kept.exists():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
    looking.cancel()
    assert await house.terminals.listed(ana) == []


@pytest.mark.parametrize(
    "arguments, why",
    [
        ({"action": "log"}, "log needs the 'id'"),
        ({"action": "log", "id": "p_9"}, "There is no process 'p_9'"),
        ({"action": "log", "id": "../../.env"}, "There is no process"),
    ],
)
async def test_what_is_not_there_is_told(house: House, arguments: dict[str, object], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await house.toolbox.call("process", json.dumps(arguments), house.person(role=OWNER))


async def test_a_sandboxed_one_goes_on_too(house: House, mark: str) -> None:
    ana = house.person()
    told = await house.sh(ana, f"sleep {mark}", background=True)
    if "Running" not in told:
        pytest.skip(told)
    await until_running(mark)
    process_id = told.split(" as ")[1].split(".")[0]
    [row] = await house.terminals.listed(ana)
    await look(house, ana, "kill", process_id)
    assert not processes_of(row.process_group)
