"""Explain where a value came from, and find keys by their names."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from hermes.config.keys import NAME, nearest, provider_keys
from hermes.config.layers import Loaded
from hermes.config.providers import KNOWN
from hermes.config.resolved import Entry, Resolved
from hermes.config.values import Key, Kind, Raw
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.secret import HIDDEN, Secret

SHOWN = 3
"""So many settings of a section are named where the section alone was."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A value somebody wrote, with its place. ``note`` says why it does not count, "" for the one that does."""

    where: str
    written: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """``winner`` is a place such as ``.env line 7``, "default" or "last good value". No secret is in any text."""

    key: str
    value: str
    winner: str
    stated: tuple[Stated, ...]
    env: tuple[str, ...]
    default: str
    help: str

    def __str__(self) -> str:
        lines = [f"{self.key} = {self.value}", f"  from {self.winner}"]
        lines += [
            f"  not {source.where}: {source.written} = {source.value} ({source.note})"
            for source in self.stated
            if source.note
        ]
        if self.env:
            lines.append(f"  environment name: {', '.join(self.env)}")
        if self.help:
            lines.append(f"  {self.help}")
        return "\n".join(lines)


def explain(loaded: Loaded, key: str) -> Explanation:
    """Tell where the value of a dotted key or environment name came from. ConfigError names the nearest known key."""
    return explain_key(loaded, find_key(loaded, key))


def explain_key(loaded: Loaded, found: Key) -> Explanation:
    """The same for a key that is at hand: finding one by its name looks through all of them."""
    resolved = loaded.sources.get(found.path)
    value, winner = _effective(loaded, found, resolved)
    entries = resolved.entries if resolved else ()
    return Explanation(
        key=str(found),
        value=value,
        winner=winner,
        stated=tuple(_stated(found, entry, resolved) for entry in entries),
        env=found.env,
        default=format_value(found, found.default),
        help=found.help,
    )


def known_keys(loaded: Loaded) -> dict[str, Key]:
    """Every key by its dotted name: those of the schema, and those under names the owner chose."""
    keys = {str(key): key for key in loaded.schema.keys.values() if "*" not in key.path}
    for name, provider in loaded.config.providers.items():
        keys |= {str(key): key for key in provider_keys(name, provider.api_key_env)}
    return keys | {str(resolved.key): resolved.key for resolved in loaded.sources.values()}


def secret_variables(loaded: Loaded) -> frozenset[str]:
    """The environment names that hold a secret of the gateway itself."""
    return frozenset(
        name
        for key in known_keys(loaded).values()
        if key.kind in (Kind.SECRET, Kind.SECRETS, Kind.URL)
        for name in key.env
    )


def keys_under(loaded: Loaded, section: str) -> list[str]:
    """The keys of a section such as ``platforms.telegram``, by name; those of a key itself are the key."""
    return [name for name in known_keys(loaded) if name == section or name.startswith(f"{section}.")]


def find_key(loaded: Loaded, text: str) -> Key:
    """Return the key of a dotted name or environment name. ConfigError names the nearest known key."""
    keys = known_keys(loaded)
    if text in keys:
        return keys[text]
    by_env = {name: key for key in keys.values() for name in key.env}
    if text in by_env:
        return by_env[text]
    for key in loaded.schema.keys.values():
        if "*" in key.path and (chosen := _names_in(text.split("."), key.path)):
            return loaded.schema.at(key, chosen)
    if below := [name for name in keys if name.startswith(f"{text}.")]:
        listed = ", ".join(below[:SHOWN]) + ", …" * (len(below) > SHOWN)
        raise ConfigError(f"There is no setting {text!r}, but {listed}. `hermes config explain {text}` lists them.")
    sections = {name.partition(".")[0] for name in keys}
    nearest_name = nearest(text, [*sections, *keys, *by_env], cutoff=0.6)
    cure = f"Did you mean {nearest_name}?" if nearest_name else "`hermes config show --all` lists what there is."
    raise ConfigError(f"There is no setting {text!r}. {cure}")


def _names_in(parts: list[str], pattern: tuple[str, ...]) -> tuple[str, ...]:
    """What stands where the pattern has its ``*``; nothing when the rest does not match."""
    if len(parts) != len(pattern) or any(star not in ("*", part) for part, star in zip(parts, pattern, strict=True)):
        return ()
    return tuple(part for part, star in zip(parts, pattern, strict=True) if star == "*" and NAME.fullmatch(part))


def format_value(key: Key, value: Any) -> str:
    """A value for a person: secrets as their last letters, passwords in addresses hidden."""
    if value is None or value in ("", ()):
        return "not set"
    if isinstance(value, Secret):
        return value.hint()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, tuple):
        return ", ".join(item.hint() if isinstance(item, Secret) else str(item) for item in value)
    return without_password(str(value)) if key.kind is Kind.URL else str(value)


def without_password(address: str) -> str:
    try:
        parts = urlsplit(address)
        if parts.password is None:
            return address
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username or ''}:{HIDDEN}@{host}").geturl()


def _effective(loaded: Loaded, key: Key, resolved: Resolved | None) -> tuple[str, str]:
    if resolved is not None:
        winner = str(resolved.winner) if resolved.winner else "last good value" if resolved.is_kept else "default"
        return format_value(key, resolved.value), winner
    if key.path[0] == "providers" and key.path[1] in KNOWN:
        return format_value(key, getattr(loaded.config.providers[key.path[1]], key.path[2], key.default)), "default"
    if key.path in {("model", "default"), ("model", "provider")}:
        return format_value(key, getattr(loaded.config.model, key.path[1])), "chosen from what is configured"
    return format_value(key, key.default), "default"


def _stated(key: Key, entry: Entry, resolved: Resolved | None) -> Stated:
    source = entry.source
    winner = resolved.winner if resolved else None
    if source == winner:
        note = ""
    elif winner is not None and (source.rank, entry.is_alias) > (winner.rank, False):
        note = f"{winner} is heard first"
    else:
        note = "not usable"
    return Stated(str(source), source.written, _format_raw(key, entry.raw), note)


def _format_raw(key: Key, raw: Raw) -> str:
    if key.kind is Kind.SECRET:
        return Secret(raw).hint() if isinstance(raw, str) else HIDDEN
    if key.kind is Kind.SECRETS:
        return format_value(
            key, tuple(Secret(item.strip()) for item in (raw.split(",") if isinstance(raw, str) else raw))
        )
    return format_value(key, raw)
