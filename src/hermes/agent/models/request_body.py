"""Shared parts of request bodies: repair what strict providers reject."""

from __future__ import annotations

import re
from typing import Any

import orjson

from hermes.core.messages import Image, Json, OutputFormat, ToolSpec

DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)
ABOUT_FORMAT = re.compile(r"response_format|text\.format|output_config\.format|output_format|schema", re.IGNORECASE)


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


def named_schema(form: OutputFormat) -> Json:
    """Return a form with its schema as OpenAI writes it; what was left open stays so."""
    named: Json = {"name": form.name, "schema": form.schema}
    if form.description:
        named["description"] = form.description
    if form.strict is not None:
        named["strict"] = form.strict
    return named


def is_about_format(reason: str) -> bool:
    """Tell whether a refusal is about the answer's format: then the names it repeats are no optional fields."""
    return ABOUT_FORMAT.search(reason) is not None


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
