"""Find out how Hermes is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import hermes
from hermes.hosting.update.clone import CloneInstallation
from hermes.hosting.update.installation import Installation, UpdateFailedError
from hermes.hosting.update.package import PackageInstallation


def find_installation() -> Installation:
    """The installation that this process runs from. Raises UpdateFailedError for one that is updated in other ways."""
    package = Path(hermes.__file__).resolve().parent
    clone = package.parents[1]
    if (clone / ".git").is_dir() and package.parent.name == "src":
        return CloneInstallation(clone)
    if (clone / ".git").is_file() and package.parent.name == "src":
        raise UpdateFailedError(
            f"This Hermes runs from the git worktree {clone}, which only git updates.\n"
            f"  Update it: git -C {clone} pull     Then: hermes gateway restart"
        )
    if sys.prefix == sys.base_prefix or not package.is_relative_to(Path(sys.prefix).resolve()):
        raise UpdateFailedError(
            "This Hermes is neither a git clone nor installed in a virtual environment.\n"
            "  Update it the way it was installed (a new image, a new package), then: hermes gateway restart"
        )
    return PackageInstallation(Path(sys.prefix))
