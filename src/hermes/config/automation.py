"""Declare the settings of jobs, the board, webhooks, backups and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.config.setting import sections, setting, web_address
from hermes.core.dataclasses import dataclass
from hermes.core.secret import Secret


@dataclass(frozen=True, slots=True)
class CronConfig:
    enabled: bool = setting(True, "whether jobs run", env="HERMES_CRON_ENABLED")
    quiet_hours: str = setting("", "hours in which no job runs, as `22:00-07:00`; a job can have its own")
    script_seconds: float = setting(300.0, "how long the script of a job may run", low=1, high=86400)


@dataclass(frozen=True, slots=True)
class BackupConfig:
    enabled: bool = setting(True, "whether backups are made while the gateway runs")
    every_hours: float = setting(1.0, "hours between two backups", low=0.01, high=8760)
    keep_days: float = setting(14.0, "days after which automatic backups are deleted", low=0.01, high=36500)
    keep_mb: int = setting(2048, "megabytes that automatic backups may take", low=1, high=1_000_000_000)
    folder: str = setting("", "where backups are kept; empty: `backups` in the home")
    workspaces: bool = setting(False, "whether backups contain `workspaces/`")


@dataclass(frozen=True, slots=True)
class WebhookRouteConfig:
    secret: Secret | None = setting(None, "what the sender signs with; empty: `webhooks.secret`")
    signature: str = setting(
        "auto",
        "how the sender signs",
        choices=("auto", "github", "gitlab", "stripe", "slack", "svix", "hermes"),
    )
    events: tuple[str, ...] = setting((), "events that count, such as `push` or `invoice.*`; empty: all")
    prompt: str = setting("", "what to do, with fields of the payload as `{pull_request.title}`", is_prose=True)
    skills: tuple[str, ...] = setting((), "skills to read first")
    deliver: str = setting("", "where the answer goes; empty: nowhere")
    deliver_only: bool = setting(False, "send the filled-in prompt itself, without the agent")
    role: str = setting("guest", "the role of its turns", choices=("guest", "user"))
    enabled: bool = setting(True, "`false` switches it off")
    rate_limit: int = setting(0, "deliveries a minute; 0: `webhooks.rate_limit`", low=0, high=100_000)


@dataclass(frozen=True, slots=True)
class WebhooksConfig:
    enabled: bool = setting(True, "whether the port opens when there is a route", env="WEBHOOK_ENABLED")
    host: str = setting("127.0.0.1", "address it listens on", env="WEBHOOK_HOST")
    port: int = setting(8644, "port it listens on", env="WEBHOOK_PORT", low=0, high=65535)
    secret: Secret | None = setting(None, "secret of routes without their own", env="WEBHOOK_SECRET")
    rate_limit: int = setting(30, "deliveries a minute for each route", low=1, high=100_000)
    max_body_bytes: int = setting(1024 * 1024, "the largest body", low=1024, high=1024**3)
    routes: Mapping[str, WebhookRouteConfig] = sections(WebhookRouteConfig)


@dataclass(frozen=True, slots=True)
class DashboardConfig:
    """The page of the HTTP port. ``health_url`` is of a gateway elsewhere, for commands on a machine without one."""

    enabled: bool = setting(True, "whether the gateway serves the dashboard", env="HERMES_DASHBOARD_ENABLED")
    base_path: str = setting(
        "", "path under which a reverse proxy shows the gateway, such as `/hermes`", env="HERMES_DASHBOARD_BASE_PATH"
    )
    trusted_proxies: tuple[str, ...] = setting(
        (), "addresses or networks of proxies whose X-Forwarded headers are trusted", env="HERMES_TRUSTED_PROXIES"
    )
    sign_in_days: float = setting(30.0, "days without use after which a sign-in ends", low=0.01, high=3650)
    health_url: str = web_address("health address of a gateway on another machine", env="GATEWAY_HEALTH_URL")
    health_timeout: float = setting(
        3.0, "seconds to wait for that gateway", env="GATEWAY_HEALTH_TIMEOUT", low=0.1, high=60
    )


@dataclass(frozen=True, slots=True)
class KanbanConfig:
    dispatch: bool = setting(True, "whether the agent runs its ready tasks")
    max_running: int = setting(2, "tasks that the agent works on at the same time", low=1, high=100)
    task_seconds: float = setting(3600.0, "how long one run of a task may take", low=1, high=604_800)
    review: bool = setting(False, "whether a finished task waits in `review` until a person completes it")
