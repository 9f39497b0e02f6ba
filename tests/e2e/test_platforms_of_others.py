"""A platform that another package brings: installed, set up, spoken over, tested, removed; and ones that are broken."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from hermes.services.adapters.registry import find_platforms
from tests.e2e.scratch import Scratch, ScratchTerminal
from tests.e2e.terminal import ROOT
from tests.fakes.server import Said
from tests.fakes.telegram import FakeTelegram

EXAMPLE = ROOT / "examples" / "hermes-pager"
SUITE_SECONDS = 120.0


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    scratch = Scratch(tmp_path_factory.mktemp("scratch") / "venv")
    scratch.install(EXAMPLE)
    return scratch


# The example and what every adapter promises


@pytest.mark.timeout(180)
def test_the_example_keeps_every_promise_and_its_page_gives_a_reason_for_what_it_does_not_play(
    scratch: Scratch,
) -> None:
    """Asked of the package as it was installed: of the example's folder only the fake is on the path."""
    words = ["-q", "-rs", "-p", "no:cacheprovider", "tests/contract/adapters", "--fake", "fake_pager:FakePager"]
    done = subprocess.run(
        [str(scratch.python), "-m", "pytest", *words],
        cwd=ROOT,
        env={"PYTHONPATH": str(EXAMPLE / "tests"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=SUITE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 35
    skipped = re.findall(r"^SKIPPED \[\d+\] \S+ (?:pager has )?no (.*?)(?: here)?$", done.stdout, re.MULTILINE)
    assert len(skipped) == done.stdout.count("SKIPPED [")
    page = (EXAMPLE / "README.md").read_text("utf-8")
    assert not [what for what in skipped if what not in page]


# Its whole life


@pytest.mark.timeout(180)  # two installations by pip and seven commands
async def test_it_is_found_set_up_spoken_over_and_tested_and_its_removal_costs_one_line(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("src", "tests"):
        monkeypatch.syspath_prepend(str(EXAMPLE / folder))
    seen = tmp_path / "imports"
    async with FakeTelegram() as telegram, resolve_name("fake_pager:FakePager")() as pager:
        environ = {
            **telegram.environ,
            "TELEGRAM_ALLOWED_USERS": "7",
            "GATEWAY_OWNERS": "local",
            "IMPORTS_SEEN": str(seen),
        }
        with ScratchTerminal(tmp_path, scratch, **environ) as terminal:
            offers = await asyncio.to_thread(terminal.hermes, "gateway", "setup")
            assert "gateway setup pager --set base_url=VALUE --token TOKEN" in offers.stderr

            seen.unlink()
            await asyncio.to_thread(terminal.start_gateway)
            await _answered(telegram, telegram.user_says("hello"), "echo: hello")
            assert not _beyond_manifests(seen, {"telegram", "local"})

            token = pager.secrets[0]
            words = ["--set", f"base_url={pager.url}", "--token", token, "--dm-policy", "allowlist", "--allow", "ana"]
            done = await asyncio.to_thread(terminal.hermes, "gateway", "setup", "pager", *words, "--yes")
            assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
            assert done.stdout.startswith("✓ house, answered in")
            await _answered(pager, pager.user_says("hi"), "echo: hi")
            assert "hermes_pager.adapter" in seen.read_text().split()

            tested = await asyncio.to_thread(terminal.hermes, "gateway", "test", "pager", "--to", "ana")
            assert tested.returncode == 0, tested.stderr
            assert [line[0] for line in tested.stdout.splitlines()] == ["✓", "✓", "✓", "✓"]
            assert pager.sent[-1].text.startswith("✓ Test message from Hermes")

            await asyncio.to_thread(scratch.uninstall, "hermes-pager")
            restarted = await asyncio.to_thread(terminal.hermes, "gateway", "restart")
            assert restarted.returncode == 0, restarted.stderr
            await _answered(telegram, telegram.user_says("still there?"), "echo: still there?")
            checked = await asyncio.to_thread(terminal.hermes, "config", "check")
            told = [line for line in (checked.stdout + checked.stderr).splitlines() if "pager" in line]
            assert len(told) == 1
            assert told[0].endswith(
                "platforms.pager: names no platform that is installed here. "
                "→ install the package that brings it, or take this out"
            )


async def _answered(fake: Any, said: Said, answer: str) -> None:
    await fake.wait_for(lambda: any(sent.text == answer for sent in fake.sent), deadline=10.0)
    assert said.key


def _beyond_manifests(seen: Path, configured: set[str]) -> set[str]:
    """What was imported of platforms that nobody set up: their manifests and the settings in those are all there is."""
    imported = set(seen.read_text().split())
    sdks = {module for module, extras in _extras().items() if extras}
    manifests = re.compile(rf"hermes\.platforms\.({'|'.join(configured)}|shared|\w+(\.config)?$)|hermes_pager$")
    of_platforms = {name for name in imported if name.startswith(("hermes.platforms.", "hermes_pager"))}
    return (imported & sdks) | {name for name in of_platforms if not manifests.match(name)}


def _extras() -> dict[str, str]:
    """The modules that the extras of platforms bring, and the extra of each."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found: dict[str, str] = {}
    for manifest in find_platforms().manifests.values():
        names = {re.split(r"[<>=\[]", each)[0].casefold() for each in wanted.get(manifest.extra, ())}
        found |= {
            module: manifest.extra
            for module, packages in packages_distributions().items()
            if names & {package.casefold() for package in packages}
        }
    return found


# Ones that are broken, and ones whose SDK is missing


@pytest.mark.timeout(180)
def test_a_broken_platform_and_a_missing_sdk_are_one_line_each_and_stop_nothing(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "venv")
    scratch.add_module("raises", "raise RuntimeError('no pigeons')", platform="carrier")
    scratch.add_module("leaves", "raise SystemExit(3)", platform="leaver")
    scratch.add_module("number", "MANIFEST = 5", platform="number")
    scratch.add_module("thief", "from hermes.platforms.telegram import MANIFEST", platform="thief")
    for module in _extras():
        scratch.add_module(module, f"raise ModuleNotFoundError(name={module!r})")
    with_extra = [
        manifest
        for manifest in find_platforms().manifests.values()
        if manifest.extra and any(setting.required for setting in manifest.settings)
    ]
    assert with_extra
    environ = {setting.env: "placeholder" for each in with_extra for setting in each.settings if setting.required}
    with ScratchTerminal(tmp_path, scratch, **environ) as terminal:
        doctor = terminal.hermes("doctor")
        asked_for = terminal.hermes("gateway", "setup", "carrier", "--yes")
        terminal.start_gateway()
        asked = terminal.hermes("-z", "hello")
        assert (asked.stdout, asked.stderr, asked.returncode) == ("echo: hello\n", "", 0)
        status = json.loads(terminal.hermes("status", "--json").stdout)
    notes = {account["account"]: account["note"] for account in status["snapshot"]["platforms"]}
    for manifest in with_extra:
        told = (
            f"{manifest.title} needs a package that is missing \\((\\w+)\\)\\. Install it: (\\S+) -m pip install '\\S+'"
        )
        line = re.fullmatch(told, notes[manifest.id])
        assert line is not None, notes[manifest.id]
        assert Path(line[2]).parent == scratch.python.parent
    broken = [
        "Platform carrier (raises:MANIFEST) could not be loaded: no pigeons.",
        "Platform leaver (leaves:MANIFEST) could not be loaded: it ended its own process.",
        "Platform number (number:MANIFEST) could not be loaded: it is not a Manifest.",
        "Platform thief (thief:MANIFEST) was left out: there is already a platform telegram.",
    ]
    assert sorted(status["snapshot"]["troubles"]) == broken
    assert [doctor.stdout.count(line) for line in broken] == [1, 1, 1, 1]
    assert doctor.stderr == ""
    assert asked_for.stderr.splitlines() == [f"✗ {broken[0]}"]
