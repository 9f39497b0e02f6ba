"""What an installation without extras takes on the disk."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import cache_from_source
from pathlib import Path

from bench import machine
from bench.rig import ROOT, BenchError
from bench.rows import Plan, Row, Rows

INSTALL_MEGABYTES = 60.0


async def measure(plan: Plan) -> Rows:
    names = pinned(ROOT / "requirements" / "core.txt")
    plan.say(f"{len(names)} packages")
    total = sum(disk_use(name) for name in names)
    ours = sum(_blocks(file) for file in (ROOT / "src").rglob("*") if file.suffix in (".py", ".sql"))
    return [
        Row(
            "install: packages without extras",
            total / machine.MEGABYTE,
            "MB",
            INSTALL_MEGABYTES,
            f"{len(names)} packages",
        ),
        Row("install: our own sources", ours / machine.MEGABYTE, "MB"),
    ]


def pinned(file: Path) -> list[str]:
    lines = file.read_text("utf-8").splitlines()
    return [line.partition("==")[0].strip() for line in lines if "==" in line and not line.startswith("#")]


def disk_use(name: str) -> int:
    """Bytes of the blocks that a package's files occupy, compiled ones included where they exist."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        raise BenchError(f"{name} is pinned but not installed") from None
    found = {Path(str(file.locate())) for file in files}
    compiled = {Path(cache_from_source(str(file))) for file in found if file.suffix == ".py"}
    return sum(_blocks(file) for file in found | compiled)


def _blocks(file: Path) -> int:
    return file.stat().st_blocks * 512 if file.is_file() else 0
