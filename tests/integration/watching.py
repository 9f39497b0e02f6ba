"""What a test wants to know about a gateway: its rows, and whether a model would accept the transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from hermes.core.messages import ChatMessage, Role
from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.store import codec, outbox, people
from hermes.store.db import Tx
from hermes.store.outbox import OutboxRow
from hermes.store.turns import tool_calls, turns
from hermes.store.turns.tool_calls import StoredCall
from hermes.store.turns.turns import Turn
from tests.fakes.model import FakeModel, complaint_about
from tests.fakes.server import Sent
from tests.fakes.telegram import FakeTelegram
from tests.fakes.tools import DONE

SECONDS = 30


async def until(is_so: Callable[[], Awaitable[bool]], within: float = SECONDS) -> None:
    async with asyncio.timeout(within):
        while not await is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # the store tells nobody of its changes


async def all_turns(gateway: Gateway) -> list[Turn]:
    def read(tx: Tx) -> list[Turn]:
        ids = tx.all("SELECT id FROM turns ORDER BY created_at, id", str)
        return [turn for turn_id in ids if (turn := turns.get(tx, turn_id)) is not None]

    return await gateway.db.read(read)


async def turn_is(gateway: Gateway, state: str, within: float = SECONDS) -> Turn:
    """Wait until the newest turn is in this state."""
    found: list[Turn] = []

    async def look() -> bool:
        found[:] = (await all_turns(gateway))[-1:]
        return bool(found) and found[0].state == state

    await until(look, within)
    return found[0]


async def calls(gateway: Gateway) -> list[StoredCall]:
    def read(tx: Tx) -> list[StoredCall]:
        ids = tx.all("SELECT id FROM turns ORDER BY created_at, id", str)
        return [call for turn_id in ids for call in tool_calls.of_turn(tx, turn_id)]

    return await gateway.db.read(read)


async def transcript(gateway: Gateway) -> list[ChatMessage]:
    """Every line of every session, in the order in which they were written; numbered without a gap."""

    def read(tx: Tx) -> list[tuple[str, int, str]]:
        return tx.all("SELECT session_id, seq, body FROM transcript ORDER BY at, session_id, seq", lambda *row: row)

    rows = await gateway.db.read(read)
    for session in {row[0] for row in rows}:
        numbers = [seq for of, seq, _ in rows if of == session]
        assert numbers == list(range(1, len(numbers) + 1))
    return [codec.load_chat(body) for *_, body in rows]


def a_model_accepts(lines: list[ChatMessage]) -> bool:
    """Whether every call is answered right after it was made."""
    messages = [
        {
            "role": line.role.value,
            "content": line.text,
            **({"tool_call_id": line.tool_call_id} if line.role is Role.TOOL else {}),
            "tool_calls": [{"id": call.id, "function": {"arguments": call.arguments}} for call in line.tool_calls],
        }
        for line in lines
    ]
    return complaint_about({"model": "x", "messages": messages}) == ""


async def inbox_states(gateway: Gateway) -> list[tuple[str, str]]:
    """State and reason of everything that arrived, in order."""

    def read(tx: Tx) -> list[tuple[str, str]]:
        return tx.all("SELECT state, reason FROM inbox ORDER BY received_at, seq", lambda *row: row)

    return await gateway.db.read(read)


async def outbox_rows(gateway: Gateway) -> list[OutboxRow]:
    def read(tx: Tx) -> list[OutboxRow]:
        ids = tx.all("SELECT id FROM outbox ORDER BY seq, idx", str)
        return [row for row_id in ids if (row := outbox.get(tx, row_id)) is not None]

    return await gateway.db.read(read)


async def make(gateway: Gateway, user: int, role: PersonRole) -> None:
    """This Telegram user is somebody, from the first message on."""

    def write(tx: Tx) -> None:
        person = people.ensure(
            tx, f"p_telegram_{user}", platform="telegram", user_id=str(user), name="Ana", role=role.value, now=0.0
        )
        people.set_role(tx, person.id, role.value)

    await gateway.db.write(write)


def results(model: FakeModel) -> list[str]:
    """What the model was told about its calls, in its last request."""
    return [message["content"] for message in model.last_request["messages"] if message["role"] == "tool"]


def dangers(folder: Path) -> list[str]:
    """What the dangerous tool did."""
    file = folder / "work" / DONE
    return file.read_text().splitlines() if file.exists() else []


async def question(telegram: FakeTelegram, number: int = 1) -> Sent:
    """Wait until the bot has asked for the so-manieth time."""
    await telegram.wait_for(lambda: len([sent for sent in telegram.sent if sent.buttons]) >= number, SECONDS)
    return [sent for sent in telegram.sent if sent.buttons][number - 1]


def code_in(asked: Sent) -> str:
    return asked.text.rpartition("/approve ")[2].split()[0]


async def answered(telegram: FakeTelegram, text: str) -> None:
    await telegram.wait_for(lambda: text in telegram.texts(), SECONDS)
