"""Check the ports: what is open to the network, and what keeps a port closed."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.checks.finding import Finding
from hermes.hosting import status

if TYPE_CHECKING:
    from hermes.config import ApiConfig, Config

LISTENING = "0A"
"""How Linux writes the state of a listening socket."""


def api_check(config: Config, facts: status.Facts) -> list[Finding]:
    """Report why the API port must stay closed, unless a running gateway reports it."""
    from hermes.servers.api.security import why_closed

    reason = asyncio.run(why_closed(config.api)) if config.api.enabled else ""
    is_told = reason in (facts.snapshot or {}).get("troubles", ())
    if not reason or is_told:
        return []
    return [Finding("api", "trouble", reason, (f"a good key → {facts.command} config set API_SERVER_KEY -",))]


def ports_check(api: ApiConfig, facts: status.Facts) -> list[Finding]:
    """Tell where the API listens, and which other program holds its port."""
    from hermes.servers.api.security import is_network_accessible

    if not api.enabled:
        return [Finding("ports", "good", "none: the API is off")]
    where = f"{api.host}:{api.port}" if api.port else f"{api.host}, a free port"
    is_free_for_us = facts.is_held and not _is_port_trouble(facts, api.port)  # else the gateway itself listens there
    may_look = api.port and not (is_free_for_us or facts.is_hidden)
    if may_look and (holder := port_holder(api.host, api.port)) is not None:
        holder_text = f"by process {holder}" if holder else "by another program"
        cure = f"end that program, or take another port: {facts.command} config set api.port {api.port + 1}"
        text = f"{where} is used {holder_text}, so the API cannot open it → {cure}"
        return [Finding("ports", "trouble", text, reason="Until then the API and the dashboard are off.")]
    if is_network_accessible(api.host):
        return [Finding("ports", "good", f"{where}, reachable from the network, with a key")]
    return [Finding("ports", "good", f"{where}, reachable from this machine alone")]


def _is_port_trouble(facts: status.Facts, port: int) -> bool:
    """Tell whether the running gateway reports that it could not open the port."""
    return any(str(words).split()[:2] == ["port", str(port)] for words in (facts.snapshot or {}).get("troubles", ()))


def port_holder(host: str, port: int) -> int | None:
    """The process that listens on a port; 0 where it cannot be seen; None where the port is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:  # a name that is not ours, or no right: the API itself tells that
            return _listener(port) if error.errno == errno.EADDRINUSE else None
    return None


def _listener(port: int) -> int:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:  # no Linux
            continue
        for row in map(str.split, rows):
            if row[3] == LISTENING and int(row[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{row[9]}]")
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) in inodes:
                return int(link.parts[2])
        except OSError:  # another account's, or gone
            continue
    return 0
