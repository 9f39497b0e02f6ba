"""Each repair cures its fault, and touches nothing that it cannot judge."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from hermes.cli.repairs.repairs import plan_repairs
from hermes.cli.repairs.undo import UndoRecord
from hermes.cli.support.home import load_config
from hermes.core.errors import GatewayError
from hermes.store.home import make_home

TOKEN = "TELEGRAM_BOT_TOKEN=123456:abcdefghijklmnopqrstuvwxyz1234567"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    make_home(home)
    return home


def repair(home: Path, *wanted: str) -> list[str]:
    record = UndoRecord(home)
    return [text for one in plan_repairs(home, "hermes", set(wanted)) for text in one.act(record)]


def test_a_misspelt_name_in_env_is_renamed_and_the_rest_of_the_file_stays(home: Path) -> None:
    (home / ".env").write_text(f"# mine\nexport TELEGRAM_ALOWED_USERS=7   # ana\n{TOKEN}\n")
    assert repair(home, "config") == [".env: TELEGRAM_ALOWED_USERS is TELEGRAM_ALLOWED_USERS now"]
    assert (home / ".env").read_text() == f"# mine\nexport TELEGRAM_ALLOWED_USERS=7   # ana\n{TOKEN}\n"


def test_a_misspelt_section_in_config_yaml_is_renamed_with_its_comments(home: Path) -> None:
    (home / "config.yaml").write_text("agnt:  # mine\n  max_iterations: 5\n")
    assert repair(home, "config") == ["config.yaml: agnt is agent now"]
    assert (home / "config.yaml").read_text() == "agent:  # mine\n  max_iterations: 5\n"
    assert load_config(home).config.agent.max_iterations == 5


@pytest.mark.parametrize(
    "content",
    [
        "agnt: {max_iterations: 5}\nagent: {max_iterations: 6}\n",
        "zzz: 1\n",
        "platforms: {telegram: {alowed: [7]}}\n",
    ],
    ids=["the right name is there too", "no name is near", "several names are near"],
)
def test_what_was_meant_is_not_guessed(home: Path, content: str) -> None:
    (home / "config.yaml").write_text(content)
    plans = plan_repairs(home, "hermes", {"config"})
    for plan in plans:
        with pytest.raises(GatewayError, match="by hand"):
            plan.act(UndoRecord(home))
    assert (home / "config.yaml").read_text() == content


def test_a_model_of_another_provider_is_asked_of_the_provider_that_it_names(home: Path) -> None:
    (home / "config.yaml").write_text(
        "model: {provider: openrouter, default: openkey/gpt-4o-mini}\n"
        "providers: {openkey: {base_url: 'https://openkey.example/v1'}}\n".replace("model: {", "model:\n  ")
        .replace(", default", "\n  default")
        .replace("mini}", "mini")
    )
    assert repair(home, "config") == ["config.yaml: model.provider is openkey now"]
    assert load_config(home).config.model.provider == "openkey"
    assert load_config(home).problems == ()


def test_files_that_others_can_read_are_closed_and_the_peoples_own_are_not(home: Path) -> None:
    (home / "workspaces").mkdir()
    for name in (".env", "api_server.key", "workspaces/page.html"):
        (home / name).write_text("A=1\n")
        (home / name).chmod(0o644)
    (home / "hook.sh").write_text("#!/bin/sh\n")
    (home / "hook.sh").chmod(0o755)
    (home / "link").symlink_to("/etc/hostname")
    repair(home, "permissions")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir() if not path.is_symlink()}
    assert (modes[".env"], modes["api_server.key"], modes["hook.sh"]) == (0o600, 0o600, 0o700)
    assert stat.S_IMODE((home / "workspaces" / "page.html").stat().st_mode) == 0o644


def test_only_old_temporary_files_are_set_aside(home: Path) -> None:
    for name in ("state.db.1-1.tmp", "fresh.tmp", "notes.txt"):
        (home / name).write_text("x")
    import os

    old = time.time() - 7200
    os.utime(home / "state.db.1-1.tmp", (old, old))
    os.utime(home / "notes.txt", (old, old))
    assert repair(home, "leftovers") == ["set aside: state.db.1-1.tmp"]
    assert sorted(path.name for path in home.iterdir() if path.is_file()) == [".hermes-home", "fresh.tmp", "notes.txt"]
