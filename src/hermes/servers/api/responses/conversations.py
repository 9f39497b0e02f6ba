"""`/v1/conversations`: conversations as objects. Their responses go on in one session, whose lines are their items."""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from hermes.core.messages import ChatMessage, Json
from hermes.core.text import storable
from hermes.servers.api import parse
from hermes.servers.api.bodies import ConversationBody, ConversationItemsBody, decode
from hermes.servers.api.content import InputLimits
from hermes.servers.api.context import CALLER, ApiParts
from hermes.servers.api.errors import bad_request, not_found
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.chains import read_lines
from hermes.servers.api.responses.finalizer import ResponseFinalizer
from hermes.servers.api.responses.paging import page_of
from hermes.servers.api.responses.request import read_history
from hermes.servers.app import json_response
from hermes.store.api import conversations, pictures
from hermes.store.api.conversations import ConversationObject
from hermes.store.ids import new_id

MAX_ITEMS = 20
"""In one request, as with OpenAI."""
MAX_WAITING = 1000


class ConversationRoutes:
    def __init__(self, parts: ApiParts, finalizer: ResponseFinalizer, limits: InputLimits) -> None:
        self._gateway = parts.gateway
        self._finalizer = finalizer
        self._limits = limits

    async def create(self, request: web.Request) -> web.Response:
        body = decode(await parse.read_body(request, self._limits), ConversationBody)
        items = self._read_items(body.items or [])
        made = ConversationObject(new_id("conv"), self._gateway.clock.now(), body.metadata or {}, items)
        await self._put(request, made)
        return json_response(_to_dict(made))

    async def show(self, request: web.Request) -> web.Response:
        return json_response(_to_dict(await self._find(request)))

    async def change(self, request: web.Request) -> web.Response:
        body = decode(await parse.read_body(request, self._limits), ConversationBody)
        made = replace(await self._find(request), metadata=body.metadata or {})
        await self._put(request, made)
        return json_response(_to_dict(made))

    async def delete(self, request: web.Request) -> web.Response:
        """The conversation goes; its responses and its session do not."""
        made = await self._find(request)
        db = await self._finalizer.db()
        await db.write(conversations.delete, request[CALLER].sender_id, made.name)
        return json_response({"id": made.name, "object": "conversation.deleted", "deleted": True})

    async def items(self, request: web.Request) -> web.Response:
        limit, order, after = page_of(request)
        items = await self._items(request, await self._find(request))
        items = items if order == "asc" else items[::-1]
        if after:
            ids = [item["id"] for item in items]
            items = items[ids.index(after) + 1 :] if after in ids else []
        return json_response(shapes.listed(items[:limit], has_more=len(items) > limit))

    async def add_items(self, request: web.Request) -> web.Response:
        """Items wait here until the next response of the conversation takes them in."""
        body = decode(await parse.read_body(request, self._limits), ConversationItemsBody)
        made = await self._find(request)
        new = self._read_items(body.items)
        if len(made.items) + len(new) > MAX_WAITING:
            message = f"A conversation holds at most {MAX_WAITING:,} items that no response has taken in."
            raise bad_request(message, code="too_many_items", param="items")
        await self._put(request, replace(made, items=[*made.items, *new]))
        shown = await self._items(request, replace(made, items=[*made.items, *new]))
        return json_response(shapes.listed(shown[-len(new) :] if new else []))

    async def item(self, request: web.Request) -> web.Response:
        wanted = request.match_info["item_id"]
        for item in await self._items(request, await self._find(request)):
            if item["id"] == wanted:
                return json_response(item)
        raise not_found(f"There is no item {wanted[:80]!r} in this conversation.", code="item_not_found")

    # What they share

    async def _find(self, request: web.Request) -> ConversationObject:
        name = storable(request.match_info["conversation_id"])
        db = await self._finalizer.db()
        made = await db.read(conversations.get, request[CALLER].sender_id, name)
        if made is None:
            raise not_found(f"Conversation with id {name[:80]!r} not found.", code="conversation_not_found")
        return made

    async def _put(self, request: web.Request, made: ConversationObject) -> None:
        await (await self._finalizer.db()).write(conversations.put, request[CALLER].sender_id, made)

    def _read_items(self, items: list[Json]) -> list[Json]:
        """Items that can be taken in later; what cannot is refused now."""
        if len(items) > MAX_ITEMS:
            raise bad_request(f"items holds at most {MAX_ITEMS} items.", code="too_many_items", param="items")
        read_history(items, self._limits, "items")
        return items

    async def _items(self, request: web.Request, made: ConversationObject) -> list[Json]:
        """All items: those of its session, and those that wait."""
        newest = await self._finalizer.newest_of(request[CALLER].sender_id, made.name)
        lines: list[ChatMessage] = []
        if newest is not None:
            lines = await self._gateway.db.read(read_lines, newest)
        if names := pictures.names_in(lines):
            lines = pictures.put_back(lines, await self._gateway.db.read(pictures.load, names))
        lines += read_history(made.items, self._limits, "items").messages
        return shapes.input_items(lines, made.name)


def _to_dict(made: ConversationObject) -> Json:
    return {
        "id": made.name,
        "object": "conversation",
        "created_at": int(made.created_at),
        "metadata": made.metadata,
    }
