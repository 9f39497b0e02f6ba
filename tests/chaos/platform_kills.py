"""The parts of ./scripts/chaos that kill over one platform, and break its connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

from tests.chaos import (
    discord_kills,
    discord_reconnects,
    qq_kills,
    qq_reconnects,
    slack_kills,
    slack_reconnects,
    weixin_kills,
    weixin_reconnects,
    whatsapp_kills,
    whatsapp_restarts,
)
from tests.chaos.kills import Killed, Series, kill_again_and_again
from tests.chaos.telling import Options, Row, Told, growth, is_time_to_tell, outcome, tell_progress
from tests.chaos.world import AnyWorld, W

KILLS = 50
FAILURES = 1_000
BRIDGE_RESTARTS = 200

Opened = Callable[[Path, int], AbstractAsyncContextManager[AnyWorld[W]]]
TellProgress = Callable[[Series, float], None]


async def kill_over_qq(options: Options) -> Told:
    killed = await _killed(qq_kills.opened, options, "qq")
    folder = _folder(options, "qq_reconnects")
    grown = await asyncio.to_thread(qq_reconnects.fail_again_and_again, folder, FAILURES)
    shown = f"{killed.verdict.repeats}; {killed.platform.identified}"
    rows = [
        *outcome(killed, options, of="QQ: "),
        ("QQ: shown again with ↻; sessions begun", shown),
        growth(grown, of="QQ: "),
    ]
    return _told(rows, killed, is_good=grown.is_good)


async def kill_over_slack(options: Options) -> Told:
    killed = await _killed(slack_kills.opened, options, "slack")
    grown = await slack_reconnects.fail_again_and_again(_folder(options, "slack_reconnects"), FAILURES)
    shown = f"{killed.verdict.repeats}; {killed.platform.nowhere}"
    rows = [
        *outcome(killed, options, of="Slack: "),
        ("Slack: shown again with ↻; caught up from the history", shown),
        growth(grown, of="Slack: "),
    ]
    return _told(rows, killed, is_good=grown.is_good)


async def kill_over_discord(options: Options) -> Told:
    killed = await _killed(discord_kills.opened, options, "discord")
    grown = await discord_reconnects.fail_again_and_again(_folder(options, "discord_reconnects"), FAILURES)
    discord = killed.platform
    asked = "Discord: sessions asked for again, of these forgotten by Discord; messages said while none lived"
    rows = [
        *outcome(killed, options, of="Discord: "),
        (asked, f"{len(discord.resumed)}, {discord.forgotten}; {discord.nowhere}"),
        growth(grown, of="Discord: "),
    ]
    return _told(rows, killed, is_good=grown.is_good)


async def kill_over_weixin(options: Options) -> Told:
    killed = await _killed(weixin_kills.opened, options, "weixin", _tell_what_weixin_caught)
    verdict, caught = weixin_kills.verdict(killed.series)
    killed = replace(killed, verdict=verdict)
    grown = await weixin_reconnects.fail_again_and_again(_folder(options, "weixin_reconnects"), FAILURES)
    batches = len(killed.platform.uncommitted)
    rows = [
        *outcome(killed, options, of="Weixin: "),
        (
            "Weixin: handed out and caught by a kill before they were stored",
            f"{len(caught)} in {batches} batches, at most one for each kill",
        ),
        ("Weixin: shown again with ↻", str(verdict.repeats)),
        growth(grown, of="Weixin: "),
    ]
    return _told(rows, killed, is_good=grown.is_good and batches <= len(killed.kills))


def _tell_what_weixin_caught(series: Series, seconds: float) -> None:
    verdict, caught = weixin_kills.verdict(series)
    print(
        f"{len(series.kills):>4} kills in {seconds:.0f} s: {len(verdict.lost)} lost, "
        f"{len(caught)} caught before their commit, {verdict.repeats} repeated",
        flush=True,
    )


async def kill_over_whatsapp(options: Options) -> Told:
    killed = await _killed(whatsapp_kills.opened, options, "whatsapp")
    folder = _folder(options, "whatsapp_restarts")
    grown, lost = await whatsapp_restarts.restart_again_and_again(folder, BRIDGE_RESTARTS)
    rows = [
        *outcome(killed, options, of="WhatsApp: "),
        ("WhatsApp: deaths of its bridge, messages lost", f"{grown.failures}, {len(lost)}"),
        growth(grown, "starts of its bridge", of="WhatsApp: "),
    ]
    return _told(rows, killed, is_good=grown.is_good and not lost)


async def _killed(opened: Opened[W], options: Options, name: str, tell: TellProgress = tell_progress) -> Killed[W]:
    started = time.monotonic()

    def after_each(series: Series) -> None:
        if is_time_to_tell(series):
            tell(series, time.monotonic() - started)

    return await kill_again_and_again(opened(options.folder / name, options.seed), KILLS, after_each)


def _folder(options: Options, name: str) -> Path:
    folder = options.folder / name
    folder.mkdir()
    return folder


def _told(rows: list[Row], killed: Killed[W], *, is_good: bool) -> Told:
    for line in killed.wrong:
        print(line)
    return Told(rows, killed.is_good and is_good)
