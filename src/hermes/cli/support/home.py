"""Find the home folder and read its configuration, or say why it cannot be used."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.program_name import command_name
from hermes.core.durations import use_zone
from hermes.core.errors import ConfigError, ForeignHomeError, GatewayError
from hermes.core.keys import LOCAL
from hermes.hosting import paths

if TYPE_CHECKING:
    from datetime import tzinfo

    from hermes.config import Config


class NothingIsStoredError(GatewayError):
    """The home holds no store yet: the first start or the first message makes it."""


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


def refuse_foreign(home: Path) -> None:
    """Raise, with the words, when the home is another program's: nothing is written there, not even a lock."""
    from hermes.store.home import Whose, inspect_home

    state = inspect_home(home)
    if state.whose is Whose.FOREIGN:
        from hermes.hosting import banner

        shown = banner.short_home(str(home), os.path.expanduser("~"))
        raise ForeignHomeError(banner.foreign_home(shown, state.description, command_name()))


def load_config(home: Path) -> Any:
    """The configuration as the gateway would see it: a ``hermes.config.Loaded``."""
    from hermes.config import load
    from hermes.services.adapters.registry import find_platforms

    return load(home, os.environ, working_folder(home), tuple(find_platforms().manifests.values()))


def outside_platforms(config: Config) -> list[str]:
    """Platforms that somebody set up and that only a running gateway hears. The terminal's own is none of them."""
    return [
        name
        for name, accounts in config.platforms.items()
        if name != LOCAL and any(account.is_mentioned and account.is_ready for account in accounts.values())
    ]


def working_folder(home: Path) -> Path:
    """Return the current folder. Its `.env` is not read; a warning names it."""
    return Path(paths.working_folder(str(home)))
