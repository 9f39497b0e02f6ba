"""Two gateways in this process on one PostgreSQL: who has an account, who runs a turn, what moves when one is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError, NodeIsGoneError
from hermes.core.keys import ChatKind, SessionKey, Target
from hermes.core.messages import ChatMessage, Role
from hermes.core.requests import AgentRequest, RequestKind
from hermes.core.roles import PersonRole
from hermes.services.adapters.account import Link
from hermes.services.gateway import Gateway
from hermes.services.outbound import delivery
from hermes.store import outbox
from hermes.store.db import Tx
from hermes.store.open import open_database
from tests.contract.store.servers import PostgresForTests
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import SECONDS, all_turns, answered, inbox_states, make, transcript, until

ACCOUNT = Target("telegram", "7")


@pytest.fixture
def database_url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as url:
        yield url


def has_account(gateway: Gateway) -> bool:
    return gateway.supervisor.has(ACCOUNT)


def state_of(gateway: Gateway) -> tuple[str, str]:
    [account] = [each for each in gateway.supervisor.status() if each["account"] == "telegram"]
    return account["state"], account["note"]


async def so(is_so: Callable[[], bool], within: float = SECONDS) -> None:
    async with asyncio.timeout(within):
        while not is_so():  # noqa: ASYNC110 - nothing tells us
            await asyncio.sleep(0.01)


async def freeze(gateway: Gateway) -> None:
    """Let a node beat no more, as far as a process can that goes on: its lease ends, and others take over."""
    assert gateway.node is not None
    await gateway.node._connection.close(5)


async def test_one_of_two_nodes_has_the_account_and_hands_it_over_when_it_stops(
    start: Start, telegram: FakeTelegram, database_url: str
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
        async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
            await so(lambda: state_of(second)[0] == Link.CONNECTED)
            await so(lambda: state_of(first)[0] == Link.ELSEWHERE)
            assert second.node is not None
            assert state_of(first)[1] == f"on node {second.node.name}"
            telegram.user_says("hello")
            await answered(telegram, "echo: hello")
        assert has_account(second)
        telegram.user_says("again")
        await answered(telegram, "echo: again")
    assert telegram.second_polls == []


async def test_accounts_and_turns_of_a_stopping_node_go_on_at_another_within_a_second(
    start: Start, telegram: FakeTelegram, model: FakeModel, database_url: str
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
        await so(lambda: has_account(first))
        async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
            await so(lambda: state_of(first)[0] == Link.ELSEWHERE or state_of(second)[0] == Link.ELSEWHERE)
            model.hold()
            telegram.user_says("hello")
            await model.is_holding()
            assert [lane for lane, _ in first.lanes.running()] or [lane for lane, _ in second.lanes.running()]
            stopping = asyncio.create_task(first.node.drain()) if first.node is not None else None
            assert stopping is not None
            first_has_left = time.monotonic()
            await first.supervisor.stop_intake()
            await first.lanes.drain(0.2)
            await so(lambda: has_account(second) and second.lanes.running() != [])
            assert time.monotonic() - first_has_left < 10.0, "ten times the promise: machines are busy"
            await stopping
            model.release()
            await answered(telegram, "echo: hello")
            assert [turn.state for turn in await all_turns(second)] == ["done"]
    assert telegram.second_polls == []
    assert telegram.texts().count("echo: hello") == 1


async def test_a_node_whose_lease_ran_out_sends_nothing_and_writes_nothing(
    start: Start, telegram: FakeTelegram, model: FakeModel, database_url: str
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
        await so(lambda: has_account(first))
        async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
            model.hold()
            telegram.user_says("hello")
            await model.is_holding()
            assert first.lanes.running() != []
            frozen_at = time.monotonic()
            await freeze(first)
            await so(lambda: second.lanes.running() != [])
            moved = time.monotonic() - frozen_at
            await so(lambda: state_of(second)[0] == Link.CONNECTED)
            connected = time.monotonic() - frozen_at
            assert first.supervisor.adapter_of(ACCOUNT) is None
            with pytest.raises(NodeIsGoneError):
                await first.db.write(outbox.enqueue, first.outbox_writer.notice(ACCOUNT, "late"), now=first.clock.now())
            model.release()  # the first node's model answers too, and its words go nowhere
            await answered(telegram, "echo: hello")
            assert not has_account(first)
            assert moved < 50.0, "ten times the promise: machines are busy"
            assert connected < 60.0
            await until(lambda: _all_answered(second))
            assert [turn.state for turn in await all_turns(second)] == ["done"]
    assert telegram.texts() == ["echo: hello"]
    assert telegram.second_polls == []


async def _all_answered(gateway: Gateway) -> bool:
    return {state for state, _ in await inbox_states(gateway)} == {"answered"}


async def test_an_answer_made_at_one_node_is_sent_by_the_node_that_has_the_account(
    start: Start, telegram: FakeTelegram, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "POLL_SECONDS", 600.0)  # only a notification is left
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as first:
        await so(lambda: has_account(first))
        async with start(HERMES_DATABASE_URL=database_url, folder="b") as second:
            await so(lambda: state_of(second)[0] == Link.ELSEWHERE)
            telegram.user_says("hello")
            await answered(telegram, "echo: hello")
            rows = second.outbox_writer.notice(ACCOUNT, "from the other node")
            await second.db.write(outbox.enqueue, rows, now=second.clock.now())
            second.outbox_writer.due(rows)
            await answered(telegram, "from the other node")
            assert second.outbox_writer.capabilities(ACCOUNT).text_limit > 4000, "it knows the platform all the same"


async def test_a_clock_that_is_an_hour_off_delays_nothing(
    start: Start, telegram: FakeTelegram, database_url: str
) -> None:
    class Ahead:
        def __init__(self, by: float) -> None:
            self._by = by

        def now(self) -> float:
            return time.time() + self._by

        def monotonic(self) -> float:
            return time.clock_gettime(time.CLOCK_BOOTTIME)

    async with start(HERMES_DATABASE_URL=database_url, folder="a", clock=Ahead(3600.0)) as first:
        await so(lambda: has_account(first))
        assert abs(first.clock.now() - time.time()) < 2.0
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        async with start(HERMES_DATABASE_URL=database_url, folder="b", clock=Ahead(-3600.0)) as second:
            assert abs(second.clock.now() - time.time()) < 2.0
            await freeze(first)
            telegram.user_says("again")
            await answered(telegram, "echo: again")
            await so(lambda: has_account(second))


async def test_a_conversation_that_wrote_a_file_stays_with_its_node_and_says_when_it_moves(
    start: Start, telegram: FakeTelegram, model: FakeModel, database_url: str
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a", HERMES_NODE_NAME="anna") as first:
        await so(lambda: has_account(first))
        await make(first, 7, PersonRole.OWNER)
        model.script([calls_tools(("write_file", {"path": "list.txt", "content": "milk"})), "Written."])
        telegram.user_says("write it down")
        await answered(telegram, "Written.")

        def node_of_lane(tx: Tx) -> str:
            return str(tx.value("SELECT node FROM lanes WHERE node <> ''"))

        assert await first.db.read(node_of_lane) == "anna"
        async with start(HERMES_DATABASE_URL=database_url, folder="b", HERMES_NODE_NAME="bert") as second:
            await freeze(first)
            await so(lambda: has_account(second))
            telegram.user_says("and now?")
            await telegram.wait_for(lambda: any(text.startswith("echo: ") for text in telegram.texts()), SECONDS)
            [told] = [text for text in telegram.texts() if text.startswith("↪ ") and "moved from anna to bert" in text]
            assert "Files and processes of anna are not here" in told
            assert any("moved from anna to bert" in line.text for line in await transcript(second)), "the model knows"
            telegram.user_says("once more")
            await answered(telegram, "echo: once more")
            assert len([text for text in telegram.texts() if text.startswith("↪ ")]) == 1


def migrations_up_to(folder: Path, number: int, statement: str, *, min_reader: int | None) -> Path:
    """The product's migrations, and one that a newer program would bring."""
    folder.mkdir()
    for entry in resources.files("hermes.store.migrations").iterdir():
        if entry.name.endswith(".sql"):
            (folder / entry.name).write_text(entry.read_text("utf-8"), "utf-8")
    first = f"-- min_reader: {min_reader}\n" if min_reader is not None else ""
    (folder / f"{number:04d}_next.sql").write_text(f"{first}{statement};\n", "utf-8")
    return folder


async def migrate(url: str, folder: Path) -> None:
    await (await open_database(url, migrations=folder)).close()


async def test_a_node_works_beside_a_newer_schema_and_stands_down_when_it_is_too_old_for_it(
    start: Start, telegram: FakeTelegram, database_url: str, tmp_path: Path
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as old:
        await so(lambda: state_of(old)[0] == Link.CONNECTED)
        known = old.db.schema_version
        expand = "ALTER TABLE turns ADD COLUMN mood TEXT NOT NULL DEFAULT ''"
        await migrate(database_url, migrations_up_to(tmp_path / "expand", known + 1, expand, min_reader=None))
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        contract = "ALTER TABLE lanes ADD COLUMN mood TEXT NOT NULL DEFAULT ''"
        await migrate(database_url, migrations_up_to(tmp_path / "next", known + 2, contract, min_reader=known + 2))
        await so(lambda: any("takes no more work" in text for text in old.troubles))
        await so(lambda: not has_account(old))
        polls = telegram.polls
        telegram.user_says("still there?")
        await asyncio.sleep(1.5)  # it would poll within a second
        assert telegram.polls <= polls + 1
        assert telegram.texts().count("echo: still there?") == 0
        assert old.lanes.running() == []
    with pytest.raises(ConfigError, match="written by a newer Hermes"):
        async with start(HERMES_DATABASE_URL=database_url, folder="a"):
            pass


async def test_a_stranger_who_asked_at_one_node_is_let_in_at_another_and_heard_at_the_first(
    start: Start, telegram: FakeTelegram, database_url: str
) -> None:
    async with (
        start(HERMES_DATABASE_URL=database_url, folder="a") as first,
        start(HERMES_DATABASE_URL=database_url, folder="b") as second,
    ):
        await so(lambda: has_account(first) or has_account(second))
        other = second if has_account(first) else first
        telegram.private_chat(666, "Eve")
        telegram.user_says("hello?", chat=666, user=666, name="Eve")

        async def has_asked() -> bool:
            return bool(await other.pairings.waiting())

        await until(has_asked)
        [asked] = await other.pairings.waiting()
        await telegram.wait_for(lambda: any(asked.code in text for text in telegram.texts()), SECONDS)
        await other.pairings.approve("telegram", asked.code, by="local")

        async def is_heard() -> bool:
            telegram.user_says("me again", chat=666, user=666, name="Eve")
            await asyncio.sleep(0.5)
            return "echo: me again" in telegram.texts()

        await until(is_heard)
        assert await other.pairings.waiting() == []


async def test_a_drained_node_lives_on_without_work_and_takes_it_again(
    start: Start, telegram: FakeTelegram, database_url: str
) -> None:
    async with start(HERMES_DATABASE_URL=database_url, folder="a") as only:
        await so(lambda: state_of(only)[0] == Link.CONNECTED)
        assert only.node is not None
        await only.node.stand_down()
        assert not has_account(only)
        telegram.user_says("hello")
        await only.node.stand_up()
        await answered(telegram, "echo: hello")


async def test_requests_of_the_api_are_answered_at_whichever_node_they_reach(
    start: Start, database_url: str, model: FakeModel
) -> None:
    def request(number: int) -> AgentRequest:
        key = SessionKey("api", ChatKind.DM, f"s{number % 3}")
        return AgentRequest(RequestKind.CHAT, key, "key:default", (ChatMessage(Role.USER, f"q{number}"),))

    async def ask(gateway: Gateway, number: int) -> str:
        async with gateway.requests.ask(request(number)) as handle:
            return (await handle.result()).text

    async with (
        start(HERMES_DATABASE_URL=database_url, folder="a") as first,
        start(HERMES_DATABASE_URL=database_url, folder="b") as second,
    ):
        for number in range(6):  # three sessions, each at both nodes
            assert await ask((first, second)[number % 2], number) == f"echo: q{number}"
        assert {turn.state for turn in await all_turns(first)} == {"done"}
        assert len(await all_turns(second)) == 6
