"""Declare the local platform: this machine's owner through the CLI. Always on."""

from __future__ import annotations

from hermes.core.manifest import AdapterParts, Manifest
from hermes.core.ports import Adapter


def _build(parts: AdapterParts) -> Adapter:
    from hermes.platforms.local.adapter import LocalAdapter

    return LocalAdapter(parts.values["hub"], parts.account, parts.alive)


MANIFEST = Manifest(id="local", title="This machine", settings=(), build=_build, always_on=True)
