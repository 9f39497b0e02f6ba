"""The dashboard on 10,000 sessions, 100,000 messages and 10,000 tasks: each route, and what an open page costs."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from bench import machine
from bench.rig import BenchError, World, folder, world
from bench.rows import Plan, Row, Rows, milliseconds
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Role
from hermes.store import codec, people
from hermes.store.db import Tx
from hermes.store.home import make_home
from hermes.store.kanban import tasks
from hermes.store.kanban.open import MIGRATIONS
from hermes.store.kanban.tasks import NewTask
from hermes.store.open import open_database

LINES = 10
LINE_BYTES = 120
PER_TRANSACTION = 250
FIRST_CHAT = 5_000_000
MAX_MILLISECONDS = 1000.0
MAX_KILOBYTES = 300.0
MAX_MEGABYTES = 2.0
TIMES = 5
CALM_SECONDS = 5.0
PAGES_OF_EIGHT_HOURS = 240
"""A page that is loaded anew every two minutes for eight hours; in between it listens."""

ROUTES = (
    "/api/overview",
    "/api/sessions?limit=50",
    "/api/sessions?query=ordinary",
    "/api/sessions/{session}",
    "/api/sessions/{session}/messages?limit=200",
    "/api/messages?limit=50",
    "/api/messages?query=nothing+like+this",
    "/api/messages?state=dead",
    "/api/messages/{message}",
    "/api/people",
    "/api/grants",
    "/api/approvals",
    "/api/pairings",
    "/api/jobs",
    "/api/kanban/tasks?limit=200",
    "/api/kanban/stats",
    "/api/platforms",
    "/api/models",
    "/api/settings",
    "/api/logs",
    "/api/usage?days=30",
    "/api/dashboard/sign-ins",
    "/v1/skills",
    "/v1/toolsets",
)


async def measure(plan: Plan) -> Rows:
    sessions, cards = plan.count(10_000, 20), plan.count(10_000, 20)
    async with folder() as place:
        home = place / "home"
        began = time.monotonic()
        await _seed(home, sessions)
        await _add_tasks(home, cards)
        plan.say(f"stored {sessions} sessions, {sessions * LINES} messages and {cards} tasks in"
                 f" {time.monotonic() - began:.0f} s")  # fmt: skip
        async with world(home) as here:
            key = (home / "api_server.key").read_text("ascii").strip()
            headers = {"Authorization": f"Bearer {key}"}
            async with aiohttp.ClientSession(f"http://127.0.0.1:{here.gateway.port}", headers=headers) as http:
                return [*await _open_page(plan, here, http), *await _routes(plan, http), *await _day(plan, here, http)]


async def _routes(plan: Plan, http: aiohttp.ClientSession) -> Rows:
    async with http.get("/api/sessions?limit=1") as answer:
        session = (await answer.json())["data"][0]["id"]
    async with http.get("/api/messages?direction=in&limit=1") as answer:
        message = (await answer.json())["data"][0]["id"]
    slowest: list[tuple[float, str]] = []
    largest: list[tuple[float, str]] = []
    for form in ROUTES:
        path = form.replace("{session}", session).replace("{message}", message)
        seconds, size = 0.0, 0
        for _ in range(plan.count(TIMES, 1)):
            began = time.monotonic()
            async with http.get(path) as answer:
                body = await answer.read()
                if answer.status != 200:
                    raise BenchError(f"{path} answered {answer.status}: {body[:200]!r}")
            seconds, size = max(seconds, time.monotonic() - began), max(size, len(body))
        slowest.append((milliseconds(seconds), form))
        largest.append((size / 1000, form))
        plan.say(f"{form:<50} {milliseconds(seconds):8.1f} ms {size / 1000:8.1f} kB")
    return [
        Row(f"dashboard: slowest of {len(ROUTES)} routes", *max(slowest)[:1], "ms", MAX_MILLISECONDS, max(slowest)[1]),
        Row("dashboard: largest answer", *max(largest)[:1], "kB", MAX_KILOBYTES, max(largest)[1]),
    ]


async def _open_page(plan: Plan, here: World, http: aiohttp.ClientSession) -> Rows:
    """Memory with one idle page open, against before anybody asked for it."""
    calm = 0.5 if plan.short else CALM_SECONDS
    async with http.get("/v1/models") as answer:  # what any first request makes the server keep is not the page's
        await answer.read()
    await asyncio.sleep(calm)
    before = machine.proportional(here.gateway.processes)
    async with http.get("/api/events") as events:
        await events.content.readline()
        await asyncio.sleep(calm)
        cpu = here.gateway.cpu()
        watched = 2.0 if plan.short else 20.0
        await asyncio.sleep(watched)
        percent = 100 * (here.gateway.cpu() - cpu) / watched
        grown = (machine.proportional(here.gateway.processes) - before) / machine.MEGABYTE
    return [
        Row("dashboard: memory of an idle page", grown, "MB PSS", MAX_MEGABYTES),
        Row("dashboard: CPU of an idle page", percent, "% of a core", note=f"over {watched:.0f} s"),
    ]


async def _day(plan: Plan, here: World, http: aiohttp.ClientSession) -> Rows:
    """Eight hours of use: the page is loaded again and again, listens, and is left; time is not waited for."""
    pages = plan.count(PAGES_OF_EIGHT_HOURS, 3)
    for _ in range(plan.count(50, 1)):
        await _visit(http)
    memory, files = machine.resident(here.gateway.processes), machine.open_files(here.gateway.worker)
    for _ in range(pages):
        await _visit(http)
    await asyncio.sleep(1.0)
    grown = (machine.resident(here.gateway.processes) - memory) / machine.MEGABYTE
    more = machine.open_files(here.gateway.worker) - files
    note = f"{pages} loads, each with a stream"
    return [
        Row("dashboard: memory after eight hours of use", grown, "MB RSS more", MAX_MEGABYTES, note),
        Row("dashboard: descriptors after eight hours of use", more, "more", 4, note),
    ]


async def _visit(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/events") as events:
        await events.content.readline()
        for path in ("/api/overview", "/api/sessions?limit=50", "/api/messages?limit=50", "/api/usage?days=30"):
            async with http.get(path) as answer:
                await answer.read()


async def _seed(home: Path, count: int) -> None:
    """Store conversations by plain inserts, as thirty days of use leave them: what is measured are questions."""
    make_home(home)
    db = await open_database(home / "state.db")
    try:
        for first in range(0, count, PER_TRANSACTION):
            await db.write(_add_sessions, range(first, min(first + PER_TRANSACTION, count)), time.time())
    finally:
        await db.close()


def _add_sessions(tx: Tx, numbers: range, now: float) -> None:
    text = "An ordinary line of talk. ".ljust(LINE_BYTES, "x")
    for number in numbers:
        chat, at = FIRST_CHAT + number, now - (number % 720) * 3600.0 - number / 1000
        lane, target, person = f"agent:main:telegram:dm:{chat}", f"telegram:{chat}", f"p_telegram_{chat}"
        session = f"s_{number:08}"
        people.ensure(tx, person, platform="telegram", user_id=str(chat), name=f"Ana {number}", role="user", now=at)
        tx.run(
            "INSERT INTO sessions (id, key, seq, created_at, updated_at) VALUES (:id, :key, :seq, :at, :at)",
            id=session, key=lane, seq=LINES, at=at,
        )  # fmt: skip
        for turn in range(LINES // 2):
            names = {"turn": f"t_{number:08}{turn}", "lane": lane, "at": at + turn, "end": at + turn + 0.8}
            said = codec.dump(ChatMessage(Role.USER, text))
            answered = codec.dump(ChatMessage(Role.ASSISTANT, text))
            for seq, body in ((2 * turn + 1, said), (2 * turn + 2, answered)):
                tx.run(
                    "INSERT INTO transcript (session_id, seq, turn_id, kind, body, at)"
                    " VALUES (:session, :seq, :turn, 'message', :body, :at)",
                    session=session, seq=seq, body=body, turn=names["turn"], at=names["at"],
                )  # fmt: skip
            tx.run(
                "INSERT INTO turns (id, lane, session_id, state, person_id, attempts, model, prompt_tokens,"
                " completion_tokens, created_at, ended_at)"
                " VALUES (:turn, :lane, :session, 'done', :person, 1, 'fake-1', 120, 30, :at, :end)",
                session=session, person=person, **names,
            )  # fmt: skip
            key = SessionKey("telegram", ChatKind.DM, str(chat))
            message = InboundMessage((), key, str(chat), text, datetime.fromtimestamp(at, UTC))
            tx.run(
                "INSERT INTO inbox (id, lane, seq, platform, account, kind, sender_id, body, state, turn_id,"
                " received_at, ready_at, settled_at) VALUES (:id, :lane, :seq, 'telegram', 'main', 'message',"
                " :sender, :body, 'answered', :turn, :at, :at, :end)",
                id=f"ev_{number:08}{turn}", seq=turn, sender=str(chat), body=codec.dump(message), **names,
            )  # fmt: skip
            reply = f"ob_{number:08}{turn}"
            tx.run(
                "INSERT INTO outbox (id, target, seq, turn_id, group_id, idx, kind, body, state, attempts, not_before,"
                " expires_at, created_at, settled_at) VALUES (:id, :target, :seq, :turn, :id, 0, 'reply', :body,"
                " 'sent', 1, :at, :at, :at, :end)",
                id=reply, target=target, seq=turn, turn=names["turn"], at=names["at"], end=names["end"],
                body=codec.dump(OutboundMessage(key.target, text)),
            )  # fmt: skip


async def _add_tasks(home: Path, count: int) -> None:
    make_home(home)
    db = await open_database(home / "kanban.db", migrations=MIGRATIONS)
    try:
        for first in range(0, count, PER_TRANSACTION):
            await db.write(_make_tasks, range(first, min(first + PER_TRANSACTION, count)))
    finally:
        await db.close()


def _make_tasks(tx: Tx, numbers: range) -> None:
    for number in numbers:
        new = NewTask(f"Task {number}: look at what came in", "Read it, and say what to do. " * 5)
        tasks.make(tx, new, actor="bench", now=time.time())
