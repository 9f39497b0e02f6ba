"""``hermes version``: print versions for a bug report."""

from __future__ import annotations

import argparse
import platform
import sqlite3
import sys
from importlib.metadata import PackageNotFoundError, version

from hermes import __version__
from hermes.hosting.terminal import out, out_json

EXAMPLES = """\
  hermes version          Hermes, Python, SQLite and the system
  hermes --version        one line
"""

PACKAGES = ("aiohttp", "cryptography", "psycopg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    facts = collect()
    if args.json:
        out_json(facts)
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        out(f"{name:<{width}}  {value}")
    return 0


def collect() -> dict[str, str]:
    facts = {
        "hermes": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    return facts | {name: _installed(name) for name in PACKAGES}


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
