"""Write settings and keys of another gateway into our files. What is set here stays."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from hermes.config import KNOWN, Loaded
from hermes.config.edit import set_usable, set_variables
from hermes.config.keys import OTHER_ENV
from hermes.config.layers import entries_of
from hermes.config.resolved import Entry
from hermes.config.setting import Path
from hermes.config.values import Key, Kind, looks_unfilled, parse
from hermes.hosting.importers.found import FoundHome
from hermes.hosting.importers.report import Fate, ImportReport

BY_HAND = frozenset({"approvals", "terminal", "database", "tools", "toolsets", "checkpoints", "owners", "dashboard"})
"""Sections that decide who owns the gateway, what the agent may do, or where data is: each person sets them anew."""
BY_HAND_KEYS = frozenset(
    {("agent", "workspace"), ("tts", "command"), ("stt", "command"), ("web", "allow_private_hosts"), ("web", "ports")}
)
"""The same for single settings: programs that are run, and places that the agent reaches."""
ADDRESS_SECTIONS = frozenset({"api", "proxy", "tracing"})
"""Beside every setting that is an address: they decide where words and keys go, and who may ask for them."""
_DECIDES = "it decides what the agent may do or where data is: set it here yourself"
_ADDRESS = "it decides where messages and keys are sent: check it, and import it with --addresses"
_UNKNOWN = "Hermes has no setting of this name"
SHOWN_NAMES = 12
_SECRETS = frozenset({Kind.SECRET, Kind.SECRETS})


def import_settings(
    found: FoundHome, loaded: Loaded, report: ImportReport, *, is_dry: bool, has_addresses: bool = False
) -> None:
    """Write what is known here and not set yet. ``has_addresses``: also where words and keys go. Blocks."""
    label = f"settings of {found.kind}"
    entries, problems = entries_of(loaded.schema, found.settings, label)
    unknown = []
    for problem in problems:
        name = problem.where.rpartition(": ")[2]
        if "unknown" in problem.text:
            unknown.append(name)
        else:
            report.add("settings", Fate.LEFT_OUT, name, problem.text)
    _leave_unknown("settings", unknown, report)
    wanted: dict[str, str] = {}
    keys: dict[str, Key] = {}
    for entry in sorted(entries, key=lambda item: item.is_alias):
        name = str(entry.key)
        if name in wanted or not _is_new(entry.key, entry.raw, loaded, report):
            continue
        if not has_addresses and is_address(entry.key, entry.raw):
            report.leave_address(_part(entry.key), name, _without_secrets(entry.key, entry.raw), _ADDRESS)
            continue
        wanted[name] = entry.raw if isinstance(entry.raw, str) else ", ".join(entry.raw)
        keys[name] = entry.key
    for name in _of_nowhere(keys, report):
        report.add(_part(keys[name]), Fate.LEFT_OUT, name, "its provider has no address without --addresses")
        del wanted[name]
    changes, refused = set_usable(loaded, wanted, is_dry=is_dry)
    for change in changes:
        report.add(_part(keys[change.key]), Fate.CAME)
    for name, reason in refused.items():
        report.add(_part(keys[name]), Fate.LEFT_OUT, name, reason)
    written = {keys[change.key].path for change in changes}
    _import_variables(found, entries, written, loaded, report, is_dry=is_dry, has_addresses=has_addresses)


def is_address(key: Key, raw: object) -> bool:
    """Whether a value decides where words and keys go. An address of this machine leads nowhere else."""
    if key.path[0] in ADDRESS_SECTIONS:
        return True
    if key.kind is not Kind.URL or not isinstance(raw, str):
        return False
    try:
        host = urlsplit(raw.strip()).hostname or ""
    except ValueError:
        return True
    return host not in {"localhost", "127.0.0.1", "::1"}


def _of_nowhere(keys: Mapping[str, Key], report: ImportReport) -> list[str]:
    """Settings of providers that are nothing without the address that was left out."""
    left = {name.split(".")[1] for name, _ in report.addresses if name.startswith("providers.")} - KNOWN.keys()
    return [name for name, key in keys.items() if key.path[0] == "providers" and key.path[1] in left]


def _without_secrets(key: Key, raw: object) -> str:
    """The value as the report shows it: an address without a password in it, and no secret."""
    if key.kind in _SECRETS or not isinstance(raw, str):
        return ""
    return re.sub(r"//[^/@]*@", "//…@", raw.strip())


def _import_variables(
    found: FoundHome,
    entries: list[Entry],
    written: Collection[Path],
    loaded: Loaded,
    report: ImportReport,
    *,
    is_dry: bool,
    has_addresses: bool,
) -> None:
    """Keys go into our `.env` under the names that they had, if a setting of ours reads that name.

    ``written`` are settings that came a moment ago, from the files beside that one.
    """
    known = loaded.schema.env_names(_providers(entries))
    wanted: dict[str, str] = {}
    _leave_unknown("keys", [name for name in found.variables if name not in known or name in OTHER_ENV], report)
    for name, value in found.variables.items():
        keys = known.get(name, [])
        if not keys or name in OTHER_ENV:
            continue
        key = keys[0]
        if key.path in written:
            continue
        if not _is_new(key, value, loaded, report, name):
            continue
        if not has_addresses and is_address(key, value):
            report.leave_address(_part(key), name, _without_secrets(key, value), _ADDRESS)
            continue
        try:
            parse(key, value)
        except ValueError as error:
            report.add(_part(key), Fate.LEFT_OUT, name, f"its value is not usable: {error}")
            continue
        if "\n" in value or "\r" in value:
            report.add(_part(key), Fate.LEFT_OUT, name, "its value has several lines")
            continue
        wanted[name] = value.strip()
        report.add(_part(key), Fate.CAME)
        if name.endswith("ALLOW_ALL_USERS") and parse(key, value):
            report.note(
                "people", name, "everybody may write to the agent, as there: remove the line if you do not want that"
            )
    if wanted and not is_dry:
        set_variables(loaded.files.env, wanted)


def _leave_unknown(part: str, names: list[str], report: ImportReport) -> None:
    """Name what nothing here is called like, in one line: a whole configuration holds hundreds."""
    for _ in names:
        report.add(part, Fate.LEFT_OUT)
    if names:
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        shown = ", ".join(names[:SHOWN_NAMES])
        report.note(part, f"{shown}{more}", _UNKNOWN if len(names) == 1 else "Hermes has no settings of these names")


def _is_new(key: Key, raw: object, loaded: Loaded, report: ImportReport, name: str = "") -> bool:
    """Whether a value is to be written; else it is in the report why not."""
    part, shown = _part(key), name or str(key)
    if key.path[0] in BY_HAND or key.path in BY_HAND_KEYS:
        report.add(part, Fate.LEFT_OUT, shown, _DECIDES)
        return False
    if not isinstance(raw, str | tuple) or looks_unfilled(key, raw):
        return False  # an example, or nothing at all
    there = loaded.sources.get(key.path)
    if there is None or there.winner is None:
        return True
    try:
        is_same = parse(key, raw) == there.value
    except ValueError:
        is_same = False
    if is_same:
        report.add(part, Fate.SAME)
    else:
        report.add(part, Fate.KEPT, shown, f"it is set here ({there.winner}), and stays")
    return False


def _providers(entries: list[Entry]) -> Mapping[str, str]:
    """The providers of both sides, each with the variable that holds its key."""
    providers = dict.fromkeys(KNOWN, "")
    for entry in entries:
        if entry.key.path[0] == "providers":
            variable = providers.setdefault(entry.key.path[1], "")
            if entry.key.path[2] == "api_key_env" and not variable and isinstance(entry.raw, str):
                providers[entry.key.path[1]] = entry.raw.strip()
    return providers


def _part(key: Key) -> str:
    return "keys" if key.kind in _SECRETS else "settings"
