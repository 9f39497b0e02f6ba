"""The bridge's rules without a bridge: ten thousand messages, every code, and the library as it is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.fakes.whatsapp_bridge import SOURCES

pytestmark = pytest.mark.one_python

FUZZ = Path(__file__).with_name("fuzz_items.mjs")


def test_the_packages_are_pinned_and_no_registry_is_named() -> None:
    lock = json.loads((SOURCES / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert all(package["version"] and package["integrity"] for package in packages.values())
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert packages["node_modules/baileys"]["version"] == "7.0.0-rc14"


async def test_ten_thousand_mutated_messages_become_items_or_are_told_as_unreadable(program: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        "node", str(FUZZ), str(program), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(20):
        printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    outcome = json.loads(printed)
    assert outcome["wrong"] == []
    assert sum(outcome[name] for name in ("items", "nothing", "unreadable")) == 10_000
    assert min(outcome[name] for name in ("items", "nothing", "unreadable")) > 500
    assert outcome["codes"] == {
        "401": "logged_out",
        "403": "logged_out",
        "408": "later",
        "411": "logged_out",
        "428": "later",
        "440": "replaced",
        "500": "later",
        "503": "later",
        "515": "at_once",
    }
    assert outcome["pauses"] == [
        [1000, 2000],
        [2000, 4000],
        [4000, 8000],
        [30000, 60000],
        [30000, 60000],
        [30000, 60000],
    ]
    for told in outcome["noProxies"]:
        assert told.startswith("HERMES_BRIDGE_PROXY")
        assert "secret" not in told
    # The library as it is: its events pass where we listen before it collects them.
    surfaces = {"canHearAcks": True, "canAcknowledge": True, "hasSecretInQr": True}
    assert outcome["library"] == {"seen": ["3A01"], "handed": [], **surfaces}
    # Newer than the library's, before a link and after a 405; otherwise the library's, or the owner's.
    assert outcome["version"] == {"steps": [5, 5, 0, 0, 0, 0, 1], "asked": 5}
