"""Check values of platform settings; the ConfigError says what to type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from hermes.core.errors import ConfigError


def web_address(env: str, value: object, usual: str = "", *, cure: str = "", scheme: str = "http") -> str:
    """Check a web address, ``usual`` if unset; ``scheme`` may have an s. The last slash is removed."""
    address = str(value or usual).strip().rstrip("/")
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in (scheme, f"{scheme}s") and bool(parts.hostname)
    except ValueError:
        is_valid = False
    if not is_valid:
        expected = "a web address" if scheme == "http" else f"an address that begins with {scheme}:// or {scheme}s://"
        raise ConfigError(f"{env} is {value!r}, which is not {expected}.\n  {cure or f'Leave it out for {usual}.'}")
    return address


def number(
    values: Mapping[str, Any], key: str, env: str, usual: float, least: float, most: float, *, zero: str = ""
) -> float:
    """Check a number, ``usual`` if unset. ``zero`` says what 0 means, where it has a meaning."""
    value = values.get(key)
    if value is None or value == "":
        return usual
    try:
        found = float(str(value))
    except ValueError:
        found = least - 1
    if not least <= found <= most:
        low = f"{least:g} ({zero})" if zero and not least else f"{least:g}"
        raise ConfigError(f"{env} is {value!r}; it is a number from {low} to {most:g}.\n  Leave it out for {usual:g}.")
    return found
