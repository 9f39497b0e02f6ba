"""Decide which process may ask for what.

The same rules hold for the control socket, for request files, and for a command that works without a gateway.
"""

from __future__ import annotations

from hermes.hosting.tool_processes import OUTSIDE, TOOL, UNKNOWN

OPEN_TO_TOOLS = frozenset(
    {
        "ping", "status", "cron.status", "config.reload", "doctor.stores", "store.counts", "sessions.count",
        "sessions.list", "sessions.show", "trace.list", "grants.list", "people.list", "api_keys.list", "restart",
    }
)  # fmt: skip
"""What processes of tools, and processes of unknown origin, may ask for.

Nothing here shows a code or a key, or changes stored data. ``restart`` loses nothing, and the agent needs an approval
to type it."""

OPEN_TO_OUTSIDE = OPEN_TO_TOOLS - {"restart"} | {"pairing.list", "pairing.approve", "pairing.revoke", "pairing.clear"}
"""What a process of another container may ask for as well, by socket or by file."""

NOT_THE_AGENT = (
    "This command runs in the agent's own terminal. The agent cannot answer its own questions or change its gateway. "
    "Type the command in a terminal that you opened yourself, or answer in a chat."
)


def why_not(verb: str, origin: str) -> str:
    """Return why a process of this origin may not ask for this; "" if it may."""
    if verb in OPEN_TO_TOOLS:
        return ""
    if origin == TOOL:
        return NOT_THE_AGENT
    if origin == UNKNOWN:
        return (
            "The gateway cannot tell which process asks for this; it may be one of the agent's. Type the command in a "
            "terminal on the gateway's machine, or answer in a chat."
        )
    if origin == OUTSIDE and verb not in OPEN_TO_OUTSIDE:
        return (
            f"From another container only pairings can be decided, not {verb!r}. Type it where the gateway runs, for "
            "example after `docker exec -it NAME`, or answer in a chat."
        )
    return ""
