"""The long forms of the cluster's chaos: kills, pauses, cuts, wrong clocks, a restarted database, rolling restarts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.chaos.cluster import Accident, Cluster, Moved, opened, own_server, under_load
from tests.chaos.telling import Options, Row, Told, quantile

LANES_SECONDS = 5.0
ACCOUNTS_SECONDS = 6.0
DRAINED_SECONDS = 1.0
ROLLING_RESTARTS = 20
PAUSES = 5
HOUR = 3600.0


async def kill_nodes(options: Options) -> Told:
    """kill -9 of nodes and workers, half of the kills with two nodes and half with three."""
    rows: list[Row] = []
    is_good, is_slow = True, False
    each = max(1, options.kills // 4)
    for count in (2, 3):
        accidents = [Accident.KILL_NODE if number % 2 else Accident.KILL_WORKER for number in range(each)]
        told = await _play(options.folder / f"kills{count}", options.seed, count, accidents)
        rows += told.rows
        is_good, is_slow = is_good and told.is_good, is_slow or told.is_slow
    return Told(rows, is_good, is_slow=is_slow)


async def restart_nodes(options: Options) -> Told:
    """Every node in its turn, again and again, under load."""
    accidents = [Accident.RESTART] * (3 * ROLLING_RESTARTS)
    return await _play(options.folder / "rolling", options.seed, 3, accidents)


async def trouble_nodes(options: Options) -> Told:
    """Pauses past the lease, a connection cut for a minute, the database restarted; clocks an hour ahead and behind."""
    accidents = [*[Accident.PAUSE] * PAUSES, Accident.CUT, Accident.DATABASE, Accident.CUT, Accident.DATABASE]
    return await _play(options.folder / "troubles", options.seed, 3, accidents, clocks=(HOUR, -HOUR, 0.0))


async def _play(
    folder: Path, seed: int, count: int, accidents: Sequence[Accident], clocks: Sequence[float] = ()
) -> Told:
    with own_server(folder) as (url, path, restart):
        world = opened(folder / "world", url, count, seed, clocks=clocks, wired_to=path, restart_database=restart)
        async with world as cluster:
            async with under_load(cluster, 0.15):
                for number, accident in enumerate(accidents):
                    await cluster.befall(accident, cluster.nodes[number % count])
                    if (number + 1) % 10 == 0:
                        progress = f"{number + 1} of {len(accidents)} accidents, {cluster.stuck} stuck"
                        print(f"{count} nodes: {progress}, second pollers: {cluster.second_pollers}", flush=True)
            doubled = cluster.double_turns()
    for line in cluster.wrong:
        print(line)
    moved = [*_times(cluster.moved)]
    late = [each for each in cluster.moved if _is_late(each)]
    rows = [*_rows(cluster, count, accidents, doubled), *moved]
    return Told(rows, not cluster.wrong and not doubled, is_slow=bool(late))


def _rows(cluster: Cluster, count: int, accidents: Sequence[Accident], doubled: int) -> Iterable[Row]:
    kinds = ", ".join(f"{accidents.count(kind)} × {kind.value}" for kind in Accident if kind in accidents)
    verdicts = cluster.verdicts
    said = " / ".join(f"{verdict.messages} {name}" for name, verdict in verdicts.items())
    lost = sum(len(verdict.lost) for verdict in verdicts.values())
    repeats = sum(verdict.repeats for verdict in verdicts.values())
    in_doubt = repeats - sum(len(verdict.doubled) for verdict in verdicts.values())
    yield f"{count} nodes on one PostgreSQL", kinds
    yield "… messages / runs of the API", f"{said} / {len(cluster.runs)} runs"
    yield "… lost, double turns, stuck, second pollers", f"{lost}, {doubled}, {cluster.stuck}, {cluster.second_pollers}"
    yield "… repeated with ↻, of these in flight at the accident", f"{repeats}, {in_doubt}"


def _times(moved: Sequence[Moved]) -> Iterable[Row]:
    for kind in Accident:
        lanes = sorted(each.lanes_seconds for each in moved if each.accident is kind)
        accounts = sorted(each.accounts_seconds for each in moved if each.accident is kind and each.accounts_seconds)
        for name, seconds in (("lanes", lanes), ("accounts", accounts)):
            if seconds:
                yield (
                    f"… {name} at another node after {kind.value}: p50 / p99 / max",
                    f"{quantile(seconds, 0.5):.2f} / {quantile(seconds, 0.99):.2f} / {seconds[-1]:.2f} s",
                )


def _is_late(moved: Moved) -> bool:
    if moved.accident is Accident.RESTART:
        return max(moved.lanes_seconds, moved.accounts_seconds or 0.0) > DRAINED_SECONDS
    return moved.lanes_seconds > LANES_SECONDS or (moved.accounts_seconds or 0.0) > ACCOUNTS_SECONDS
