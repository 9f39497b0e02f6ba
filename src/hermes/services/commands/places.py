"""/sethome, /platforms, /platform: where I am reached, and where I tell what nobody asked about."""

from __future__ import annotations

import asyncio

from hermes.config.edit import set_value
from hermes.core.keys import MAIN, AccountKey
from hermes.core.people import PersonRole
from hermes.services.commands.base import CommandContext, command


@command("sethome", summary="Make this chat the place for reminders and alerts", role=PersonRole.ADMIN)
async def sethome(ctx: CommandContext) -> str:
    key = ctx.session_key
    name = _setting(AccountKey(key.platform, key.account), "home_channel")
    change = await asyncio.to_thread(set_value, ctx.loaded(), name, key.chat)
    told = f"This chat is home now: reminders and alerts come here. Chat id {key.chat}, as a target {key.target}."
    return f"{told}\n{change.note}" if change.note else told


@command("platforms", summary="Where I am connected")
async def platforms(ctx: CommandContext) -> str:
    snapshot = await ctx.status()
    lines = [f"{one['account']}: {one['state']}{_reason(one)}" for one in snapshot["platforms"]]
    return "\n".join(lines) or "No platforms connected. The owner sets one up: hermes gateway setup"


@command("platform", summary="Switch a platform off and on", role=PersonRole.ADMIN, usage="/platform pause|resume NAME")
async def platform(ctx: CommandContext) -> str:
    verb, _, name = ctx.rest.partition(" ")
    account = AccountKey.parse(name.strip())
    known = ctx.config().account(account.platform, account.account)
    if verb not in ("pause", "resume") or known is None or not known.is_mentioned:
        return f"Say /platform pause NAME or /platform resume NAME. Names: {', '.join(_names(ctx)) or 'none'}."
    if verb == "pause" and account == AccountKey(ctx.session_key.platform, ctx.session_key.account):
        return "You would not hear from me here again. Do that from another chat, or on the machine: hermes config set"
    change = await asyncio.to_thread(
        set_value, ctx.loaded(), _setting(account, "enabled"), "true" if verb == "resume" else "false"
    )
    told = f"{account} is {'switched on' if verb == 'resume' else 'paused: nothing is received or sent there'}."
    return f"{told}\n{change.note}" if change.note else told


def _names(ctx: CommandContext) -> list[str]:
    return [
        str(AccountKey(name, account))
        for name, accounts in ctx.config().platforms.items()
        for account, config in accounts.items()
        if config.is_mentioned
    ]


def _setting(account: AccountKey, name: str) -> str:
    if account.account == MAIN:
        return f"platforms.{account.platform}.{name}"
    return f"platforms.{account.platform}.accounts.{account.account}.{name}"


def _reason(told: dict[str, object]) -> str:
    return f" ({told['note']})" if told.get("note") else ""
