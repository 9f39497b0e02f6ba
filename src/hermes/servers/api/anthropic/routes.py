"""`POST /v1/messages` and `/v1/messages/count_tokens`: the agent for clients of Anthropic's API."""

from __future__ import annotations

from aiohttp import web

from hermes.agent.compression import BYTES_PER_TOKEN, tokens_of
from hermes.core.messages import ChatMessage, Json, Role
from hermes.core.requests import TurnResult
from hermes.servers.api import parse
from hermes.servers.api.anthropic import request as reading
from hermes.servers.api.anthropic import shapes
from hermes.servers.api.anthropic.stream import MessageWriter
from hermes.servers.api.bodies import ChatRequestBody, decode
from hermes.servers.api.chat import ChatRequest, ChatRoutes
from hermes.servers.api.content import InputLimits, limits_of
from hermes.servers.api.context import ApiParts
from hermes.servers.api.streams.segments import SegmentText
from hermes.servers.api.streams.sse import EventStream
from hermes.servers.api.streams.turn_stream import KEEP_ALIVE_SECONDS
from hermes.servers.app import json_response

SHOWS_THINKING = web.RequestKey("shows_thinking", bool)


class MessageRoutes(ChatRoutes):
    """Asks as chat completions do; what differs is how a request is read and how its answer looks."""

    _takes_tasks = False

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts, KEEP_ALIVE_SECONDS)

    async def end(self, app: web.Application) -> None:
        await self.calls.end(app)

    async def _read_body(self, request: web.Request, limits: InputLimits) -> Json:
        body = await parse.read_body(request, limits)
        request[SHOWS_THINKING] = reading.wants_thinking(body)
        return await parse.apart(request, reading.chat_body, body)

    def _to_dict(self, request: web.Request, event_id: str, asked: ChatRequest, result: TurnResult) -> Json:
        message_id = shapes.message_id_of(event_id)
        return shapes.whole(result, message_id, asked.model, shows_thinking=request[SHOWS_THINKING])

    def _question_to_dict(self, request: web.Request, event_id: str, asked: ChatRequest, question: TurnResult) -> Json:
        body = self._to_dict(request, event_id, asked, question)
        return {**body, "stop_reason": "refusal"} if asked.is_formed else body

    def _writer(
        self, request: web.Request, stream: EventStream, event_id: str, asked: ChatRequest, text: SegmentText
    ) -> MessageWriter:
        message_id, shows_thinking = shapes.message_id_of(event_id), request[SHOWS_THINKING]
        return MessageWriter(stream, asked.names, message_id, asked.model, shows_thinking=shows_thinking, text=text)

    async def count_tokens(self, request: web.Request) -> web.Response:
        """About how many tokens a request takes: a quarter of its bytes. No model is asked."""
        limits = limits_of(self._gateway.config.api)
        body = await self._read_body(request, limits)
        body = await self._files.put_in(request, body, "messages", limits)
        count = await parse.apart(request, _count, body, limits)
        return json_response({"input_tokens": count})


def _count(body: Json, limits: InputLimits) -> int:
    asked = decode(body, ChatRequestBody)
    talk = parse.read_conversation(asked.messages, limits)
    tools = parse.read_tools(asked.tools, limits)
    described = sum(len(str(tool.parameters)) + len(tool.description) + len(tool.name) for tool in tools)
    system = ChatMessage(Role.SYSTEM, talk.instructions)
    return max(1, tokens_of([system, *talk.messages]) + described // BYTES_PER_TOKEN)
