"""The pager: short texts to and from people who carry one. Found by Hermes through the entry point of this package."""

from __future__ import annotations

from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind
from hermes.core.ports import Adapter


def _build(parts: AdapterParts) -> Adapter:
    # Imported here: a gateway on which nobody set up a pager loads nothing but this file.
    from hermes_pager.adapter import PagerAdapter
    from hermes_pager.config import PagerConfig

    return PagerAdapter(PagerConfig.of(parts), parts.http, parts.alive)


MANIFEST = Manifest(
    id="pager",
    title="Pager",
    settings=(
        Setting(
            "base_url",
            "PAGER_BASE_URL",
            required=True,
            help="Where the pager service is, for example https://pager.example.org.",
            label="Address of the service",
        ),
        Setting(
            "token",
            "PAGER_TOKEN",
            SettingKind.SECRET,
            required=True,
            help="What the service knows this account by.",
            label="Token",
            get=("Open the settings of the service and choose New account.", "Copy the token that it shows once."),
        ),
    ),
    build=_build,
    ids="The short name at the back of the pager, for example ana.",
)
