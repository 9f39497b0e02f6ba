"""Pages of items: how many, in which order, behind which one."""

from __future__ import annotations

from aiohttp import web

from hermes.servers.api.errors import bad_request

MOST_LISTED = 100
DEFAULT_LISTED = 20


def page_of(request: web.Request) -> tuple[int, str, str]:
    given, order = request.query.get("limit", str(DEFAULT_LISTED)), request.query.get("order", "desc")
    if not (given.isascii() and given.isdigit() and len(given) < 9 and 1 <= int(given) <= MOST_LISTED):
        raise bad_request(f"limit is a number from 1 to {MOST_LISTED}.", code="invalid_value", param="limit")
    if order not in ("asc", "desc"):
        raise bad_request("order is asc or desc.", code="invalid_value", param="order")
    return int(given), order, request.query.get("after", "")
