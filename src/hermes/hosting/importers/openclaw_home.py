"""Read a home of OpenClaw: settings, keys, people, sessions, jobs, skills and texts.

Versions until 2026.5 keep sessions, jobs and pairings in JSON files, later ones in SQLite. Both are read.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from hermes.config.dotenv import parse_dotenv
from hermes.config.trees import Items, Leaf, Table, Tree, read_json, read_yaml
from hermes.core.keys import Target
from hermes.core.text import one_line, storable
from hermes.hosting.importers.found import FoundFile, FoundHome, FoundJob, FoundPairing
from hermes.hosting.importers.hermes_agent import Json
from hermes.hosting.importers.openclaw_sessions import PLATFORMS, agents, bare_id, read_sessions
from hermes.hosting.importers.skill_folders import find_skills
from hermes.hosting.importers.source import SourceHome, UnreadableError, rows

KIND = "openclaw"
CONFIGS = ("openclaw.json", "moltbot.json", "clawdbot.json")
STATE = ("state", "openclaw.sqlite")
MAX_JOBS = 2000

SECRETS = {
    ("telegram", "botToken"): "token",
    ("discord", "token"): "token",
    ("discord", "botToken"): "token",
    ("slack", "botToken"): "bot_token",
    ("slack", "appToken"): "app_token",
    ("qq", "appId"): "app_id",
    ("qq", "clientSecret"): "client_secret",
}
"""Where a channel keeps what our platform calls otherwise."""
POLICIES = frozenset({"pairing", "open", "allowlist", "disabled"})

_NOT_OURS = {
    "identity": ("keys", "the devices of the other gateway are not known here"),
    "devices": ("keys", "the devices of the other gateway are not known here"),
    "hooks": ("files", "Hermes does not run programs of the other gateway"),
    "plugins": ("files", "Hermes does not run plugins of the other gateway"),
    "extensions": ("files", "Hermes does not run plugins of the other gateway"),
}


def read_home(source: SourceHome) -> FoundHome:
    """Read everything but the sessions, which ``sessions`` of the answer reads one by one. Blocks."""
    home = FoundHome(KIND, source.path)
    config = _config(source, home)
    _variables(source, home, config)
    _settings(config, home)
    _keys(source, home)
    _people(source, home)
    _jobs(source, home)
    for folder in (("workspace", "skills"), ("skills",)):
        home.skills += find_skills(source, folder, home)
    _texts(source, home)
    for name, (part, reason) in _NOT_OURS.items():
        if source.names(name):
            home.leave_out(part, name, reason)
    if source.names("credentials", "whatsapp"):
        home.leave_out("keys", "whatsapp", "WhatsApp allows one program per link: link it again with `hermes whatsapp`")
    home.sessions = lambda: read_sessions(source, home)
    return home


# Settings


def _config(source: SourceHome, home: FoundHome) -> Table:
    name = next((candidate for candidate in CONFIGS if source.is_file(candidate)), "")
    if not name:
        return Table()
    try:
        raw = source.read(name)
    except UnreadableError as error:
        home.leave_out("settings", name, str(error))
        return Table()
    # JSON5: comments, bare names and a comma too many. Without its comments, YAML reads that as it is.
    tree, problems = read_json(raw, name)
    if tree is None:
        tree, problems = read_yaml(_without_comments(raw.decode("utf-8-sig", "replace")).encode(), name)
    if tree is None:
        home.leave_out("settings", name, problems[-1].text)
    return tree or Table()


def _without_comments(text: str) -> str:
    form = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|//[^\n]*|/\*.*?(?:\*/|\Z)""", re.DOTALL)
    return form.sub(lambda found: found[1] or " ", text).replace("\t", "  ")


def _at(tree: Tree | None, *path: str) -> Tree | None:
    for part in path:
        tree = tree.entries.get(part) if isinstance(tree, Table) else None
    return tree


def _text(tree: Tree | None) -> str:
    return tree.text or "" if isinstance(tree, Leaf) else ""


def _list(tree: Tree | None) -> list[str]:
    return [text for item in tree.items if (text := _text(item))] if isinstance(tree, Items) else []


def _variables(source: SourceHome, home: FoundHome, config: Table) -> None:
    """The `.env` beside the config, then the section ``env`` of the config."""
    if source.is_file(".env"):
        try:
            lines, _ = parse_dotenv(source.read(".env"), ".env")
            home.variables = {name: line.value for name, line in lines.items() if line.value.strip()}
        except UnreadableError as error:
            home.leave_out("keys", ".env", str(error))
    for section in (_at(config, "env"), _at(config, "env", "vars")):
        for name, leaf in section.entries.items() if isinstance(section, Table) else ():
            if re.fullmatch(r"[A-Z][A-Z0-9_]*", name) and _text(leaf):
                home.variables.setdefault(name, _text(leaf))


def _settings(config: Table, home: FoundHome) -> None:
    found = home.settings.entries
    model = _at(config, "agents", "defaults", "model")
    name = _text(model) or _text(_at(model, "primary"))
    provider, slash, rest = name.partition("/")
    if slash:
        found["model"] = Table({"provider": Leaf(provider), "default": Leaf(rest)})
    if zone := _text(_at(config, "agents", "defaults", "userTimezone")):
        found["timezone"] = Leaf(zone)
    reset = {
        ours: Leaf(_text(_at(config, "session", "reset", theirs)))
        for theirs, ours in (("mode", "mode"), ("atHour", "at_hour"), ("idleMinutes", "idle_minutes"))
        if _text(_at(config, "session", "reset", theirs))
    }
    if reset:
        found["sessions"] = Table({"reset": Table(dict(reset))})
    _providers(config, home)
    platforms: dict[str, Tree] = {}
    channels = _at(config, "channels")
    for channel, section in channels.entries.items() if isinstance(channels, Table) else ():
        if isinstance(section, Table) and channel != "defaults":
            platform = PLATFORMS.get(channel, channel)
            platforms[platform] = _channel(channel, platform, section, home)
    if platforms:
        found["platforms"] = Table(platforms)
    mapped = {"agents", "session", "channels", "models", "env", "meta", "wizard"}
    for name in config.entries.keys() - mapped:
        home.leave_out("settings", name, "Hermes has no setting of this name")


def _providers(config: Table, home: FoundHome) -> None:
    given = _at(config, "models", "providers")
    made: dict[str, Tree] = {}
    for name, section in given.entries.items() if isinstance(given, Table) else ():
        entry: dict[str, Tree] = {}
        if url := _text(_at(section, "baseUrl")):
            entry["base_url"] = Leaf(url)
        if key := _secret(_at(section, "apiKey"), home):
            entry["api_key"] = Leaf(key)
        if entry:
            made[name] = Table(entry)
    if made:
        home.settings.entries["providers"] = Table(made)


def _channel(channel: str, platform: str, section: Table, home: FoundHome) -> Table:
    made: dict[str, Tree] = {}
    for theirs, leaf in section.entries.items():
        ours = SECRETS.get((platform, theirs))
        if ours:
            if value := _secret(leaf, home):
                made[ours] = Leaf(value)
        elif theirs == "enabled":
            made["enabled"] = leaf
        elif theirs == "dmPolicy" and _text(leaf) in POLICIES:
            made["dm_policy"] = leaf
        elif theirs == "groupPolicy" and _text(leaf) in POLICIES:
            made["group_policy"] = leaf
        elif theirs == "allowFrom":
            users = [bare_id(channel, user) for user in _list(leaf) if user != "*"]
            if users:
                made["allowed_users"] = Items([Leaf(user) for user in users])
        elif theirs == "accounts":
            home.leave_out("settings", f"channels.{channel}.accounts", "set further accounts up by hand")
        else:
            home.leave_out("settings", f"channels.{channel}.{theirs}", "Hermes has no setting of this name")
    return Table(made)


def _secret(tree: Tree | None, home: FoundHome) -> str:
    """A secret as it stands, or the value of the variable that ``${NAME}`` or a reference names."""
    text = _text(tree)
    if isinstance(tree, Table) and _text(_at(tree, "source")) == "env":
        text = "${" + _text(_at(tree, "id")) + "}"
    named = re.fullmatch(r"\$\{([A-Z][A-Z0-9_]*)\}", text)
    return home.variables.get(named[1], "") if named else text


# Keys of models


def _keys(source: SourceHome, home: FoundHome) -> None:
    for agent in agents(source):
        stores: list[object] = []
        place = ("agents", agent, "agent", "auth-profiles.json")
        if source.is_file(*place):
            try:
                stores.append(source.json(*place))
            except UnreadableError as error:
                home.leave_out("keys", "/".join(place), str(error))
        database = ("agents", agent, "agent", "openclaw-agent.sqlite")
        if source.is_file(*database):
            try:
                with source.database(*database) as connection:
                    stores += [
                        _loaded(row["store_json"]) for row in rows(connection, "auth_profile_store", ("store_json",))
                    ]
            except UnreadableError as error:
                home.leave_out("keys", "/".join(database), str(error))
        for store in stores:
            _profiles(store, home)


def _profiles(store: object, home: FoundHome) -> None:
    profiles = store.get("profiles") if isinstance(store, dict) else None
    for name, profile in profiles.items() if isinstance(profiles, dict) else ():
        if not isinstance(profile, dict):
            continue
        provider = str(profile.get("provider") or str(name).partition(":")[0])
        key = profile.get("key")
        if profile.get("type") != "api_key" or not isinstance(key, str) or not key:
            home.leave_out(
                "keys", str(name), "sign-ins are bound to the other program: sign in again, or use an API key"
            )
            continue
        variable = re.sub(r"[^A-Z0-9]+", "_", provider.upper()) + "_API_KEY"
        home.variables.setdefault(variable, key)


def _loaded(text: object) -> Any:
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        return None


# People


def _people(source: SourceHome, home: FoundHome) -> None:
    found: dict[tuple[str, str], FoundPairing] = {}

    def add(channel: str, entry: object) -> None:
        user = bare_id(channel, storable(str(entry)).strip())[:200]
        platform = PLATFORMS.get(channel, channel)
        if user and user != "*":
            found[platform, user] = FoundPairing(platform, user)

    for name in source.names("credentials"):
        if not name.endswith("-allowFrom.json"):
            continue
        try:
            data = source.json("credentials", name)
        except UnreadableError as error:
            home.leave_out("people", name, str(error))
            continue
        given = data.get("allowFrom") if isinstance(data, dict) else data
        for entry in given if isinstance(given, list) else ():
            add(_channel_of(name.removesuffix("-allowFrom.json")), entry)
    if source.is_file(*STATE):
        try:
            with source.database(*STATE) as connection:
                for row in rows(connection, "channel_pairing_allow_entries", ("channel_key", "entry")):
                    add(str(row.get("channel_key")), row.get("entry"))
        except UnreadableError as error:
            home.leave_out("people", "/".join(STATE), str(error))
    home.pairings = list(found.values())


def _channel_of(stem: str) -> str:
    """``telegram`` or, for a further account, ``telegram-work``."""
    first = stem.partition("-")[0]
    return stem if stem in PLATFORMS or "-" not in stem else first


# Jobs


def _jobs(source: SourceHome, home: FoundHome) -> None:
    given: list[object] = []
    if source.is_file("cron", "jobs.json"):
        try:
            data = source.json("cron", "jobs.json")
            listed = data.get("jobs") if isinstance(data, dict) else data
            given += listed if isinstance(listed, list) else []
        except UnreadableError as error:
            home.leave_out("jobs", "cron/jobs.json", str(error))
    if source.is_file(*STATE):
        try:
            with source.database(*STATE) as connection:
                for row in rows(connection, "cron_jobs", ("job_id", "name", "enabled", "job_json")):
                    job = _loaded(row.get("job_json"))
                    if isinstance(job, dict):
                        names = {"id": row.get("job_id"), "name": row.get("name"), "enabled": bool(row.get("enabled"))}
                        given.append({**names, **job})
        except UnreadableError as error:
            home.leave_out("jobs", "/".join(STATE), str(error))
    for entry in given[:MAX_JOBS]:
        if isinstance(entry, dict):
            _job(entry, home)
        else:
            home.leave_out("jobs", "an entry", "it is not a job")


def _job(job: Json, home: FoundHome) -> None:
    name = one_line(storable(str(job.get("name") or job.get("id") or "")), 60)
    payload, schedule = job.get("payload"), job.get("schedule")
    about: Json = payload if isinstance(payload, dict) else {}
    prompt = about.get("message") if about.get("kind") == "agentTurn" else about.get("text")
    when, zone = _schedule(schedule if isinstance(schedule, dict) else {})
    if not job.get("id") or not when or not isinstance(prompt, str) or not prompt:
        home.leave_out("jobs", name or "a job", "its schedule or what it does is not known here")
        return
    fields: dict[str, object] = {"schedule": when, "name": name, "prompt": storable(prompt), "deliver": _deliver(job)}
    if zone:
        fields["timezone"] = zone
    if isinstance(about.get("model"), str) and about["model"]:
        fields["model"] = storable(about["model"])
    home.jobs.append(FoundJob(str(job["id"]), name, fields, job.get("enabled") is False))


def _schedule(given: Json) -> tuple[str, str]:
    zone = storable(str(given.get("tz") or ""))
    match given.get("kind"):
        case "cron":
            return storable(str(given.get("expr") or "")), zone
        case "every" if isinstance(given.get("everyMs"), int) and given["everyMs"] > 0:
            return f"every {max(1, given['everyMs'] // 1000)}s", ""
        case "at":
            return _moment(given.get("at") or given.get("atMs")), ""
        case _:
            return "", ""


def _moment(given: object) -> str:
    try:
        if isinstance(given, int | float):
            return datetime.fromtimestamp(given / 1000, UTC).isoformat()
        return datetime.fromisoformat(str(given).replace("Z", "+00:00")).astimezone().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _deliver(job: Json) -> str:
    given = job.get("delivery")
    delivery: Json = given if isinstance(given, dict) else {}
    channel, to = str(delivery.get("channel") or ""), delivery.get("to")
    if delivery.get("mode") not in ("announce", None) or channel in ("", "last", "webchat"):
        return "local"
    platform = PLATFORMS.get(channel, channel)
    return str(Target(platform, bare_id(channel, storable(str(to))))) if to else platform


# Texts


def _texts(source: SourceHome, home: FoundHome) -> None:
    keep = "kept for you; the agent does not read it. Put what everybody may know into SOUL.md"
    places: list[tuple[tuple[str, ...], str, str]] = [(("workspace", "SOUL.md"), "SOUL.md", "")]
    for name in ("IDENTITY.md", "USER.md", "MEMORY.md", "AGENTS.md", "TOOLS.md"):
        places.append((("workspace", name), f"memories/{name}", keep))
    for name in source.names("workspace", "memory"):
        if name.endswith(".md"):
            places.append((("workspace", "memory", name), f"memories/{name}", keep))
    for parts, name, note in places:
        if not source.is_file(*parts):
            continue
        try:
            text = source.text(*parts, most=100_000)
        except UnreadableError as error:
            home.leave_out("files", "/".join(parts), str(error))
            continue
        if text.strip():
            home.files.append(FoundFile(name, text, note))
