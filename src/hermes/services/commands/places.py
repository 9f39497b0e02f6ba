"""/sethome, /platforms, /platform: home channel, connections, pause and resume."""

from __future__ import annotations

import asyncio

from hermes.config.edit import set_value
from hermes.core.keys import LOCAL, MAIN, AccountKey
from hermes.core.roles import PersonRole
from hermes.services.adapters.supervisor import Supervisor
from hermes.services.commands.base import CommandContext, command


@command("sethome", summary="Make this chat the place for reminders and alerts", role=PersonRole.ADMIN)
async def sethome(ctx: CommandContext) -> str:
    key = ctx.session_key
    if key.platform == LOCAL:
        return ctx.words.HOME_NOT_HERE
    name = _setting(AccountKey(key.platform, key.account), "home_channel")
    change = await asyncio.to_thread(set_value, ctx.services.loaded(), name, key.chat)
    await ctx.services.read_again()
    text = ctx.words.HOME_SET.format(chat=key.chat, target=key.target)
    return f"{text}\n{change.note}" if change.note else text


@command("platforms", summary="Where I am connected")
async def platforms(ctx: CommandContext) -> str:
    snapshot = await ctx.services.status()
    lines = [
        f"{account['account']}: {ctx.words.state(account['state'])}"
        + (f" ({account['note']})" if account.get("note") else "")
        for account in snapshot["platforms"]
    ]
    return "\n".join(lines) or ctx.words.PLATFORMS_NONE


@command("platform", summary="Switch a platform off and on", role=PersonRole.ADMIN, usage="/platform pause|resume NAME")
async def platform(ctx: CommandContext) -> str:
    verb, _, name = ctx.rest.partition(" ")
    account = AccountKey.parse(name.strip())
    known = ctx.services.config().account(account.platform, account.account)
    if verb not in ("pause", "resume") or known is None or not known.is_mentioned:
        names = [
            str(AccountKey(platform, account))
            for platform, accounts in ctx.services.config().platforms.items()
            for account, config in accounts.items()
            if config.is_mentioned
        ]
        return ctx.words.PLATFORM_USAGE.format(names=", ".join(names) or ctx.words.NONE)
    if verb == "pause" and account == AccountKey(ctx.session_key.platform, ctx.session_key.account):
        return ctx.words.PLATFORM_OWN
    change = await asyncio.to_thread(
        set_value, ctx.services.loaded(), _setting(account, "enabled"), "true" if verb == "resume" else "false"
    )
    await ctx.services.read_again()
    if verb == "resume":
        ctx.parts.get(Supervisor).resume(account)  # also one that is held back, or waits to try again
    form = ctx.words.PLATFORM_ON if verb == "resume" else ctx.words.PLATFORM_PAUSED
    text = form.format(account=account)
    return f"{text}\n{change.note}" if change.note else text


def _setting(account: AccountKey, name: str) -> str:
    if account.account == MAIN:
        return f"platforms.{account.platform}.{name}"
    return f"platforms.{account.platform}.accounts.{account.account}.{name}"
