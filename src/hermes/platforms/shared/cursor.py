"""Discard a stored cursor that belongs to another bot of the same account."""

from __future__ import annotations

from hermes.core.messages import Cursor

IDENTITY = "identity"


def of_identity(cursor: Cursor, identity: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the cursor if it belongs to this identity, and the fields to store with it.

    Of another one nothing is left: its place in a stream says nothing about ours, and the chats it knew are not ours.
    A mark that is made empty is taken away.
    """
    known = {name: value for name, value in cursor.items() if value}
    if known.get(IDENTITY) == identity:
        return known, {}
    if IDENTITY not in known:
        return known, {IDENTITY: identity}
    return {}, {**dict.fromkeys(known, ""), IDENTITY: identity}
