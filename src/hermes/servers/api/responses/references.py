"""Items that a request only names (`item_reference`): clients that trust in `store` send back ids, not items."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from hermes.core.messages import Json
from hermes.servers.api.errors import bad_request
from hermes.servers.api.responses.shapes import PREFIX
from hermes.store.api.responses import StoredResponse

MOST_RESPONSES = 1000
_ITEM_ID = re.compile(r"(?:msg|fc|fco|mcp|rs)_(\w+)_q?\d+\Z")

Load = Callable[[str], Awaitable[StoredResponse | None]]
"""A stored response, as far as whoever asks may see it."""


async def with_items(body: Json, load: Load) -> Json:
    """The same request with the items themselves. An id holds the name of its response, and that holds the item."""
    given = body.get("input")
    references = [item for item in given if _is_reference(item)] if isinstance(given, list) else []
    if not references:
        return body
    names = {found[1] for item in references if (found := _ITEM_ID.match(str(item.get("id"))[:256]))}
    if len(names) > MOST_RESPONSES:
        message = f"input names items of more than {MOST_RESPONSES:,} responses. Send previous_response_id instead."
        raise bad_request(message, code="too_many_items", param="input")
    known: dict[str, Json] = {}
    for name in names:
        if (stored := await load(PREFIX + name)) is not None:
            known |= {item["id"]: item for item in stored.body["output"]}
    return {**body, "input": [_item(item, known, index) for index, item in enumerate(body["input"])]}


def _is_reference(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "item_reference"


def _item(item: Any, known: dict[str, Json], index: int) -> Any:
    if not _is_reference(item):
        return item
    name = item.get("id")
    if not isinstance(name, str) or name not in known:
        message = "There is no stored item of that id. Send the item itself, or previous_response_id."
        raise bad_request(message, code="item_not_found", param=f"input[{index}].id")
    return known[name]
