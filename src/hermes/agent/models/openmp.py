"""Take libgomp.so.1 for the built-in model from a small wheel (LD_LIBRARY_PATH) where the system lacks it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

LIBRARY = "libgomp.so.1"
CARRIER, CARRIER_VERSION = "pykdtree", "1.4.3"
# The library is the same in the wheel for every Python, so one is named: a Python that has none yet can use it too.
CARRIER_OPTIONS = ("--python-version", "3.11", "--implementation", "cp")
TRY_SECONDS = 60.0

_ERROR_NAME = re.compile(r"^[\w.]+(?:Error|Exception): ")
_FOLDERS = ("/usr/lib64", "/lib64", "/usr/lib", "/lib", "/usr/local/lib")
# How the library's package is called, by the program that installs it.
_PACKAGES = {
    "apt-get": "apt install libgomp1",
    "dnf": "dnf install libgomp",
    "zypper": "zypper install libgomp1",
    "pacman": "pacman -S gcc-libs",
}


def is_on_system() -> bool:
    """Look where systems keep it. No means "perhaps": only loading tells."""
    multiarch = getattr(sys.implementation, "_multiarch", "")
    return any(os.path.exists(f"{folder}/{LIBRARY}") for folder in (f"/usr/lib/{multiarch}", *_FOLDERS))


def is_missing_in(reason: str) -> bool:
    return LIBRARY in reason


def environment(libraries: Path | None) -> dict[str, str] | None:
    """Return the environment of a process that may need the library; None: ours as it is."""
    if libraries is None:
        return None
    known = os.environ.get("LD_LIBRARY_PATH", "")
    return {**os.environ, "LD_LIBRARY_PATH": f"{known}:{libraries}" if known else str(libraries)}


def why_not_loaded(engine_folder: Path, engine: str, libraries: Path | None, python: str = sys.executable) -> str:
    """Import the engine in a process of its own: "" if that works, else what Python said. Blocks for up to a minute."""
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import {engine}"
    try:
        done = subprocess.run(
            [python, "-I", "-B", "-c", code, str(engine_folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(libraries),
            timeout=TRY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it was not loaded within {TRY_SECONDS:.0f} s"
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"its process was ended by signal {-done.returncode}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return _ERROR_NAME.sub("", lines[-1])[:300] if lines else f"exit code {done.returncode}"


def take_library(site: Path, into: Path) -> bool:
    """Move the library out of the unpacked wheel into a folder of its own, under the name it is asked for by."""
    found = sorted(site.glob(f"{CARRIER}.libs/libgomp*.so*"))
    if not found:
        return False
    fresh = site / "ready"
    fresh.mkdir(mode=0o700)
    found[0].rename(fresh / LIBRARY)
    if into.exists():
        shutil.rmtree(into)
    fresh.rename(into)
    return True


def how_to_install(path: str | None = None) -> str:
    """Return what to type on this system, as half a sentence. ``path``: where to look for its package manager."""
    command = next((text for program, text in _PACKAGES.items() if shutil.which(program, path=path)), "")
    if not command:
        return f"install the package that holds {LIBRARY}, then ask again"
    return f"type `{'sudo ' if os.geteuid() else ''}{command}`, then ask again"
