"""Signing in to a platform by a code that a phone scans: the code on this terminal, and what it gave."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from hermes.cli.qr import drawn
from hermes.core.errors import ConfigError
from hermes.core.keys import MAIN
from hermes.core.manifest import AdapterParts, Manifest, SignedIn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.cli.questions import Questions
    from hermes.config import Config


class Terminal:
    """Where the code is shown. ``ask`` None: whoever looks at it cannot be asked anything."""

    def __init__(self, ask: Questions | None) -> None:
        self._ask = ask

    def show_code(self, payload: str) -> None:
        try:
            picture = drawn(payload, in_colour=sys.stdout.isatty())
        except ValueError:  # longer than any link of theirs so far; the link itself does it too
            picture = ""
        self.say(f"\n{picture}\n\nScan it with the app on your phone, or open this link there:\n  {payload}\n")

    def say(self, text: str) -> None:
        print(text, flush=True)

    async def ask(self, question: str) -> str:
        if self._ask is None:
            return ""
        return await asyncio.to_thread(self._ask.line, question.rstrip(": "))


def sign_in(manifest: Manifest, config: Config, account: str, ask: Questions | None) -> SignedIn:
    """Raises PlatformError or ConfigError in words; Ctrl+C leaves as everywhere."""
    return asyncio.run(_signed_in(manifest, config, account, Terminal(ask)))


async def _signed_in(manifest: Manifest, config: Config, account: str, screen: Terminal) -> SignedIn:
    from hermes.services.http import ProxyRules, make_session

    if manifest.sign_in is None:
        raise ConfigError(f"{manifest.title} is not signed in to by a code.")
    known = config.account(manifest.id, account) or config.account(manifest.id)
    rules = ProxyRules.of(config.proxies, known.proxy if known else "")
    async with make_session(rules) as http:
        values = dict(known.values) if known else {}
        return await manifest.sign_in(AdapterParts(account, values, http, lambda: None, {}), screen)


def changes_of(signed: SignedIn, config: Config, manifest: Manifest, account: str) -> Mapping[str, str]:
    """What to write, by dotted key: the settings, and whoever signed in among those who may talk."""
    prefix = f"platforms.{manifest.id}" + (f".accounts.{account}" if account != MAIN else "")
    present = config.account(manifest.id, account)
    changes = {f"{prefix}.{key}": value for key, value in signed.values.items()}
    listed = present.access.allowed_users if present is not None else frozenset()
    if signed.owner and signed.owner not in listed:
        changes[f"{prefix}.allowed_users"] = ",".join([*sorted(listed), signed.owner])
    return changes
