"""What the bodies of all dialects share: pieces of a request that strict providers would refuse, made good."""

from __future__ import annotations

import re
from typing import Any

import orjson

from hermes.core.messages import Image, Json, ToolSpec

DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)


def sendable(arguments: str) -> str:
    """Strict providers refuse the whole conversation for one old call whose arguments are not a JSON object."""
    try:
        if isinstance(orjson.loads(arguments), dict):
            return arguments
    except orjson.JSONDecodeError:
        pass
    return orjson.dumps({"unreadable": scrubbed(arguments)}).decode()


def schema_of(tool: ToolSpec) -> Json:
    return tool.parameters or {"type": "object", "properties": {}}


def inline(image: Image) -> tuple[str, str] | None:
    """The media type and the base64 text of a picture that is in the request itself; None for one at an address."""
    found = DATA_URL.match(image.url)
    return (found[1].lower(), image.url[found.end() :]) if found else None


def encode(body: Json) -> bytes:
    """As JSON; half characters (lone surrogates, as file names may hold) become the replacement mark."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return orjson.dumps(scrubbed(body))


def scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {scrubbed(key): scrubbed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(item) for item in value]
    return value
