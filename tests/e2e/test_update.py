"""Updates of a clone and of a pip installation: refused by the probe, taken up, taken back, beside a gateway."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.keeping import ROOT, until
from tests.fakes.installations import Installed, InstalledClone, InstalledPackage
from tests.fakes.programs import needs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # a dozen starts each, on a machine that may be busy


@pytest.fixture(params=[pytest.param(InstalledClone, marks=needs("git")), InstalledPackage])
def installed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installed]:
    made: Installed = request.param(tmp_path)
    yield made
    made.end()


def breaks_the_start(package: Path) -> None:
    path = package / "app" / "serve.py"
    path.write_text(path.read_text("utf-8") + '\nraise RuntimeError("planted")\n', "utf-8")


def loses_rows(package: Path) -> None:
    shutil.copy(ROOT / "src" / "hermes" / "app" / "serve.py", package / "app" / "serve.py")
    (package / "store" / "kanban_migrations" / "0990_lose.sql").write_text("DELETE FROM tasks;\n")


def breaks_only_here(package: Path) -> None:
    """Starts where it is probed, and nowhere else; by then it has brought a store to a schema of its own."""
    shutil.copy(ROOT / "src" / "hermes" / "app" / "serve.py", package / "app" / "serve.py")
    (package / "store" / "kanban_migrations" / "0990_lose.sql").unlink(missing_ok=True)
    step = "-- min_reader: 990\nCREATE TABLE newer (id TEXT PRIMARY KEY);\n"
    (package / "store" / "kanban_migrations" / "0990_newer.sql").write_text(step)
    path = package / "app" / "serve.py"
    path.write_text(path.read_text("utf-8") + BREAKS_ONLY_HERE, "utf-8")


BREAKS_ONLY_HERE = """
import os

if "/updates/probe/" not in os.environ["HERMES_HOME"] + "/":
    import asyncio
    from pathlib import Path

    from hermes.store.open import open_database

    async def _migrate():
        folder = Path(__file__).parents[1] / "store" / "kanban_migrations"
        database = await open_database(Path(os.environ["HERMES_HOME"]) / "kanban.db", migrations=folder)
        await database.close()

    asyncio.run(_migrate())
    raise RuntimeError("planted: only here")
"""


def needs_a_newer_reader(package: Path) -> None:
    shutil.copy(ROOT / "src" / "hermes" / "app" / "serve.py", package / "app" / "serve.py")
    (package / "store" / "kanban_migrations" / "0990_newer.sql").unlink()
    pins = package.parents[1] / "requirements" / "core.txt"
    pins.write_text(pins.read_text("utf-8") + "# other pins\n", "utf-8")
    step = "-- min_reader: 990\nCREATE TABLE newer (id TEXT PRIMARY KEY);\n"
    (package / "store" / "migrations" / "0990_newer.sql").write_text(step)


def test_update_is_taken_up_only_if_its_probe_answers_and_can_be_taken_back(installed: Installed) -> None:
    assert installed.hermes("gateway", "start").returncode == 0
    assert installed.hermes("kanban", "create", "Water the plants").returncode == 0
    first = installed.worker()
    assert installed.hermes("update", "--check").stdout.startswith("✓")
    said = installed.hermes("rollback", "--yes")
    assert (said.returncode, said.stderr) == (1, "✗ There is no version to go back to: no update was made here.\n")

    installed.offer("0.2.0", breaks_the_start)
    said = installed.hermes("update")
    assert said.returncode == 1, said.stdout
    assert "The new version does not start" in said.stderr
    assert "planted" in said.stderr
    if isinstance(installed, InstalledClone):  # the probe is the same for both, and a package takes long to stage
        installed.offer("0.3.0", loses_rows)
        said = installed.hermes("update")
        assert said.returncode == 1, said.stdout
        assert "would lose rows of kanban.db: tasks has 0 of 1" in said.stderr
    assert (installed.worker(), installed.status()["version"]) == (first, "0.1.0"), "nobody touched it"
    assert "0.1.0" in installed.hermes("--version").stdout

    installed.offer("0.3.1", breaks_only_here)
    with ThreadPoolExecutor() as threads:
        running = threads.submit(installed.hermes, "update")
        until((installed.home / "updates" / "probe" / "home").exists, 120)
        assert installed.hermes("kanban", "create", "Feed the cat").returncode == 0, "while the new version is tried"
        said = running.result()
    assert said.returncode == 1, said.stdout
    assert re.search(r"The gateway is not back after \d+ s \(ended with exit code 1\)", said.stderr)
    assert "The new version does not run here: switching back to 0.1.0" in said.stderr
    assert "0.3.1" in (last := said.stderr[said.stderr.index("✗ 0.3.1") :])
    assert "did not start, so the old version was put back.\n✓ Gateway restarted" in last
    assert until(installed.worker, 60) != first
    assert (installed.status()["version"], installed.is_whole("0.1.0")) == ("0.1.0", True)
    told = installed.hermes("kanban").stdout
    assert "Water the plants" in told
    assert "Feed the cat" in told, "what arrived after the backup is not lost"

    installed.offer("0.4.0", needs_a_newer_reader)
    said = installed.hermes("update", "--check", "--json")
    assert json.loads(said.stdout)["name"].startswith("0.4.0")
    said = installed.hermes("update")
    assert said.returncode == 0, said.stderr
    assert until(installed.worker, 60) != first
    assert installed.status()["version"] == "0.4.0"

    said = installed.hermes("rollback", "--yes")
    assert said.returncode == 0, said.stderr
    assert until(installed.worker, 60)
    assert installed.status()["version"] == "0.1.0"
    assert "The stores are too new for it" in said.stderr
    assert "Water the plants" in installed.hermes("kanban").stdout
