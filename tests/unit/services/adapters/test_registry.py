"""Platforms are found by name; a broken one costs one line."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hermes.core.manifest import Manifest
from hermes.services.adapters.registry import find_platforms, missing_package

PLUGIN = """
from hermes.core.manifest import Manifest
MANIFEST = Manifest(id="carrier", title="Carrier pigeons", settings=(), build=lambda parts: None)
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, code: str) -> None:
    """What pip leaves behind: a module, and a folder that names its entry point."""
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hermes.platforms]\n{name} = {module}:MANIFEST\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, module, raising=False)


def test_a_platform_of_another_package_joins_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "carrier", "carrier_for_hermes", PLUGIN)
    found = find_platforms({})
    assert isinstance(found.manifests["carrier"], Manifest)
    assert found.broken == {}


IMPORTED = "from hermes.core.manifest import Manifest\n"


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError('no\\npigeons')",
        "raise SystemExit(3)",
        "MANIFEST = 5",
        "x = 1",
        "import nowhere_at_all",
        f"{IMPORTED}MANIFEST = Manifest('Mail:Pigeon@home', 'Pigeons', (), build=print)",
        f"{IMPORTED}MANIFEST = Manifest('', 'Pigeons', (), build=print)",
        f"{IMPORTED}MANIFEST = Manifest('pigeon', 'Pigeons', ('token',), build=print)",
        f"{IMPORTED}MANIFEST = Manifest('pigeon', 'Pigeons', (), build=None)",
    ],
)
def test_a_broken_one_is_one_line_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    install(tmp_path, monkeypatch, "broken", "broken_for_hermes", code)
    (tmp_path / "second").mkdir()
    install(tmp_path / "second", monkeypatch, "carrier", "carrier_for_hermes", PLUGIN)
    found = find_platforms({})
    assert list(found.manifests) == ["carrier"]
    assert found.broken["broken"].startswith("Platform broken (broken_for_hermes:MANIFEST) could not be loaded")
    assert "\n" not in found.broken["broken"]


def test_an_id_that_is_taken_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "pigeon", "carrier_for_hermes", PLUGIN)
    (tmp_path / "second").mkdir()
    install(tmp_path / "second", monkeypatch, "dove", "dove_for_hermes", PLUGIN)
    found = find_platforms({})
    assert len(found.manifests) == 1
    assert "there is already a platform carrier" in next(iter(found.broken.values()))


def test_none_takes_the_place_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from dataclasses import replace\nfrom hermes.platforms.telegram import MANIFEST as OURS\n"
    install(tmp_path, monkeypatch, "telegram", "thief_for_hermes", f"{code}MANIFEST = replace(OURS, title='Thief')")
    found = find_platforms()
    assert found.manifests["telegram"].title == "Telegram"
    assert "there is already a platform telegram" in found.broken["telegram"]


def test_a_missing_package_is_told_with_the_command_that_installs_it_here() -> None:
    """In a clone that is the package itself, with our own bounds: nothing else is installed by it."""
    extras = [manifest for manifest in find_platforms().manifests.values() if manifest.extra]
    assert "slack" in {manifest.extra for manifest in extras}
    for manifest in extras:
        line = missing_package(manifest, ModuleNotFoundError(name="sdk"))
        start = f"{manifest.title} needs a package that is missing (sdk). Install it: {sys.executable} -m pip install "
        assert line.startswith(start)
        assert re.fullmatch(r"'[A-Za-z_.-]+>=[0-9.]+(,<[0-9.]+)?'", line.removeprefix(start)), line


def test_ours_are_found_in_a_clone() -> None:
    found = find_platforms()
    assert {"telegram", "local"} <= found.manifests.keys()
    assert found.broken == {}
