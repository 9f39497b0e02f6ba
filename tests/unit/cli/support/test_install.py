"""A package that a platform lacks: named, installed by the pip of this Python, or refused with the command to type."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.cli.support.install import install, missing_module
from hermes.cli.wizard.platform import Flags, Wizard
from hermes.config import load
from hermes.core.errors import ConfigError
from hermes.core.manifest import Manifest
from tests.unit.cli.support.test_prompts import Typing

# Stands before the real pip on the path of the child; the file "mood" says how it goes.
PIP = """
import sys
from pathlib import Path

here = Path(__file__).parents[1]
(here / "calls").write_text(" ".join(sys.argv[1:]))
mood = (here / "mood").read_text() if (here / "mood").exists() else ""
if mood:
    print("Looking in indexes: https://ana:secret@index.test/simple")
    sys.exit(mood)
(here / "pagersdk.py").write_text("")
print("Successfully installed pagersdk-1.0")
"""

PLATFORM = """
from hermes.core.manifest import Manifest


def build(parts):
    from pager_platform.adapter import Adapter

    return Adapter()


MANIFEST = Manifest(id="pager", title="Pager", settings=(), build=build, extra="slack")
"""

ADAPTER = """
import pagersdk


class Adapter:
    async def describe(self):
        return "@pager"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in {
        "pip/__main__.py": PIP,
        "pip/__init__.py": "",
        "pager_platform/__init__.py": PLATFORM,
        "pager_platform/adapter.py": ADAPTER,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PIP_TARGET", "/nowhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pager_platform", "pagersdk")]:
        del sys.modules[name]


@pytest.fixture
def manifest(folder: Path) -> Manifest:
    made: Manifest = importlib.import_module("pager_platform").MANIFEST
    return made


def wizard(folder: Path, manifest: Manifest, person: Typing, flags: Flags) -> Wizard:
    return Wizard(load(folder / "home", {}, folder, (manifest,)), manifest, flags, person.ask)


def test_a_missing_package_is_installed_and_found_at_once(folder: Path, manifest: Manifest) -> None:
    assert missing_module(manifest) == "pagersdk"
    install(manifest)
    assert missing_module(manifest) == ""
    assert (folder / "calls").read_text().startswith("install slack_sdk>=")


def test_the_wizard_asks_before_it_installs_and_then_goes_on(
    folder: Path, manifest: Manifest, capsys: pytest.CaptureFixture[str]
) -> None:
    person = Typing("", "", "")
    page = wizard(folder, manifest, person, Flags()).page()
    assert "Pager needs a package that is not installed yet (pagersdk).\nInstall it now? [Y/n]:" in person.shown
    assert page.name == "@pager"
    assert capsys.readouterr().out.startswith("  Installing …\n✓ Installed\n✓ @pager, answered in")


def test_whoever_says_no_is_told_the_command_and_nothing_is_installed(folder: Path, manifest: Manifest) -> None:
    with pytest.raises(ConfigError, match=r"Install it: \S+ -m pip install .*\n  Nothing was written\."):
        wizard(folder, manifest, Typing("n"), Flags()).page()
    assert not (folder / "calls").exists()


def test_a_flag_says_yes_beforehand(folder: Path, manifest: Manifest) -> None:
    person = Typing("", "")
    assert wizard(folder, manifest, person, Flags(installs=True)).page().name == "@pager"
    assert "Install it now?" not in person.shown


def test_what_pip_cannot_do_is_told_in_a_sentence_without_passwords(folder: Path, manifest: Manifest) -> None:
    (folder / "mood").write_text("ERROR: No matching distribution found at https://ana:secret@index.test/\x1b[2J")
    with pytest.raises(ConfigError) as caught:
        install(manifest)
    told = str(caught.value)
    assert told.startswith(
        "pip could not install it: No matching distribution found at https://index.test/‹U+001B›[2J."
    )
    assert "\n  By hand: " in told
    assert "secret" not in told
