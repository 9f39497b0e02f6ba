"""An older gateway.json moves into config.yaml when asked, and nothing is lost or changed by it."""

from __future__ import annotations

import pytest

from hermes.config.migrate_json import migrate_gateway_json
from hermes.core.errors import ConfigError
from tests.unit.config.samples import TOKEN, Home

OLD = f"""{{
  "platforms": {{"telegram": {{"enabled": true, "token": "{TOKEN}",
    "home_channel": {{"platform": "telegram", "chat_id": -100123, "name": "Home, sweet"}}}}}},
  "default_reset_policy": {{"mode": "idle", "at_hour": 5, "idle_minutes": 60}},
  "reset_by_platform": {{"qq": {{"mode": "daily"}}}},
  "always_log_local": false
}}"""


def test_every_setting_means_the_same_after_the_move(home: Home) -> None:
    home.write(json=OLD)
    before = home.config
    done = migrate_gateway_json(home.load())
    assert home.config == before
    assert not (home.path / "gateway.json").exists()
    assert (home.path / "gateway.json.migrated").read_text() == OLD
    assert TOKEN in (home.path / ".env").read_text(), "a secret goes to .env"
    assert TOKEN not in (home.path / "config.yaml").read_text()
    assert "always_log_local" in done.moved
    assert home.problems == ()


def test_a_dry_run_writes_nothing(home: Home) -> None:
    home.write(json=OLD)
    names = {path.name for path in home.path.iterdir()}
    assert migrate_gateway_json(home.load(), is_dry=True).moved
    assert {path.name for path in home.path.iterdir()} == names


def test_what_another_file_sets_stays(home: Home) -> None:
    home.write(json=OLD, yaml="always_log_local: true\n", env="SESSION_RESET_HOUR=7\n")
    before = home.config
    done = migrate_gateway_json(home.load())
    assert home.config == before
    assert set(done.kept) == {"always_log_local", "sessions.reset.at_hour"}


def test_the_file_stays_when_a_setting_of_it_cannot_be_moved(home: Home) -> None:
    home.write(json='{"agent": {"persona": "two\\nlines", "max_iterations": 9}}')
    done = migrate_gateway_json(home.load())
    assert done.set_aside is None
    assert list(done.refused) == ["agent.persona"]
    assert (home.path / "gateway.json").exists()
    assert home.config.agent.persona == "two\nlines"


def test_without_the_file_there_is_a_sentence(home: Home) -> None:
    with pytest.raises(ConfigError, match="nothing is to be moved"):
        migrate_gateway_json(home.load())
