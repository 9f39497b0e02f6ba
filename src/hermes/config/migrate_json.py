"""Move the settings of an older `gateway.json` into `config.yaml` and `.env`."""

from __future__ import annotations

from pathlib import Path

from hermes.config.edit import set_usable
from hermes.config.layers import Loaded, entries_of
from hermes.config.resolved import Rank
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError

SUFFIX = ".migrated"


@dataclass(frozen=True, slots=True)
class JsonMigration:
    """``moved`` and ``kept`` are keys; ``refused`` says for each other one why it was not moved."""

    file: Path
    moved: tuple[str, ...]
    kept: tuple[str, ...]
    refused: dict[str, str]
    set_aside: Path | None


def migrate_gateway_json(loaded: Loaded, *, is_dry: bool = False) -> JsonMigration:
    """Write what `gateway.json` sets and nothing else sets, then set the file aside.

    It stays where it is when one of its settings cannot be moved: it would be lost. Raises ConfigError when there is
    none, or when it cannot be read.
    """
    file = loaded.files.json
    if not file.exists():
        raise ConfigError(f"There is no {file}: nothing is to be moved.")
    if loaded.layers.json is None:
        raise ConfigError(f"{file} cannot be read as it is: `hermes config check` names the line.")
    entries, _ = entries_of(loaded.schema, loaded.layers.json, file.name)
    wanted: dict[str, str] = {}
    kept: list[str] = []
    for entry in sorted(entries, key=lambda item: item.is_alias):
        name, resolved = str(entry.key), loaded.sources.get(entry.key.path)
        is_hidden = any(item.source.rank < Rank.JSON for item in resolved.entries) if resolved is not None else False
        if is_hidden:
            kept.append(name)
        elif name not in wanted:
            wanted[name] = entry.raw if isinstance(entry.raw, str) else ", ".join(entry.raw)
    changes, refused = set_usable(loaded, wanted, is_dry=is_dry)
    aside = None if refused else file.with_name(file.name + SUFFIX)
    if aside is not None and not is_dry:
        if aside.exists():
            raise ConfigError(f"{aside} is there already. The settings are moved; remove {file} by hand.")
        file.rename(aside)
    return JsonMigration(file, tuple(change.key for change in changes), tuple(kept), refused, aside)
