"""Store persons, their platform accounts, and the cursors of adapters."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.core.keys import LOCAL, AccountKey
from hermes.core.messages import Cursor
from hermes.core.roles import OwnerBy, PersonRole
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    name: str
    role: str
    language: str = ""


def find(tx: Tx, platform: str, user_id: str) -> Person | None:
    return tx.one(
        """
        SELECT people.id, people.name, people.role, people.language FROM person_accounts
        JOIN people ON people.id = person_accounts.person_id
        WHERE person_accounts.platform = :platform AND person_accounts.user_id = :user_id
        """,
        Person,
        platform=platform,
        user_id=user_id,
    )


def get(tx: Tx, person_id: str) -> Person | None:
    return tx.one("SELECT id, name, role, language FROM people WHERE id = :id", Person, id=person_id)


def ensure(
    tx: Tx, person_id: str, *, platform: str, user_id: str, name: str, role: str, now: float, language: str = ""
) -> Person:
    """The person behind a platform account; made with ``person_id`` and ``role`` at the first meeting."""
    known = find(tx, platform, user_id)
    if known is not None:
        return known
    if accounts(tx, person_id):  # of "a_b" and "c", and of "a" and "b_c", the first ids are the same
        person_id = f"{person_id}_{now:.6f}"
    tx.run(
        """
        INSERT INTO people (id, name, role, created_at, language) VALUES (:id, :name, :role, :now, :language)
        ON CONFLICT (id) DO NOTHING
        """,
        id=person_id,
        name=name,
        role=role,
        now=now,
        language=language,
    )
    tx.run(
        """
        INSERT INTO person_accounts (platform, user_id, person_id, name) VALUES (:platform, :user_id, :id, :name)
        ON CONFLICT (platform, user_id) DO NOTHING
        """,
        platform=platform,
        user_id=user_id,
        id=person_id,
        name=name,
    )
    return find(tx, platform, user_id) or Person(person_id, name, role, language)


def ids(tx: Tx) -> list[str]:
    return tx.all("SELECT id FROM people", str)


def ensure_local_owner(tx: Tx, *, now: float) -> Person:
    """Whoever sits at this machine is its owner, also before they first wrote to the agent."""
    person_id = first_id(LOCAL, LOCAL)
    return ensure(tx, person_id, platform=LOCAL, user_id=LOCAL, name="", role=PersonRole.OWNER.value, now=now)


def first_id(platform: str, user_id: str) -> str:
    """The id that somebody gets who is met on a platform for the first time."""
    return f"p_{platform}_{user_id}"


def set_language(tx: Tx, person_id: str, language: str) -> bool:
    """``auto``: each message shows it anew."""
    changed = tx.run("UPDATE people SET language = :language WHERE id = :id", language=language, id=person_id)
    return changed == 1


def set_role(tx: Tx, person_id: str, role: str) -> bool:
    return tx.run("UPDATE people SET role = :role WHERE id = :id", role=role, id=person_id) == 1


def owner_by(tx: Tx, person_id: str) -> str:
    """Return how a person came to be the owner, or was asked to be: a word of ``OwnerBy``."""
    return str(tx.value("SELECT owner_by FROM people WHERE id = :id", id=person_id) or "")


def set_owner(tx: Tx, person_id: str, role: PersonRole, by: OwnerBy) -> None:
    tx.run("UPDATE people SET role = :role, owner_by = :by WHERE id = :id", role=role.value, by=by.value, id=person_id)


def with_owner_by(tx: Tx, by: OwnerBy) -> list[Person]:
    return tx.all("SELECT id, name, role, language FROM people WHERE owner_by = :by", Person, by=by.value)


def make_plain(tx: Tx, platform: str, user_id: str, *, role: str, now: float) -> None:
    """Limit this account to ``role``; if it shares a person with other accounts, it becomes a person of its own."""
    person = find(tx, platform, user_id)
    if person is None:
        return
    if len(accounts(tx, person.id)) == 1:
        set_role(tx, person.id, role)
        return
    own = f"p_{platform}_{user_id}_{now:.6f}"
    tx.run(
        "INSERT INTO people (id, name, role, created_at) VALUES (:id, :name, :role, :now)",
        id=own,
        name=person.name,
        role=role,
        now=now,
    )
    link(tx, platform, user_id, own)


def move_marks(tx: Tx, platform: str, account: str, cursor: Cursor) -> None:
    """Change the marks that are given, and no other. One that became empty is as good as none, and goes."""
    for name, value in cursor.items():
        if not value:
            tx.run(
                "DELETE FROM cursors WHERE platform = :platform AND account = :account AND name = :name",
                platform=platform,
                account=account,
                name=name,
            )
            continue
        tx.run(
            """
            INSERT INTO cursors (platform, account, name, value) VALUES (:platform, :account, :name, :value)
            ON CONFLICT (platform, account, name) DO UPDATE SET value = excluded.value
            """,
            platform=platform,
            account=account,
            name=name,
            value=value,
        )


def cursor(tx: Tx, platform: str, account: str) -> dict[str, str]:
    rows = tx.all(
        "SELECT name, value FROM cursors WHERE platform = :platform AND account = :account",
        lambda *row: row,
        platform=platform,
        account=account,
    )
    return {str(name): str(value) for name, value in rows}


# Who is who


@dataclass(frozen=True, slots=True)
class Account:
    platform: str
    user_id: str
    person_id: str
    name: str


def listed(tx: Tx) -> list[Person]:
    return tx.all("SELECT id, name, role, language FROM people ORDER BY created_at, id", Person)


def accounts(tx: Tx, person_id: str = "") -> list[Account]:
    """The platform accounts of one person, or of everybody."""
    return tx.all(
        """
        SELECT platform, user_id, person_id, name FROM person_accounts WHERE :id = '' OR person_id = :id
        ORDER BY person_id, platform, user_id
        """,
        Account,
        id=person_id,
    )


def language_of_owner(tx: Tx) -> str:
    """What is told at home is told in it; '' where no owner's is known."""
    found = tx.value(
        "SELECT language FROM people WHERE role = 'owner' AND language IN ('en', 'zh') ORDER BY created_at LIMIT 1"
    )
    return str(found or "")


def has_owner(tx: Tx) -> bool:
    """Whether an owner can be reached in a chat; whoever sits at the machine is one anyway."""
    found = tx.value(
        """
        SELECT 1 FROM people JOIN person_accounts ON person_accounts.person_id = people.id
        WHERE people.role = 'owner' AND person_accounts.platform NOT IN ('local', 'api') LIMIT 1
        """
    )
    return found is not None


def link(tx: Tx, platform: str, user_id: str, person_id: str) -> bool:
    """From now on this account is that person's: their role, their files, their sessions. False: no such account."""
    moved = tx.run(
        "UPDATE person_accounts SET person_id = :person WHERE platform = :platform AND user_id = :user_id",
        person=person_id,
        platform=platform,
        user_id=user_id,
    )
    return moved == 1


@dataclass(frozen=True, slots=True)
class AdminsChat:
    """A lane in which an admin or the owner has turns, and who that is."""

    lane: str
    role: str
    language: str


def chats_of_admins(tx: Tx, account: AccountKey) -> list[AdminsChat]:
    """Where those who look after the gateway talk with it on this account; groups are among them.

    Steps from session to session by the index, and looks at the first and the last turn of each (one that was taken up
    again elsewhere): the owner's turns are most of all there are. Who is not on the platform is passed by: the API's
    own key alone may have a session for each of a million requests.
    """
    return tx.all(
        """
        WITH RECURSIVE had (person_id, session_id) AS (
            SELECT people.id, (
                SELECT MIN(turns.session_id) FROM turns WHERE turns.person_id = people.id AND turns.person_id <> '')
            FROM people WHERE people.role IN ('owner', 'admin') AND EXISTS (
                SELECT 1 FROM person_accounts WHERE person_id = people.id AND platform = :platform)
            UNION ALL
            SELECT had.person_id, (
                SELECT MIN(turns.session_id) FROM turns
                WHERE turns.person_id = had.person_id AND turns.person_id <> '' AND turns.session_id > had.session_id)
            FROM had WHERE had.session_id IS NOT NULL)
        SELECT DISTINCT turns.lane, people.role, people.language
        FROM had JOIN people ON people.id = had.person_id JOIN turns ON turns.id IN (
            (SELECT id FROM turns WHERE session_id = had.session_id ORDER BY created_at LIMIT 1),
            (SELECT id FROM turns WHERE session_id = had.session_id ORDER BY created_at DESC LIMIT 1))
        WHERE turns.lane LIKE :lanes
        """,
        AdminsChat,
        platform=account.platform,
        lanes=f"agent:%:{account}:%",
    )
