"""Run every check of ``hermes doctor``: gather facts, then judge them. No check changes anything."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.checks import config, growth, home, model, network, people, ports, service, stores
from hermes.cli.checks.finding import Finding
from hermes.cli.checks.jobs import jobs_check
from hermes.cli.support.home import load_config, outside_platforms
from hermes.hosting import lifecycle, status
from hermes.services.adapters.registry import find_platforms
from hermes.store.home import Whose, inspect_home

if TYPE_CHECKING:
    from hermes.cli.support.connectivity import Reached
    from hermes.config import Config, Loaded


def examine(folder: Path, command: str, *, live: bool = False) -> list[Finding]:
    """Check everything, in the order in which an operator would look. ``live`` makes one small call to each model."""
    from hermes.cli.support.connectivity import reach_all

    loaded = load_config(folder)
    facts = lifecycle.look(folder, command, lambda: outside_platforms(loaded.config))
    reached = reach_all(loaded)
    findings = [
        home.home_check(folder, facts),
        config.config_check(loaded, command),
        *config.platforms_check(find_platforms().broken, facts),
        *ports.api_check(loaded.config, facts),
    ]
    if inspect_home(folder).whose is Whose.FOREIGN:
        findings += _outside(folder, loaded, command, facts, reached)
    else:
        findings += _inside(folder, loaded, command, facts, reached)
    if live:
        findings.append(model.live_check(model.ask_models(folder, loaded)))
    findings += [*config.approvals_check(loaded.config, command), service.versions_check()]
    return [*findings, service.service_check(facts)]


def _inside(
    folder: Path, loaded: Loaded, command: str, facts: status.Facts, reached: dict[str, Reached]
) -> list[Finding]:
    """What concerns a home of ours."""
    now, is_running = time.time(), facts.snapshot is not None
    files = [] if loaded.config.database_url else stores.look_at_files(folder)
    locks = service.locks_check(folder)
    left = home.leftovers(folder, is_used=facts.is_held or bool(locks), now=now) if folder.exists() else []
    store = stores.ask_store(folder, loaded.config, is_stalled=facts.is_held and facts.snapshot is None)
    ahead = network.clock_difference(reached)
    return [
        stores.stores_check(store, command, files),
        *_outside(folder, loaded, command, facts, reached),
        people.people_check(store, loaded.config, command),
        *people.unanswered_check(store.work, command, is_running=is_running),
        *jobs_check(store.work, command, is_running=is_running),
        *_cluster_checks(folder, loaded.config, command, store),
        *ports.ports_check(loaded.config.api, facts),
        *locks,
        *home.leftovers_check(folder, left, command),
        home.clock_check(folder, ahead, now),
        *([growth.growth_check(growth.measure(folder), command)] if folder.exists() else []),
    ]


def _outside(
    folder: Path, loaded: Loaded, command: str, facts: status.Facts, reached: dict[str, Reached]
) -> list[Finding]:
    """What is reached over the network."""
    of_model = model.model_check(folder, loaded, reached.get("model"), command)
    lines = (*of_model.more, *model.describe_keys(loaded.config, facts))
    if "Key from" not in of_model.text:  # a refused key is described by its own sentence
        lines = (*lines, *model.describe_key_source(loaded))
    others = {name: endpoint for name, endpoint in reached.items() if name != "model"}
    return [replace(of_model, more=lines), network.network_check(others, command)]


def _cluster_checks(folder: Path, settings: Config, command: str, store: stores.Store) -> list[Finding]:
    """Look at every node where the store is on a PostgreSQL server that answers."""
    if not settings.database_url or store.sound is None:
        return []
    from hermes.cli.checks.cluster import ask, cluster_check

    return cluster_check(ask(folder), command)
