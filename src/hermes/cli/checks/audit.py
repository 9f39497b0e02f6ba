"""Check what is open to others: the checks behind ``hermes security audit``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes.cli.checks.finding import Finding
from hermes.cli.checks.home import exposed_paths
from hermes.cli.support.home import outside_platforms
from hermes.core.durations import count
from hermes.core.people.access import DmPolicy, GroupPolicy
from hermes.store.home_faults import typed

if TYPE_CHECKING:
    from hermes.config import AccountConfig, Config, Loaded

_MAX_NAMED = 3


def audit(home: Path, loaded: Loaded, command: str) -> list[Finding]:
    """Check files, secrets, ports, people, approvals, commands and addresses."""
    from hermes.servers.api.security import is_guessable, is_network_accessible

    config = loaded.config
    return [
        files_check(exposed_paths(home) if home.exists() else [], home, command),
        secrets_check(loaded, command),
        account_check(os.geteuid(), is_container=Path("/.dockerenv").exists() or os.getpid() == 1),
        api_check(config, command, is_network_accessible, is_guessable),
        *people_checks(config, command),
        approvals_check(config, command),
        commands_check(loaded, command),
        addresses_check(config, command),
    ]


def files_check(exposed: list[Path], home: Path, command: str) -> Finding:
    if not exposed:
        return Finding("files", "good", "readable by you alone")
    names = ", ".join(path.name for path in exposed[:_MAX_NAMED])
    more = f" and {len(exposed) - _MAX_NAMED} more" if len(exposed) > _MAX_NAMED else ""
    text = f"others can read {names}{more} → chmod -R go= {typed(home)}, or {command} doctor --fix"
    reason = "Another account of this machine could read keys and messages."
    return Finding("files", "trouble", text, reason=reason, fix="permissions")


def secrets_check(loaded: Loaded, command: str) -> Finding:
    """Keys belong into .env: config.yaml is shown, copied and put into repositories."""
    from hermes.config.resolved import Rank
    from hermes.config.values import Kind

    keys = [
        resolved.key
        for resolved in loaded.sources.values()
        if resolved.key.kind in (Kind.SECRET, Kind.SECRETS)
        and any(entry.source.rank in (Rank.YAML, Rank.JSON) for entry in resolved.entries)
    ]
    if not keys:
        return Finding("secrets", "good", "no key is in config.yaml")
    names = ", ".join(str(key) for key in keys[:_MAX_NAMED])
    text = f"config.yaml holds {names} → {command} config set {keys[0].env[0] if keys[0].env else keys[0]} -"
    reason = "config.yaml is shown and shared more often than .env. Remove the line there afterwards."
    return Finding("secrets", "hint", text, reason=reason)


def account_check(user: int, *, is_container: bool) -> Finding:
    if user != 0 or is_container:
        return Finding("account", "good", "not root" if user else "root of a container")
    text = "Hermes runs as root → run it as its own user"
    reason = "The owner's commands may then change everything on this machine."
    return Finding("account", "hint", text, reason=reason)


def api_check(
    config: Config, command: str, is_reachable: Callable[[str], bool], is_guessable: Callable[[str], bool]
) -> Finding:
    api = config.api
    if not api.enabled:
        return Finding("api", "good", "off: no port is open")
    where = f"{api.host}:{api.port}"
    if "*" in api.cors_origins:
        text = (
            f"every web page may call {where} from a browser → {command} config set api.cors_origins https://YOUR.PAGE"
        )
        return Finding("api", "trouble", text, reason="A web page that you visit could use the API in your name.")
    if "*" in api.allowed_hosts:
        text = f"{where} answers under every name → {command} config set api.allowed_hosts YOUR.NAME"
        reason = "A web page could call the API under its own host name (DNS rebinding)."
        return Finding("api", "trouble", text, reason=reason)
    if not is_reachable(api.host):
        return Finding("api", "good", f"{where}, reachable from this machine alone")
    if not api.key or is_guessable(api.key.reveal()):
        cure = "API_SERVER_KEY=$(openssl rand -hex 32)"
        text = f"{where} can be reached from the network, and its key can be guessed → {cure}"
        return Finding("api", "trouble", text, reason="The port stays closed until there is a good key.")
    text = f"{where} can be reached from the network, with a key → API_SERVER_HOST=127.0.0.1, or a proxy with TLS"
    return Finding("api", "hint", text, reason="Without TLS others on the network can read the key and the messages.")


def people_checks(config: Config, command: str) -> Iterator[Finding]:
    """Who may write, on each platform that is set up; and who is the owner."""
    lines = [
        f"{words} → {command} config set platforms.{name}.{setting}"
        for name in outside_platforms(config)
        for account in config.platforms[name].values()
        for words, setting in _open_doors(name, account)
    ]
    if config.allow_all_users:
        lines.insert(0, f"everybody may write on every platform → {command} config set gateway.allow_all_users false")
    reason = "Strangers could use the model at your expense, and try to mislead it."
    if lines:
        yield Finding("people", "trouble", lines[0], tuple(lines[1:]), reason=reason)
    else:
        yield Finding("people", "good", "only people with access may write")
    owners = [owner for owner in config.owners if owner != "local"]
    if len(owners) > 1:
        text = f"{count(len(owners), 'owner')}: {', '.join(owners)} → {command} people role PERSON admin"
        yield Finding("owners", "hint", text, reason="Commands of an owner run on this machine.")
    else:
        yield Finding("owners", "good", ", ".join(owners) or "named by pairing, or only the person at the machine")


def _open_doors(name: str, account: AccountConfig) -> Iterator[tuple[str, str]]:
    access = account.access
    if access.allow_all or access.dm_policy is DmPolicy.OPEN or "*" in access.allowed_users:
        yield f"everybody may write on {name}", "dm_policy pairing"
    if access.group_policy is GroupPolicy.OPEN:
        yield f"every group is answered on {name}", "group_policy allowlist"


def approvals_check(config: Config, command: str) -> Finding:
    mode = config.approvals.mode
    if mode == "off":
        text = f"off: the owner's commands run without a question → {command} config set approvals.mode dangerous"
        return Finding("approvals", "trouble", text, reason="A model that was misled could run any command.")
    return Finding("approvals", "good", f"on: approvals.mode is {mode}")


def commands_check(loaded: Loaded, command: str) -> Finding:
    """Where commands run, and what they can see and reach."""
    from hermes.config import secret_variables

    terminal, web = loaded.config.terminal, loaded.config.web
    if secrets := sorted(set(terminal.env_passthrough) & secret_variables(loaded)):
        text = f"commands can read {', '.join(secrets)} → {command} config set terminal.env_passthrough NAMES"
        return Finding("commands", "trouble", text, reason="A command could send a key of the gateway to a stranger.")
    if web.allow_private_hosts:
        cure = f"{command} config explain web.allow_private_hosts"
        text = f"the web tools reach {', '.join(web.allow_private_hosts)} → {cure}"
        reason = "A web page could make the agent call machines of your network."
        return Finding("commands", "hint", text, reason=reason)
    if terminal.network:
        text = f"sandboxes have a network → {command} config set terminal.network false"
        return Finding(
            "commands", "hint", text, reason="A command in a sandbox could send files of its workspace to others."
        )
    return Finding(
        "commands",
        "good",
        f"backend of the owner: {terminal.backend.value}; of everybody else: {terminal.others.value}",
    )


def addresses_check(config: Config, command: str) -> Finding:
    """Keys and messages must not go through the network in the open."""
    open_ones = []
    for name, provider in config.providers.items():
        address = (config.model.base_url if name == config.model.provider else "") or provider.base_url
        if provider.api_key and _is_open(address):
            open_ones.append(f"the key of {name} goes to {urlsplit(address).hostname} without TLS")
    for name in outside_platforms(config):
        for account in config.platforms[name].values():
            open_ones += [
                f"the token of {name} goes to {urlsplit(value).hostname} without TLS"
                for key, value in account.values.items()
                if key.endswith("url") and isinstance(value, str) and _is_open(value)
            ]
    if not open_ones:
        return Finding("addresses", "good", "keys and tokens go over TLS, or stay on this machine")
    reason = "Others on the network can read the key and the messages."
    first = f"{open_ones[0]} → {command} config show, and write https:// there"
    return Finding("addresses", "trouble", first, tuple(open_ones[1:]), reason=reason)


def _is_open(address: str) -> bool:
    from hermes.servers.api.security import is_loopback

    parts = urlsplit(address)
    host = parts.hostname or ""
    return parts.scheme in ("http", "ws") and not (
        host == "localhost" or host.endswith(".localhost") or is_loopback(host)
    )
