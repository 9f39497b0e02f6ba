"""Call a speech service over HTTP, and translate its errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import orjson
from python_socks import ProxyError

from hermes.core.errors import ToolError
from hermes.core.i18n.failures import describe_failure
from hermes.core.secret import Secret
from hermes.core.text import one_line

MAX_BYTES = 25_000_000
MAX_REASON_CHARS = 200

OpenSession = Callable[[], AbstractAsyncContextManager[aiohttp.ClientSession]]
UNREACHED = (aiohttp.ClientError, ProxyError, OSError)


async def ask(
    name: str,
    open_session: OpenSession,
    url: str,
    *,
    seconds: float,
    headers: Mapping[str, str],
    body: Any = None,
    form: aiohttp.FormData | None = None,
) -> bytes:
    """The body of a good answer; ToolError with a sentence for everything else. A redirect would take the key along."""
    try:
        async with asyncio.timeout(seconds), open_session() as http:
            data = form if form is not None else orjson.dumps(body)
            kind = {} if form is not None else {"Content-Type": "application/json"}
            async with http.post(url, data=data, headers={**kind, **headers}, allow_redirects=False) as response:
                answer = await _read(name, response)
                if response.status == 200:
                    return answer
                raise ToolError(refused(name, response.status, answer))
    except TimeoutError:
        raise ToolError(f"{name} did not answer within {seconds:g} s. Try again later.") from None
    except UNREACHED as error:  # only the kind of error: its text may hold an address with a password
        raise ToolError(f"{name} could not be reached ({describe_failure(error)}).") from None


async def _read(name: str, response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for data in response.content.iter_any():
        body += data
        if len(body) > MAX_BYTES:
            raise ToolError(f"{name} sent far more than an answer.")
    return bytes(body)


def refused(name: str, status: int, answer: bytes) -> str:
    match status:
        case 401 | 403:
            return f"{name} does not accept the key. The owner checks it."
        case 402:
            return f"{name} says that the credit is used up."
        case 429:
            return f"{name} says that too many requests came. Try again in a minute."
        case _ if status >= 500:
            return f"{name} has a problem of its own (HTTP {status}). Try again later."
        case _:
            return f"{name} refused (HTTP {status}): {one_line(_reason(answer), MAX_REASON_CHARS)}"


def _reason(answer: bytes) -> str:
    text = answer[:4000].decode("utf-8", "replace")
    try:
        data = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return text
    for name in ("error", "detail", "message"):
        if isinstance(data, dict) and name in data:
            data = data[name]
    return data if isinstance(data, str) else text


def sendable(key: Secret, name: str) -> str:
    """A key as a header takes it; a stray character is said here, since the library's own error would print it."""
    value = key.reveal().strip()
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ToolError(f"The key of {name} holds a character that no key has. The owner checks it.")
    return value
