"""Families of routes that the first request for one of them imports: a start needs none of their modules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from aiohttp import web

from hermes.servers.api.context import ApiParts
from hermes.servers.app import Handler, RouteAdder

Routes = tuple[tuple[str, str, str], ...]
"""Method, path, and the name of the method that answers."""

FAMILIES: Mapping[str, Routes] = {
    "anthropic.routes.MessageRoutes": (
        ("POST", "/v1/messages", "complete"),
        ("POST", "/v1/messages/count_tokens", "count_tokens"),
    ),
    "direct.embeddings.EmbeddingRoutes": (("POST", "/v1/embeddings", "embed"),),
    "manage.pairings.PairingRoutes": (("GET", "/api/pairings", "listed"), ("POST", "/api/pairings", "decide")),
    "entries.jobs.JobRoutes": (
        ("GET", "/api/jobs", "listed"),
        ("POST", "/api/jobs", "create"),
        ("GET", "/api/jobs/{job_id}", "read"),
        ("PATCH", "/api/jobs/{job_id}", "change"),
        ("DELETE", "/api/jobs/{job_id}", "remove"),
        ("GET", "/api/jobs/{job_id}/history", "history"),
        ("POST", "/api/jobs/{job_id}/pause", "pause"),
        ("POST", "/api/jobs/{job_id}/resume", "resume"),
        ("POST", "/api/jobs/{job_id}/run", "run"),
    ),
    "entries.kanban.KanbanRoutes": (
        ("GET", "/api/kanban/tasks", "listed"),
        ("POST", "/api/kanban/tasks", "create"),
        ("GET", "/api/kanban/tasks/{task}", "show"),
        ("PATCH", "/api/kanban/tasks/{task}", "change"),
        ("POST", "/api/kanban/tasks/{task}/comments", "comment"),
        ("GET", "/api/kanban/events", "events"),
        ("GET", "/api/kanban/stats", "stats"),
    ),
    "watch.overview.OverviewRoutes": (("GET", "/api/overview", "show"),),
    "watch.messages.MessageListRoutes": (
        ("GET", "/api/messages", "listed"),
        ("GET", "/api/messages/{message_id}", "show"),
        ("POST", "/api/messages/{message_id}/retry", "retry"),
    ),
    "watch.events.EventRoutes": (("GET", "/api/events", "stream"),),
    "watch.usage.UsageRoutes": (("GET", "/api/usage", "show"),),
    "watch.logs.LogRoutes": (("GET", "/api/logs", "listed"), ("GET", "/api/logs/events", "stream")),
    "manage.people.PeopleRoutes": (
        ("GET", "/api/people", "listed"),
        ("PATCH", "/api/people/{person_id}", "change"),
        ("POST", "/api/people/{person_id}/links", "link"),
        ("GET", "/api/grants", "grants"),
        ("DELETE", "/api/grants/{grant_id}", "revoke"),
    ),
    "manage.platforms.PlatformRoutes": (
        ("GET", "/api/platforms", "listed"),
        ("GET", "/api/platforms/{name}", "show"),
        ("PATCH", "/api/platforms/{name}", "change"),
        ("POST", "/api/platforms/{name}/test", "test"),
        ("POST", "/api/platforms/{name}/pause", "pause"),
        ("POST", "/api/platforms/{name}/resume", "resume"),
        ("POST", "/api/platforms/{name}/login", "begin_login"),
        ("GET", "/api/platforms/{name}/login", "login"),
        ("DELETE", "/api/platforms/{name}/login", "end_login"),
        ("POST", "/api/platforms/{name}/login/answer", "answer_login"),
    ),
    "manage.models.ModelRoutes": (("GET", "/api/models", "listed"), ("POST", "/api/models/test", "test")),
    "manage.settings.SettingRoutes": (("GET", "/api/settings", "listed"), ("PATCH", "/api/settings", "change")),
    "manage.session_actions.SessionActionRoutes": (
        ("POST", "/api/sessions/{id}/steer", "steer"),
        ("POST", "/api/sessions/{id}/queue", "queue"),
        ("POST", "/api/sessions/{id}/stop", "stop"),
        ("POST", "/api/sessions/{id}/retry", "retry"),
        ("GET", "/api/sessions/{id}/export", "export"),
    ),
}
"""Module below ``hermes.servers.api`` and class, and the routes of its methods."""


def lazy_routes(family: str, parts: ApiParts) -> RouteAdder:
    """Return what adds the routes of a family. Its class is made once, and its ``end`` called with the server's end."""

    @cache
    def instance() -> Any:
        module, _, name = family.rpartition(".")
        return getattr(import_module(f"hermes.servers.api.{module}"), name)(parts)

    def handler_of(name: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            response: web.StreamResponse = await getattr(instance(), name)(request)
            return response

        return handle

    async def end(app: web.Application) -> None:
        if instance.cache_info().currsize and hasattr(instance(), "end"):
            await instance().end(app)

    def add(app: web.Application) -> None:
        for method, path, name in FAMILIES[family]:
            app.router.add_route(method, path, handler_of(name))
        app.on_shutdown.append(end)

    return add
