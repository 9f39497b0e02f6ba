"""Decide which process is given what on the control socket, by request file and by a command that works alone."""

from __future__ import annotations

from hermes.hosting.tool_processes import OUTSIDE, TOOL, UNKNOWN

OPEN_TO_TOOLS = frozenset(
    {
        "ping", "status", "config.reload", "doctor.stores", "store.counts", "sessions.count", "sessions.list",
        "sessions.show", "trace.list", "grants.list", "people.list", "api_keys.list", "restart",
    }
)  # fmt: skip
"""What a process of a tool may ask for, and any process whose origin is not known: nothing here shows a code or a key,
or changes what the gateway holds. ``restart`` keeps everything; the agent needs an approval to type it."""

OPEN_TO_OUTSIDE = OPEN_TO_TOOLS - {"restart"} | {"pairing.list", "pairing.approve", "pairing.revoke", "pairing.clear"}
"""What a process of another container may ask for as well, by socket or by file."""

NOT_THE_AGENT = (
    "This runs in the agent's own terminal, and the agent cannot answer its own questions or change its own gateway. "
    "Do this in a chat, or in a terminal that you opened yourself."
)


def why_not(verb: str, origin: str) -> str:
    """Return why a process of this origin is not given what it asks for; "" when it is."""
    if verb in OPEN_TO_TOOLS:
        return ""
    if origin == TOOL:
        return NOT_THE_AGENT
    if origin == UNKNOWN:
        return (
            "The gateway cannot tell which process asks for this, so it may be the agent's own. Do this in a chat, or "
            "in a terminal on the gateway's machine."
        )
    if origin == OUTSIDE and verb not in OPEN_TO_OUTSIDE:
        return (
            f"From another container only pairings can be decided, not {verb!r}. Type it where the gateway runs, for "
            "example after `docker exec -it NAME`, or answer in a chat."
        )
    return ""
