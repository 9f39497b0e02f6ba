"""Say how the gateway is kept up: by which service, and what would end it."""

from __future__ import annotations

import os

from hermes.core.dataclasses import dataclass
from hermes.hosting.service import services
from hermes.hosting.service.services import Service
from hermes.hosting.service.unit_files import ServiceScope


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """``service`` is '' where none is installed for this home; ``stands`` is the manager's word for one at rest."""

    is_running: bool
    kept_up_by: str = ""
    service: str = ""
    is_user_scope: bool = True
    is_enabled: bool = True
    is_lingering: bool = True
    user: str = ""
    stands: str = ""
    enable: str = ""
    others: tuple[tuple[str, str], ...] = ()


def describe(home: str, *, is_running: bool, kept_up_by: str) -> str:
    """One sentence about the service of a home, with its cure; '' where there is nothing to say."""
    service = services.find_installed(home)
    if service is None:
        return sentence(ServiceFacts(is_running, kept_up_by, others=tuple(services.other_homes(home))))
    return sentence(_facts(service, is_running=is_running, kept_up_by=kept_up_by))


def _facts(service: Service, *, is_running: bool, kept_up_by: str) -> ServiceFacts:
    user = services.user_name(os.getuid())
    is_systemd = isinstance(service, services.SystemdService)
    return ServiceFacts(
        is_running,
        kept_up_by,
        service.describe(),
        is_user_scope=service.scope is ServiceScope.USER,
        is_enabled=service.is_enabled(),
        is_lingering=not is_systemd or service.scope is ServiceScope.SYSTEM or services.is_lingering(user),
        user=user,
        stands="" if is_running else service.how_it_stands(),
        enable=service.typed("enable"),
    )


def sentence(facts: ServiceFacts) -> str:
    if not facts.service:
        if facts.is_running:
            # A container and a unit that somebody else wrote speak for themselves.
            by_hand = "unsupervised: it runs by hand, so a reboot ends it → hermes gateway install"
            return "" if facts.kept_up_by else by_hand
        if facts.others:
            name, home = facts.others[0]
            return f"{name} serves another home, {home} → sudo hermes gateway status --system"
        return ""
    if not facts.is_running:
        return f"{facts.service} is installed and {facts.stands} → hermes gateway start"
    if facts.kept_up_by != facts.service:
        return (
            f"unsupervised: it runs by hand, though {facts.service} is installed "
            "→ hermes gateway stop, then hermes gateway start"
        )
    if not facts.is_enabled:
        return f"{facts.service} does not start with the machine → {facts.enable}"
    if not facts.is_lingering:
        return f"{facts.service} ends when {facts.user} logs out → loginctl enable-linger {facts.user}"
    return f"{facts.service} starts with the machine and after a crash"
