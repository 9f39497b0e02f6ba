"""Find the secrets in a configuration: values, parts of addresses, variables by their names."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from hermes.core.secret import Secret


def secrets_within(snapshot: object) -> Iterator[Secret]:
    """Every secret of a value, however deep, those inside addresses included."""
    for value in _values(snapshot):
        if isinstance(value, Secret):
            if value:
                yield value
        elif "://" in value:
            yield from secrets_in(value)


def secrets_of(variables: Mapping[str, str]) -> Iterator[Secret]:
    """What is secret among variables of an environment, ours or not: by their names, and inside addresses."""
    for name, value in variables.items():
        if "://" in value:
            yield from secrets_in(value)
        elif looks_secret(name, value):
            yield Secret(value)


def _values(value: object) -> Iterator[Secret | str]:
    """Every secret and every text in a snapshot, however deep."""
    if isinstance(value, Secret | str):
        yield value
    elif is_dataclass(value):
        for field_ in fields(value):
            yield from _values(getattr(value, field_.name))
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _values(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _values(inner)


def secrets_in(address: str) -> Iterator[Secret]:
    """What is secret in an address: its password, as written and as meant, as a header carries it, and keys in it."""
    try:
        parts = urlsplit(address)
        login = parts.netloc.rpartition("@")[0]
        asked = parse_qsl(parts.query)
    except ValueError:  # not an address after all
        return
    name, has_password, password = login.partition(":")
    if has_password:
        pair = f"{unquote(name)}:{unquote(password)}"
        yield from map(Secret, (password, unquote(password), b64encode(pair.encode()).decode()))
    elif looks_secret("TOKEN", name):
        yield Secret(unquote(name))
    yield from (Secret(value) for key, value in asked if looks_secret(key, value))


_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|CREDENTIAL|PASSW|PASS$|PWD$", re.IGNORECASE)


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable of this name is likely to hold a secret: not a path, a number, a switch or a plain word."""
    if len(value) < 8 or value.startswith(("/", "~", "./")) or value.isdecimal() or not _SECRET_NAME.search(name):
        return False
    return "pass" in name.lower() or len(value) >= 20 or any(letter.isdigit() for letter in value)
