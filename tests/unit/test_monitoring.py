"""What is shipped for Prometheus and Grafana can be loaded there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.programs import needs

pytestmark = pytest.mark.one_python

FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"


@needs("promtool")
def test_prometheus_takes_the_alert_rules() -> None:
    checked = subprocess.run(
        ["promtool", "check", "rules", FOLDER / "alerts.yml"], capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "12 rules found" in checked.stdout


def test_the_dashboard_has_what_grafana_asks_of_one() -> None:
    dashboard: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
    assert dashboard["title"] == "Hermes"
    assert isinstance(dashboard["schemaVersion"], int)
    assert "id" not in dashboard, "an id belongs to one Grafana"
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] in ("timeseries", "stat")
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGH"[: len(panel["targets"])])
        assert all(target["expr"].count("(") == target["expr"].count(")") for target in panel["targets"])
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert {variable["name"] for variable in dashboard["templating"]["list"]} == {"datasource", "instance"}
