"""Refusals in the OpenAI envelope: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

NO_RETRY = {"x-should-retry": "false"}
"""For answers after which work was done or waits: SDKs would send the request again."""


class ApiError(Exception):
    """A request is refused. The message is a sentence: what is wrong, with what, and what to send instead."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        kind: str = "invalid_request_error",
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.kind = kind
        self.param = param
        self.headers = dict(headers or {})
        self.extras = dict(extras or {})

    def body(self) -> dict[str, Any]:
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code, **self.extras}
        return {"error": error}

    def response(self) -> web.Response:
        return web.Response(
            body=orjson.dumps(self.body()), status=self.status, content_type="application/json", headers=self.headers
        )


def bad_request(message: str, *, code: str = "invalid_request", param: str | None = None) -> ApiError:
    return ApiError(400, message, code=code, param=param)


def not_found(message: str, *, code: str = "not_found") -> ApiError:
    return ApiError(404, message, code=code)


def store_is_down() -> ApiError:
    return ApiError(
        503,
        "The gateway's database does not answer just now. Nothing was stored; try again.",
        code="store_is_down",
        kind="server_error",
        headers={"Retry-After": "5"},
    )
