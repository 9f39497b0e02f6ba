"""Count what each account received and sent: today, and since the start."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, time

from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.keys import AccountKey, Target
from hermes.core.ports import Clock
from hermes.services.time_zone import zone_of
from hermes.store import inbox
from hermes.store.db import Database, Tx
from hermes.store.reports import stats


@dataclass(slots=True)
class AccountTraffic:
    """``day`` is the date on which ``arrived`` and ``delivered`` were counted."""

    day: str = ""
    arrived: int = 0
    delivered: int = 0
    arrived_in_all: int = 0
    delivered_in_all: int = 0


class Traffic:
    def __init__(self, db: Database, config: Callable[[], Config], clock: Clock) -> None:
        self._db = db
        self._config = config
        self._clock = clock
        self._started_at = clock.now()
        self._counts: dict[AccountKey, AccountTraffic] = {}
        self._earlier: dict[AccountKey, AccountTraffic] | None = None  # of the day on which this process began

    def arrived(self, key: AccountKey, count: int) -> None:
        traffic = self._of(key)
        traffic.arrived += count
        traffic.arrived_in_all += count

    def delivered(self, key: AccountKey) -> None:
        traffic = self._of(key)
        traffic.delivered += 1
        traffic.delivered_in_all += 1

    def to_dict(self, key: AccountKey) -> dict[str, int]:
        traffic = self._of(key)
        earlier = (self._earlier or {}).get(key, AccountTraffic())
        if earlier.day != traffic.day:
            earlier = AccountTraffic()
        return {
            "in_today": earlier.arrived + traffic.arrived,
            "out_today": earlier.delivered + traffic.delivered,
            "in_total": traffic.arrived_in_all,
            "out_total": traffic.delivered_in_all,
        }

    async def recall_today(self) -> None:
        """Count today's traffic from before this process, once, when status is asked for."""
        if self._earlier is None:
            now = self._now()
            midnight = datetime.combine(now.date(), time.min, now.tzinfo).timestamp()
            found = await self._db.read(_traffic_between, since=midnight, before=self._started_at)
            for traffic in found.values():
                traffic.day = now.date().isoformat()
            self._earlier = found

    def _of(self, key: AccountKey) -> AccountTraffic:
        traffic = self._counts.setdefault(key, AccountTraffic())
        today = self._now().date().isoformat()
        if traffic.day != today:
            traffic.day, traffic.arrived, traffic.delivered = today, 0, 0
        return traffic

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), zone_of(self._config().timezone))


def _traffic_between(tx: Tx, *, since: float, before: float) -> dict[AccountKey, AccountTraffic]:
    found: dict[AccountKey, AccountTraffic] = {}
    for (platform, account), count in inbox.arrived_counts(tx, since=since, before=before).items():
        found.setdefault(AccountKey(platform, account), AccountTraffic()).arrived += count
    for text, count in stats.sent_counts(tx, since=since, before=before).items():
        with suppress(ValueError):  # a damaged row
            target = Target.parse(text)
            found.setdefault(AccountKey(target.platform, target.account), AccountTraffic()).delivered += count
    return found
