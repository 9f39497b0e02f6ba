"""``hermes store recover FILE``: bring what a damaged file still holds into a new one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.checks.stores import side_stores
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import command_name
from hermes.hosting.terminal import out_result
from hermes.hosting.translation import tr
from hermes.store.home_faults import typed

if TYPE_CHECKING:
    import argparse


def run(args: argparse.Namespace) -> int:
    from hermes.store.open import DEFAULT_MIGRATIONS
    from hermes.store.sqlite.recover_file import recover_file

    source = Path(args.file).expanduser().absolute()
    target = Path(args.to).expanduser().absolute() if args.to else source.with_name(f"{source.name}.recovered")
    done = recover_file(source, target, {"state.db": DEFAULT_MIGRATIONS, **side_stores()}, time.time())
    lines = [f"{table:<18} {rows:>10}" for table, rows in done.tables.items() if rows]
    lines.append(tr(f"✓ {done.report.outcome()} The new file is {target}; {source.name} is as it was."))
    lines += [tr(f"  {note}") for note in done.report.notes]
    if done.kind:
        here = typed(home_folder() / done.kind)
        lines += [
            tr(f"  To use it: {command_name()} gateway stop"),
            f"             mv {typed(target)} {here}",
            f"             {command_name()} gateway start",
        ]
    value = {
        "file": str(source),
        "recovered": str(target),
        "store": done.kind,
        "rows": done.report.rows,
        "tables": dict(done.tables),
        "losses": [str(loss) for loss in done.report.losses],
        "notes": done.report.notes,
    }
    return out_result(value, lines, as_json=args.as_json)
