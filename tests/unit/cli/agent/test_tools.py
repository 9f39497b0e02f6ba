"""hermes tools: what each platform has, and one name switched on or off in config.yaml."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes.cli.main import main


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HERMES_HOME"])


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["tools", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def is_on(capsys: pytest.CaptureFixture[str], name: str, platform: str = "telegram") -> bool:
    _, told, _ = typed(capsys, "list", "--platform", platform, "--json")
    return bool(next(tool["enabled"] for tool in json.loads(told)["tools"] if tool["name"] == name))


def test_every_platform_is_listed_with_what_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    code, told, _ = typed(capsys)
    assert code == 0
    assert "telegram  hermes-telegram: all groups\n" in told
    assert "api  hermes-api: all but talk\n" in told
    assert "local  hermes-cli: all groups\n" in told


def test_one_platform_is_listed_tool_by_tool(capsys: pytest.CaptureFixture[str]) -> None:
    code, told, _ = typed(capsys, "list", "--platform", "telegram")
    assert code == 0
    assert "telegram has the toolset hermes-telegram\n" in told
    assert any(line.startswith("  ✓ read_file ") and "files, role user or higher" in line for line in told.splitlines())
    assert any("web_search" in line and line.endswith("(not set up yet)") for line in told.splitlines())


def test_a_group_is_switched_off_and_on_again_and_the_rest_of_the_file_stays(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir(exist_ok=True, mode=0o700)
    (home / "config.yaml").write_text("# mine\nagent:\n  persona: Be kind.\n")
    assert typed(capsys, "disable", "files", "--platform", "telegram")[:2] == (0, "✓ files is off for telegram.\n")
    assert not is_on(capsys, "read_file")
    assert is_on(capsys, "read_file", "local")
    assert typed(capsys, "enable", "read_file", "--platform", "telegram")[0] == 0
    assert is_on(capsys, "read_file")
    assert not is_on(capsys, "write_file")
    assert typed(capsys, "enable", "files", "--platform", "telegram")[1] == "✓ files is on for telegram.\n"
    assert is_on(capsys, "write_file")
    assert typed(capsys, "enable", "clarify", "--platform", "api")[0] == 0
    assert is_on(capsys, "clarify", "api")
    content = (home / "config.yaml").read_text()
    assert content.startswith("# mine\nagent:\n  persona: Be kind.\n")


@pytest.mark.parametrize(
    "words, told",
    [
        (("disable", "terminals", "--platform", "telegram"), "Did you mean terminal?"),
        (("disable", "files", "--platform", "telegraph"), "There is no platform 'telegraph'. Known: "),
    ],
)
def test_an_unknown_name_is_said_to_be_unknown(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, complaint = typed(capsys, *words)
    assert code != 0
    assert told in complaint
