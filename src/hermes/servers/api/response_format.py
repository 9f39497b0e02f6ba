"""The form a client asks the answer in: `response_format` of chat completions, `text.format` of responses.

Both say the same, one of them in a box of its own: any JSON object, or JSON that keeps to a schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from hermes.core.keys import SessionKey
from hermes.core.messages import Json, OutputFormat
from hermes.core.requests import TurnOptions
from hermes.core.text import storable
from hermes.servers.api import parse
from hermes.servers.api.content import INPUT_LIMITS, InputLimits
from hermes.servers.api.errors import ApiError, bad_request
from hermes.services.gateway import Gateway
from hermes.store import chat_settings

CHAT_PARAM = "response_format"
RESPONSE_PARAM = "text.format"


def read_response_format(body: Mapping[str, Any], limits: InputLimits = INPUT_LIMITS) -> OutputFormat | None:
    """None where plain text is asked for, as nearly always."""
    asked = body.get(CHAT_PARAM)
    return None if asked is None else _read(asked, CHAT_PARAM, "json_schema", limits)


def read_text_format(body: Mapping[str, Any], limits: InputLimits = INPUT_LIMITS) -> OutputFormat | None:
    """The same for a response, whose schema stands beside its type."""
    if body.get("text") is None:
        return None
    asked = parse.read_object(body, "text").get("format")
    return None if asked is None else _read(asked, RESPONSE_PARAM, "", limits)


def _read(asked: Any, where: str, box: str, limits: InputLimits) -> OutputFormat | None:
    if not isinstance(asked, dict):
        raise _wrong(f"{where} is an object with a type.", where)
    match asked.get("type", "text"):
        case "text":
            return None
        case "json_object":
            return OutputFormat()
        case "json_schema" if not box:
            return _read_schema(asked, where, limits)
        case "json_schema" if isinstance(asked.get(box), dict):
            return _read_schema(asked[box], f"{where}.{box}", limits)
        case "json_schema":
            raise _wrong(f"{box} is missing: an object with name and schema.", f"{where}.{box}")
        case _:
            raise _wrong("type is one of text, json_object, json_schema.", f"{where}.type")


def _read_schema(asked: Json, where: str, limits: InputLimits) -> OutputFormat:
    name, schema, strict, description = (asked.get(key) for key in ("name", "schema", "strict", "description"))
    if not isinstance(name, str) or not parse.TOOL_NAME.match(name):
        raise _wrong("The form needs a name of 1 to 64 letters, digits, _ and -.", f"{where}.name")
    if not isinstance(schema, dict):
        raise _wrong("schema is missing: a JSON schema, as an object.", f"{where}.schema")
    if not isinstance(strict, bool | None):
        raise _wrong("strict is true or false.", f"{where}.strict")
    if not isinstance(description, str | None) or len(description or "") > limits.text:
        raise _wrong(f"description is a string of at most {limits.text:,} characters.", f"{where}.description")
    parse.check_depth(schema, f"{where}.schema", limits)
    if len(orjson.dumps(schema)) > limits.schema_bytes:
        message = (
            f"A schema may have at most {limits.schema_bytes:,} bytes: it goes along with every call of the model."
        )
        raise bad_request(message, code="content_too_long", param=f"{where}.schema")
    return OutputFormat(schema, name, storable(description or ""), strict)


def _wrong(message: str, param: str) -> ApiError:
    return bad_request(message, code="invalid_response_format", param=param)


def format_to_dict(form: OutputFormat) -> Json:
    """As a response repeats it."""
    if form.schema is None:
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "name": form.name,
        "description": form.description or None,
        "schema": form.schema,
        "strict": form.strict,
    }


async def check_model(gateway: Gateway, key: SessionKey, options: TurnOptions, param: str) -> None:
    """The built-in model takes no form, so what only it would answer is refused before anything is stored."""
    chosen = (await gateway.db.read(chat_settings.of_lane, str(key))).model
    if gateway.models.is_embedded(key, options.model, chosen):
        label = gateway.models.model_for(key, options.model, chosen).label
        message = (
            f"The {label} model, which would answer here, cannot be held to a form: leave {param} out, or give the "
            "gateway a model that can (`hermes setup`)."
        )
        raise bad_request(message, code="unsupported_parameter", param=param)
