"""Fill a store with conversations as a year of use would leave them: ``python -m bench.seed STORE --sessions 10000``.

Each line went the whole way through the store functions (inbox, lane, turn, outbox), so every table and index grows
as it would in use. Run before a gateway starts, in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Role
from hermes.core.roles import PersonRole
from hermes.store import codec, inbox, outbox_sending, people
from hermes.store.db import Tx
from hermes.store.home import make_home
from hermes.store.ids import new_id
from hermes.store.inbox import InboxRow, InboxState, Incoming
from hermes.store.open import open_database
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.turns import begin as turn_begin
from hermes.store.turns import end as turn_end
from hermes.store.turns.begin import BeginRules, Pick
from hermes.store.turns.end import Ending
from hermes.store.turns.prompts import Prompt
from hermes.store.turns.turns import TurnState

FIRST_CHAT = 5_000_000
OWNER = "inc_seed"
STILL_TALKING = 200
PER_TRANSACTION = 25
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Amount:
    sessions: int
    lines: int
    line_bytes: int

    @property
    def text(self) -> str:
        return "An ordinary line of talk. "[: self.line_bytes].ljust(self.line_bytes, "x")


def add_conversations(tx: Tx, chats: Sequence[int], amount: Amount, now: float) -> None:
    for chat in chats:
        at = _last_talked(chat, now)
        person = f"p_telegram_{chat}"
        people.ensure(
            tx, person, platform="telegram", user_id=str(chat), name="Ana", role=PersonRole.USER.value, now=at
        )
        for number in range(amount.lines // 2):
            _add_turn(tx, chat, number, amount.text, at + number)


def _last_talked(chat: int, now: float) -> float:
    """A minute ago for a few, so that their talk goes on; else over ten days, so that nothing is pruned."""
    return now - 60 if chat < FIRST_CHAT + STILL_TALKING else now - DAY_SECONDS * (1 + chat % 10)


def _add_turn(tx: Tx, chat: int, number: int, text: str, now: float) -> None:
    key = SessionKey("telegram", ChatKind.DM, str(chat))
    lane = str(key)
    names = (f"msg:{chat}:{number}",)
    message = InboundMessage(names, key, str(chat), text, datetime.fromtimestamp(now, UTC), message_id=str(number))
    scoped = tuple(f"telegram/42/{name}" for name in names)
    body = codec.dump(message)
    incoming = Incoming(
        new_id("ev"), scoped, lane, "telegram", "main", "message", str(chat), body, InboxState.QUEUED, now
    )
    inbox.accept(tx, [incoming], now=now)
    begun = turn_begin.take(tx, lane, owner=OWNER, now=now, rules=RULES, turn_id=new_id("t"), session_id=new_id("s"))
    assert begun is not None
    ending = Ending(
        TurnState.DONE,
        InboxState.ANSWERED,
        messages=[ChatMessage(Role.ASSISTANT, text)],
        replies=[_reply(key, begun.turn.id, text, now)],
        model="fake-1",
    )
    turn_end.finish(tx, begun.claim, begun.turn, ending, now=now)
    _deliver(tx, str(key.target), str(number), now)


def _reply(key: SessionKey, turn_id: str, text: str, now: float) -> Outgoing:
    row_id = new_id("ob")
    body = codec.dump(OutboundMessage(key.target, text))
    return Outgoing(row_id, str(key.target), row_id, 0, OutboxKind.REPLY, body, now + DAY_SECONDS, turn_id)


def _deliver(tx: Tx, target: str, message_id: str, now: float) -> None:
    sending = outbox_sending.take(tx, target, owner=OWNER, now=now)
    assert sending is not None
    assert sending.sending is not None
    outbox_sending.record_sent(tx, sending.sending.id, message_id=message_id, note="", now=now)
    outbox_sending.begin_next(tx, sending.claim, now=now)


def _compose(rows: Sequence[InboxRow]) -> Prompt:
    text = codec.load_message(rows[0].body).text
    return Prompt(ChatMessage(Role.USER, text), "telegram", rows[0].sender_id, "")


RULES = BeginRules(pick=lambda rows, _mode, _now: Pick(rows), compose=_compose, renews=lambda _session, _now: "")


async def seed(home: Path, store: str, amount: Amount) -> None:
    make_home(home)
    db = await open_database(store or home / "state.db")
    try:
        now = time.time()
        chats = range(FIRST_CHAT, FIRST_CHAT + amount.sessions)
        for first in range(0, len(chats), PER_TRANSACTION):
            await db.write(add_conversations, chats[first : first + PER_TRANSACTION], amount, now)
    finally:
        await db.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--store", default="", help="a database URL; by default the home's own state.db")
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--lines", type=int, default=20)
    parser.add_argument("--line-bytes", type=int, default=120)
    options = parser.parse_args()
    asyncio.run(seed(options.home, options.store, Amount(options.sessions, options.lines, options.line_bytes)))


if __name__ == "__main__":
    main()
