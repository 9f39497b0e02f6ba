"""Store pairing requests, their decisions, and wrong codes."""

from __future__ import annotations

from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

STRANGER_NOTICE = "ob_stranger"
"""Prefix of outbox ids of pairing notices to strangers; the index ``outbox_strangers`` uses it too."""

BITE = 1000


class PairingState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REFUSED = "refused"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Pairing:
    platform: str
    user_id: str
    account: str
    chat: str
    name: str
    state: str
    asked_at: float
    decided_at: float | None
    decided_by: str
    language: str = ""


COLUMNS = "platform, user_id, account, chat, name, state, asked_at, decided_at, decided_by, language"


def get(tx: Tx, platform: str, user_id: str) -> Pairing | None:
    return tx.one(
        f"SELECT {COLUMNS} FROM pairings WHERE platform = :platform AND user_id = :user_id",
        Pairing,
        platform=platform,
        user_id=user_id,
    )


def in_chat(tx: Tx, platform: str, chat: str) -> Pairing | None:
    """The newest request that came from this chat: on some platforms a person and their chat have different ids."""
    return tx.one(
        f"""
        SELECT {COLUMNS} FROM pairings WHERE platform = :platform AND chat = :chat
        ORDER BY asked_at DESC LIMIT 1
        """,
        Pairing,
        platform=platform,
        chat=chat,
    )


def waiting(tx: Tx, platform: str = "", *, since: float) -> list[Pairing]:
    """Requests that are still good, the oldest first: of one platform, or of all."""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM pairings
        WHERE state = 'pending' AND asked_at > :since AND (:platform = '' OR platform = :platform)
        ORDER BY asked_at, user_id
        """,
        Pairing,
        platform=platform,
        since=since,
    )


def pending_of(tx: Tx, platform: str, account: str) -> list[Pairing]:
    """Return all undecided requests of one account, oldest first, including expired ones."""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM pairings WHERE state = 'pending' AND platform = :platform AND account = :account
        ORDER BY asked_at, user_id
        """,
        Pairing,
        platform=platform,
        account=account,
    )


def forget(tx: Tx, platform: str, user_id: str) -> bool:
    """Drop an undecided request; decisions stay."""
    dropped = tx.run(
        "DELETE FROM pairings WHERE platform = :platform AND user_id = :user_id AND state = 'pending'",
        platform=platform,
        user_id=user_id,
    )
    return dropped == 1


def decided(tx: Tx, platform: str = "") -> list[Pairing]:
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM pairings WHERE state <> 'pending' AND (:platform = '' OR platform = :platform)
        ORDER BY decided_at, user_id
        """,
        Pairing,
        platform=platform,
    )


def approved(tx: Tx) -> set[tuple[str, str]]:
    """Platform and user id of everybody who was let in."""
    rows = tx.all("SELECT platform, user_id FROM pairings WHERE state = 'approved'", lambda *row: row)
    return {(str(platform), str(user_id)) for platform, user_id in rows}


def chats_of_owners(tx: Tx) -> list[tuple[str, str, str]]:
    """Platform, account and chat of every owner who was let in by pairing, the first of them first."""
    rows = tx.all(
        """
        SELECT pairings.platform, pairings.account, pairings.chat FROM pairings
        JOIN person_accounts ON person_accounts.platform = pairings.platform
            AND person_accounts.user_id = pairings.user_id
        JOIN people ON people.id = person_accounts.person_id
        WHERE people.role = 'owner' AND pairings.state = 'approved' AND pairings.chat <> ''
        ORDER BY pairings.decided_at, pairings.user_id
        """,
        lambda *row: row,
    )
    return [(str(platform), str(account), str(chat)) for platform, account, chat in rows]


def ask(
    tx: Tx, platform: str, user_id: str, *, account: str, chat: str, name: str, now: float, language: str = ""
) -> None:
    """A stranger asks anew; whatever was decided about them before is over."""
    tx.run(
        """
        INSERT INTO pairings (platform, user_id, account, chat, name, state, asked_at, language)
        VALUES (:platform, :user_id, :account, :chat, :name, 'pending', :now, :language)
        ON CONFLICT (platform, user_id) DO UPDATE SET account = excluded.account, chat = excluded.chat,
            name = excluded.name, state = 'pending', asked_at = excluded.asked_at, decided_at = NULL, decided_by = '',
            language = excluded.language
        """,
        platform=platform,
        user_id=user_id,
        account=account,
        chat=chat,
        name=name,
        now=now,
        language=language,
    )


def decide(tx: Tx, platform: str, user_id: str, state: PairingState, *, by: str, now: float) -> bool:
    """Settle somebody's standing. False when there is nobody of that name, or it is so already."""
    changed = tx.run(
        """
        UPDATE pairings SET state = :state, decided_at = :now, decided_by = :by
        WHERE platform = :platform AND user_id = :user_id AND state <> :state
        """,
        platform=platform,
        user_id=user_id,
        state=state.value,
        by=by,
        now=now,
    )
    return changed == 1


def clear_waiting(tx: Tx, platform: str = "") -> int:
    return tx.run(
        "DELETE FROM pairings WHERE state = 'pending' AND (:platform = '' OR platform = :platform)", platform=platform
    )


# Wrong codes


def locked_until(tx: Tx, platform: str) -> float:
    found = tx.value("SELECT locked_until FROM pairing_tries WHERE platform = :platform", platform=platform)
    return float(found or 0.0)


def note_wrong(tx: Tx, platform: str, *, most: int, lock_seconds: float, now: float) -> int:
    """Count a wrong code and say how many that makes; the last one that is allowed locks the platform."""
    wrong = tx.value(
        """
        INSERT INTO pairing_tries (platform, wrong, locked_until) VALUES (:platform, 1, 0)
        ON CONFLICT (platform) DO UPDATE SET wrong = pairing_tries.wrong + 1 RETURNING wrong
        """,
        platform=platform,
    )
    count = int(wrong or 1)
    if count >= most:
        tx.run(
            "UPDATE pairing_tries SET wrong = 0, locked_until = :until WHERE platform = :platform",
            platform=platform,
            until=now + lock_seconds,
        )
    return count


def forget_wrong(tx: Tx, platform: str) -> None:
    tx.run("DELETE FROM pairing_tries WHERE platform = :platform", platform=platform)


def forget_strangers(tx: Tx, *, before: float) -> int:
    """Delete old refused events and notices to strangers, a bounded number at a time.

    The target of such a notice is deleted too, if nothing was sent to it since and nothing waits.
    """
    events = tx.run(
        """
        DELETE FROM inbox WHERE id IN (
            SELECT id FROM inbox WHERE state = 'refused' AND received_at < :before LIMIT :bite)
        """,
        before=before,
        bite=BITE,
    )
    forgotten: list[tuple[str, str, int]] = tx.all(
        """
        SELECT id, target, seq FROM outbox
        WHERE substr(id, 1, 12) = 'ob_stranger_' AND created_at < :before AND settled_at IS NOT NULL
        ORDER BY created_at LIMIT :bite
        """,
        lambda *row: row,
        before=before,
        bite=BITE,
    )
    for row_id, target, seq in forgotten:
        tx.run("DELETE FROM outbox WHERE id = :id", id=row_id)
        tx.run(
            """
            DELETE FROM targets WHERE key = :target AND owner IS NULL AND next_at IS NULL AND seq <= :seq
                AND NOT EXISTS (
                    SELECT 1 FROM outbox WHERE outbox.target = :target
                        AND (state = 'ready' OR state = 'unknown' OR state = 'parked'))
            """,
            target=target,
            seq=seq,
        )
    return events + len(forgotten)


def shared_secret(tx: Tx, own: str) -> str:
    """The secret of the codes that all nodes of a cluster give: the first one's own."""
    tx.run("INSERT INTO meta (key, value) VALUES ('pairing.secret', :own) ON CONFLICT (key) DO NOTHING", own=own)
    return str(tx.value("SELECT value FROM meta WHERE key = 'pairing.secret'"))
