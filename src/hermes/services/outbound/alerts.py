"""Send alerts for the owner to every home channel, once the store takes them.

Most alerts are about the store, so it may well be down when one is to be told. It is also in the log and in status.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from hermes.config import Config
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import AccountKey, Target
from hermes.core.messages import OutboundMessage
from hermes.core.ports import Clock
from hermes.services.outbound.rows import OutboxWriter
from hermes.store import outbox
from hermes.store.db import PASSING, REPAIRED, Database, Trouble
from hermes.store.outbox import OutboxKind

log = logging.getLogger(__name__)

REPEAT_SECONDS = 600.0
"""A trouble that comes and goes is told so often, and not each time."""
RETRY_SECONDS = 1.0
REPAIRED_SECONDS = 3600.0
"""So long status tells of what was repaired when it was found; the log and the home channel keep it."""
MAX_WAITING = 50
MAX_TEXTS = 50
"""Troubles that are kept for status; the log and the home channel have them all."""


class TroubleTexts(list[str]):
    """What status shows. Appending more than ``MAX_TEXTS`` drops the oldest."""

    def append(self, text: str) -> None:
        super().append(text)
        del self[:-MAX_TEXTS]


class Alerts:
    def __init__(self, db: Database, outbox_writer: OutboxWriter, config: Callable[[], Config], clock: Clock) -> None:
        self._db = db
        self._outbox_writer = outbox_writer
        self._config = config
        self._clock = clock
        self._waiting: asyncio.Queue[tuple[str, AccountKey | None]] = asyncio.Queue(MAX_WAITING)
        self._sent_at: dict[str, float] = {}

    def tell(self, text: str, *, but: AccountKey | None = None) -> None:
        """Queue an alert, once in a while. ``but`` is the account it is about."""
        now = self._clock.monotonic()
        self._sent_at = {sent: at for sent, at in self._sent_at.items() if now - at < REPEAT_SECONDS}
        if text in self._sent_at:
            return
        self._sent_at[text] = now
        if self._waiting.full():
            log.warning("Alert dropped", extra={"reason": self._waiting.get_nowait()[0]})
        self._waiting.put_nowait((text, but))

    async def run(self) -> None:
        while True:
            await self._send(*await self._waiting.get())

    async def _send(self, text: str, but: AccountKey | None) -> None:
        """An alert is worth hearing hours later too, so it lives as long as an answer."""
        homes = [
            target for target in home_targets(self._config()) if AccountKey(target.platform, target.account) != but
        ]
        alerts = [OutboundMessage(target, f"⚠️ {text}") for target in homes]
        rows = [row for alert in alerts for row in self._outbox_writer.rows(alert, OutboxKind.REPLY)]
        while rows:
            try:
                await self._db.write(outbox.enqueue, rows, now=self._clock.now())
                break
            except StoreIsDownError:
                await asyncio.sleep(RETRY_SECONDS)
        self._outbox_writer.due(rows)


_OF_ALL = frozenset({"down", "back", "notifications"})
"""Troubles with the database that the nodes of a cluster share."""


class Troubles:
    """What is wrong, kept for status, and what passes only until it has passed. The owner is told of each."""

    def __init__(self) -> None:
        self.texts: list[str] = TroubleTexts()
        self.tells_for_all: Callable[[], bool] = lambda: True
        """Whether this node tells of troubles that every node of a cluster sees."""
        self.repaired: list[str] = TroubleTexts()
        """Those of ``texts`` that are over, and cost nothing: status tells of them, and all is well."""
        self._passing: set[str] = set()
        self._untold: list[str] = TroubleTexts()
        self._tell: Callable[[str], None] = self._untold.append

    def note(self, trouble: Trouble) -> None:
        if trouble.kind == "back":  # it names what has passed; another store may still be in trouble
            passed = {text for text in self._passing if text in trouble.text}
            self.texts[:] = [text for text in self.texts if text not in passed]
            self._passing -= passed
        else:
            self._forget(trouble.text)  # told again, it stands once
            self.texts.append(trouble.text)
        if trouble.kind in PASSING:
            self._passing.add(trouble.text)
            self._passing &= set(self.texts)
        if trouble.kind in REPAIRED:
            from hermes.store.sqlite.losses import tells_of_loss  # only where there was damage

            if not tells_of_loss(trouble.text):
                self.repaired.append(trouble.text)
            asyncio.get_running_loop().call_later(REPAIRED_SECONDS, self._forget, trouble.text)
        if trouble.kind not in _OF_ALL or self.tells_for_all():
            self._tell(trouble.text)

    def _forget(self, text: str) -> None:
        for texts in (self.texts, self.repaired):
            with suppress(ValueError):  # told once more meanwhile, or there were too many
                texts.remove(text)

    def tell_through(self, alerts: Alerts) -> None:
        """Send troubles through ``alerts`` from now on, with those noted before."""
        self._tell = alerts.tell
        for text in self._untold:
            alerts.tell(text)
        self._untold.clear()


def home_channels(config: Config) -> dict[AccountKey, str]:
    """Every account that is switched on, and its home channel ('' where none is set)."""
    return {
        AccountKey(platform, name): account.home_channel
        for platform, accounts in config.platforms.items()
        for name, account in accounts.items()
        if account.enabled
    }


def home_targets(config: Config) -> list[Target]:
    """Every home channel that is set."""
    homes = home_channels(config)
    return [Target(key.platform, chat, account=key.account) for key, chat in homes.items() if chat]
