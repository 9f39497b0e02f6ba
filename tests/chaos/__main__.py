"""./scripts/chaos: the accidents of the promises in full length; writes its section of docs/figures.md."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import figures
from tests.chaos import (
    api_kills,
    discord_kills,
    discord_reconnects,
    duplicates,
    faults,
    pacing,
    qq_kills,
    qq_reconnects,
    reconnects,
    slack_kills,
    slack_reconnects,
    store_troubles,
    tool_kills,
    weixin_kills,
    weixin_reconnects,
    whatsapp_kills,
    whatsapp_restarts,
)
from tests.chaos.kills import Series
from tests.chaos.ledger import Kill, told
from tests.chaos.world import opened
from tests.integration.api import fuzzing

SECTION = "Chaos"
PROGRESS_EVERY = 10
BACK_SECONDS = 2.0
MESSAGES = 10_000
FAILURES = 1_000
REQUESTS = 50
EXAMPLES = 100
CHATS = 200
QQ_KILLS = 50
SLACK_KILLS = 50
DISCORD_KILLS = 50
WEIXIN_KILLS = 50
WHATSAPP_KILLS = 50
BRIDGE_RESTARTS = 200

Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """What one part found: its rows of the table, and whether the promise held.

    ``is_slow``: nothing was lost or wrong, and yet a time that was promised was not kept.
    """

    rows: Sequence[Row]
    is_good: bool
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    kills: int
    seed: int
    folder: Path


async def kill_again_and_again(options: Options) -> Told:
    started, loads = time.monotonic(), [os.getloadavg()[0]]
    async with opened(options.folder / "kills", options.seed) as world:
        series = Series(world)
        async for kill in series.run(options.kills):
            if (kill.number + 1) % PROGRESS_EVERY == 0:
                _tell_progress(series, time.monotonic() - started)
                loads.append(os.getloadavg()[0])
        waiting = await series.settle()
    verdict = series.verdict()
    stuck = sum(kill.is_stuck for kill in series.kills)
    missed = sum(not kill.was_reached for kill in series.kills)
    late = sum(kill.back_seconds > BACK_SECONDS for kill in series.kills)
    rows = [
        ("kill -9 / messages", f"{len(series.kills)} / {verdict.messages} (seed {options.seed})"),
        ("lost, stuck, still waiting", f"{len(verdict.lost)}, {stuck}, {waiting}"),
        ("doubled, unmarked, out of order", _counts(verdict.doubled, verdict.unmarked, verdict.out_of_order)),
        ("previews left standing", _counts(verdict.unfinished)),
        ("repeated with ↻", f"{verdict.repeats}, of these {verdict.repeats_in_flight} not answered at the kill"),
        ("points that were not reached", str(missed)),
        *_times_back(series.kills),
        (f"kills after which that took more than {BACK_SECONDS:.0f} s", f"{late} of {len(series.kills)}"),
        ("load of the machine during the kills", f"{min(loads):.1f} to {max(loads):.1f}"),
    ]
    for line in told(verdict, world.telegram.flights, series.kills):
        print(line)
    return Told(rows, verdict.is_good and not stuck and not waiting, is_slow=late > 0)


def _tell_progress(series: Series, seconds: float) -> None:
    verdict = series.verdict()
    back = sorted(kill.back_seconds for kill in series.kills)
    print(
        f"{len(series.kills):>4} kills in {seconds:.0f} s: {len(verdict.lost)} lost, {len(verdict.doubled)} doubled, "
        f"{verdict.repeats} repeated; back after {quantile(back, 0.5):.2f} s (p50), {back[-1]:.2f} s (longest)",
        flush=True,
    )


def _times_back(kills: Sequence[Kill]) -> list[Row]:
    groups = [("worker", "of the kill of the worker"), ("parent", "of the start, parent killed")]
    groups.append(("both", "of the start, both killed"))
    rows = []
    for victim, words in groups:
        back = sorted(kill.back_seconds for kill in kills if kill.victim == victim)
        if back:
            figures_of = f"{quantile(back, 0.5):.2f} / {quantile(back, 0.99):.2f} / {back[-1]:.2f} s"
            rows.append((f"answering again, counted from the time {words}: p50 / p99 / max", figures_of))
    return rows


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _counts(*lists: Sequence[object]) -> str:
    return ", ".join(str(len(each)) for each in lists)


async def deliver_again(options: Options) -> Told:
    counted = await duplicates.deliver_again(options.folder / "duplicates", MESSAGES, deadline=600, seed=options.seed)
    wrong = (counted.asked_twice, counted.answered_twice, counted.unanswered)
    rows = [
        ("messages / times delivered, a quarter of them after a restart", f"{counted.messages} / {counted.deliveries}"),
        ("turns doubled, answers doubled, unanswered", ", ".join(map(str, wrong))),
    ]
    return Told(rows, not any(wrong))


async def reconnect(options: Options) -> Told:
    folder = options.folder / "reconnects"
    folder.mkdir()
    grown = await reconnects.fail_again_and_again(folder, FAILURES)
    before, after = (f"{held.descriptors}, {held.tasks}, {held.threads}" for held in (grown.before, grown.after))
    name = f"descriptors, tasks, threads before → after {grown.failures} failed connections"
    return Told([(name, f"{before} → {after}")], grown.is_good)


async def play_faults(options: Options) -> Told:
    played = []
    async for fault in faults.play_all(options.folder / "faults"):
        print(f"{fault.name}: {fault.words}", flush=True)
        played.append(fault)
    rows = [(f"{fault.name}: seen by status / answering again", fault.words) for fault in played]
    return Told(rows, all(fault.is_good for fault in played))


async def trouble_the_store(options: Options) -> Told:
    played = await store_troubles.play_all(options.folder / "store")
    return Told([(f"state.db: {each.name}", each.words) for each in played], all(each.is_good for each in played))


async def kill_the_api(options: Options) -> Told:
    rounds = await api_kills.kill_and_ask(options.folder / "api", REQUESTS, options.seed)
    rows = []
    for number, each in enumerate(rounds, 1):
        for kind in api_kills.Kind:
            rows.append((f"API, kill {number} ({each.victim}): every {kind} ends", each.ends(kind)))
        for one in each.wrong:
            print(f"wrong: {one}")
    rows.append(("API: requests without an end afterwards", ", ".join(str(each.waiting) for each in rounds)))
    return Told(rows, not any(each.wrong or each.waiting for each in rounds))


async def fuzz_the_api(options: Options) -> Told:
    async with api_kills.calling(options.folder / "fuzz", options.seed) as callers:
        key = str(callers.http.headers["Authorization"]).removeprefix("Bearer ")
        url = f"http://127.0.0.1:{callers.port}"
        met = await fuzzing.fuzz(url, key, examples=EXAMPLES, seed=options.seed, seconds=1800)
    if met.failures:
        print(met.words)
    rows = [("API, fuzzed: operations / cases / failures", f"{met.operations} / {met.cases} / {met.failures}")]
    return Told(rows, not met.failures)


async def kill_in_batches(options: Options) -> Told:
    counted = await tool_kills.kill_in_batches(options.folder / "tools", options.kills, options.seed)
    for one in (*counted.wrong, *counted.left):
        print(f"wrong: {one}")
    where = ", ".join(f"{name} {count}" for name, count in counted.cut_off.most_common())
    rows = [
        ("kill -9 in batches of five calls", f"{counted.kills} (seed {options.seed})"),
        ("… where it came", where),
        ("… happened twice, lost or wrong", str(len(counted.wrong))),
        ("… commands of which nobody knows whether they finished", str(counted.unknown)),
        ("… messages sent again, with ↻", str(counted.repeated)),
        ("… processes left", str(len(counted.left))),
    ]
    return Told(rows, counted.is_good)


async def stream_at_once(options: Options) -> Told:
    paced = await pacing.stream_at_once(options.folder / "pacing", CHATS, scale=1.0, deadline=120)
    waits = f"{quantile(paced.waits, 0.5):.1f} / {quantile(paced.waits, 0.99):.1f} / {paced.waits[-1]:.1f} s"
    for one in paced.refused:
        print(f"told to wait: {one}")
    rows = [
        (
            f"{paced.chats} chats stream at once, 30 calls/s in all and 1/s in a chat: told to wait (429)",
            str(len(paced.refused)),
        ),
        ("… answers incomplete, out of order", _counts(paced.incomplete, paced.out_of_order)),
        ("… edits made while an answer waited that could have gone", str(paced.overtaken)),
        (
            "… most calls in a second, edits in all, time",
            f"{paced.most_in_a_second}, {paced.edits}, {paced.seconds:.0f} s",
        ),
        ("… an answer waited for its place: p50 / p99 / max", waits),
    ]
    return Told(rows, paced.is_good)


async def kill_over_qq(options: Options) -> Told:
    started = time.monotonic()
    async with qq_kills.opened(options.folder / "qq", options.seed) as world:
        series = Series(world)
        async for kill in series.run(QQ_KILLS):
            if (kill.number + 1) % PROGRESS_EVERY == 0:
                _tell_progress(series, time.monotonic() - started)
        waiting = await series.settle()
    verdict = series.verdict()
    stuck = sum(kill.is_stuck for kill in series.kills)
    for line in told(verdict, world.platform.flights, series.kills):
        print(line)
    folder = options.folder / "qq_reconnects"
    folder.mkdir()
    grown = await asyncio.to_thread(qq_reconnects.fail_again_and_again, folder, FAILURES)
    before, after = (f"{held.descriptors}, {held.tasks}, {held.threads}" for held in (grown.before, grown.after))
    rows = [
        ("QQ: kill -9 / messages", f"{len(series.kills)} / {verdict.messages} (seed {options.seed})"),
        ("QQ: lost, stuck, still waiting", f"{len(verdict.lost)}, {stuck}, {waiting}"),
        ("QQ: doubled, unmarked, out of order", _counts(verdict.doubled, verdict.unmarked, verdict.out_of_order)),
        ("QQ: shown again with ↻; sessions begun", f"{verdict.repeats}; {world.platform.identified}"),
        (f"QQ: descriptors, tasks, threads before → after {grown.failures} failed connections", f"{before} → {after}"),
    ]
    return Told(rows, verdict.is_good and not stuck and not waiting and grown.is_good)


async def kill_over_slack(options: Options) -> Told:
    started = time.monotonic()
    async with slack_kills.opened(options.folder / "slack", options.seed) as world:
        series = Series(world)
        async for kill in series.run(SLACK_KILLS):
            if (kill.number + 1) % PROGRESS_EVERY == 0:
                _tell_progress(series, time.monotonic() - started)
        waiting = await series.settle()
    verdict = series.verdict()
    stuck = sum(kill.is_stuck for kill in series.kills)
    for line in told(verdict, world.platform.flights, series.kills):
        print(line)
    folder = options.folder / "slack_reconnects"
    folder.mkdir()
    grown = await slack_reconnects.fail_again_and_again(folder, FAILURES)
    before, after = (f"{held.descriptors}, {held.tasks}, {held.threads}" for held in (grown.before, grown.after))
    name = f"Slack: descriptors, tasks, threads before → after {grown.failures} failed connections"
    rows = [
        ("Slack: kill -9 / messages", f"{len(series.kills)} / {verdict.messages} (seed {options.seed})"),
        ("Slack: lost, stuck, still waiting", f"{len(verdict.lost)}, {stuck}, {waiting}"),
        ("Slack: doubled, unmarked, out of order", _counts(verdict.doubled, verdict.unmarked, verdict.out_of_order)),
        ("Slack: shown again with ↻; caught up from the history", f"{verdict.repeats}; {world.platform.nowhere}"),
        (name, f"{before} → {after}"),
    ]
    return Told(rows, verdict.is_good and not stuck and not waiting and grown.is_good)


async def kill_over_discord(options: Options) -> Told:
    started = time.monotonic()
    async with discord_kills.opened(options.folder / "discord", options.seed) as world:
        series = Series(world)
        async for kill in series.run(DISCORD_KILLS):
            if (kill.number + 1) % PROGRESS_EVERY == 0:
                _tell_progress(series, time.monotonic() - started)
        waiting = await series.settle()
    verdict = series.verdict()
    stuck = sum(kill.is_stuck for kill in series.kills)
    discord = world.platform
    for line in told(verdict, discord.flights, series.kills):
        print(line)
    folder = options.folder / "discord_reconnects"
    folder.mkdir()
    grown = await discord_reconnects.fail_again_and_again(folder, FAILURES)
    before, after = (f"{held.descriptors}, {held.tasks}, {held.threads}" for held in (grown.before, grown.after))
    rows = [
        ("Discord: kill -9 / messages", f"{len(series.kills)} / {verdict.messages} (seed {options.seed})"),
        ("Discord: lost, stuck, still waiting", f"{len(verdict.lost)}, {stuck}, {waiting}"),
        ("Discord: doubled, unmarked, out of order", _counts(verdict.doubled, verdict.unmarked, verdict.out_of_order)),
        (
            "Discord: sessions asked for again, of these forgotten by Discord; messages said while none lived",
            f"{len(discord.resumed)}, {discord.forgotten}; {discord.nowhere}",
        ),
        (
            f"Discord: descriptors, tasks, threads before → after {grown.failures} failed connections",
            f"{before} → {after}",
        ),
    ]
    return Told(rows, verdict.is_good and not stuck and not waiting and grown.is_good)


async def kill_over_weixin(options: Options) -> Told:
    started = time.monotonic()
    async with weixin_kills.opened(options.folder / "weixin", options.seed) as world:
        series = Series(world)
        async for kill in series.run(WEIXIN_KILLS):
            if (kill.number + 1) % PROGRESS_EVERY == 0:
                verdict, caught = weixin_kills.verdict(series, world.platform)
                print(
                    f"{len(series.kills):>4} kills in {time.monotonic() - started:.0f} s: {len(verdict.lost)} lost, "
                    f"{len(caught)} caught before their commit, {verdict.repeats} repeated",
                    flush=True,
                )
        waiting = await series.settle()
    weixin = world.platform
    verdict, caught = weixin_kills.verdict(series, weixin)
    stuck = sum(kill.is_stuck for kill in series.kills)
    for line in told(verdict, weixin.flights, series.kills):
        print(line)
    folder = options.folder / "weixin_reconnects"
    folder.mkdir()
    grown = await weixin_reconnects.fail_again_and_again(folder, FAILURES)
    before, after = (f"{held.descriptors}, {held.tasks}, {held.threads}" for held in (grown.before, grown.after))
    rows = [
        ("Weixin: kill -9 / messages", f"{len(series.kills)} / {verdict.messages} (seed {options.seed})"),
        ("Weixin: lost, stuck, still waiting", f"{len(verdict.lost)}, {stuck}, {waiting}"),
        (
            "Weixin: handed out and caught by a kill before they were stored",
            f"{len(caught)} in {len(weixin.uncommitted)} batches, at most one for each kill",
        ),
        ("Weixin: doubled, unmarked, out of order", _counts(verdict.doubled, verdict.unmarked, verdict.out_of_order)),
        ("Weixin: shown again with ↻", str(verdict.repeats)),
        (
            f"Weixin: descriptors, tasks, threads before → after {grown.failures} failed connections",
            f"{before} → {after}",
        ),
    ]
    is_good = verdict.is_good and not stuck and not waiting and len(weixin.uncommitted) <= len(series.kills)
    return Told(rows, is_good and grown.is_good)


async def kill_over_whatsapp(options: Options) -> Told:
    started = time.monotonic()
    async with whatsapp_kills.opened(options.folder / "whatsapp", options.seed) as world:
        series = Series(world)
        async for kill in series.run(WHATSAPP_KILLS):
            if (kill.number + 1) % PROGRESS_EVERY == 0:
                _tell_progress(series, time.monotonic() - started)
        waiting = await series.settle()
    verdict = series.verdict()
    stuck = sum(kill.is_stuck for kill in series.kills)
    for line in told(verdict, world.platform.flights, series.kills):
        print(line)
    folder = options.folder / "whatsapp_restarts"
    folder.mkdir()
    grown, lost = await whatsapp_restarts.restart_again_and_again(folder, BRIDGE_RESTARTS)
    before, after = (f"{held.descriptors}, {held.tasks}, {held.threads}" for held in (grown.before, grown.after))
    rows = [
        ("WhatsApp: kill -9 / messages", f"{len(series.kills)} / {verdict.messages} (seed {options.seed})"),
        ("WhatsApp: lost, stuck, still waiting", f"{len(verdict.lost)}, {stuck}, {waiting}"),
        ("WhatsApp: doubled, unmarked, out of order", _counts(verdict.doubled, verdict.unmarked, verdict.out_of_order)),
        ("WhatsApp: deaths of its bridge, messages lost", f"{grown.failures}, {len(lost)}"),
        (
            f"WhatsApp: descriptors, tasks, threads before → after {grown.failures} starts of its bridge",
            f"{before} → {after}",
        ),
    ]
    return Told(rows, verdict.is_good and not stuck and not waiting and grown.is_good and not lost)


PARTS: dict[str, Callable[[Options], Awaitable[Told]]] = {
    "kills": kill_again_and_again,
    "tools": kill_in_batches,
    "api": kill_the_api,
    "fuzz": fuzz_the_api,
    "duplicates": deliver_again,
    "reconnects": reconnect,
    "faults": play_faults,
    "store": trouble_the_store,
    "pacing": stream_at_once,
    "qq": kill_over_qq,
    "slack": kill_over_slack,
    "discord": kill_over_discord,
    "weixin": kill_over_weixin,
    "whatsapp": kill_over_whatsapp,
}


async def run(names: Sequence[str], options: Options) -> int:
    rows: list[Row] = []
    failed: list[str] = []
    slow: list[str] = []
    for name in names:
        print(f"— {name}", flush=True)
        told = await PARTS[name](options)
        rows += told.rows
        if not told.is_good:
            failed.append(name)
        if told.is_slow:
            slow.append(name)
    width = max(len(name) for name, _ in rows)
    print()
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    # A run of some parts has a section of its own, so that it does not wipe out the others.
    figures.record(SECTION if len(names) == len(PARTS) else f"{SECTION}: {', '.join(names)}", rows)
    if failed:
        print(f"✗ Broken promises: {', '.join(failed)}")
    elif slow:
        print(f"! Nothing was lost or doubled, but it took longer than promised: {', '.join(slow)}")
    else:
        print("✓ Every promise held.")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="./scripts/chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often kill -9 (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="which accidents; the same seed plans the same ones")
    parser.add_argument("--only", choices=[*PARTS], help="one part alone")
    arguments = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # the fakes meet clients that die in mid-answer
    logging.getLogger("hermes").setLevel(logging.CRITICAL)  # gateways in this process; troubles are what they are for
    with tempfile.TemporaryDirectory(prefix="hermes-chaos-") as folder:
        options = Options(arguments.kills, arguments.seed, Path(folder))
        return asyncio.run(run([arguments.only] if arguments.only else [*PARTS], options))


if __name__ == "__main__":
    sys.exit(main())
