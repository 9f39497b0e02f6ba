"""`/api/models`: the providers, which model answers, and a test call."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from hermes.agent.step import ask_model
from hermes.config import EMBEDDED, KNOWN, Config, ProviderConfig
from hermes.config.explain import without_password
from hermes.core.errors import ConfigError, ModelError
from hermes.core.messages import ChatMessage, Role
from hermes.core.ports import ModelRequest
from hermes.core.roles import Action
from hermes.core.text import one_line, storable
from hermes.servers.api.bodies import decode
from hermes.servers.api.context import CALLER, ApiParts
from hermes.servers.api.errors import bad_request
from hermes.servers.api.manage.bodies import ModelTestBody
from hermes.servers.api.manage.demand import demand
from hermes.servers.api.parse import read_body
from hermes.servers.app import json_response
from hermes.services.models import ready

TEST_PROMPT = "Answer with one word: ready."
TEST_TOKENS = 200
TEST_SECONDS = 30.0
MAX_TEXT_CHARS = 300


class ModelRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway

    async def listed(self, request: web.Request) -> web.Response:
        demand(request[CALLER], Action.SEE_DETAILS)
        gateway = self._gateway
        config, loaded = gateway.config, gateway.watch.loaded
        usable = {provider.name for provider in ready(loaded)}
        current = config.model
        return json_response(
            {
                "object": "models",
                "current": {
                    "provider": current.provider,
                    "model": current.default,
                    "label": gateway.models.model_for().label,
                },
                "fallbacks": list(current.fallbacks),
                "routes": dict(config.model_routes),
                "providers": [
                    _provider(config, name, provider, is_ready=name in usable)
                    for name, provider in config.providers.items()
                ],
                "keys": gateway.models.keys(),
            }
        )

    async def test(self, request: web.Request) -> web.Response:
        """``{provider?, model?}``: ask one model for one word, without fallbacks."""
        demand(request[CALLER], Action.CHANGE_CONFIG)
        body = decode(await read_body(request) if await request.read() else {}, ModelTestBody)
        config = self._gateway.config
        provider = storable(body.provider) or config.model.provider
        known = config.providers.get(provider)
        model = storable(body.model) or (
            config.model.default if provider == config.model.provider else known.default_model if known else ""
        )
        try:
            asked = self._gateway.models.only(provider, model)
        except ConfigError as error:
            raise bad_request(str(error), code="unknown_model", param="provider") from None
        began = time.monotonic()
        prompt = [ChatMessage(Role.USER, TEST_PROMPT)]
        wanted = ModelRequest(prompt, max_tokens=TEST_TOKENS, deadline_seconds=TEST_SECONDS)
        shown: dict[str, Any] = {"object": "model.test", "provider": provider, "model": model, "label": asked.label}
        try:
            reply = await ask_model(asked, wanted, _unheard, _unheard)
        except ModelError as error:
            failed = {"ok": False, "seconds": round(time.monotonic() - began, 3), "text": "", "sentence": str(error)}
            return json_response({**shown, **failed})
        seconds = round(time.monotonic() - began, 3)
        text = one_line(reply.text, MAX_TEXT_CHARS)
        return json_response(
            {**shown, "ok": True, "seconds": seconds, "text": text, "sentence": f"Answered in {seconds:.1f} s."}
        )


def _unheard(_: str) -> None:
    """Nobody reads along."""


def _provider(config: Config, name: str, provider: ProviderConfig, *, is_ready: bool) -> dict[str, Any]:
    known = KNOWN.get(name)
    is_current = name == config.model.provider
    return {
        "name": name,
        "label": name,
        "is_ready": is_ready,
        "has_key": bool(provider.api_keys),
        "key_hint": ", ".join(key.hint() for key in provider.api_keys),
        "base_url": without_password((config.model.base_url if is_current else "") or provider.base_url),
        "default_model": provider.default_model,
        "is_local": name == EMBEDDED or (known is not None and known.is_local),
        "is_current": is_current,
        "env": provider.api_key_env or "",
    }
