"""Describe a chat's surroundings for the prompt: platforms, and today's date."""

from __future__ import annotations

from datetime import datetime

from hermes.agent.prompt import Surroundings, day
from hermes.config import Config
from hermes.core.keys import AccountKey
from hermes.services.time_zone import zone_of


def surroundings_of(config: Config) -> Surroundings:
    """By the configuration, not by how the connections are at this moment: what waits for a platform is delivered."""
    ready = {
        AccountKey(platform, name): account
        for platform, accounts in config.platforms.items()
        for name, account in accounts.items()
        if account.is_ready
    }
    homes = {key: account.home_channel_name for key, account in ready.items() if account.home_channel}
    return Surroundings(tuple(map(str, ready)), tuple((str(key), name) for key, name in homes.items()))


def today(config: Config, now: float) -> str:
    """The day where the owner lives."""
    return day(datetime.fromtimestamp(now, zone_of(config.timezone)))
