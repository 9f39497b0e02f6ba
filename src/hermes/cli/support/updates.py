"""What an update and its way back need to know of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.support.backups import PG_DUMP, make_backup
from hermes.cli.support.home import home_folder, load_config
from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import note

if TYPE_CHECKING:
    from hermes.hosting.update.update import UpdateOptions


def options_here() -> UpdateOptions:
    """What an update or its way back needs to know of this machine."""
    from hermes.hosting.update.find import find_installation
    from hermes.hosting.update.update import UpdateOptions
    from hermes.store.home import make_home
    from hermes.store.open import is_postgres

    installation = find_installation()
    home = home_folder()
    make_home(home)
    if is_postgres(load_config(home).config.database_url):
        note("! The database is PostgreSQL: its migrations are not tried on a copy, and it is not in the backup.")
        note(f"  Back it up first: {PG_DUMP}")
    return UpdateOptions(
        home=home,
        installation=installation,
        make_backup=lambda: make_backup(home, reason="update").path,
        say=lambda text: note(f"{text} …" if not text.startswith(("✗", "✓", "!")) else text),
        command=command_name(),
    )
