"""Make the clone's .venv hold what the pins say. Standard library only; run by _env.sh when a stamp is missing or old.

    python scripts/_venv.py core [test]        HERMES_VENV=.venv-3.13: in that folder instead

Promises: two starts at the same moment install once; an install that was interrupted is mended by the next start;
a .venv that works is added to, never thrown away, since a gateway may be running from it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / (os.environ.get("HERMES_VENV") or ".venv")
PYTHON = VENV / "bin" / "python"
LOCK = VENV / ".lock"
# Present while the environment itself is being made / while packages are being written into it.
MAKING = VENV / ".making"
INSTALLING = VENV / ".installing"

WAIT_SECONDS = 900
INSTALL_SECONDS = 900
# How pip says that it did not reach an index. The last one is all that is left of it when retries are switched off.
NETWORK_WORDS = (
    "ConnectionError",
    "NewConnectionError",
    "Name or service",
    "ProxyError",
    "SSLError",
    "Temporary failure",
    "timed out",
    "Could not find a version",
)
# Imported once after the install, so that the first start finds them compiled. pip would compile everything: 4 s and
# 18 MB more, mostly for files that nobody imports.
HOT = "aiohttp.web, aiohttp_socks, msgspec, orjson, prompt_toolkit, yaml"


class SetupFailedError(Exception):
    """The text is for the person who typed the command."""


def main(parts: list[str]) -> int:
    try:
        VENV.mkdir(exist_ok=True)
        with alone():
            make_environment()
            missing = [part for part in parts if not is_fresh(part)]
            if missing:
                install(missing)
    except SetupFailedError as error:
        say(f"\n✗ {error}")
        return 1
    except PermissionError as error:
        say(f"✗ {error.filename} cannot be written. Run this as the owner of {ROOT}.")
        return 1
    except OSError as error:
        if error.errno == errno.EROFS:
            say(
                f"✗ {ROOT} is on a read-only file system, and its packages are not installed yet.\n"
                f"  Run {ROOT.name}/scripts/hermes once where it can be written, or use a copy:"
                f" cp -r {shlex.quote(str(ROOT))} ~/hermes && ~/hermes/scripts/hermes"
            )
        else:
            say(f"✗ Setting up {VENV} failed: {error}")
        return 1
    except KeyboardInterrupt:
        say("Stopped. The next start goes on from here.")
        return 130
    return 0


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the lock; the kernel gives it back however we end."""
    with LOCK.open("a") as lock:
        os.set_inheritable(lock.fileno(), True)  # should we be killed, a pip that goes on writing still holds it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another start is installing; waiting for it …")
            wait_for(lock.fileno())
        yield


def wait_for(lock: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.1)
        with contextlib.suppress(BlockingIOError):  # still theirs
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
    raise SetupFailedError(
        f"Another process has been installing into {VENV} for {WAIT_SECONDS // 60} minutes. End it, then try again."
    )


def make_environment() -> None:
    """Keep a .venv that works, whoever made it; otherwise make it anew."""
    if not MAKING.exists() and works():
        return
    say(f"Making {VENV.name} …")  # a few seconds in which nothing else is to be seen
    for old in VENV.iterdir():
        if old != LOCK:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    MAKING.touch()
    # The resolved path holds the version ("/usr/bin/python3.11"): when the system moves on to the next Python the
    # link dangles, which the shell sees, instead of starting a Python that knows none of our packages.
    run([os.path.realpath(sys.executable), "-m", "venv", str(VENV)], "Making the virtual environment")
    MAKING.unlink()


def works() -> bool:
    if not PYTHON.exists():
        return False
    probe = "import sys; sys.exit(sys.version_info < (3, 11) or sys.prefix == sys.base_prefix)"
    return subprocess.run([PYTHON, "-c", probe], capture_output=True, check=False, timeout=60).returncode == 0


def is_fresh(part: str) -> bool:
    stamp = VENV / f"stamp-{part}"
    return stamp.is_file() and stamp.read_bytes() == pins(part).read_bytes() and not INSTALLING.exists()


def pins(part: str) -> Path:
    return ROOT / "requirements" / f"{part}.txt"


def install(parts: list[str]) -> None:
    names = [line for part in parts for line in pins(part).read_text("utf-8").splitlines() if line and line[0] != "#"]
    say(f"Installing once: {len(names)} packages into {VENV.name} …", end="")
    started = time.monotonic()
    # After an interruption a package may be half written and still count as installed; then all are written again.
    mend = ["--ignore-installed"] if INSTALLING.exists() else []
    INSTALLING.touch()
    for part in parts:
        (VENV / f"stamp-{part}").unlink(missing_ok=True)
    if subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        run([str(PYTHON), "-m", "ensurepip"], f"Adding pip to {VENV.name}")
    files = [word for part in parts for word in ("-r", str(pins(part)))]
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    # PIP_USER, PIP_TARGET and their like, or pip.conf, may name another place for packages: these words win over them.
    # Index, proxy and certificates stay as they are set there.
    here = ["--no-user", "--target", "", "--prefix", str(VENV), "--root", "/"]
    run(
        [str(PYTHON), "-m", "pip", "install", "--no-deps", "--no-compile", *here, *quiet, *mend, *files],
        "Installing the packages",
    )
    point_at_sources()
    subprocess.run([PYTHON, "-c", f"import {HOT}"], capture_output=True, check=False, timeout=INSTALL_SECONDS)
    INSTALLING.unlink()
    for part in parts:
        shutil.copyfile(pins(part), VENV / f"stamp-{part}")
    say(f" done in {time.monotonic() - started:.0f} s.")


def point_at_sources() -> None:
    """`python -m hermes` finds src/ by a .pth file, relative so that a moved clone still runs its own code."""
    where = subprocess.run(
        [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout.strip()
    (Path(where) / "hermes-clone.pth").write_text(os.path.relpath(ROOT / "src", where) + "\n", "utf-8")


def run(command: list[str], doing: str) -> None:
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=INSTALL_SECONDS,
            close_fds=False,
        )
    except subprocess.TimeoutExpired:
        raise SetupFailedError(f"{doing} took more than {INSTALL_SECONDS // 60} minutes and was stopped.") from None
    if done.returncode == 0:
        return
    said = "\n".join(f"    {line}" for line in done.stdout.strip().splitlines()[-12:])
    hint = "What to do: read the lines above, then run this again; it goes on from here."
    if any(word in done.stdout for word in NETWORK_WORDS):
        hint = (
            "There seems to be no way to the package index. Check the network, HTTPS_PROXY or PIP_INDEX_URL,"
            " then run this again; it goes on from here."
        )
    raise SetupFailedError(f"{doing} failed:\n{said}\n  {hint}")


def say(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
