"""What a pager account needs to be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret
from hermes.core.setting_checks import web_address


@dataclass(frozen=True, slots=True)
class PagerConfig:
    account: str
    base_url: str
    token: Secret

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only the pager can judge. That both are there has been seen to: they are required."""
        cure = "Write the address of the service, for example https://pager.example.org."
        base_url = web_address("PAGER_BASE_URL", parts.values["base_url"], cure=cure)
        return cls(parts.account, base_url, parts.values["token"])
