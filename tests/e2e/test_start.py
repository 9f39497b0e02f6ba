"""What a start imports before it answers. Each module more is paid by everybody who waits for /health."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hermes.app.tools import TOOLS
from hermes.servers.api.lazy_routes import FAMILIES
from tests.e2e.keeping import ROOT

MAX_OF_OURS = 356
"""Modules with code; a package that holds only its docstring costs next to nothing and is not counted.

Before this is raised: does /health need the module, or only the first message?
"""

MOST_BEFORE_THE_SUPERVISOR = 12

UNTIL_THE_DOORS_ARE_OPEN = """
import asyncio, json, sys
from pathlib import Path
import hermes.app.serve
from hermes.app.lifespan import GatewayOptions, open_gateway

async def main(folder):
    async with open_gateway(GatewayOptions(folder / "home", {}, folder, doors_first=True)):
        print(json.dumps(sorted(sys.modules)))

asyncio.run(main(Path(sys.argv[1])))
"""

LATER = (
    *TOOLS,
    *(f"hermes.servers.api.{family.rpartition('.')[0]}" for family in FAMILIES),
    "hermes.core.shell_safety.judge",
    "hermes.hosting.lifecycle",
    "hermes.platforms.qq.adapter",
    "hermes.platforms.slack.adapter",
    "hermes.platforms.telegram.adapter",
    "hermes.platforms.weixin.adapter",
    "hermes.store.postgres",
)
FOREIGN = (
    "aiohttp_socks",
    "cryptography",
    "importlib.metadata",
    "lxml",
    "mcp",
    "PIL",
    "prompt_toolkit",
    "psycopg",
    "pypdf",
    "rich",
    "segno",
    "slack_sdk",
    "tree_sitter",
    "tree_sitter_bash",
    "unittest",
    "yaml",
)


def python(code: str, *arguments: str) -> str:
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def is_package(name: str) -> bool:
    return (ROOT / "src" / name.replace(".", "/")).is_dir()


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    return frozenset(json.loads(python(UNTIL_THE_DOORS_ARE_OPEN, str(tmp_path_factory.mktemp("start")))))


def test_what_health_does_not_need_is_imported_after_it(modules: frozenset[str]) -> None:
    assert sorted(modules.intersection({*LATER, *FOREIGN})) == []


def test_a_start_imports_no_more_of_ours_than_it_did(modules: frozenset[str]) -> None:
    ours = sorted(name for name in modules if name.startswith("hermes") and not is_package(name))
    assert len(ours) <= MAX_OF_OURS, ours


def test_the_command_becomes_the_supervisor_without_parser_and_paths() -> None:
    code = "import sys, hermes.cli.main, hermes.hosting.launch; print(*sys.modules)"
    loaded = set(python(code).split())
    assert loaded.isdisjoint({"argparse", "asyncio", "json", "pathlib", "shutil", "sqlite3", "typing"})
    assert len([name for name in loaded if name.startswith("hermes")]) <= MOST_BEFORE_THE_SUPERVISOR
