"""Look at a gateway on another machine, by its address alone: no process of it can be seen from here."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from hermes.core.dataclasses import dataclass
from hermes.core.text import one_line

MAX_BYTES = 100_000
MAX_REASON_CHARS = 200
RUNNING_REMOTE = "Running (remote)"
STATUSES = ("ok", "degraded")


@dataclass(frozen=True, slots=True)
class RemoteGateway:
    """``base`` is its address without a path. ``health`` is what `/health/detailed` says without a key."""

    base: str
    is_running: bool
    sentence: str
    health: dict[str, Any]

    @property
    def state(self) -> str:
        """running, degraded or unreachable."""
        return "unreachable" if not self.is_running else "running" if self.health["status"] == "ok" else "degraded"


class NotAGatewayError(Exception):
    """Something answered, and not as a gateway does."""


def look(url: str, seconds: float) -> RemoteGateway:
    """Ask for its state, for ``seconds`` at most. ``url`` may name the gateway, its `/health` or `/health/detailed`."""
    from http.client import HTTPException

    base = base_of(url)
    try:
        status, health = _ask(f"{base}/health/detailed", seconds)
        if status == 404:  # another program that knows /health alone
            status, health = _ask(f"{base}/health", seconds)
    except TimeoutError:
        return _missing(base, f"The gateway at {base} does not answer: timed out.")
    except (NotAGatewayError, HTTPException, ValueError, RecursionError):
        return _missing(base, f"The program at {base} is not a Hermes gateway.")
    except OSError as error:
        reason = one_line(error.strerror or str(error), MAX_REASON_CHARS)
        return _missing(base, f"The gateway at {base} does not answer: {reason}.")
    if status != 200:
        return _missing(base, f"The gateway at {base} answers {status}.")
    if health.get("status") not in STATUSES:
        return _missing(base, f"The program at {base} is not a Hermes gateway.")
    degraded = "" if health["status"] == "ok" else ", degraded"
    return RemoteGateway(base, True, f"{RUNNING_REMOTE}{degraded}: {base}", _known(health))


def base_of(url: str) -> str:
    """Return the address without `/health` or `/health/detailed`, and without a password."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix("/detailed").removesuffix("/health")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"


def _missing(base: str, sentence: str) -> RemoteGateway:
    return RemoteGateway(base, False, f"{sentence} {_CURE}", {})


_CURE = "Check GATEWAY_HEALTH_URL: hermes config explain dashboard.health_url"


def _ask(url: str, seconds: float) -> tuple[int, dict[str, Any]]:
    """GET an address within the seconds, however slowly the server sends. Redirects are not followed."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        if (sock := connection.sock) is not None:
            with suppress(OSError):  # closed this moment
                sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        connection.request("GET", parts.path, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        raw = answer.read(MAX_BYTES + 1)
    except (OSError, HTTPException) as error:
        if is_late.is_set():
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
        connection.close()
    if is_late.is_set():
        raise TimeoutError
    if answer.status != 200:
        return answer.status, {}
    if len(raw) > MAX_BYTES:
        raise NotAGatewayError
    health = json.loads(raw)
    if not isinstance(health, dict):
        raise NotAGatewayError
    return answer.status, health


def _known(health: dict[str, Any]) -> dict[str, Any]:
    """Keep what a gateway tells, in the types that it has: anything else may be meant for a terminal or a page."""
    known: dict[str, Any] = {"status": health["status"]}
    if isinstance(health.get("active_agents"), int):
        known["active_agents"] = health["active_agents"]
    if isinstance(state := health.get("gateway_state"), str):
        known["gateway_state"] = one_line(state, 40)
    for name in ("platform_states", "waiting"):
        if isinstance(counts := health.get(name), dict):
            items = list(counts.items())[:20]
            known[name] = {one_line(key, 40): count for key, count in items if isinstance(count, int)}
    return known
