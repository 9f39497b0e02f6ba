"""Place the session files of an account. A new link is made beside them; the lock's holder puts it in place."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from hermes.core.secret import Secret
from hermes.platforms.whatsapp.client import Address
from hermes.platforms.whatsapp.config import Places
from hermes.platforms.whatsapp.install import private

MARK = "linked"  # in the folder of a new link: it is whole


def is_linked(session: Path) -> bool:
    """Whether there are keys of a device in it; nobody else can look at them from here on."""
    with suppress(FileNotFoundError):
        session.chmod(0o700)
    return (session / "creds.json").is_file()


def has_link(places: Places) -> bool:
    """Tell whether a session exists, or a new link that waits. The bridge sets an ended session aside."""
    return (places.session / "creds.json").is_file() or (places.linking / MARK).is_file()


def is_whole(session: Path) -> bool:
    """Tell whether the keys of the link are on the disk."""
    with suppress(OSError, ValueError):
        creds = json.loads((session / "creds.json").read_bytes())
        return isinstance(creds, dict) and bool(creds.get("account"))
    return False


def mark_linked(places: Places) -> None:
    (places.linking / MARK).touch(mode=0o600)


def adopt(places: Places) -> bool:
    """Replace the session with a new link, keeping the old aside. Lock holders only; a killed run is finished later."""
    if not (places.linking / MARK).is_file():
        return False
    fresh = places.linking / "session"
    if fresh.is_dir():
        if places.session.is_dir() and any(places.session.iterdir()):
            stamp = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
            path, number = places.root / f"session.old-{stamp}", 1
            while path.exists():
                path, number = places.root / f"session.old-{stamp}-{number}", number + 1
            places.session.rename(path)
        elif places.session.is_dir():
            places.session.rmdir()
        fresh.rename(places.session)
    shutil.rmtree(places.linking)
    return True


def tell_running(places: Places, address: Address, pid: int) -> None:
    """For `hermes gateway test` and the like: they ask the bridge that runs, as there can be only one."""
    private(places.root)
    fresh = places.running.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"port": address.port, "token": address.token.reveal(), "pid": pid}, file)
    fresh.rename(places.running)


def running_bridge(places: Places) -> Address | None:
    with suppress(OSError, ValueError, KeyError, TypeError):  # none runs, or it is just being written
        record = json.loads(places.running.read_text("utf-8"))
        return Address(int(record["port"]), Secret(str(record["token"])))
    return None
