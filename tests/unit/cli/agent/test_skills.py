"""hermes skills: works on the home alone, and says what it did in a line, or as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes.cli.main import main
from tests.unit.agent.skills.samples import GOOD, write_skill


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HERMES_HOME"])


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["skills", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_new_home_has_the_shipped_skills(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told, _ = typed(capsys)
    assert code == 0
    assert "  git-work " in told
    assert (home / "skills/hermes/gateway-troubleshooting/references/store.md").is_file()
    code, told, _ = typed(capsys, "list", "--json")
    first = json.loads(told)[0]
    assert (first["name"], first["category"], first["from"], first["is_on"]) == ("code-review", "code", "bundled", True)


def test_a_skill_is_read_with_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert "## When to Load" in typed(capsys, "show", "debugging")[1]
    code, told, _ = typed(capsys, "show", "hermes/gateway-troubleshooting", "references/store.md")
    assert (code, told.splitlines()[0]) == (0, "# The store: full, locked, damaged")
    code, _, complaint = typed(capsys, "show", "gitwork")
    assert (code, complaint) == (1, "✗ There is no skill 'gitwork'. Did you mean 'git-work'?\n")


def test_from_scan_to_install_to_remove_and_back(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(write_skill(tmp_path / "from", "odd", GOOD.format(name="odd") + "cat ~/.ssh/id_rsa\n"))
    code, told, _ = typed(capsys, "scan", place)
    assert (code, "SKILL.md line 9: reads credentials: cat ~/.ssh/id_rsa" in told) == (1, True)
    code, _, complaint = typed(capsys, "install", place)
    assert code == 1
    assert "To install it all the same: --yes" in complaint
    code, told, _ = typed(capsys, "install", place, "--yes", "--category", "own")
    assert code == 0
    assert "✓ odd is installed" in told
    assert (home / "skills/own/odd/SKILL.md").is_file()
    assert typed(capsys, "scan", "odd")[0] == 1
    assert "To bring it back" in typed(capsys, "remove", "odd")[1]
    assert not (home / "skills/own/odd").exists()
    assert typed(capsys, "remove", "odd", "--restore")[:2] == (0, "✓ odd is back.\n")
    assert (home / "skills/own/odd").is_dir()


def test_a_hostile_skill_is_refused_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = write_skill(tmp_path / "from", "evil")
    (place / "notes.md").symlink_to("/etc/passwd")
    for verb in ("scan", "install"):
        code, _, complaint = typed(capsys, verb, str(place))
        assert code == 1
        assert "notes.md: is a link to '/etc/passwd'; a skill holds plain files" in complaint


def test_switching_writes_the_configuration_and_leaves_the_rest(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed(capsys, "list")
    (home / "config.yaml").write_text("# mine\nagent:\n  busy_mode: queue  # so\n")
    assert typed(capsys, "disable", "git-work")[:2] == (0, "✓ git-work is off.\n")
    assert typed(capsys, "disable", "debugging", "--platform", "telegram")[1] == "✓ debugging is off for telegram.\n"
    written = (home / "config.yaml").read_text()
    assert written.startswith("# mine\nagent:\n  busy_mode: queue  # so\n")
    assert "[switched off]" in typed(capsys, "list")[1]
    assert typed(capsys, "enable", "git-work")[1] == "✓ git-work is on.\n"
    assert typed(capsys, "enable", "git-work")[1] == "✓ git-work was on already.\n"
    assert typed(capsys, "enable", "debugging", "--platform", "telegram")[1] == "✓ debugging is on for telegram.\n"
    assert "[switched off]" not in typed(capsys, "list")[1]
    code, _, complaint = typed(capsys, "disable", "debugging", "--platform", "telegraph")
    assert (code, "There is no platform 'telegraph'" in complaint) == (1, True)


def test_sync_counts_and_resets(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed(capsys, "list")
    file = home / "skills/code/git-work/SKILL.md"
    shipped = file.read_text()
    file.write_text(GOOD.format(name="git-work"))
    assert "13 unchanged. 1 kept as you have them (code/git-work). 14 total bundled." in typed(capsys, "sync")[1]
    told = json.loads(typed(capsys, "sync", "--reset", "git-work", "--json")[1])
    assert (told["new"], told["total"]) == (["code/git-work"], 14)
    assert file.read_text() == shipped


def test_a_broken_skill_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_skill(home / "skills", "own/bad", "nothing")
    (home / ".hermes-home").write_text('{"application": "hermes-gateway"}')
    code, told, complaint = typed(capsys, "list")
    assert (code, "git-work" in told) == (0, True)
    assert "own/bad/SKILL.md: SKILL.md does not begin with front matter" in complaint
