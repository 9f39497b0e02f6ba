"""Store a turn's lane for its worker; every step shows the claim, so a worker that lost it writes nothing."""

from __future__ import annotations

from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.store import claims
from hermes.store.chat_settings import ChatSettings
from hermes.store.claims import Claim
from hermes.store.db import Tx


class LostClaim(Exception):  # noqa: N818 - a fact, not an error: the lane has another owner
    """The claim shown is not the newest: whoever calls must stop at once."""


@dataclass(frozen=True, slots=True)
class HeldLane:
    """Its row, as far as a turn needs it. ``turn_id`` is the turn that has not ended, '' where none is open."""

    seq: int
    turn_id: str
    session_id: str
    busy_mode: str
    model: str
    reasoning: str
    voice: str
    tool_progress: str
    personality: str
    files_lost: int
    node: str
    """The node whose files or processes the session depends on; '' for none."""

    @property
    def choices(self) -> ChatSettings:
        return ChatSettings(self.model, self.reasoning, self.voice, self.tool_progress, self.personality)


_COLUMNS = "seq, turn_id, session_id, busy_mode, model, reasoning, voice, tool_progress, personality, files_lost, node"
_CLAIM = claims.claiming("lanes", f"token, {_COLUMNS}")
_IS_MINE = """
    (node = '' OR node = :node
        OR NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.name = lanes.node AND nodes.state = 'living'))
"""
"""Whether the node of this name may have a lane: one that depends on another node stays there while that lives."""
_CLAIM_IN_CLUSTER = _CLAIM.replace("AND next_at <= :now", f"AND next_at <= :now AND {_IS_MINE}")
_HELD = f"SELECT {_COLUMNS} FROM lanes WHERE key = :key AND token = :token AND owner IS NOT NULL"


def claim(tx: Tx, key: str, *, owner: str, now: float, node: str = "") -> tuple[Claim, HeldLane] | None:
    """Take this lane if it is free and due, and read its row with the same statement.

    ``node`` is the name of this node in a cluster: a lane that depends on another living node is left alone.
    """
    row: tuple[int, HeldLane] | None
    if node:
        row = tx.one(_CLAIM_IN_CLUSTER, _claimed, key=key, owner=owner, now=now, node=node)
    else:
        row = tx.one(_CLAIM, _claimed, key=key, owner=owner, now=now)
    return (Claim(key, row[0], row[1].seq), row[1]) if row is not None else None


def _claimed(token: int, *lane: Any) -> tuple[int, HeldLane]:
    return token, HeldLane(*lane)


def due(tx: Tx, *, now: float, node: str, limit: int = 200) -> list[str]:
    """Free lanes with work to do now that the node of this name may have, the longest waiting first."""
    return tx.all(
        f"""
        SELECT key FROM lanes WHERE owner IS NULL AND next_at <= :now AND {_IS_MINE} ORDER BY next_at LIMIT :limit
        """,
        str,
        now=now,
        node=node,
        limit=limit,
    )


def depend_on(tx: Tx, key: str, node: str) -> None:
    """From now on the lane depends on files or processes of this node; '' for none."""
    tx.run("UPDATE lanes SET node = :node WHERE key = :key AND node <> :node", key=key, node=node)


def must_hold(tx: Tx, held: Claim) -> HeldLane:
    """The lane's row, for whoever still holds it. Anybody else gets ``LostClaim``, before anything is written."""
    lane = tx.one(_HELD, HeldLane, key=held.key, token=held.token)
    if lane is None:
        raise LostClaim(held.key)
    return lane


def enter(tx: Tx, key: str, *, turn_id: str, session_id: str) -> None:
    """The lane is in this turn from now on, and the turn in this session."""
    tx.run(
        "UPDATE lanes SET turn_id = :id, session_id = :session_id WHERE key = :lane",
        id=turn_id,
        session_id=session_id,
        lane=key,
    )


def leave(tx: Tx, key: str, turn_id: str) -> None:
    """The lane is not in this turn any more. It may be in another one by now, and stays there."""
    tx.run("UPDATE lanes SET turn_id = '' WHERE key = :key AND turn_id = :id", key=key, id=turn_id)


def busy_mode(tx: Tx, key: str) -> str:
    """What its chat chose for messages that come while a turn runs, or ''."""
    return str(tx.value("SELECT busy_mode FROM lanes WHERE key = :lane", lane=key) or "")


def set_busy_mode(tx: Tx, key: str, mode: str) -> None:
    tx.run(
        """
        INSERT INTO lanes (key, busy_mode) VALUES (:lane, :mode)
        ON CONFLICT (key) DO UPDATE SET busy_mode = excluded.busy_mode
        """,
        lane=key,
        mode=mode,
    )
