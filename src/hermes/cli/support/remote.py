"""Look at a gateway on another machine, by its address alone: no process of it can be seen from here."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from hermes.core.dataclasses import dataclass

MAX_BYTES = 1_000_000
RUNNING_REMOTE = "Running (remote)"


@dataclass(frozen=True, slots=True)
class RemoteGateway:
    """``base`` is its address without a path. ``told`` is what `/health/detailed` says without a key."""

    base: str
    is_running: bool
    sentence: str
    health: dict[str, Any]


def look(url: str, seconds: float) -> RemoteGateway:
    """Ask for its state. ``url`` may name the gateway, its `/health` or its `/health/detailed`."""
    base = base_of(url)
    for path in ("/health/detailed", "/health"):
        try:
            with urllib.request.urlopen(f"{base}{path}", timeout=seconds) as answer:  # noqa: S310 - http(s), by its kind
                health = json.loads(answer.read(MAX_BYTES))
        except urllib.error.HTTPError as error:
            if error.code == 404 and path == "/health/detailed":
                continue  # another program that knows /health alone
            return RemoteGateway(base, False, f"The gateway at {base} answers {error.code}. {_CURE}", {})
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            return RemoteGateway(base, False, f"The gateway at {base} does not answer: {reason}. {_CURE}", {})
        if isinstance(health, dict) and health.get("status") in ("ok", "degraded"):
            return RemoteGateway(base, True, _sentence(base, health), health)
    return RemoteGateway(base, False, f"The program at {base} is not a Hermes gateway. {_CURE}", {})


_CURE = "Check GATEWAY_HEALTH_URL: hermes config explain dashboard.health_url"


def base_of(url: str) -> str:
    """Return the address without `/health` or `/health/detailed`."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix("/detailed").removesuffix("/health")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _sentence(base: str, health: dict[str, Any]) -> str:
    state = "" if health["status"] == "ok" else ", degraded"
    return f"{RUNNING_REMOTE}{state}: {base}"
