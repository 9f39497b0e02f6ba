"""Scrub the environment of a command: no variable that may hold a secret."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

log = logging.getLogger(__name__)

PLAIN = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "COLUMNS", "LINES",
        "NO_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR",
    }
)  # fmt: skip
OURS = frozenset({"HERMES_HOME", "HERMES_PROFILE", "HERMES_CONFIG", "HERMES_ENV"})
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TMP = "/tmp"  # noqa: S108 - the folder of a sandbox


def scrubbed(
    environ: Mapping[str, str], *, passed: Iterable[str] = (), look_up: Callable[[str], str | None] | None = None
) -> dict[str, str]:
    """The environment of a command. ``passed`` names what its owner lets through; ``look_up`` finds those elsewhere.

    One line for whoever wonders where a variable has gone: its name, never its value.
    """
    kept = {name: value for name, value in environ.items() if _is_plain(name)}
    for name in passed:
        value = environ.get(name) if name in environ else look_up(name) if look_up else None
        if value is not None:
            kept[name] = value
    dropped = sorted(environ.keys() - kept.keys())
    if dropped:
        log.debug("Environment scrubbed", extra={"dropped": " ".join(dropped)})
    kept.setdefault("PATH", DEFAULT_PATH)
    kept.setdefault("LANG", "C.UTF-8")
    kept["TERM"] = "dumb"  # nobody looks at colours and cursor movements here
    return kept


def at_home_in(workspace: Path, environment: Mapping[str, str], temporary: str = _TMP) -> dict[str, str]:
    """Set HOME to the workspace and TMPDIR to ``temporary``, for a sandbox."""
    return {**environment, "HOME": str(workspace), "TMPDIR": temporary}


def let_through(environment: Mapping[str, str]) -> dict[str, str]:
    """Return only the variables that were passed through: the others fit this machine alone."""
    return {name: value for name, value in environment.items() if not _is_plain(name)}


def _is_plain(name: str) -> bool:
    return name in PLAIN or name in OURS or name.startswith("LC_")
