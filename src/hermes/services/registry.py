"""Which platforms there are: ours, and those that other packages bring by the entry point ``hermes.platforms``."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hermes.core.manifest import Manifest
from hermes.core.values import dataclass

log = logging.getLogger(__name__)

GROUP = "hermes.platforms"

# Ours stand here by module name, so that they are found in a clone too, where no entry point is installed.
BUILT_IN: Mapping[str, str] = {
    "qq": "hermes.platforms.qq",
    "slack": "hermes.platforms.slack",
    "telegram": "hermes.platforms.telegram",
    "local": "hermes.platforms.local",
    "weixin": "hermes.platforms.weixin",
}


@dataclass(frozen=True, slots=True)
class Registry:
    """The manifests by platform id, and one line for each platform that could not be loaded."""

    manifests: Mapping[str, Manifest]
    broken: Mapping[str, str]


def find_platforms(built_in: Mapping[str, str] = BUILT_IN) -> Registry:
    """Import every manifest (and nothing else of a platform). A broken one is one line, and the others go on."""
    manifests: dict[str, Manifest] = {}
    broken: dict[str, str] = {}

    def take(name: str, origin: str, load: Callable[[], Any]) -> None:
        try:
            manifest = load()
        except Exception as error:  # noqa: BLE001 - the edge "supervisor": whatever a plugin does, the others start
            broken[name] = f"Platform {name} ({origin}) could not be loaded: {type(error).__name__}: {error}"
            return
        if not isinstance(manifest, Manifest):
            broken[name] = f"Platform {name} ({origin}) could not be loaded: it is not a Manifest."
        elif manifest.id in manifests:
            broken[name] = f"Platform {name} ({origin}) was left out: there is already a platform {manifest.id}."
        else:
            manifests[manifest.id] = manifest

    for name, module in built_in.items():
        take(name, "built in", lambda module=module: importlib.import_module(module).MANIFEST)  # type: ignore[misc]
    for entry in _third_party(built_in):
        take(entry.name, entry.value, lambda entry=entry: _manifest_of(entry.load()))  # type: ignore[misc]
    for line in broken.values():
        log.error("%s", line)
    return Registry(manifests, broken)


def _third_party(built_in: Mapping[str, str]) -> list[EntryPoint]:
    """Our own are registered as entry points too; those are not loaded twice."""
    ours = set(built_in.values())
    return [entry for entry in entry_points(group=GROUP) if entry.module not in ours]


def _manifest_of(loaded: Any) -> Any:
    """An entry point may name the manifest itself, or a module that holds it."""
    return getattr(loaded, "MANIFEST", loaded)
