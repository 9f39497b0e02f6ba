"""Check the installation for ``hermes doctor``. No check changes anything."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.checks.finding import Finding, Level
from hermes.cli.support.client import GatewayClient, Standalone, load_config, outside_platforms
from hermes.core.access import DmPolicy
from hermes.core.dataclasses import dataclass
from hermes.core.durations import count, format_duration
from hermes.core.errors import GatewayError
from hermes.hosting import banner, lifecycle, status
from hermes.services.adapters.registry import find_platforms
from hermes.store import home_faults
from hermes.store.home import Whose, inspect_home

if TYPE_CHECKING:
    from hermes.cli.support.connectivity import Reached
    from hermes.config import Config, Loaded

MIN_FREE_BYTES = 500_000_000
ANSWER_SECONDS = 20.0  # a quick look over a database of gigabytes takes a while


def examine(home: Path, command: str) -> list[Finding]:
    loaded = load_config(home)
    facts = lifecycle.look(home, command, lambda: outside_platforms(loaded.config))
    findings = [home_check(home, facts), config_check(loaded), *platforms_check(find_platforms().broken, facts)]
    findings += api_check(loaded.config, facts)
    if inspect_home(home).whose is Whose.FOREIGN:
        findings += _outside_checks(home, loaded, command, facts)
    else:
        store = _ask_store(home, loaded.config, is_stalled=facts.is_held and facts.snapshot is None)
        findings += [
            stores_check(store, command),
            *_outside_checks(home, loaded, command, facts),
            people_check(store, loaded.config, command),
            *_cluster_checks(home, loaded.config, command, store),
        ]
    return [*findings, *approvals_check(loaded.config, command), service_check(facts)]


# Home and configuration


def home_check(home: Path, facts: status.Facts | None = None) -> Finding:
    shown = banner.short_home(str(home), os.path.expanduser("~"))
    state = inspect_home(home)
    if state.whose is Whose.FOREIGN:
        return Finding("home", "trouble", f"{shown} belongs to {state.description}; it was left alone")
    if not home.exists():
        return Finding("home", "good", f"{shown}, not there yet: the first start makes it")
    free = shutil.disk_usage(home).free
    about = f"{shown}, {_size(free)} free"
    is_free = facts is None or not facts.is_held
    if faults := [str(fault) for fault in home_faults.find_faults(home, looks_at_lock=is_free)]:
        return Finding("home", "trouble", faults[0], tuple(faults[1:]))
    if free < MIN_FREE_BYTES:
        return Finding("home", "trouble", f"{about}: nothing can be stored when it is full → free some space")
    if open_to_others := list(_open_to_others(home)):
        names = ", ".join(path.name for path in open_to_others[:3])
        return Finding("home", "hint", f"{about}; others can read {names} → chmod -R go= {shown}")
    return Finding("home", "good", f"{shown}, yours alone, {_size(free)} free")


def _open_to_others(home: Path) -> Iterator[Path]:
    for path in (home, *home.iterdir()):
        if path.name.endswith(".tmp"):
            continue  # being written this moment
        if stat.S_IMODE(path.lstat().st_mode) & 0o077 and not path.is_symlink():
            yield path


def _size(size: float) -> str:
    number, unit = (size / 1e9, "GB") if size >= 1e9 else (size / 1e6, "MB")
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"


def config_check(loaded: Loaded) -> Finding:
    problems = sorted(loaded.problems, key=lambda problem: problem.level != "error")
    if not problems:
        set_by_owner = sum(1 for resolved in loaded.sources.values() if resolved.entries)
        return Finding("config", "good", f"{count(set_by_owner, 'value')} set, all understood")
    level: Level = "trouble" if problems[0].level == "error" else "hint"
    return Finding("config", level, str(problems[0]), tuple(str(problem) for problem in problems[1:]))


def approvals_check(config: Config, command: str) -> list[Finding]:
    """Nothing unless the owner's commands run without a question."""
    if config.approvals.mode != "off":
        return []
    cure = f"{command} config set approvals.mode dangerous"
    return [Finding("approvals", "hint", f"off: the owner's commands run without a question → {cure}")]


def platforms_check(broken: Mapping[str, str], facts: status.Facts) -> list[Finding]:
    """Nothing where all that are installed could be loaded, or where a running gateway tells of it itself."""
    known = (facts.snapshot or {}).get("troubles", ())
    lines = tuple(line for line in broken.values() if line not in known)
    return [Finding("platforms", "trouble", lines[0], lines[1:])] if lines else []


def api_check(config: Config, facts: status.Facts) -> list[Finding]:
    """Report why the API port must stay closed, unless a running gateway reports it."""
    from hermes.servers.api.security import why_closed

    reason = asyncio.run(why_closed(config.api)) if config.api.enabled else ""
    is_told = reason in (facts.snapshot or {}).get("troubles", ())
    return [Finding("api", "trouble", reason)] if reason and not is_told else []


# The store


@dataclass(frozen=True, slots=True)
class Store:
    """What the store said of itself, or why it said nothing."""

    sound: Mapping[str, Any] | None = None
    counts: Mapping[str, Any] | None = None
    silence: str = ""
    is_empty: bool = False
    recovered: tuple[str, ...] = ()


def _ask_store(home: Path, config: Config, *, is_stalled: bool) -> Store:
    """A database that a gateway has open is asked through it, and never opened beside it."""
    if is_stalled:
        return Store(silence="they belong to a gateway that is starting or does not answer")
    if not config.database_url and not (home / "state.db").exists():
        return Store(is_empty=True)
    recovered: list[str] = []
    try:
        with GatewayClient(home, Standalone.STORE, recovered.append) as client:
            sound = client.ask("doctor.stores", timeout=ANSWER_SECONDS)
            return Store(sound, client.ask("store.counts"), recovered=tuple(recovered))
    except GatewayError as error:
        return Store(silence=str(error), recovered=tuple(recovered))
    except OSError as error:  # no room for a lock, or no rights: the home tells why
        return Store(silence=f"{error.strerror} ({error.filename})", recovered=tuple(recovered))


def stores_check(store: Store, command: str = "hermes") -> Finding:
    if store.is_empty:
        return Finding("stores", "good", "nothing stored yet")
    if store.sound is None:
        return Finding("stores", "trouble", f"could not be checked: {store.silence}", store.recovered)
    sound = store.sound
    size = f", {_size(sound['bytes'])}" if sound.get("bytes") else ""
    if not sound["is_sound"]:
        words = f"{sound['name']} is damaged ({sound['words']}) → the next start recovers what is there"
        return Finding("stores", "trouble", words)
    copy = sound["last_backup"]
    backed_up = f"; last backup {format_duration(time.time() - copy)} ago" if copy else ""
    letters = store.counts["dead_letters"] if store.counts else 0
    good = Finding("stores", "good", f"{sound['name']} sound{size}{backed_up}", tuple(sound.get("recoveries", ())))
    if store.recovered:  # just now, by this command
        first, *more = store.recovered
        return replace(good, level="hint", text=first, more=tuple(more))
    if letters:
        words = f"{count(letters, 'message')} could not be delivered → {command} send --dead"
        return replace(good, level="hint", text=f"{good.text}; {words}")
    return good


def people_check(store: Store, config: Config, command: str = "hermes") -> Finding:
    roles: Mapping[str, int] = store.counts["people"] if store.counts else {}
    words = ", ".join(count(number, role) for role, number in sorted(roles.items())) or "nobody has written yet"
    deaf = [
        name
        for name in outside_platforms(config)
        if not any(account.access.admits_somebody for account in config.platforms[name].values())
    ]
    by_code = [
        name
        for name in deaf
        if any(account.access.dm_policy is DmPolicy.PAIRING for account in config.platforms[name].values())
    ]
    if by_code:
        return Finding(
            "people", "good", f"{words}; on {', '.join(by_code)} strangers get a code: {command} pairing list"
        )
    if deaf:
        setting = f"{deaf[0].upper()}_ALLOWED_USERS"
        return Finding("people", "hint", f"{words}; nobody may write on {', '.join(deaf)} → set {setting}")
    has_owner = bool(config.owners) or bool(store.counts and store.counts.get("has_owner"))
    if not has_owner and (only := config.only_user()) is not None:
        told = f"nobody is the owner, so {':'.join(only)} works in a sandbox. Is that you?"
        return Finding("people", "hint", f"{words}; {told} → {command} config set owners {':'.join(only)}")
    return Finding("people", "good", words)


def _cluster_checks(home: Path, config: Config, command: str, store: Store) -> list[Finding]:
    """Look at every node where the store is on a PostgreSQL server that answers."""
    if not config.database_url or store.sound is None:
        return []
    from hermes.cli.checks.cluster import ask, cluster_check

    return cluster_check(ask(home), command)


# Outside


def _outside_checks(home: Path, loaded: Loaded, command: str, facts: status.Facts) -> list[Finding]:
    from hermes.cli.support.connectivity import reach_all

    reached = reach_all(loaded)
    model = model_check(home, loaded, reached.pop("model", None), command)
    return [replace(model, more=(*model.more, *describe_keys(loaded.config, facts))), network_check(reached)]


def describe_keys(config: Config, facts: status.Facts) -> list[str]:
    """Describe the keys of a provider that has several."""
    hints = (facts.snapshot or {}).get("model", {}).get("keys") or {
        name: [key.hint() for key in provider.api_keys]
        for name, provider in config.providers.items()
        if len(provider.api_keys) > 1
    }
    return [f"keys of {name}: {', '.join(keys)}" for name, keys in hints.items()]


def model_check(home: Path, loaded: Loaded, reached: Reached | None, command: str) -> Finding:
    from hermes.config import EMBEDDED

    model = loaded.config.model
    if model.provider == EMBEDDED:
        return _embedded_check(home, command)
    label = f"{model.provider} / {model.default}"
    provider = loaded.config.providers.get(model.provider)
    if reached is None or provider is None:
        return Finding("model", "trouble", f"{label}: no address is known → set providers.{model.provider}.base_url")
    if reached.failure:
        return Finding("model", "trouble", f"{model.provider} cannot be reached at {reached.shown}: {reached.failure}")
    if reached.status == 200 and reached.is_page:
        setting = "model.base_url" if model.base_url else f"providers.{model.provider}.base_url"
        return Finding("model", "trouble", f"a web page answers at {reached.shown}, not an API → correct {setting}")
    if reached.status in {401, 403}:
        return Finding("model", "trouble", f"{model.provider} answers {reached.status}. {_key_words(loaded)}")
    if reached.status >= 500:
        return Finding(
            "model", "trouble", f"{model.provider} answers {reached.status}: the provider has a problem; try later"
        )
    if (
        reached.status == 200
        and reached.models
        and not (model.default in reached.models or model.default.partition("/")[2] in reached.models)
    ):
        return Finding("model", "hint", f"{model.provider} answers, but does not list {model.default}")
    missing = "" if provider.api_key else ", without a key"
    return Finding("model", "good", f"{label}, answers in {reached.milliseconds:.0f} ms{missing}")


def _key_words(loaded: Loaded) -> str:
    from hermes.config import explain

    key = f"providers.{loaded.config.model.provider}.api_key"
    setting = explain(loaded, key)
    if setting.value == "not set":
        return f"There is no key → set {setting.env[0] if setting.env else key}"
    return f"Key from {setting.winner}, ends in {setting.value}"


def _embedded_check(home: Path, command: str) -> Finding:
    from hermes.agent.models.embedded.download import TOTAL_MB, Fetcher, find_installed

    fetcher = Fetcher(home)
    if find_installed(fetcher.folder) or find_installed(None):
        if reason := fetcher.check():
            return Finding("model", "trouble", f"built-in, and it cannot answer. {reason}")
        return Finding(
            "model", "good", f"built-in, installed. English small talk only; for a better model: {command} setup"
        )
    if reason := fetcher.last_failure():
        return Finding("model", "trouble", f"built-in, and it could not be fetched. {reason} → {command} -z hello")
    return Finding(
        "model", "hint", f"built-in, not fetched yet: the first message fetches {TOTAL_MB} MB → {command} -z hello"
    )


def network_check(reached: Mapping[str, Reached]) -> Finding:
    if not reached:
        return Finding("network", "good", "nothing to reach: no platform is set up")
    lines = [_way(one) for one in reached.values()]
    level: Level = "trouble" if any(one.failure for one in reached.values()) else "good"
    return Finding("network", level, lines[0], tuple(lines[1:]))


def _way(reached: Reached) -> str:
    through = f" through {reached.proxy}" if reached.proxy else ""
    if reached.failure:
        return f"{reached.host} cannot be reached{through}: {reached.failure}"
    return f"{reached.host} reached in {reached.milliseconds:.0f} ms{through}"


# The process


def service_check(facts: status.Facts) -> Finding:
    judged = status.judge(facts)
    words = judged.lines[0].partition(": ")[2]
    match judged.state:
        case status.State.NOT_RUNNING if facts.platforms:
            unheard = f"Nobody is heard on {', '.join(facts.platforms)}"
            return Finding("service", "trouble", f"not running: {words} {unheard} → {facts.command} gateway run")
        case status.State.NOT_RUNNING:
            return Finding("service", "hint", f"not running: {words} → {facts.command} gateway run")
        case status.State.STALLED | status.State.DEGRADED:
            return Finding("service", "trouble", f"{judged.state.value}: {words}", _cures(facts))
        case _ if facts.snapshot is not None and not facts.snapshot.get("kept_up_by"):
            return Finding("service", "hint", "runs by hand: a reboot ends it", _cures(facts))
        case _:
            cures = _cures(facts)
            return Finding("service", "hint" if cures else "good", words, cures)


def _cures(facts: status.Facts) -> tuple[str, ...]:
    of_process = [words for _, words in status.cures_of_process(facts)]
    return (*status.cures(facts.snapshot or {}), *of_process)
