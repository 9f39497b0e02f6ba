"""Pages of lists: ``limit``, ``before``, ``has_more`` and ``next_before``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from aiohttp import web

from hermes.core.text import storable
from hermes.servers.api.errors import bad_request

T = TypeVar("T")

PAGE = 50
LARGEST_PAGE = 200
FROM_THE_NEWEST = (1e18, "")


def whole_number(request: web.Request, name: str, default: int, *, least: int = 1, most: int) -> int:
    """Read a whole number of the query; larger than ``most`` is ``most``."""
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17 and int(text) >= least):
        raise bad_request(f"{name} is a whole number from {least} on.", code="invalid_value", param=name)
    return min(int(text), most)


def place_of(request: web.Request) -> tuple[float, str]:
    """Read ``before``: the ``next_before`` of the page before."""
    text = storable(request.query.get("before", ""))
    if not text:
        return FROM_THE_NEWEST
    at, _, name = text.partition("~")
    try:
        place = float(at)
    except ValueError:
        place = float("nan")
    if not -1e18 <= place <= 1e18:
        raise bad_request("before is the next_before of a list.", code="invalid_value", param="before")
    return place, name


def page_of(found: Sequence[T], limit: int, place: Callable[[T], tuple[float, str]]) -> dict[str, Any]:
    """Return a page of what was found: up to ``limit``, and whether one more was there."""
    shown, more = found[:limit], len(found) > limit
    at, name = place(shown[-1]) if more else (0.0, "")
    return {
        "object": "list",
        "data": list(shown),
        "has_more": more,
        "next_before": f"{at!r}~{name}" if more else None,
    }
