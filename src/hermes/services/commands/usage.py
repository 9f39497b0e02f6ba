"""/usage: count the tokens of this session and of today."""

from __future__ import annotations

from datetime import datetime, tzinfo

from hermes.core.i18n.en import Texts
from hermes.core.roles import PersonRole, at_least
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.services.time_zone import zone_of
from hermes.store.db import Tx
from hermes.store.reports import usage
from hermes.store.reports.usage import Spent
from hermes.store.sessions import sessions

NAME_LENGTH = 40


@command("usage", summary="How many tokens were spent here and today")
async def usage_(ctx: CommandContext) -> str:
    since = midnight(ctx.services.clock.now(), zone_of(ctx.services.config().timezone))
    everybodys = at_least(ctx.role, PersonRole.ADMIN)
    here, mine, others = await ctx.services.db.read(_spent, ctx.lane, ctx.person.id, since, everybodys)
    lines = [
        ctx.words.USAGE_SESSION.format(spent=format_usage(here, ctx.words)),
        ctx.words.USAGE_YOU.format(spent=format_usage(mine, ctx.words)),
    ]
    if others:
        total = Spent(
            sum(usage.turns for _, usage in others),
            sum(usage.prompt_tokens for _, usage in others),
            sum(usage.completion_tokens for _, usage in others),
        )
        lines.append(ctx.words.USAGE_EVERYBODY.format(spent=format_usage(total, ctx.words)))
        lines += [
            f"  {one_line(name, NAME_LENGTH) or ctx.words.USAGE_NOBODY}: {format_usage(spent, ctx.words)}"
            for name, spent in others
        ]
    return "\n".join(lines)


def midnight(now: float, zone: tzinfo) -> float:
    """When this day began where the owner lives."""
    return datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0).timestamp()


def format_usage(spent: Spent, words: Texts) -> str:
    return words.USAGE_SPENT.format(turns=spent.turns, prompt=spent.prompt_tokens, completion=spent.completion_tokens)


def _spent(
    tx: Tx, lane: str, person_id: str, since: float, everybodys: bool
) -> tuple[Spent, Spent, list[tuple[str, Spent]]]:
    session_id = sessions.of_lane(tx, lane)
    here = usage.of_session(tx, session_id) if session_id else Spent()
    others = usage.by_person(tx, since=since) if everybodys else []
    return here, usage.of_person(tx, person_id, since=since), others
