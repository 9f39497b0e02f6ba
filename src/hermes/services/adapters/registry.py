"""Find the platforms: built-in, and of the entry point ``hermes.platforms``."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hermes
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.failures import describe_failure, sentence
from hermes.core.manifest import Manifest, Setting

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "hermes.platforms"
OURS = "hermes_gateway-"
_ID = re.compile(r"[a-z][a-z0-9_]*")  # it stands in keys, targets and environment names

# Ours stand here by module name, so that they are found in a clone too, where no entry point is installed.
BUILT_IN: Mapping[str, str] = {
    "discord": "hermes.platforms.discord",
    "qq": "hermes.platforms.qq",
    "slack": "hermes.platforms.slack",
    "telegram": "hermes.platforms.telegram",
    "local": "hermes.platforms.local",
    "weixin": "hermes.platforms.weixin",
    "whatsapp": "hermes.platforms.whatsapp",
}


@dataclass(frozen=True, slots=True)
class Registry:
    """The manifests by platform id, and why the other platforms were not loaded."""

    manifests: Mapping[str, Manifest]
    broken: Mapping[str, str]


def find_platforms(built_in: Mapping[str, str] = BUILT_IN) -> Registry:
    """Import every manifest (and nothing else of a platform). A broken one is one line, and the others go on."""
    manifests: dict[str, Manifest] = {}
    broken: dict[str, str] = {}

    def take(name: str, origin: str, load: Callable[[], Any]) -> None:
        try:
            manifest = load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the edge "supervisor": the others start all the same
            cause = "" if isinstance(error, SystemExit) else " ".join(str(error).split())
            reason = sentence(cause or describe_failure(error))
            broken[name] = f"Platform {name} ({origin}) could not be loaded: {reason}"
            return
        if flaw := _flaw(manifest):
            broken[name] = f"Platform {name} ({origin}) could not be loaded: {flaw}."
        elif manifest.id in manifests:
            broken[name] = f"Platform {name} ({origin}) was left out: there is already a platform {manifest.id}."
        else:
            manifests[manifest.id] = manifest

    for name, module in built_in.items():
        take(name, "built in", lambda module=module: importlib.import_module(module).MANIFEST)  # type: ignore[misc] # bound now
    ours = set(built_in.values())  # registered as entry points too, and not loaded twice
    for entry in _entry_points():
        if entry.module in ours:
            continue
        take(entry.name, entry.value, lambda entry=entry: _manifest_of(entry.load()))  # type: ignore[misc] # the same
    return Registry(manifests, broken)


def _flaw(manifest: Any) -> str:
    """Say what is wrong with a manifest; '' when nothing is."""
    if not isinstance(manifest, Manifest):
        return "it is not a Manifest"
    if not isinstance(manifest.id, str) or not _ID.fullmatch(manifest.id):
        return f"its id {manifest.id!r} is not made of a-z, 0-9 and _"
    if not all(isinstance(setting, Setting) for setting in manifest.settings):
        return "its settings are not all Settings"
    return "" if callable(manifest.build) else "its build cannot be called"


def _entry_points() -> Iterable[EntryPoint]:
    """List the group's entry points, parsing metadata only if a package names it."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or os.curdir)
        except OSError:
            continue  # a zip, or nothing
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and not name.startswith(OURS):
                with suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if GROUP.encode() in file.read():
                        from importlib.metadata import entry_points

                        return entry_points(group=GROUP)
    return ()


def _manifest_of(loaded: Any) -> Any:
    """An entry point may name the manifest itself, or a module that holds it."""
    return getattr(loaded, "MANIFEST", loaded)


def import_adapter(manifest: Manifest) -> bool:
    """Import ahead what ``build`` will import. False: a package is missing, and ``build`` will say which."""
    try:
        importlib.import_module(f"{manifest.build.__module__}.adapter")
    except ImportError:
        return False
    return True


def missing_package(manifest: Manifest, error: ImportError) -> str:
    """One line: what is missing, and the command that installs it into the Python that runs us."""
    import shlex

    line = f"{manifest.title} needs a package that is missing ({error.name})."
    return f"{line} Install it: {shlex.join(install_command(manifest.extra))}" if manifest.extra else line


def install_command(extra: str) -> list[str]:
    """Build the pip command for a platform's packages, for the Python that runs us."""
    import tomllib

    wanted = [f"hermes-gateway[{extra}]"]
    project = Path(hermes.__file__).parents[2] / "pyproject.toml"
    if project.is_file():  # a clone: we are not installed ourselves, and no index need know us
        wanted = tomllib.loads(project.read_text("utf-8"))["project"]["optional-dependencies"][extra]
    return [sys.executable, "-m", "pip", "install", *wanted]
