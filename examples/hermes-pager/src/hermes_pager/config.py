"""What a pager account needs to be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret


@dataclass(frozen=True, slots=True)
class PagerConfig:
    account: str
    base_url: str
    token: Secret

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only the pager can judge. That both are there has been seen to: they are required."""
        base_url = str(parts.values["base_url"]).strip().rstrip("/")
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"PAGER_BASE_URL is {base_url!r}, which is not a web address.\n"
                "  Write the address of the service, for example https://pager.example.org."
            )
        return cls(parts.account, base_url, parts.values["token"])
