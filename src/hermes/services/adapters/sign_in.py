"""List the settings that a sign-in by QR code writes."""

from __future__ import annotations

from hermes.config import Config
from hermes.core.keys import MAIN
from hermes.core.manifest import Manifest, SignedIn


def changes_of(signed: SignedIn, config: Config, manifest: Manifest, account: str) -> dict[str, str]:
    """List the settings to write: the account's, and its owner as allowed user."""
    prefix = f"platforms.{manifest.id}" + (f".accounts.{account}" if account != MAIN else "")
    present = config.account(manifest.id, account)
    changes = {f"{prefix}.{key}": value for key, value in signed.values.items()}
    listed = present.access.allowed_users if present is not None else frozenset()
    if signed.owner and signed.owner not in listed:
        changes[f"{prefix}.allowed_users"] = ",".join([*sorted(listed), signed.owner])
    return changes
