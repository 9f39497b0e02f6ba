"""Find the home folder of Hermes, or say why it cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.core.errors import ConfigError
from hermes.hosting import paths


def home_folder() -> Path:
    """Find the home folder. Raises ConfigError when it cannot be used."""
    home = Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser().absolute()
    if reason := paths.why_unusable(str(home)):
        end = "" if " → " in reason else "."  # a command is typed as it stands
        raise ConfigError(
            f"{home} cannot be the home folder: {reason}{end}\n  Or set HERMES_HOME to a folder of yours."
        )
    return home
