"""Attempts of one request: which of them broke off, so that the same body soon afterwards is no second order."""

from __future__ import annotations

from typing import cast

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from hermes.servers.api.idempotency import Attempts
from hermes.services.requests.requests import Requests
from tests.fakes.clock import FakeClock

NO_REQUESTS = cast("Requests", None)  # long after the start nobody asks the store


class Line:
    """The connection of a client, who may leave."""

    def __init__(self) -> None:
        self.has_left = False

    def is_closing(self) -> bool:
        return self.has_left

    def get_extra_info(self, _name: str) -> None:
        return None


def request_on(line: Line) -> web.Request:
    return make_mocked_request("POST", "/v1/responses", transport=line)


def attempts() -> Attempts:
    clock = FakeClock()
    known = Attempts(NO_REQUESTS, clock)
    clock.advance(3600)
    return known


async def test_a_request_whose_client_left_is_found_by_its_retry() -> None:
    known, line = attempts(), Line()
    with known.attempt(request_on(line), "body") as first:
        first.event_id = "ev_1"
        line.has_left = True
    assert await known.earlier(request_on(Line()), "body") == "ev_1"


async def test_a_request_that_its_retry_answered_is_over_though_its_own_client_left() -> None:
    known, line = attempts(), Line()
    with known.attempt(request_on(line), "body") as first:
        first.event_id = "ev_1"
        line.has_left = True
        with known.attempt(request_on(Line()), "body") as retry:
            retry.event_id = "ev_1"
    assert await known.earlier(request_on(Line()), "body") == ""
