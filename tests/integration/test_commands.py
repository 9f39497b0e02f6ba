"""Commands act at once, once, and end their own row whatever happens in them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest

import hermes
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.messages import InboundMessage, Press
from hermes.core.roles import PersonRole
from hermes.services.inbound.actions import RETRY_SECONDS, Actions
from hermes.services.inbound.notices import Notices
from hermes.store import inbox
from hermes.store.db import Tx
from hermes.store.inbox import InboxState
from tests.contract.store.rows import incoming
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import answered, inbox_states, make, until


async def test_a_command_never_waits_for_the_turn_that_runs(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.hold()
    async with start():
        telegram.user_says("a long one")
        await model.is_holding()
        telegram.user_says("/whoami")
        await telegram.wait_for(lambda: bool(telegram.sent))
        assert "role user" in telegram.texts()[0]
        model.release()
        await answered(telegram, "echo: a long one")


async def test_commands_of_one_chat_act_in_the_order_they_were_written(start: Start, telegram: FakeTelegram) -> None:
    written = ["/busy queue", "/status", "/busy steer", "/whoami", "/busy", "/version", "/busy interrupt", "/help"]
    for text in written:
        telegram.user_says(text)
    async with start():
        await telegram.wait_for(lambda: len(telegram.sent) >= len(written))
    begins = ["queue:", "I'm here", "steer:", "Ana:", "steer:", "Hermes", "interrupt:", "Just write"]
    assert [text.startswith(begin) for text, begin in zip(telegram.texts(), begins, strict=True)] == [True] * 8


async def test_an_unknown_command_names_the_nearest(start: Start, telegram: FakeTelegram) -> None:
    async with start():
        telegram.user_says("/statsu")
        await answered(telegram, "There is no command /statsu. Did you mean /status? /help lists them.")
        assert len(telegram.texts()) == 1


async def test_a_command_stored_just_before_a_crash_acts_after_it(start: Start, telegram: FakeTelegram) -> None:
    command = incoming("/version", state=InboxState.ACTING, kind="command")
    async with start() as gateway:
        await make(gateway, 7, PersonRole.USER)
        await gateway.db.write(inbox.accept, [command], now=1_000.0)
    async with start():
        await telegram.wait_for(lambda: any(text.startswith("Hermes") for text in telegram.texts()))
        assert len(telegram.texts()) == 1


async def test_a_command_in_nobodys_hand_is_taken_up_without_a_restart(start: Start, telegram: FakeTelegram) -> None:
    """Its COMMIT was unknown: it was stored, and whoever stored it did not know."""
    command = incoming("/version", state=InboxState.ACTING, kind="command")
    async with start() as gateway:
        await make(gateway, 7, PersonRole.USER)
        await gateway.db.write(inbox.accept, [command], now=1_000.0)
        await gateway.actions.resume(RETRY_SECONDS)  # as its slow poll does
        await telegram.wait_for(lambda: any(text.startswith("Hermes") for text in telegram.texts()))
        assert len(telegram.texts()) == 1


class AtIt:
    """Acts for as long as it is let, and counts."""

    def __init__(self) -> None:
        self.acted = 0
        self.may_end = asyncio.Event()

    async def act(self, event_id: str, event: InboundMessage | Press) -> None:
        self.acted += 1
        await self.may_end.wait()


async def test_a_command_that_ends_while_the_slow_poll_reads_acts_once(start: Start) -> None:
    at_it = AtIt()
    async with start() as gateway:
        db, clock, writer = gateway.db, gateway.clock, gateway.outbox_writer
        notices = Notices(db, lambda: gateway.config, clock, writer, gateway.pairings)
        actions = Actions(db, clock, gateway.lanes, writer, notices, commands=at_it, presses=at_it)
        command = incoming("/version", state=InboxState.ACTING, kind="command")
        await gateway.db.write(inbox.accept, [command], now=1_000.0)
        await actions.resume()
        await asyncio.sleep(0)
        looking = asyncio.create_task(actions.resume(RETRY_SECONDS))
        await asyncio.sleep(0)
        time.sleep(0.2)  # noqa: ASYNC251 - the loop stands still until the store has read the command as open
        at_it.may_end.set()
        await looking
        await actions.close()
    assert at_it.acted == 1


async def test_a_stored_command_that_cannot_be_read_does_not_stop_the_start(
    start: Start, telegram: FakeTelegram
) -> None:
    def spoil(tx: Tx) -> None:
        tx.run("UPDATE inbox SET body = 'x'")

    async with start() as gateway:
        await gateway.db.write(inbox.accept, [incoming("/x", state=InboxState.ACTING, kind="command")], now=1_000.0)
        await gateway.db.write(spoil)
    async with start() as gateway:
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        assert [state for state, _ in await inbox_states(gateway)] == ["set_aside", "answered"]


async def test_a_command_that_breaks_says_so_and_what_follows_goes_on(
    start: Start, telegram: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(hermes, "__version__")  # so that /version breaks
    async with start() as gateway:
        telegram.user_says("/version")
        telegram.user_says("hello")
        await answered(telegram, ENGLISH.COMMAND_BROKE.replace("`", ""))
        await answered(telegram, "echo: hello")
        states = await inbox_states(gateway)
    assert states[0][0] == "set_aside"
    assert "AttributeError" in states[0][1]
    assert states[1] == ("answered", "")


async def test_a_message_that_cannot_be_read_does_not_stop_its_chat(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with start():
        pass
    with sqlite3.connect(tmp_path / "home" / "state.db") as connection:
        connection.execute(
            "INSERT INTO inbox (id, lane, seq, platform, account, kind, sender_id, body, state, received_at, ready_at)"
            " VALUES ('ev_bad', 'agent:main:telegram:dm:7', 1, 'telegram', 'main', 'message', '7', '{', 'queued', 1, 1)"
        )
        connection.execute("INSERT INTO lanes (key, seq, next_at) VALUES ('agent:main:telegram:dm:7', 1, 1)")
    connection.close()
    async with start() as gateway:
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        await until(lambda: _settled(gateway))
        assert [state for state, _ in await inbox_states(gateway)] == ["set_aside", "answered"]


async def _settled(gateway: object) -> bool:
    return all(state in ("set_aside", "answered") for state, _ in await inbox_states(gateway))  # type: ignore[arg-type]
