"""What `hermes doctor` and `hermes cluster status` say of several nodes."""

from __future__ import annotations

from typing import Any

from hermes.cli.checks.cluster import cluster_check
from hermes.cli.cluster import screen


def node(name: str, **more: Any) -> dict[str, Any]:
    told = {
        "id": f"inc_{name}",
        "name": name,
        "host": f"{name}.example",
        "pid": 7,
        "version": "2.0",
        "state": "living",
        "up_seconds": 60.0,
        "beat_age": 0.5,
        "lease_left": 3.5,
        "lanes": 1,
        "turns": 1,
        "targets": 0,
        "duties": [],
        "facts": {"clock_ahead": 0, "accounts": {"telegram": {"state": "elsewhere", "reason": ""}}},
    }
    return {**told, **more}


def cluster(*nodes: dict[str, Any]) -> dict[str, Any]:
    waiting = {"lanes": 0, "targets": 0, "calls": 0, "lag_seconds": 0.0}
    return {
        "is_cluster": True,
        "nodes": list(nodes),
        "duties": [],
        "waiting": waiting,
        "schema_version": 6,
        "min_reader": 6,
    }


def test_nodes_that_are_well_are_one_good_line() -> None:
    [found] = cluster_check(cluster(node("a"), node("b")), "hermes")
    assert (found.level, found.text) == ("good", "2 nodes: a, b")


def test_wrong_clock_other_version_and_platform_out_of_reach_are_found() -> None:
    late = node("b", facts={"clock_ahead": -3600, "accounts": {}})
    deaf = node("c", version="2.1", facts={"clock_ahead": 0, "accounts": {"qq": {"state": "broken", "reason": "DNS"}}})
    [found] = cluster_check(cluster(node("a"), late, deaf), "hermes")
    assert found.level == "trouble"
    lines = (found.text, *found.more)
    assert lines[0].startswith("the clock of b is 3600 s behind the database's")
    assert lines[1] == "c does not reach qq (broken): DNS"
    assert "a, b runs 2.0; c runs 2.1" in lines[2]


def test_node_whose_lease_is_over_is_named() -> None:
    [found] = cluster_check(cluster(node("a"), node("b", state="silent")), "hermes")
    assert found.text.startswith("b is silent")


def test_gateway_on_a_file_has_no_line() -> None:
    assert cluster_check({"is_cluster": False}, "hermes") == []
    assert cluster_check(None, "hermes") == []


def test_screen_shows_leases_accounts_lanes_lag_and_versions() -> None:
    told = cluster(node("a", duties=["account:telegram", "task:janitor"]), node("b", state="gone", beat_age=90.0))
    told["waiting"] = {"lanes": 2, "targets": 0, "calls": 0, "lag_seconds": 4.0}
    lines = screen(told)
    assert lines[0].startswith("a          living, up 1 min, lease 3.5 s, 1 lane, 1 turn, 0 targets")
    assert any("telegram: elsewhere" in line for line in lines)
    assert any(line.strip() == "task:janitor" for line in lines)
    assert any(line.startswith("b          gone, last heard of 1 min ago") for line in lines)
    assert "waiting    2 lanes, 0 targets, 0 calls, the oldest for 4 s" in lines
    assert lines[-1] == "schema     6, readable from 6 on"
