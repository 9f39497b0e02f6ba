"""What an installation without extras takes on the disk."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import cache_from_source
from pathlib import Path

from bench import machine
from bench.rig import ROOT, BenchError
from bench.rows import Plan, Row, Rows

INSTALL_MEGABYTES = 66.0


async def measure(plan: Plan) -> Rows:
    names = pinned(ROOT / "requirements" / "core.txt")
    plan.say(f"{len(names)} packages")
    plain, compiled = (sum(sizes) / machine.MEGABYTE for sizes in zip(*map(disk_use, names), strict=True))
    ours = sum(_blocks(file) for file in (ROOT / "src").rglob("*") if file.suffix in (".py", ".sql"))
    note = f"{len(names)} packages; pip compiles all of them, our own scripts what a start imports"
    return [
        Row("install: packages without extras, compiled", plain + compiled, "MB", INSTALL_MEGABYTES, note),
        Row("install: the same as unpacked", plain, "MB"),
        Row("install: our own sources", ours / machine.MEGABYTE, "MB"),
    ]


def pinned(file: Path) -> list[str]:
    lines = file.read_text("utf-8").splitlines()
    return [line.partition("==")[0].strip() for line in lines if "==" in line and not line.startswith("#")]


def disk_use(name: str) -> tuple[int, int]:
    """Bytes of the blocks that a package's files occupy, and those of their compiled forms that exist here."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        raise BenchError(f"{name} is pinned but not installed") from None
    found = {Path(str(file.locate())) for file in files if file.suffix != ".pyc"}
    compiled = {Path(cache_from_source(str(file))) for file in found if file.suffix == ".py"}
    return sum(map(_blocks, found)), sum(map(_blocks, compiled))


def _blocks(file: Path) -> int:
    return file.stat().st_blocks * 512 if file.is_file() else 0
