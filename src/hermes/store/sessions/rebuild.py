"""Put lines of a transcript file back into a store that lacks them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.store.db import Tx
from hermes.store.sessions import revisions, sessions


def put_back(tx: Tx, session_id: str, session: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> int:
    """Add lines of a transcript file that the store lacks, remaking a lost session; a lane keeps its session."""
    known = sessions.get(tx, session_id)
    if known is None:
        if not lines or not session.get("key"):
            return 0
        _make_again(tx, session_id, session, lines)
    present = set(tx.all("SELECT seq FROM transcript WHERE session_id = :id", int, id=session_id))
    missing = [line for line in lines if line["seq"] not in present]
    for line in missing:
        body = line["body"]
        tx.run(
            """
            INSERT INTO transcript (session_id, seq, turn_id, kind, body, at)
            VALUES (:session_id, :seq, :turn_id, :kind, :body, :at)
            """,
            session_id=session_id,
            seq=line["seq"],
            turn_id=line.get("turn") or "",
            kind=line.get("kind") or "message",
            body=body if isinstance(body, str) else json.dumps(body, ensure_ascii=False),
            at=line["at"],
        )
    revisions.make_again(tx, session_id)
    if missing:
        tx.run(
            "UPDATE sessions SET seq = (SELECT MAX(seq) FROM transcript WHERE session_id = :id) WHERE id = :id",
            id=session_id,
        )
    return len(missing)


def _make_again(tx: Tx, session_id: str, session: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
    tx.run(
        """
        INSERT INTO sessions (id, key, title, created_at, updated_at, ended_at, end_reason)
        VALUES (:id, :key, :title, :created_at, :updated_at, :ended_at, :end_reason)
        """,
        id=session_id,
        key=str(session["key"]),
        title=str(session.get("title") or ""),
        created_at=float(session.get("created_at") or lines[0]["at"]),
        updated_at=float(lines[-1]["at"]),
        ended_at=session.get("ended_at"),
        end_reason=str(session.get("end_reason") or ""),
    )
    if session.get("ended_at") is None:
        # The conversation goes on where it was, unless its lane has another session by now.
        tx.run(
            """
            INSERT INTO lanes (key, session_id) VALUES (:key, :id)
            ON CONFLICT (key) DO UPDATE SET session_id = excluded.session_id WHERE lanes.session_id = ''
            """,
            key=str(session["key"]),
            id=session_id,
        )
