"""Find the home folder of Hermes, or say why it cannot be used."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.durations import use_zone
from hermes.core.errors import ConfigError
from hermes.hosting import paths

if TYPE_CHECKING:
    from datetime import tzinfo


def home_folder() -> Path:
    """Find the home folder. Raises ConfigError when it cannot be used."""
    home = Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser().absolute()
    if reason := paths.why_unusable(str(home)):
        end = "" if " → " in reason else "."  # a command is typed as it stands
        raise ConfigError(
            f"{home} cannot be the home folder: {reason}{end}\n  Or set HERMES_HOME to a folder of yours."
        )
    use_zone(lambda: _zone_of_home(home))
    return home


@cache
def _zone_of_home(home: Path) -> tzinfo | None:
    """The zone that the configuration of this home names; None where the process has it already, or none is named."""
    if os.environ.get("TZ"):
        return None
    from hermes.config import load  # only for a command that shows a time
    from hermes.services.time_zone import zone_of

    name = load(home, os.environ, home, ()).config.timezone
    return zone_of(name) if name else None
