"""Name the files of the running gateway below the home folder.

Imported by the parent too: standard library only, and little of it.
"""

from __future__ import annotations

import os
import shlex

from hermes.store import private_files

ROOM_BELOW = 256  # bytes that the names of our own files add to the path of the home


def working_folder(home: str) -> str:
    """The folder that we are in; the home, where it was removed under us."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return home


def run_folder(home: str) -> str:
    return os.path.join(home, "run")


def parent_lock(home: str) -> str:
    return os.path.join(home, "run", "parent.lock")


def owner_lock(home: str) -> str:
    return os.path.join(home, "run", "owner.lock")


def heartbeat(home: str) -> str:
    return os.path.join(home, "run", "heartbeat")


def last_exit(home: str) -> str:
    return os.path.join(home, "run", "last_exit.json")


def last_drain(home: str) -> str:
    return os.path.join(home, "run", "last_drain.json")


def socket(home: str) -> str:
    return os.path.join(home, "run", "gateway.sock")


def requests(home: str) -> str:
    return os.path.join(home, "run", "requests")


def log(home: str) -> str:
    return os.path.join(home, "logs", "gateway.log")


def error_log(home: str) -> str:
    return os.path.join(home, "logs", "errors.log")


def _mount_of(folder: str) -> str:
    """The mount point of the file system that holds a folder."""
    place = os.path.realpath(folder)
    while not os.path.ismount(place):
        place = os.path.dirname(place)
    return place


def _how_to_write(home: str, there: str) -> str:
    """The command that changes it; '' for a folder that is not the home, which may be the system's."""
    if there != home:
        return ""
    if os.stat(there).st_uid == os.geteuid():
        return f" → chmod 700 {shlex.quote(there)}"
    return f" → sudo chown -R {os.geteuid()} {shlex.quote(there)}"


def console_log(home: str) -> str:
    """What a gateway in the background prints: its screens, and what other programs say in a form of their own."""
    return os.path.join(home, "logs", "console.log")


def why_unusable(home: str) -> str:
    """Half a sentence on why a home cannot be kept at this path; empty when it can. Nothing is touched."""
    there = home
    while not os.path.lexists(there) and there != os.path.dirname(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        return f"{there} is not a folder"
    if os.statvfs(there).f_flag & os.ST_RDONLY:
        return f"its disk is read-only → sudo mount -o remount,rw {shlex.quote(_mount_of(there))}"
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        return f"{there} is not yours to write to{_how_to_write(home, there)}"
    longest = os.pathconf(there, "PC_NAME_MAX")
    if any(len(os.fsencode(name)) > longest for name in home.split(os.sep)):
        return f"a name in it is longer than the {longest} bytes that a file system takes"
    if len(os.fsencode(home)) + ROOM_BELOW > os.pathconf(there, "PC_PATH_MAX"):
        return "it is too long to keep files below it"
    return ""


def open_console(home: str) -> int:
    """A descriptor for what a gateway in the background prints: a new file, the last one kept; else nowhere."""
    path = console_log(home)
    try:
        make_private(os.path.dirname(path))
        if os.path.exists(path):
            os.replace(path, f"{path}.1")
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:  # a full disk, or no rights: the gateway runs all the same
        return os.open(os.devnull, os.O_WRONLY)


def make_private(folder: str) -> None:
    """Make a folder, and those above it, that its owner alone can enter; one that exists stays as it is."""
    if not os.path.isdir(folder):
        above = os.path.dirname(folder)
        if above and above != folder:
            make_private(above)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            return  # somebody else was quicker
        os.chmod(folder, 0o700)  # whatever the umask


def write_private(path: str, text: str) -> None:
    """Replace a file of the run folder, which need not outlive a power cut: a slow disk holds nobody up."""
    private_files.write_private(path, text, is_synced=False)
