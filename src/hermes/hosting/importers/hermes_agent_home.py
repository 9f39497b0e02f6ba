"""Read a home of hermes-agent: settings, keys, pairings, sessions, jobs, tasks, skills and texts."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from hermes.config.dotenv import parse_dotenv
from hermes.config.trees import Items, Leaf, Table, Tree, read_json, read_yaml
from hermes.core.keys import Target
from hermes.core.text import one_line, storable
from hermes.hosting.importers import hermes_agent
from hermes.hosting.importers.found import FoundComment, FoundFile, FoundHome, FoundJob, FoundPairing, FoundTask
from hermes.hosting.importers.hermes_agent import PLATFORMS, Json
from hermes.hosting.importers.skill_folders import find_skills
from hermes.hosting.importers.source import SourceHome, UnreadableError, rows, table_columns
from hermes.store.sessions.imports import ImportedSession

KIND = "hermes-agent"
DEFAULT_SOUL = "You are Hermes Agent, an intelligent AI assistant created by Nous Research."
MAX_JOBS = 2000
MAX_TASKS = 20_000
MAX_PEOPLE = 20_000

RENAMED = {
    ("session_reset",): ("sessions", "reset"),
    ("agent", "max_turns"): ("agent", "max_iterations"),
    ("agent", "system_prompt"): ("agent", "persona"),
    ("group_sessions_per_user",): ("sessions", "group_sessions_per_user"),
    ("default_reset_policy",): ("sessions", "reset"),
    ("reset_by_platform",): ("sessions", "reset_by_platform"),
    ("telegram",): ("platforms", "telegram"),
    ("discord",): ("platforms", "discord"),
    ("slack",): ("platforms", "slack"),
    ("whatsapp",): ("platforms", "whatsapp"),
    ("platforms", "qqbot"): ("platforms", "qq"),
    ("platforms", "api_server"): ("api",),
}
"""Settings that have another name here."""

_NOT_OURS = {
    "auth.json": ("keys", "sign-ins by browser are bound to the other program: sign in again, or use an API key"),
    "whatsapp": ("keys", "WhatsApp allows one program per link: link it again with `hermes whatsapp`"),
    "weixin": ("keys", "sign in again with `hermes weixin`"),
    "profiles": ("settings", "import each by itself: `hermes -p NAME import hermes-agent PATH/profiles/NAME`"),
    "hooks": ("files", "Hermes does not run programs of the other gateway"),
    "plugins": ("files", "Hermes does not run plugins of the other gateway"),
    "checkpoints": ("files", "they undo changes that the other gateway made"),
    "mcp": ("settings", "set the servers up again"),
}


def read_home(source: SourceHome) -> FoundHome:
    """Read everything but the sessions, which ``sessions`` of the answer reads one by one. Blocks."""
    home = FoundHome(KIND, source.path)
    _settings(source, home)
    _variables(source, home)
    _pairings(source, home)
    _jobs(source, home)
    _boards(source, home)
    home.skills = find_skills(source, ("skills",), home, _bundled(source))
    _texts(source, home)
    for name, (part, reason) in _NOT_OURS.items():
        if source.is_file(name) or source.names(name):
            home.leave_out(part, name, reason)
    if source.names("cron", "output"):
        home.leave_out("jobs", "cron/output", "answers of past runs stay where they are")
    home.sessions = lambda: _sessions(source, home)
    return home


# Settings and keys


def _settings(source: SourceHome, home: FoundHome) -> None:
    """``config.yaml`` goes before the older ``gateway.json``."""
    for name, reader in (("gateway.json", read_json), ("config.yaml", read_yaml)):
        if not source.is_file(name):
            continue
        try:
            tree, problems = reader(source.read(name), name)
        except UnreadableError as error:
            home.leave_out("settings", name, str(error))
            continue
        if tree is None:
            home.leave_out("settings", name, problems[-1].text)
            continue
        tree.entries.pop("_config_version", None)
        _custom_providers(tree)
        for old, new in RENAMED.items():
            _rename(tree, old, new)
        merge(home.settings, tree)


def _custom_providers(tree: Table) -> None:
    """``custom_providers`` is a list of tables with names; here it is a section of them."""
    given = tree.entries.pop("custom_providers", None)
    for item in given.items if isinstance(given, Items) else ():
        if not isinstance(item, Table):
            continue
        fields = {name: leaf.text for name, leaf in item.entries.items() if isinstance(leaf, Leaf) and leaf.text}
        name = re.sub(r"[^a-z0-9_-]+", "-", (fields.get("name") or "").casefold()).strip("-")
        if name:
            known = ("base_url", "api_key", "api_key_env", "api_mode", "model")
            section = Table({key: Leaf(fields[key]) for key in known if key in fields})
            merge(tree, Table({"providers": Table({name: section})}))


def _rename(tree: Table, old: tuple[str, ...], new: tuple[str, ...]) -> None:
    place: Tree = tree
    for part in old[:-1]:
        if not isinstance(place, Table) or part not in place.entries:
            return
        place = place.entries[part]
    if isinstance(place, Table) and old[-1] in place.entries:
        moved = place.entries.pop(old[-1])
        for part in reversed(new):
            moved = Table({part: moved})
        if isinstance(moved, Table):
            merge(tree, moved)


def merge(into: Table, more: Table) -> None:
    """Add a tree to another; what both hold is taken from ``more``."""
    for name, tree in more.entries.items():
        there = into.entries.get(name)
        if isinstance(there, Table) and isinstance(tree, Table):
            merge(there, tree)
        else:
            into.entries[name] = tree


def _variables(source: SourceHome, home: FoundHome) -> None:
    if not source.is_file(".env"):
        return
    try:
        lines, problems = parse_dotenv(source.read(".env"), ".env")
    except UnreadableError as error:
        home.leave_out("keys", ".env", str(error))
        return
    home.variables = {name: line.value for name, line in lines.items() if line.value.strip()}
    for problem in problems:
        if problem.level == "error":
            home.leave_out("keys", problem.where, problem.text)


# People


def _pairings(source: SourceHome, home: FoundHome) -> None:
    found: dict[tuple[str, str], FoundPairing] = {}
    waiting = 0
    for folder in (("pairing",), ("platforms", "pairing")):
        for name in source.names(*folder):
            platform, _, kind = name.removesuffix(".json").rpartition("-")
            if not name.endswith(".json") or kind not in ("approved", "pending") or not platform:
                continue
            try:
                data = source.json(*folder, name)
            except UnreadableError as error:
                home.leave_out("people", name, str(error))
                continue
            if not isinstance(data, dict):
                home.leave_out("people", name, "it holds no list of people")
            elif kind == "pending":
                waiting += len(data)
            else:
                platform = PLATFORMS.get(platform, platform)
                for user, about in list(data.items())[:MAX_PEOPLE]:
                    given: Json = about if isinstance(about, dict) else {}
                    person = storable(str(user)).strip()[:200]
                    if person:
                        at = hermes_agent.time_of(given.get("approved_at")) or 0.0
                        who = one_line(storable(str(given.get("user_name") or "")), 40)
                        found[platform, person] = FoundPairing(platform, person, who, at)
    home.pairings = list(found.values())
    if waiting:
        home.leave_out(
            "people", "requests that wait", "their codes are the other gateway's: they get one when they write"
        )


# Sessions


def _sessions(source: SourceHome, home: FoundHome) -> Iterator[ImportedSession]:
    known: set[str] = set()
    if source.is_file("state.db"):
        try:
            with source.database("state.db") as connection:
                for session in _of_database(connection, home):
                    known.add(session.id)
                    yield session
        except UnreadableError as error:
            home.leave_out("sessions", "state.db", str(error))
    if not source.is_folder("sessions"):
        return
    transcripts = [name for name in source.names("sessions") if name.endswith(".jsonl")]
    index, troubles = hermes_agent.read_index(source.path / "sessions") if transcripts else ({}, [])
    for trouble in troubles:
        home.leave_out("sessions", hermes_agent.INDEX, trouble)
    old = hermes_agent.OldTranscripts((), index)
    for name in transcripts:
        if not source.is_file("sessions", name):
            home.leave_out("sessions", name, "it is a link or not a regular file")
            continue
        read = hermes_agent.read(source.path / "sessions" / name, old)
        for trouble in read.troubles:
            home.leave_out("sessions", name, trouble)
        if read.our_id:
            home.leave_out("sessions", name, "it is a transcript of ours: `hermes sessions import` takes it")
        elif read.session is not None and read.session.id not in known:
            yield read.session


_SESSION = (
    "id", "source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "origin_json", "title", "started_at",
)  # fmt: skip
_MESSAGE = ("role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp")


def _of_database(connection: sqlite3.Connection, home: FoundHome) -> Iterator[ImportedSession]:
    current = _current(connection)
    has_active = {"active", "compacted"} <= table_columns(connection, "messages")
    # What was taken back there stays out; what was only summarized is part of the conversation.
    which = "AND (active = 1 OR compacted = 1)" if has_active else ""
    for row in list(rows(connection, "sessions", _SESSION, "ORDER BY started_at, id")):
        name = storable(str(row.get("id") or ""))
        if not name:
            home.leave_out("sessions", "a session", "it has no id")
            continue
        try:
            messages = list(
                rows(connection, "messages", _MESSAGE, f"WHERE session_id = ? {which} ORDER BY id", row["id"])
            )
        except sqlite3.Error as error:
            home.leave_out("sessions", name, f"its messages cannot be read ({one_line(str(error), 100)})")
            continue
        entry = _entry(row)
        session = hermes_agent.build(
            name,
            ((number, _decoded(line)) for number, line in enumerate(messages, 1)),
            entry,
            platform=str(row.get("source") or ""),
            began=hermes_agent.time_of(row.get("started_at")) or 0.0,
            is_current=name in current,
            note=partial(home.leave_out, "sessions", name),
        )
        if session is not None:
            yield session


def _current(connection: sqlite3.Connection) -> frozenset[str]:
    """The sessions that chats are in now."""
    found = set()
    for row in rows(connection, "gateway_routing", ("entry_json",)):
        with contextlib.suppress(ValueError, RecursionError, AttributeError):
            found.add(str(json.loads(str(row["entry_json"])).get("session_id")))
    return frozenset(found)


def _entry(row: Mapping[str, Any]) -> Json:
    """What is known of a session, in the form of the older index."""
    entry: dict[str, Any] = {"title": row.get("title"), "session_key": row.get("session_key") or ""}
    with contextlib.suppress(ValueError, RecursionError):
        origin = json.loads(str(row.get("origin_json") or "null"))
        if isinstance(origin, dict):
            entry["origin"] = origin
    if "origin" not in entry and row.get("chat_id"):
        entry["origin"] = {
            "platform": row.get("source"),
            **{name: row.get(name) for name in ("chat_id", "chat_type", "thread_id", "user_id")},
        }
    return entry


def _decoded(line: dict[str, Any]) -> Json:
    """Structured content and tool calls are JSON in a column; the content has a mark in front."""
    content = line.get("content")
    if isinstance(content, str) and content.startswith("\x00json:"):
        with contextlib.suppress(ValueError, RecursionError):
            line["content"] = json.loads(content.removeprefix("\x00json:"))
    if isinstance(line.get("tool_calls"), str):
        try:
            line["tool_calls"] = json.loads(line["tool_calls"])
        except (ValueError, RecursionError):
            line["tool_calls"] = None
    return line


# Jobs


def _jobs(source: SourceHome, home: FoundHome) -> None:
    if not source.is_file("cron", "jobs.json"):
        return
    try:
        data = source.json("cron", "jobs.json")
    except UnreadableError as error:
        home.leave_out("jobs", "cron/jobs.json", str(error))
        return
    given = data.get("jobs") if isinstance(data, dict) else data
    for job in given[:MAX_JOBS] if isinstance(given, list) else ():
        if isinstance(job, dict):
            _job(job, home)
        else:
            home.leave_out("jobs", "an entry of jobs.json", "it is not a job")


def _job(job: Json, home: FoundHome) -> None:
    name = one_line(storable(str(job.get("name") or job.get("id") or "")), 60)
    schedule = _schedule(job.get("schedule"))
    if not job.get("id") or not schedule:
        home.leave_out("jobs", name or "a job", "it has no id or no schedule that is known here")
        return
    if job.get("state") == "completed":
        home.leave_out("jobs", name, "it ran for the last time already")
        return
    notes: list[str] = []
    fields: dict[str, object] = {
        "schedule": schedule,
        "name": name,
        "prompt": storable(str(job.get("prompt") or "")),
        "deliver": _deliver(job, notes),
    }
    for field in ("script", "model", "workdir"):
        if isinstance(job.get(field), str) and job[field]:
            fields[field] = storable(job[field])
    if fields.get("model") and job.get("provider"):
        fields["model"] = f"{storable(str(job['provider']))}/{fields['model']}"
    skills = job.get("skills")
    if isinstance(skills, list) and skills:
        fields["skills"] = [storable(str(skill)) for skill in skills]
    if job.get("no_agent"):
        fields["no_agent"] = True
    repeat = job.get("repeat")
    if isinstance(repeat, dict) and isinstance(repeat.get("times"), int):
        done = repeat.get("completed")
        fields["repeat"] = max(1, repeat["times"] - (done if isinstance(done, int) else 0))
    is_paused = job.get("enabled") is False or job.get("state") == "paused"
    home.jobs.append(FoundJob(str(job["id"]), name, fields, is_paused, tuple(notes)))


def _schedule(given: object) -> str:
    """Their form is a table; the older one is the text that was typed."""
    if isinstance(given, str):
        return storable(given)
    if not isinstance(given, dict):
        return ""
    match given.get("kind"):
        case "interval" if isinstance(given.get("minutes"), int):
            return f"every {given['minutes']}m"
        case "cron":
            return storable(str(given.get("expr") or ""))
        case "once":
            return iso_time(given.get("run_at"))
        case _:
            return ""


def iso_time(given: object) -> str:
    """An ISO time with its zone, or '' for what is none."""
    try:
        return datetime.fromisoformat(str(given).replace("Z", "+00:00")).astimezone().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _deliver(job: Json, notes: list[str]) -> str:
    """``origin`` is the chat where the job was made, which here is named in full."""
    given = storable(str(job.get("deliver") or "local"))
    targets = []
    for part in given.split(","):
        word = part.strip()
        platform, colon, rest = word.partition(":")
        if word == "origin":
            origin = job.get("origin")
            about: Json = origin if isinstance(origin, dict) else {}
            platform = PLATFORMS.get(str(about.get("platform") or ""), str(about.get("platform") or ""))
            if not platform or not about.get("chat_id") or platform == "local":
                targets.append("local")
                continue
            thread = storable(str(about.get("thread_id") or ""))
            targets.append(str(Target(platform, storable(str(about["chat_id"])), thread)))
        elif word:
            targets.append(f"{PLATFORMS.get(platform, platform)}{colon}{rest}")
    if len(set(targets)) < len(targets):
        notes.append("it delivered twice to one chat")
    return ", ".join(dict.fromkeys(targets)) or "local"


# The board


def _boards(source: SourceHome, home: FoundHome) -> None:
    places: dict[str, tuple[str, ...]] = {"main": ("kanban.db",)}
    for slug in source.names("kanban", "boards"):
        if source.is_file("kanban", "boards", slug, "kanban.db"):
            places[slug] = ("kanban", "boards", slug, "kanban.db")
    for board, parts in places.items():
        if not source.is_file(*parts):
            continue
        name = re.sub(r"[^a-z0-9-]+", "-", board.casefold()).strip("-")[:40] or "main"
        try:
            with source.database(*parts) as connection:
                home.tasks += _tasks(connection, name)
        except UnreadableError as error:
            home.leave_out("tasks", "/".join(parts), str(error))


_TASK = ("id", "title", "body", "status", "priority", "assignee", "result", "created_at", "completed_at")


def _tasks(connection: sqlite3.Connection, board: str) -> Iterator[FoundTask]:
    needs: dict[str, list[str]] = {}
    for row in rows(connection, "task_links", ("parent_id", "child_id"), "LIMIT ?", MAX_TASKS):
        needs.setdefault(str(row.get("child_id")), []).append(str(row.get("parent_id")))
    comments: dict[str, list[FoundComment]] = {}
    for row in rows(
        connection, "task_comments", ("task_id", "author", "body", "created_at"), "ORDER BY id LIMIT 100000"
    ):
        at = hermes_agent.time_of(row.get("created_at")) or 0.0
        comment = FoundComment(storable(str(row.get("author") or "")), storable(str(row.get("body") or "")), at)
        comments.setdefault(str(row.get("task_id")), []).append(comment)
    for row in rows(connection, "tasks", _TASK, "ORDER BY created_at, id LIMIT ?", MAX_TASKS):
        task = str(row.get("id"))
        priority = row.get("priority")
        yield FoundTask(
            id=task,
            board=board,
            title=storable(str(row.get("title") or "")),
            body=storable(str(row.get("body") or "")),
            state=str(row.get("status") or ""),
            priority=max(-1000, min(1000, priority)) if isinstance(priority, int) else 0,
            assignee=storable(str(row.get("assignee") or "")),
            result=storable(str(row.get("result") or "")),
            created_at=hermes_agent.time_of(row.get("created_at")) or 0.0,
            done_at=hermes_agent.time_of(row.get("completed_at")),
            comments=tuple(comments.get(task, ())),
            needs=tuple(needs.get(task, ())),
        )


# Texts and skills


def _bundled(source: SourceHome) -> frozenset[str]:
    """Skills that hermes-agent brought itself, as far as it wrote them down."""
    try:
        lines = source.text("skills", ".bundled_manifest").splitlines()
    except UnreadableError:
        return frozenset()
    return frozenset(line.partition(":")[0].strip() for line in lines if line.strip())


def _texts(source: SourceHome, home: FoundHome) -> None:
    keep = "kept for you; the agent does not read it. Put what everybody may know into SOUL.md"
    for parts, name, note in (
        (("SOUL.md",), "SOUL.md", ""),
        (("memories", "MEMORY.md"), "memories/MEMORY.md", keep),
        (("memories", "USER.md"), "memories/USER.md", keep),
    ):
        if not source.is_file(*parts):
            continue
        try:
            text = source.text(*parts, most=100_000)
        except UnreadableError as error:
            home.leave_out("files", "/".join(parts), str(error))
            continue
        if name == "SOUL.md" and (text.strip().startswith(DEFAULT_SOUL) or not _without_comments(text)):
            home.leave_out("files", name, "it is the text that hermes-agent writes itself")
        elif text.strip():
            home.files.append(FoundFile(name, text, note))


def _without_comments(text: str) -> str:
    """What a person wrote: neither comments nor headings of the template."""
    rest = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    return "".join(line for line in rest.splitlines() if line.strip() and not line.startswith("# Hermes"))
