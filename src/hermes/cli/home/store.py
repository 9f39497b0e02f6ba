"""``hermes store``: copy the store into another database, recover a damaged file."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.support.home import home_folder, load_config
from hermes.cli.support.program_name import command_name
from hermes.core.durations import count
from hermes.core.errors import ConfigError, GatewayError
from hermes.hosting import locks, paths
from hermes.hosting.terminal import err, out_result, rewrite_line

if TYPE_CHECKING:
    import argparse

    from hermes.store.copy.copy import CopyProgress, StorePlace

EXAMPLES = """\
  hermes store copy --to postgresql://hermes@db.example/hermes
                                            from one machine to several: see docs/scale.md
  hermes store copy --from postgresql://hermes@db.example/hermes --to sqlite:////home/me/.hermes/state.db
                                            and back; an interrupted copy continues when it is run again
  hermes store recover ~/.hermes/state.db.corrupt.20260501153100
                                            into a new file beside it; the damaged file stays as it is
"""

VERBS = {
    "copy": "copy every table into an empty database, compare counts and checksums",
    "recover": "write the readable rows of a damaged file into a new file",
}

FILE = "state.db"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    recover = added["recover"]
    recover.add_argument("file", metavar="FILE", help="the damaged database")
    recover.add_argument("--to", default="", metavar="PATH", help="the new file (default: FILE.recovered)")
    copy = added["copy"]
    copy.add_argument("--to", required=True, metavar="URL", help="postgresql://… or sqlite:///PATH")
    copy.add_argument(
        "--from", default="", dest="source", metavar="URL", help="the source (default: the configured database)"
    )
    copy.add_argument("--replace", action="store_true", help="delete what the destination holds")


def run(args: argparse.Namespace) -> int:
    if args.verb == "recover":
        from hermes.cli.repairs import recover

        return recover.run(args)
    return _copy(args)


def _copy(args: argparse.Namespace) -> int:
    import asyncio

    from hermes.store.copy.copy import copy_store

    home = home_folder()
    source = _place(args.source or load_config(home).config.database_url or str(home / FILE))
    destination = _place(args.to)
    _refuse_nonsense(source, destination)
    shown = _CopyDisplay()
    with contextlib.ExitStack() as stack:
        if not destination.is_postgres:
            from hermes.store.home import make_home

            make_home(destination.path.parent)
        for place in (source, destination):
            stack.enter_context(_held(place))
        copied = asyncio.run(copy_store(source, destination, show=shown.show, replaces=args.replace))
        shown.close()
        _tell_of_gateways(source)
    rows = sum(table.digest.rows for table in copied)
    lines = [f"{table.name:<18} {table.digest.rows:>10}  {table.digest.checksum[:16]}" for table in copied]
    done = f"✓ {count(len(copied), 'table')}, {count(rows, 'row')}: counts and checksums are equal on both sides."
    return out_result(
        [asdict(table) for table in copied], [*lines, done, *_next_steps(destination)], as_json=args.as_json
    )


def _place(address: str) -> StorePlace:
    from hermes.store.copy.copy import StorePlace
    from hermes.store.open import is_postgres
    from hermes.store.sqlite.file import Location

    if is_postgres(address):
        return StorePlace(address)
    if "://" in address and not address.startswith("sqlite:///"):
        raise ConfigError(f"{address.split('://')[0]}:// is no store of Hermes. Use postgresql://… or sqlite:///PATH.")
    path = Location.parse(address).path.expanduser().absolute()
    return StorePlace(str(path if path.suffix == ".db" else path / FILE))


def _refuse_nonsense(source: StorePlace, destination: StorePlace) -> None:
    if source.address == destination.address:
        raise ConfigError("The source and the destination are the same database.")
    if not source.is_postgres and not source.path.exists():
        raise ConfigError(f"Nothing is stored in {source.path} yet.")
    if not source.is_postgres and not destination.is_postgres and source.path.parent == destination.path.parent:
        raise ConfigError(
            f"{source.path.parent} holds one store, with its files beside it. Name a folder of its own for the copy."
        )


@contextlib.contextmanager
def _held(place: StorePlace) -> Iterator[None]:
    """Keep gateways off a store while it is copied; raises GatewayError where one runs."""
    if place.is_postgres:
        from hermes.store.copy.copy import refuse_running_gateways

        with refuse_running_gateways(place.address):
            yield
        return
    home = place.path.parent
    lock = locks.take(paths.owner_lock(str(home)), "hermes store copy")
    if lock is None:
        holder = locks.holder(paths.owner_lock(str(home))) or locks.Holder()
        raise GatewayError(
            f"{home} is in use by {holder.describe()}. Stop it before the copy: {command_name()} gateway stop"
        )
    try:
        if (home / ".restore").exists():
            from hermes.store.backup import restore

            restore.finish(home)
        yield
    finally:
        lock.release()


def _tell_of_gateways(source: StorePlace) -> None:
    """A gateway that began on the source meanwhile has stored more than the copy holds."""
    if source.is_postgres:
        from hermes.store.copy.copy import running_gateways

        if running := running_gateways(source.address):
            raise GatewayError(
                f"A gateway started on the source during the copy ({', '.join(running)}). What it stores is not in the"
                f" copy.\n  Stop it, then run the copy again with --replace."
            )


def _next_steps(destination: StorePlace) -> list[str]:
    if destination.is_postgres:
        return [f"Next: set HERMES_DATABASE_URL to the new address, then {command_name()} gateway start"]
    return [
        f"Next: remove HERMES_DATABASE_URL, set HERMES_HOME to {Path(destination.path).parent},"
        f" then {command_name()} gateway start"
    ]


class _CopyDisplay:
    """One line that is written again and again on a terminal; a line for each table elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._table = ""

    def show(self, progress: CopyProgress) -> None:
        verb = "copying" if progress.task == "copy" else "comparing"
        if self._is_terminal:
            rewrite_line(sys.stderr, f"{verb} {progress.table}: {progress.rows} of {progress.of}")
        elif progress.rows >= progress.of and progress.of:
            err(f"{verb} {progress.table}: {progress.rows} of {progress.of}")

    def close(self) -> None:
        if self._is_terminal:
            rewrite_line(sys.stderr)
