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
from pathlib import Path

from bench import figures
from tests.chaos import (
    api_kills,
    backups,
    cluster_entries,
    cluster_series,
    damages,
    duplicates,
    entry_kills,
    faults,
    pacing,
    reconnects,
    store_copies,
    store_troubles,
    tool_kills,
)
from tests.chaos.kills import Series, kill_again_and_again
from tests.chaos.ledger import Kill
from tests.chaos.platform_kills import (
    FAILURES,
    kill_over_discord,
    kill_over_qq,
    kill_over_slack,
    kill_over_weixin,
    kill_over_whatsapp,
)
from tests.chaos.telling import Options, Row, Told, counts, growth, is_time_to_tell, outcome, quantile, tell_progress
from tests.chaos.world import opened
from tests.integration.api import fuzzing

SECTION = "Chaos"
BACK_SECONDS = 2.0
MESSAGES = 10_000
REQUESTS = 50
EXAMPLES = 100
ENTRIES = 20
ENTRY_KILLS = 50
CHATS = 200


async def kill_over_telegram(options: Options) -> Told:
    started, loads = time.monotonic(), [os.getloadavg()[0]]

    def after_each(series: Series) -> None:
        if is_time_to_tell(series):
            tell_progress(series, time.monotonic() - started)
            loads.append(os.getloadavg()[0])

    killed = await kill_again_and_again(opened(options.folder / "kills", options.seed), options.kills, after_each)
    verdict = killed.verdict
    missed = sum(not kill.was_reached for kill in killed.kills)
    late = sum(kill.back_seconds > BACK_SECONDS for kill in killed.kills)
    rows = [
        *outcome(killed, options),
        ("previews left standing", counts(verdict.unfinished)),
        ("repeated with ↻", f"{verdict.repeats}, of these {verdict.repeats_in_flight} not answered at the kill"),
        ("points that were not reached", str(missed)),
        *_times_back(killed.kills),
        (f"kills after which that took more than {BACK_SECONDS:.0f} s", f"{late} of {len(killed.kills)}"),
        ("load of the machine during the kills", f"{min(loads):.1f} to {max(loads):.1f}"),
    ]
    for line in killed.wrong:
        print(line)
    return Told(rows, killed.is_good, is_slow=late > 0)


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
    return Told([growth(grown)], grown.is_good)


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


async def copy_the_store(options: Options) -> Told:
    found = await store_copies.play(options.folder / "copies")
    rows, tables = sum(count for count, _ in found.values()), len(found)
    told = f"{found['sessions'][0]} sessions, {rows} rows of {tables} tables: counts and checksums equal"
    return Told([("store copied to PostgreSQL and back, killed once each way", told)], found["sessions"][0] > 0)


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


async def kill_with_entries(options: Options) -> Told:
    kills = min(options.kills, ENTRY_KILLS)
    found, accepted = await entry_kills.kill_entries(options.folder / "entries", ENTRIES, kills, options.seed)
    for line in (*found.lost, *found.doubled, *found.undelivered):
        print(line)
    result = f"{counts(found.lost, found.doubled, found.undelivered)} of {accepted}"
    return Told([(f"jobs, webhooks and tasks over {kills} kills: lost, run twice, undelivered", result)], found.is_good)


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
        ("… answers incomplete, out of order", counts(paced.incomplete, paced.out_of_order)),
        ("… edits made while an answer waited that could have gone", str(paced.overtaken)),
        (
            "… most calls in a second, edits in all, time",
            f"{paced.most_in_a_second}, {paced.edits}, {paced.seconds:.0f} s",
        ),
        ("… an answer waited for its place: p50 / p99 / max", waits),
    ]
    return Told(rows, paced.is_good)


PARTS: dict[str, Callable[[Options], Awaitable[Told]]] = {
    "kills": kill_over_telegram,
    "tools": kill_in_batches,
    "api": kill_the_api,
    "entries": kill_with_entries,
    "fuzz": fuzz_the_api,
    "duplicates": deliver_again,
    "reconnects": reconnect,
    "faults": play_faults,
    "store": trouble_the_store,
    "copies": copy_the_store,
    "backups": backups.kill_backups_and_updates,
    "damages": damages.damage_again_and_again,
    "pacing": stream_at_once,
    "qq": kill_over_qq,
    "slack": kill_over_slack,
    "discord": kill_over_discord,
    "weixin": kill_over_weixin,
    "whatsapp": kill_over_whatsapp,
    "cluster": cluster_series.kill_nodes,
    "cluster-restarts": cluster_series.restart_nodes,
    "cluster-troubles": cluster_series.trouble_nodes,
    "cluster-entries": cluster_entries.kill_many_with_entries,
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
