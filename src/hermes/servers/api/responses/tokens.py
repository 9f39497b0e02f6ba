"""`/v1/responses/input_tokens` and `/v1/responses/compact`: how long a conversation is, and the same one shorter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import orjson
from aiohttp import web

from hermes.agent import compression
from hermes.agent.step import ask_model
from hermes.core.errors import ModelError
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Json
from hermes.core.ports import ModelReply, ModelRequest
from hermes.servers.api import parse
from hermes.servers.api.content import InputLimits
from hermes.servers.api.context import CALLER, ApiParts, Caller, session_names
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.input.files import FileTexts
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.compaction import newest_words, seal
from hermes.servers.api.responses.request import ResponseRequest, parse_request
from hermes.servers.app import json_response
from hermes.services.turns.compression import CALL_SECONDS, MAX_SUMMARY_TOKENS
from hermes.store.api import pictures
from hermes.store.ids import new_id

ChainOf = Callable[[Caller, ResponseRequest], Awaitable[list[ChatMessage]]]
"""What stands before the input of a request."""


class TokenRoutes:
    def __init__(self, parts: ApiParts, chain_of: ChainOf, limits: InputLimits) -> None:
        self._gateway = parts.gateway
        self._chain_of = chain_of
        self._limits = limits

    async def count(self, request: web.Request) -> web.Response:
        """About how many tokens a request has, its conversation included; the agent's own prompt is not."""
        asked, before = await self._read(request)
        instructions = asked.options.instructions + asked.input.instructions
        tools = sum(len(orjson.dumps(tool.parameters)) + len(tool.description) for tool in asked.options.tools)
        count = (
            compression.tokens_of([*before, *asked.input.messages], instructions) + tools // compression.BYTES_PER_TOKEN
        )
        return json_response({"object": "response.input_tokens", "input_tokens": count})

    async def compact(self, request: web.Request) -> web.Response:
        """The newest words of the user, and a summary of all the rest."""
        asked, before = await self._read(request)
        messages = [*before, *asked.input.messages]
        if not messages:
            raise bad_request("There is nothing to compact: send input.", code="missing_input", param="input")
        try:
            reply = await self._summarize(session_names(request).key, messages)
        except ModelError as error:
            message = self._gateway.toolbox.hide(str(error))
            raise ApiError(502, message, code=error.kind.value, kind="server_error") from None
        response_id = new_id("resp")
        newest = newest_words(messages)
        if names := pictures.names_in(newest):
            newest = pictures.put_back(newest, await self._gateway.db.read(pictures.load, names))
        items = shapes.input_items(newest, response_id)
        items.append({"id": new_id("cmp"), "type": "compaction", "encrypted_content": seal(reply.text.strip())})
        body: Json = {
            "id": response_id,
            "object": "response.compaction",
            "created_at": int(self._gateway.clock.now()),
            "output": items,
            "usage": shapes.usage_of(reply.usage),
        }
        return json_response(body)

    async def _summarize(self, key: SessionKey, messages: list[ChatMessage]) -> ModelReply:
        """Ask the model of `compression.model` for a summary. Nothing is stored."""
        config = self._gateway.config
        route = config.compression.model
        window = config.context_window(route.partition("/")[2])
        most = int(window * compression.BYTES_PER_TOKEN * compression.PROMPT_SHARE)
        prompt = compression.request(messages, "", most=most)
        request = ModelRequest(prompt, max_tokens=MAX_SUMMARY_TOKENS, deadline_seconds=CALL_SECONDS)
        return await ask_model(self._gateway.models.named(route, key), request, lambda _: None, lambda _: None)

    async def _read(self, request: web.Request) -> tuple[ResponseRequest, list[ChatMessage]]:
        """A request as `/v1/responses` takes it. With a conversation before it, it needs no input."""
        body = await parse.read_body(request, self._limits)
        has_input = body.get("input") not in (None, [], "")
        if not has_input:
            if not body.get("previous_response_id") and not body.get("conversation"):
                raise bad_request("input is missing.", code="missing_input", param="input")
            body = {**body, "input": "-"}
        body = await FileTexts().put_in(request, body, "input", self._limits)
        asked = await parse.apart(request, partial(parse_request, is_whole=False), body, self._limits)
        if not has_input:
            asked = asked.without_input()
        return asked, await self._chain_of(request[CALLER], asked)
