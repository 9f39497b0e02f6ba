"""Background tasks of chat clients on `/v1/responses`: answered by the model alone, and kept nowhere."""

from __future__ import annotations

from aiohttp import web

from hermes.core.messages import Json
from hermes.servers.api.content import InputLimits
from hermes.servers.api.context import session_names
from hermes.servers.api.direct.tasks import ask_alone
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.answers import send_events
from hermes.servers.api.responses.events import ResponseEvents
from hermes.servers.api.responses.request import parse_request
from hermes.servers.api.streams.sse import ClientGoneError, event_stream
from hermes.servers.app import json_response
from hermes.services.gateway import Gateway
from hermes.store.ids import new_id


async def answer_task(request: web.Request, gateway: Gateway, body: Json, limits: InputLimits) -> web.StreamResponse:
    asked = parse_request({**body, "store": False, "background": False}, limits, own_tools=(), tool_items="mcp_call")
    result, model = await ask_alone(gateway, asked.input, asked.options)
    now = gateway.clock.now()
    begun = shapes.new_response(
        asked, session_names(request), response_id=new_id("resp"), model=asked.options.model or model, created_at=now
    )
    items = [shapes.message_item(shapes.ItemIds(begun["id"]).message(), result.text, "completed")]
    whole = shapes.finished(begun, result, items, now=gateway.clock.now())
    if not asked.streams:
        return json_response(whole)
    response: web.StreamResponse = web.Response(status=499)
    events = ResponseEvents(begun)
    try:
        async with event_stream(request, {}) as stream:
            response = stream.response
            await send_events(stream, [*events.opening(), *events.rest(items, last_status="completed")])
            await send_events(stream, [events.end(whole)])
    except ClientGoneError:
        return response
    return response
