"""`POST /v1/embeddings`: passed on to the provider of the default model, or of a route."""

from __future__ import annotations

from aiohttp import web

from hermes.core.errors import ModelError
from hermes.servers.api import parse
from hermes.servers.api.bodies import EmbeddingsRequestBody, decode
from hermes.servers.api.content import limits_of
from hermes.servers.api.context import ApiParts
from hermes.servers.api.direct.failures import failure_of
from hermes.servers.api.errors import not_found
from hermes.servers.api.models import AGENT_MODEL

PASSED = ("input", "dimensions", "encoding_format", "user")


class EmbeddingRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway

    async def embed(self, request: web.Request) -> web.Response:
        body = await parse.read_body(request, limits_of(self._gateway.config.api))
        asked = decode(body, EmbeddingsRequestBody)
        name = asked.model or AGENT_MODEL
        model = None if name == AGENT_MODEL else self._gateway.models.embeddings(name)
        if model is None:
            message = (
                f"{name[:100]!r} embeds nothing here. Name an embedding model of the gateway's provider, such as "
                "text-embedding-3-small, or a route of model_routes; a provider of the dialect anthropic_messages and "
                "the built-in model have none."
            )
            raise not_found(message, code="model_not_found")
        try:
            raw = await model.embed({field: body[field] for field in PASSED if body.get(field) is not None})
        except ModelError as error:
            raise failure_of(error) from None
        return web.Response(body=raw, content_type="application/json")
