"""/language: choose the language of this person."""

from __future__ import annotations

from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.languages import AUTO, LANGUAGES
from hermes.core.roles import PersonRole
from hermes.services.commands.base import CommandContext, command
from hermes.store import people


@command("language", summary="Which language I speak with you", role=PersonRole.GUEST, usage="/language [en|zh|auto]")
async def language(ctx: CommandContext) -> str:
    chosen = ctx.rest.strip().lower()
    if not chosen:
        return ctx.words.LANGUAGE_IS
    if chosen not in (*LANGUAGES, AUTO):
        return ctx.words.LANGUAGE_UNKNOWN
    fixed = ctx.services.config().language
    if fixed:
        return ctx.words.LANGUAGE_FIXED.format(language=fixed)
    await ctx.services.db.write(people.set_language, ctx.person.id, chosen)
    return ctx.words.LANGUAGE_AUTO if chosen == AUTO else words_of(chosen).LANGUAGE_SET
