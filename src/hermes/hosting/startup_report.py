"""Report a finished start: home, model, API, chats and troubles."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.config import EMBEDDED
from hermes.core.durations import count
from hermes.core.errors import PlatformError, StoreIsDownError
from hermes.core.keys import LOCAL, AccountKey, Target
from hermes.core.people.access import DmPolicy
from hermes.core.ports import Describes
from hermes.hosting import banner
from hermes.services.adapters.account import Link
from hermes.services.gateway import Gateway

log = logging.getLogger(__name__)

SETTLE_SECONDS = 3.0
NAME_SECONDS = 1.0
SKILLS_SECONDS = 1.0

NOBODY_ALLOWED = "No user allowlists configured. All unauthorized users will be denied."
APPROVALS_OFF = (
    "approvals.mode is off: the owner's commands run without a question. (hermes config set approvals.mode dangerous)"
)
THEY_GET_A_CODE = "(They get a pairing code: hermes pairing list)"


async def adapters_settled(gateway: Gateway) -> None:
    """Wait, not for long, until each account is either connected or known to be in trouble."""
    deadline = gateway.clock.monotonic() + SETTLE_SECONDS
    while gateway.clock.monotonic() < deadline:
        if all(account["state"] != Link.CONNECTING for account in gateway.supervisor.status()):
            return
        await asyncio.sleep(0.02)


async def facts(gateway: Gateway, *, api: str, is_new: bool) -> list[str]:
    """One line for each; ``api`` is the one about the API."""
    config = gateway.config
    accounts = [account for account in gateway.supervisor.status() if account["account"] != LOCAL]
    chats = [await chat_line(gateway, account) for account in accounts]
    model = str(gateway.fetcher.progress) if config.model.provider == EMBEDDED else gateway.models.model_for().label
    warnings = [str(problem) for problem in gateway.watch.loaded.problems] + gateway.troubles
    if accounts and (warning := _nobody_allowed(gateway)):
        warnings.append(warning)
        log.warning("%s", warning)
    if config.approvals.mode == "off":
        warnings.append(APPROVALS_OFF)
        log.warning("%s", APPROVALS_OFF)
    return banner.facts(
        home=banner.short_home(str(gateway.home), str(Path.home())),
        is_new=is_new,
        model=model,
        api=api,
        skills=await _skills(gateway),
        cron=await _cron(gateway),
        chats=chats,
        warnings=warnings,
    )


def _nobody_allowed(gateway: Gateway) -> str:
    """'' as soon as somebody may talk: by a list, by an open door, or let in by a code."""
    doors = [account.access for of in gateway.config.platforms.values() for account in of.values()]
    if any(access.admits_somebody for access in doors) or gateway.pairings.has_let_in_somebody:
        return ""
    gives_codes = any(access.dm_policy is DmPolicy.PAIRING for access in doors)
    return f"{NOBODY_ALLOWED} {THEY_GET_A_CODE}" if gives_codes else NOBODY_ALLOWED


async def _cron(gateway: Gateway) -> str:
    """Say whether jobs are fired, how many there are and when the next is due."""
    if not gateway.config.cron.enabled:
        return "off (cron.enabled)"
    try:
        status = await gateway.jobs().status()
    except StoreIsDownError:
        return "waits for the store"
    active, paused = (status["jobs"].get(state, 0) for state in ("active", "paused"))
    if not active and not paused:
        return "on, no jobs yet"
    rest = f", {paused} paused" if paused else ""
    return f"on, {count(active, 'job')}{rest}" + (
        f", next {gateway.jobs().when_here(status['next_at'])}" if active else ""
    )


async def _skills(gateway: Gateway) -> str:
    """How the sync went; it runs beside the start, and a disk that is slow keeps nobody waiting."""
    try:
        async with asyncio.timeout(SKILLS_SECONDS):
            await gateway.skills.is_synced.wait()
    except TimeoutError:
        return "still running; the log says when it is done."
    return str(gateway.skills.synced)


async def chat_line(gateway: Gateway, account: Mapping[str, Any]) -> str:
    """``telegram @ana_home_bot, connected``: by its name, if the platform tells it at once."""
    key, name = AccountKey.parse(account["account"]), ""
    adapter: object = gateway.supervisor.adapter_of(Target(key.platform, "", account=key.account))
    if account["state"] == Link.CONNECTED and isinstance(adapter, Describes):
        with contextlib.suppress(PlatformError, TimeoutError):  # a nicety; its state is what matters
            async with asyncio.timeout(NAME_SECONDS):
                name = f" {await adapter.describe()}"
    return f"{key}{name}, {account['state']}" + (f" ({account['note']})" if account["note"] else "")
