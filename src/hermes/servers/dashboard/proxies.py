"""Requests through a reverse proxy: whose headers count, and which path was meant."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from aiohttp import hdrs, web
from multidict import CIMultiDict

from hermes.servers.dashboard.sign_in import base_path_of


def is_trusted(remote: str, trusted: Iterable[str]) -> bool:
    """Tell whether the peer of a connection is one of these addresses or networks."""
    try:
        address = ipaddress.ip_address(remote.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    for entry in trusted:
        try:
            network = ipaddress.ip_network(entry.strip(), strict=False)
        except ValueError:
            continue  # `hermes config check` names it
        if address in network or (mapped is not None and mapped in network):
            return True
    return False


def unwrapped(request: web.Request, trusted: Iterable[str]) -> web.Request:
    """Return the request as the client sent it, if a trusted proxy passed it on; otherwise the request itself.

    Each proxy adds to the end of ``X-Forwarded-For``: the client is the last address that is no trusted proxy.
    """
    trusted = tuple(trusted)
    if not trusted or not is_trusted(request.remote or "", trusted):
        return request
    headers = CIMultiDict(request.headers)
    host = headers.get("X-Forwarded-Host", "").split(",")[-1].strip()
    scheme = headers.get("X-Forwarded-Proto", "").split(",")[-1].strip().casefold()
    passed = [each.strip() for each in headers.get("X-Forwarded-For", "").split(",") if each.strip()]
    clients = [each for each in passed if not is_trusted(each, trusted)]
    if host:
        headers[hdrs.HOST] = host
    return request.clone(
        headers=headers,
        scheme=scheme if scheme in ("http", "https") else request.scheme,
        remote=clients[-1] if clients else request.remote or "",
    )


def without_base(path: str, setting: str) -> str:
    """Return the path below the base path; '' if there is no base path, or the path is not below it."""
    base = base_path_of(setting)
    if not base or not (path == base or path.startswith(f"{base}/")):
        return ""
    return path.removeprefix(base) or "/"
