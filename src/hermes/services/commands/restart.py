"""/restart: restart the gateway safely, for people and for the agent."""

from __future__ import annotations

from hermes.core.roles import PersonRole
from hermes.services.commands.base import CommandContext, command
from hermes.services.restart import RestartRequest


@command("restart", summary="Restart the gateway; running work continues afterwards", role=PersonRole.ADMIN)
async def restart(ctx: CommandContext) -> str:
    restarts = ctx.parts.get(RestartRequest)
    if restarts.is_over(ctx.received_at):
        return ctx.words.RESTART_BACK  # the process ended before this was answered
    if not restarts.begin(f"asked in {ctx.session_key.target}"):
        return ctx.words.RESTART_NOBODY
    return ctx.words.RESTART_BEGUN
