"""send_message: write to another chat, after approval."""

from __future__ import annotations

from hermes.agent.messaging import MessageSender, OutgoingFiles
from hermes.agent.toolkit.context import ApprovalNeed, ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import ToolError
from hermes.core.keys import Target
from hermes.core.media import WantedFile, pieces
from hermes.core.roles import PersonRole, at_least
from hermes.core.targets.names import LOCAL, recipients
from hermes.core.text import visible
from hermes.store.db import Tx

MAX_CHARS = 20_000
SHOWN = 300


def _may_send(ctx: ToolContext, text: str, target: str = "origin") -> ApprovalNeed | None:
    """Back to where one talks, and to home channels, without asking; to any other chat only when somebody says so."""
    post = ctx.parts.get(MessageSender)
    at_home = {Target(account.platform, chat, account=account.account) for account, chat in post.homes().items()}
    others = [
        str(wanted)
        for wanted in _wanted(ctx, target)
        if wanted not in at_home and wanted not in (ctx.origin.target, LOCAL)
    ]
    if not others:
        return None
    shown = visible(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")
    subject = f"send_message:{','.join(sorted(others))}"
    return ApprovalNeed(ctx.words.ASK_SEND.format(targets=", ".join(others), text=shown), subject=subject)


@tool(toolset="messaging", approval=_may_send)
async def send_message(ctx: ToolContext, text: str, target: str = "origin") -> ToolOutput:
    """Send a message to a chat. Not needed to answer: your reply goes to the person by itself.

    `target`: origin (this chat), local, all (every home channel), a platform (its home channel) or platform:chat.
    A line MEDIA:path in `text` sends that file of the workspace.
    """
    if not text.strip():
        raise ToolError("There is nothing to send: the text is empty.")
    if len(text) > MAX_CHARS:
        raise ToolError(f"That is too long to send ({len(text):,} characters; {MAX_CHARS:,} at most). Shorten it.")
    post = ctx.parts.get(MessageSender)
    targets = _wanted(ctx, target)
    has_files = any(isinstance(piece, WantedFile) for piece in pieces(text))
    parcels = [
        await post.mail(ctx, receiver, text)
        if has_files
        else OutgoingFiles(post.write(receiver, text, f"ob_{ctx.call_id}.{number}"), ())
        for number, receiver in enumerate(targets)
    ]

    def store(tx: Tx) -> None:
        for parcel in parcels:
            parcel.store(tx, now=post.now())

    def due() -> None:
        for parcel in parcels:
            post.due(parcel.rows)

    queued = f"Queued for delivery to {', '.join(map(str, targets))}. The owner is notified if delivery fails."
    refused = dict.fromkeys(line for parcel in parcels for line in parcel.refused)
    return ToolOutput("\n".join([queued, *refused]), effect=store, after=due)


def _wanted(ctx: ToolContext, target: str) -> list[Target]:
    try:
        found = recipients(target, origin=ctx.origin.target, homes=ctx.parts.get(MessageSender).homes())
    except ValueError as error:
        raise ToolError(str(error)) from None
    if not at_least(ctx.role, PersonRole.ADMIN) and any(wanted != ctx.origin.target for wanted in found):
        raise ToolError("Only the owner and admins may have messages sent to other chats; here only 'origin' works.")
    return found
