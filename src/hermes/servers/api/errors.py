"""Refusals in the OpenAI envelope: ``{"error": {"message", "type", "param", "code"}}``, and in Anthropic's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

NO_RETRY = {"x-should-retry": "false"}
"""For answers after which work was done or waits: SDKs would send the request again."""

ANTHROPIC_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


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

    def anthropic_body(self, request_id: str = "") -> dict[str, Any]:
        kind = ANTHROPIC_KINDS.get(self.status, "api_error" if self.status >= 500 else "invalid_request_error")
        extras = {"code": self.code, "param": self.param, **self.extras}
        error = {"type": kind, "message": self.message, **extras}
        return {"type": "error", "error": error, "request_id": request_id or None}

    def response(self, path: str = "") -> web.Response:
        """``path`` of the request: clients of `/v1/messages` know another envelope."""
        body = self.anthropic_body() if path.startswith("/v1/messages") else self.body()
        return web.Response(
            body=orjson.dumps(body), status=self.status, content_type="application/json", headers=self.headers
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
