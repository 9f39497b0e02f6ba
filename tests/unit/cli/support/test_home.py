"""The home of a command: the zone in which its times are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.cli.support.home import home_folder
from hermes.core.durations import format_time, use_zone


@pytest.mark.parametrize("zone, shown", [("Asia/Shanghai", "08:00"), ("America/New_York", "19:00")])
def test_times_are_shown_in_the_zone_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, shown: str
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / zone.replace("/", "-")))
    monkeypatch.delenv("TZ", raising=False)
    home = home_folder()
    try:
        home.mkdir()
        (home / "config.yaml").write_text(f"timezone: {zone}\n")
        assert format_time("%H:%M", 0.0) == shown
    finally:
        use_zone(lambda: None)
