"""What there is to ask: `/v1/models`, `/v1/capabilities`, `/v1/skills`, `/v1/toolsets`."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from hermes import __version__
from hermes.agent.toolkit.schema import Tool
from hermes.servers.api.context import SESSION_ID_HEADER, SESSION_KEY_HEADER, ApiParts
from hermes.servers.api.errors import not_found
from hermes.servers.api.idempotency import HEADER
from hermes.servers.api.input.tools import TOOLS_HEADER
from hermes.servers.app import RouteAdder, json_response
from hermes.services.requests.requests import PLATFORM

AGENT_MODEL = "hermes"
"""The name of the agent itself where clients want the name of a model."""
SKILLS_SECONDS = 5.0


def routes(parts: ApiParts) -> RouteAdder:
    small = _Small(parts)

    def add(app: web.Application) -> None:
        app.router.add_get("/v1/models", small.models)
        app.router.add_get("/v1/models/{model:.+}", small.model)
        app.router.add_get("/v1/capabilities", small.capabilities)
        app.router.add_get("/openapi.json", small.openapi)
        app.router.add_get("/v1/skills", small.skills)
        app.router.add_get("/v1/toolsets", small.toolsets)

    return add


class _Small:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway
        self._since = int(parts.gateway.clock.now())

    def _names(self) -> list[str]:
        return [AGENT_MODEL, *(name for name in self._gateway.config.model_routes if name != AGENT_MODEL)]

    def _model_to_dict(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._since, "owned_by": "hermes"}

    async def models(self, request: web.Request) -> web.Response:
        """Clients of Anthropic's API tell its version, and look for further fields."""
        listed = [self._model_to_dict(name) for name in self._names()]
        if "anthropic-version" not in request.headers:
            return json_response({"object": "list", "data": listed})
        since = datetime.fromtimestamp(self._since, UTC).isoformat()
        theirs = {"type": "model", "created_at": since, "lifecycle": "active"}
        data = [{**model, **theirs, "display_name": model["id"]} for model in listed]
        page = {"has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
        return json_response({"object": "list", "data": data, **page})

    async def model(self, request: web.Request) -> web.Response:
        name = request.match_info["model"].rstrip("/")
        if name not in self._names():
            raise not_found(
                f"There is no model {name[:100]!r} here. GET /v1/models lists them.", code="model_not_found"
            )
        return json_response(self._model_to_dict(name))

    async def capabilities(self, request: web.Request) -> web.Response:
        return json_response(capabilities_of(request.app))

    async def openapi(self, _request: web.Request) -> web.Response:
        return web.Response(body=await asyncio.to_thread(_contract), content_type="application/json")

    async def skills(self, _request: web.Request) -> web.Response:
        """At the very first start they are still being brought in; later ones begin with what was known."""
        skills = self._gateway.skills
        if not skills.all():
            with suppress(TimeoutError):  # a disk that is slow: what is there so far
                async with asyncio.timeout(SKILLS_SECONDS):
                    await skills.is_synced.wait()
        listing = [
            {"name": skill.name, "description": skill.description, "category": skill.category}
            for skill in skills.offered("api")
        ]
        return json_response({"object": "list", "data": listing})

    async def toolsets(self, _request: web.Request) -> web.Response:
        await self._gateway.toolbox.ready()
        return json_response({"object": "list", "data": self._toolsets()})

    def _toolsets(self) -> list[dict[str, Any]]:
        """As they are resolved for the API: a group that is switched off there says so."""
        access = self._gateway.toolbox.access(PLATFORM)
        groups: dict[str, list[Tool]] = {}
        for tool in self._gateway.toolbox.tools():
            groups.setdefault(tool.group, []).append(tool)
        return [
            {
                "name": name,
                "object": "toolset",
                "enabled": any(access.has(name, tool.name) for tool in tools),
                "configured": not any(tool.name in access.unready for tool in tools),
                "tools": [
                    {"name": tool.name, "description": tool.description.partition("\n")[0]}
                    for tool in tools
                    if access.has(name, tool.name)
                ],
            }
            for name, tools in sorted(groups.items())
        ]


def _contract() -> bytes:
    """Built by the first request for it, beside the loop: a start needs none of it, and it takes a while."""
    from hermes.servers.api.manage.openapi import page

    return page()


ENDPOINTS = {
    "chat_completions": ("POST", "/v1/chat/completions"),
    "messages": ("POST", "/v1/messages"),
    "message_tokens": ("POST", "/v1/messages/count_tokens"),
    "embeddings": ("POST", "/v1/embeddings"),
    "responses": ("POST", "/v1/responses"),
    "response_retrieve": ("GET", "/v1/responses/{id}"),
    "response_delete": ("DELETE", "/v1/responses/{id}"),
    "run_submission": ("POST", "/v1/runs"),
    "run_status": ("GET", "/v1/runs/{id}"),
    "run_events": ("GET", "/v1/runs/{id}/events"),
    "run_approval": ("POST", "/v1/runs/{id}/approval"),
    "run_stop": ("POST", "/v1/runs/{id}/stop"),
    "models": ("GET", "/v1/models"),
    "capabilities": ("GET", "/v1/capabilities"),
    "skills": ("GET", "/v1/skills"),
    "toolsets": ("GET", "/v1/toolsets"),
    "sessions": ("GET", "/api/sessions"),
    "session_chat": ("POST", "/api/sessions/{id}/chat"),
    "session_chat_stream": ("POST", "/api/sessions/{id}/chat/stream"),
    "session_fork": ("POST", "/api/sessions/{id}/fork"),
    "approvals": ("GET", "/api/approvals"),
    "jobs": ("GET", "/api/jobs"),
    "pairings": ("GET", "/api/pairings"),
    "kanban": ("GET", "/api/kanban"),
    "metrics": ("GET", "/metrics"),
    "openapi": ("GET", "/openapi.json"),
}
"""Every door a client may look for. Whether it is there is read from the routes themselves."""


def capabilities_of(app: web.Application) -> dict[str, Any]:
    served = routes_of(app)
    features: dict[str, Any] = {name: route in served for name, route in ENDPOINTS.items()}
    has_chat, has_runs = features["chat_completions"], features["run_submission"]
    has_responses = features["responses"]
    features |= {
        "chat_completions_streaming": has_chat,
        "responses_streaming": has_responses,
        "client_tools": has_chat or has_responses,
        "structured_outputs": has_chat or has_responses,
        "image_input": has_chat or has_responses,
        "audio_input": False,
        "file_input": has_chat or has_responses,
        "reasoning": has_chat or has_responses,
        "gateway_tools_header": TOOLS_HEADER,
        "tool_progress_events": has_chat,
        "run_events_sse": features["run_events"],
        "approval_events": has_runs and features["run_approval"],
        "idempotency_key_header": HEADER,
        "session_id_header": SESSION_ID_HEADER,
        "session_key_header": SESSION_KEY_HEADER,
    }
    return {
        "object": "hermes.capabilities",
        "version": __version__,
        "auth": {"type": "bearer", "required": True},
        "features": features,
        "endpoints": {
            name: {"method": method, "path": path}
            for name, (method, path) in ENDPOINTS.items()
            if (method, path) in served
        },
    }


def routes_of(app: web.Application) -> set[tuple[str, str]]:
    """Every method and path that is served, HEAD left out: aiohttp adds it to each GET. Every id is called ``{id}``."""
    return {
        (route.method, plain_path(route.resource.canonical))
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }


def plain_path(canonical: str) -> str:
    """``/v1/runs/{run_id}/stop`` as ``/v1/runs/{id}/stop``: what a family calls its ids is its own affair.

    A slash at its end means nothing.
    """
    return re.sub(r"\{[^}]*\}", "{id}", canonical).rstrip("/") or "/"
