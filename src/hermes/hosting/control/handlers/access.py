"""Explain who is answered: the call behind ``hermes doctor --user``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hermes.config import Config
from hermes.core.errors import GatewayError
from hermes.core.people import pairing as rules
from hermes.core.ports import Clock
from hermes.hosting.control.server import Handler, Reply
from hermes.services.people.access_report import AccessReport, access_reports
from hermes.services.people.pairing import SECRET_FILE
from hermes.store.db import Database, Tx
from hermes.store.home import own_secret
from hermes.store.pairings import Pairing


class StandingVerbs:
    def __init__(
        self,
        home: Path,
        db: Database,
        clock: Clock,
        config: Callable[[], Config],
        is_paired: Callable[[str, str], bool] | None = None,
    ) -> None:
        self._home = home
        self._db = db
        self._clock = clock
        self._config = config
        self._is_paired = is_paired

    def mapping(self) -> Mapping[str, Handler]:
        return {"doctor.user": self.user}

    async def user(self, args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        """``{user}``: an id, or ``platform:id``; how every account that is set up treats them."""
        user = str(args.get("user") or "").strip()
        if not user:
            raise GatewayError("Which user? Name an id, or platform:id.")
        return [asdict(report) for report in await self._db.read(self._standings, user)]

    def _standings(self, tx: Tx, user: str) -> list[AccessReport]:
        config = self._config()
        platform, colon, user_id = user.partition(":")
        is_named = bool(colon) and platform in config.platforms  # some platforms' own ids hold a colon
        return access_reports(
            tx,
            config,
            user_id if is_named else user,
            platform if is_named else "",
            now=self._clock.now(),
            code_of=self._code,
            is_paired=self._is_paired,
        )

    def _code(self, pairing: Pairing) -> str:
        return rules.code_of(
            own_secret(self._home / SECRET_FILE),
            platform=pairing.platform,
            account=pairing.account,
            user_id=pairing.user_id,
            asked_at=pairing.asked_at,
        )
