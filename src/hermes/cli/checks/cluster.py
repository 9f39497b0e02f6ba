"""Check the nodes that share one database: their clocks, versions and accounts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.cli.checks.finding import Finding
from hermes.cli.support.client import GatewayClient, Standalone
from hermes.core.durations import count
from hermes.core.errors import GatewayError

CLOCK_SECONDS = 2.0
ANSWER_SECONDS = 10.0
_WELL = frozenset({"connected", "connecting", "off", "elsewhere"})


def ask(home: Path) -> Mapping[str, Any] | None:
    """Ask for the nodes; None where the store does not answer, which another check tells of."""
    try:
        with GatewayClient(home, Standalone.STORE) as client:
            status: Mapping[str, Any] = client.ask("cluster.status", timeout=ANSWER_SECONDS)
            return status
    except (GatewayError, OSError):
        return None


def cluster_check(status: Mapping[str, Any] | None, command: str) -> list[Finding]:
    """One finding for all nodes; nothing where a gateway works alone on a file."""
    if status is None or not status.get("is_cluster"):
        return []
    living = [node for node in status["nodes"] if node["state"] not in ("gone", "left")]
    if not living:
        return [Finding("cluster", "hint", f"no gateway works on this database → {command} gateway start")]
    lines = [words for node in living for words in _troubles(node)] + _versions(living)
    about = f"{count(len(living), 'node')}: {', '.join(str(node['name']) for node in living)}"
    if lines:
        return [Finding("cluster", "trouble", lines[0], (*lines[1:], about))]
    return [Finding("cluster", "good", about)]


def _troubles(node: Mapping[str, Any]) -> list[str]:
    name, facts = node["name"], node["facts"]
    found = []
    if node["state"] == "silent":
        found.append(f"{name} is silent: its lease is over, and its work moves to other nodes")
    ahead = float(facts.get("clock_ahead") or 0.0)
    if abs(ahead) >= CLOCK_SECONDS:
        side = "ahead of" if ahead > 0 else "behind"
        found.append(
            f"the clock of {name} is {abs(ahead):.0f} s {side} the database's → set it there: timedatectl set-ntp true"
        )
    for account, stands in (facts.get("accounts") or {}).items():
        if stands.get("state") not in _WELL:
            reason = f": {stands['reason'].rstrip('.')}" if stands.get("reason") else ""
            found.append(f"{name} does not reach {account} ({stands.get('state')}){reason}")
    return found


def _versions(living: list[Mapping[str, Any]]) -> list[str]:
    versions: dict[str, list[str]] = {}
    for node in living:
        versions.setdefault(str(node["version"]), []).append(str(node["name"]))
    if len(versions) < 2:
        return []
    listing = "; ".join(f"{', '.join(names)} runs {version}" for version, names in sorted(versions.items()))
    return [f"the nodes run different versions ({listing}) → update the older ones, one after the other"]
