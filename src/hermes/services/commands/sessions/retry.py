"""/retry: ask the last thing once more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hermes.agent.prompt import without_head
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import InboundMessage
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.store import codec
from hermes.store.inbox import InboxRow
from hermes.store.sessions import sessions
from hermes.store.turns import retry as retrying
from hermes.store.turns.retry import RetryOrigin

SHOWN = 80


@command("retry", summary="Ask the last question again")
async def retry(ctx: CommandContext) -> str:
    session_id = await ctx.services.db.read(sessions.of_lane, ctx.lane)
    if not session_id:
        return ctx.words.RETRY_NOTHING
    key = ctx.session_key
    place = RetryOrigin(ctx.lane, key.platform, key.account, ctx.sender_id, ctx.person.id)

    def again(row: InboxRow | None, text: str) -> tuple[str, str]:
        if row is None:
            return "message", codec.dump(_spoken_anew(ctx, text))
        message = replace(codec.load_message(row.body), sender_id=ctx.sender_id)
        return row.kind, codec.dump(_moved_here(message, key))

    # The lane is woken when this command has been answered, so that the new answer stands below.
    retried = await ctx.services.db.write(
        retrying.retry, session_id, place, again, asked=ctx.event_id, now=ctx.services.clock.now()
    )
    if retried.is_busy:
        return ctx.words.RETRY_BUSY
    if retried.is_anothers:
        return ctx.words.RETRY_NOT_YOURS
    return ctx.words.RETRY.format(text=one_line(retried.text, SHOWN)) if retried.text else ctx.words.RETRY_NOTHING


def _moved_here(message: InboundMessage, key: SessionKey) -> InboundMessage:
    """The same message, as if it were written in this chat; one from elsewhere cannot be quoted or fetched here."""
    if message.session_key.target == key.target:
        return message
    return replace(message, session_key=key, message_id="", attachments=())


def _spoken_anew(ctx: CommandContext, text: str) -> InboundMessage:
    """What the transcript knows of a message whose event is forgotten."""
    name = ctx.person.name
    return InboundMessage(
        keys=(),
        session_key=ctx.session_key,
        sender_id=ctx.sender_id,
        text=without_head(text) if ctx.session_key.kind is not ChatKind.DM else text,
        sent_at=datetime.fromtimestamp(ctx.sent_at, UTC),
        sender_name=name,
    )
