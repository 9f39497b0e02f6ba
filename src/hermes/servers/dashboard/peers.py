"""Tell which user of this machine is at the other end of a connection.

A browser that `hermes dashboard` opens has the link among its arguments, and every user of the machine reads those. A
code for such a link is valid for one user alone: its beginning names the user, and what it names is part of its hash.
"""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path
from typing import Any

ROOT = 0
"""Who could read the home anyway. Relays that bring a port to another machine often run as root."""
_BOUND = re.compile(r"u(\d{1,10})\.")
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def knows_users() -> bool:
    """Tell whether this system says whose a connection is."""
    return Path(_TABLES[0]).exists()


def bound_to(uid: int, code: str) -> str:
    """Return the code that only this user redeems."""
    return f"u{uid}.{code}"


def may_redeem(code: str, transport: Any) -> bool:
    """Tell whether whoever shows a code is the user that it is for. A code that names no user is for everybody."""
    found = _BOUND.match(code)
    return found is None or peer_uid(transport) in (int(found[1]), ROOT)


def peer_uid(transport: Any) -> int | None:
    """Return the user at the other end; None where that is another machine, or where the system does not tell."""
    theirs = transport.get_extra_info("peername") if transport is not None else None
    ours = transport.get_extra_info("sockname") if transport is not None else None
    if not theirs or not ours:
        return None
    wanted = _packed(theirs[0], theirs[1]), _packed(ours[0], ours[1])
    for table in _TABLES:
        try:
            lines = Path(table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue  # no IPv6, or no /proc
        for line in lines:
            fields = line.split()
            if len(fields) > 9 and (_read(fields[1]), _read(fields[2])) == wanted:
                # Closed by its process, it has no inode, and the kernel says 0 for everybody: that is not root.
                return int(fields[7]) if fields[9] != "0" else None
    return None


def _packed(address: str, port: int) -> tuple[bytes, int]:
    """Return an address as 16 bytes, so that IPv4 and IPv4 within IPv6 are the same."""
    if ":" in address:
        return socket.inet_pton(socket.AF_INET6, address.partition("%")[0]), port
    return b"\0" * 10 + b"\xff\xff" + socket.inet_pton(socket.AF_INET, address), port


def _read(field: str) -> tuple[bytes, int]:
    """Read ``0100007F:1F90``: words of four bytes as this machine holds them."""
    words, _, port = field.partition(":")
    raw = bytes.fromhex(words)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return (raw if len(raw) == 16 else b"\0" * 10 + b"\xff\xff" + raw), int(port, 16)
