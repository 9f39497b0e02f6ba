"""What nodes on one PostgreSQL share: approvals, pairings, files on their way out, commands about any of them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.core.errors import GatewayError
from hermes.core.roles import PersonRole
from hermes.hosting.control.handlers.cluster import ClusterVerbs
from hermes.hosting.control.server import Reply
from hermes.services.approvals import AnswerOutcome
from hermes.services.gateway import Gateway
from hermes.store import approvals
from hermes.store.cluster import files
from tests.contract.store.servers import PostgresForTests
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.test_approvals import ask, has_asked
from tests.integration.test_cluster import freeze, has_account, so
from tests.integration.test_pairing import ANA, code_of
from tests.integration.watching import SECONDS, answered, dangers, make, results, until

NO_REPLY: Reply = None  # type: ignore[assignment]  # these verbs tell nothing on the way


@pytest.fixture
def database_url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as url:
        yield url


async def test_approval_asked_at_one_node_is_answered_at_another(
    start: Start, telegram: FakeTelegram, model: FakeModel, database_url: str, tmp_path: Path
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
        await so(lambda: has_account(first))
        async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
            await ask(first, telegram, model)
            await until(lambda: has_asked(second))
            [asked] = await second.db.read(approvals.pending)
            told = await second.approvals.answer(asked.id, allow=True, platform="telegram", sender_id="7")
            assert told.answer is AnswerOutcome.TAKEN
            await answered(telegram, "All done.")
    assert dangers(tmp_path) == ["bang"]
    assert telegram.second_polls == []


async def test_pairing_code_of_one_node_is_approved_at_another_and_counts_at_both(
    start: Start, telegram: FakeTelegram, database_url: str
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
        await so(lambda: has_account(first))
        async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
            code = await code_of(telegram, ANA)
            await second.pairings.approve("telegram", code, by="cli", is_at_machine=True)
            await so(lambda: first.pairings.is_paired("telegram", str(ANA)))
            telegram.user_says("hello", chat=ANA)
            await answered(telegram, "echo: hello")
            await second.pairings.revoke("telegram", str(ANA), by="cli")
            await so(lambda: not first.pairings.is_paired("telegram", str(ANA)))
            assert not second.pairings.is_paired("telegram", str(ANA))


async def test_file_of_a_node_that_died_is_sent_by_another_machine(
    start: Start, telegram: FakeTelegram, model: FakeModel, database_url: str, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 4000  # more than one chunk
    model.says("Here it is.\nMEDIA:table.bin")
    hold = telegram.hold("sendDocument")
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
        (tmp_path / "work" / "table.bin").write_bytes(content)
        await so(lambda: has_account(first))
        async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
            telegram.user_says("send me the table")
            await hold.reached()
            await freeze(first)
            shutil.rmtree(tmp_path / "a" / "spool")  # it was the disk of another machine
            await so(lambda: has_account(second))
            telegram.release_all()
            await telegram.wait_for(lambda: any(one.file == content for one in telegram.sent), SECONDS)
            await until(lambda: _is_swept(second))
            assert {sent.file for sent in telegram.sent if sent.file} == {content}


async def _is_swept(gateway: Gateway) -> bool:
    from hermes.services.outbound.spool import Spool

    await Spool(gateway.home, gateway.db, gateway.clock).sweep()
    return await gateway.db.read(files.ids) == []


async def test_node_that_is_drained_from_another_hands_its_account_over_and_takes_it_back(
    start: Start, telegram: FakeTelegram, database_url: str
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
        await so(lambda: has_account(first))
        async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
            assert first.node is not None
            verbs = ClusterVerbs(second.db)
            told = await verbs.drain({"node": first.node.name, "wait_seconds": 20}, NO_REPLY)
            assert told["left"] == {"lanes": 0, "targets": 0, "duties": 0}
            await so(lambda: has_account(second), within=10)
            telegram.user_says("hello")
            await answered(telegram, "echo: hello")
            shown = {node["name"]: node["state"] for node in (await verbs.status({}, NO_REPLY))["nodes"]}
            assert shown[first.node.name] == "draining"
            await verbs.drain({"node": first.node.id, "undo": True}, NO_REPLY)
            shown = {node["name"]: node["state"] for node in (await verbs.status({}, NO_REPLY))["nodes"]}
            assert set(shown.values()) == {"living"}
            with pytest.raises(GatewayError, match="No living node"):
                await verbs.drain({"node": "nobody"}, NO_REPLY)
    assert telegram.second_polls == []


async def test_lane_of_an_owner_that_is_no_node_is_free_at_the_start(
    start: Start, telegram: FakeTelegram, database_url: str
) -> None:
    """As a copied store has it whose gateway was killed."""
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as gateway:
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        await gateway.db.write(lambda tx: tx.run("UPDATE lanes SET owner = 'inc_of_another_store'"))
        await gateway.db.write(lambda tx: tx.run("UPDATE targets SET owner = 'inc_of_another_store'"))
    async with start(HERMES_DATABASE_URL=database_url, folder="b"):
        telegram.user_says("again")
        await answered(telegram, "echo: again")
        assert telegram.texts() == ["echo: hello", "echo: again"]


async def test_gateway_on_a_file_says_that_it_is_alone(start: Start) -> None:
    async with start() as gateway:
        assert gateway.node is None
        told = await ClusterVerbs(gateway.db).status({}, NO_REPLY)
        assert (told["is_cluster"], told["nodes"]) == (False, [])
        with pytest.raises(GatewayError, match="HERMES_DATABASE_URL"):
            await ClusterVerbs(gateway.db).drain({"node": "x"}, NO_REPLY)


async def test_background_command_of_a_drained_node_is_read_and_ended_from_the_node_that_took_over(
    start: Start, telegram: FakeTelegram, model: FakeModel, database_url: str
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
        await so(lambda: has_account(first))
        async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
            assert first.node is not None
            await make(first, 7, PersonRole.OWNER)
            command = {"command": "echo from the first node; sleep 300", "background": True}
            model.script([calls_tools(("terminal", command)), "Started."])
            telegram.user_says("start it")
            await answered(telegram, "Started.")
            [told] = results(model)
            process_id = re.search(r"p_\w+", told)
            assert process_id is not None, told
            await ClusterVerbs(second.db).drain({"node": first.node.name, "wait_seconds": 20}, NO_REPLY)
            await so(lambda: has_account(second))
            calls = [("process", {"action": "list"}), ("process", {"action": "kill", "id": process_id[0]})]
            model.script([calls_tools(*calls), "Ended."])
            telegram.user_says("end it")
            await answered(telegram, "Ended.")
            listed, killed = results(model)[-2:]
            assert f"on node {first.node.name}" in listed
            assert "from the first node" in killed
            assert "running" not in killed


async def test_commands_of_a_machine_without_a_gateway_show_and_drain_the_nodes(
    start: Start, database_url: str, tmp_path: Path
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a", HERMES_NODE_NAME="box-1") as gateway:
        await so(lambda: has_account(gateway))
        home = tmp_path / "elsewhere"

        async def hermes(*words: str) -> str:
            environ = {**os.environ, "HERMES_HOME": str(home), "HERMES_DATABASE_URL": database_url}
            command = [sys.executable, "-m", "hermes", *words]
            process = await asyncio.create_subprocess_exec(*command, env=environ, stdout=PIPE, stderr=PIPE)
            said, complaint = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0, complaint
            return said.decode()

        shown = await hermes("cluster", "status")
        assert shown.startswith("box-1      living, up ")
        assert "telegram" in shown
        assert "has nothing in hand" in await hermes("cluster", "drain", "box-1")
        assert "takes work again" in await hermes("cluster", "drain", "box-1", "--undo")
        [node] = json.loads(await hermes("cluster", "status", "--json"))["nodes"]
        assert (node["name"], node["state"]) == ("box-1", "living")
