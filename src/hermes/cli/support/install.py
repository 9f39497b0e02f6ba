"""Find and install the packages that a platform lacks."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError
from hermes.core.text import one_line

if TYPE_CHECKING:
    from hermes.core.manifest import Manifest

INSTALL_SECONDS = 600.0
MAX_REASON_CHARS = 300
_CREDENTIALS = re.compile(r"//[^/\s@]+@")


def missing_module(manifest: Manifest) -> str:
    """The module that this platform's adapter cannot import; '' where nothing is missing."""
    adapter = f"{manifest.build.__module__}.adapter"
    try:
        importlib.import_module(adapter)
    except ImportError as error:
        # A platform of another package may keep its adapter elsewhere: then building it says what is missing.
        return "" if error.name == adapter else error.name or str(error)
    return ""


def install(manifest: Manifest) -> None:
    """Install what the platform needs into the Python that runs us, or raise ConfigError in words."""
    from hermes.services.adapters.registry import install_command

    quiet = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")
    # A folder that pip's own settings name would hide the packages from us.
    environ = {name: value for name, value in os.environ.items() if name != "PIP_TARGET"} | {"PIP_USER": "0"}
    try:
        done = subprocess.run(
            [*install_command(manifest.extra), *quiet],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(_failed(manifest, f"it took longer than {INSTALL_SECONDS / 60:.0f} minutes")) from None
    if done.returncode:
        printed = [line for line in done.stdout.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        errors = [line for line in printed if line.startswith("ERROR:")]
        raise ConfigError(_failed(manifest, (errors or printed)[-1].removeprefix("ERROR:").strip()))
    importlib.invalidate_caches()
    if module := missing_module(manifest):
        raise ConfigError(f"pip installed it, but {module} is still not found here. Type the same command again.")


def _failed(manifest: Manifest, reason: str) -> str:
    import shlex

    from hermes.services.adapters.registry import install_command

    shown = one_line(_CREDENTIALS.sub("//", reason), MAX_REASON_CHARS).rstrip(".")
    return f"pip could not install it: {shown}.\n  By hand: {shlex.join(install_command(manifest.extra))}"
