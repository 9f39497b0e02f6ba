"""Name the files that a configuration is read from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hermes.core.dataclasses import dataclass

CONFIG = "HERMES_CONFIG"
ENV = "HERMES_ENV"
SOUL = "SOUL.md"


@dataclass(frozen=True, slots=True)
class SettingFiles:
    """``config`` and ``env`` are those of the home, or others that the process environment names in their place."""

    config: Path
    env: Path
    json: Path
    soul: Path
    config_label: str = "config.yaml"
    env_label: str = ".env"

    @property
    def named(self) -> tuple[tuple[str, Path], ...]:
        """The files that a variable names, with the variable."""
        found = []
        if self.config_label != "config.yaml":
            found.append((CONFIG, self.config))
        if self.env_label != ".env":
            found.append((ENV, self.env))
        return tuple(found)


def setting_files(home: Path, environ: Mapping[str, str]) -> SettingFiles:
    """Return the files of a home; HERMES_CONFIG and HERMES_ENV name others for config.yaml and .env."""
    config, env = _named(environ, CONFIG), _named(environ, ENV)
    return SettingFiles(
        config or home / "config.yaml",
        env or home / ".env",
        home / "gateway.json",
        home / SOUL,
        str(config or "config.yaml"),
        str(env or ".env"),
    )


def _named(environ: Mapping[str, str], variable: str) -> Path | None:
    text = environ.get(variable, "").strip()
    return Path(os.path.abspath(os.path.expanduser(text))) if text else None
