"""Declare the settings of work that nobody writes for: jobs."""

from __future__ import annotations

from hermes.config.setting import setting
from hermes.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CronConfig:
    enabled: bool = setting(True, "whether jobs are fired", env="HERMES_CRON_ENABLED")
    quiet_hours: str = setting("", "when no job runs, as `22:00-07:00`; a job may have its own")
    script_seconds: float = setting(300.0, "the longest that the script of a job may take", low=1, high=86400)
