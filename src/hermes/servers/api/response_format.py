"""The form a client asks the answer in: `response_format` of chat completions, `text.format` of responses.

Both say the same, one of them in a box of its own: any JSON object, or JSON that keeps to a schema.
"""

from __future__ import annotations

from typing import Any

import orjson

from hermes.core.keys import SessionKey
from hermes.core.messages import Json, OutputFormat
from hermes.core.requests import TurnOptions
from hermes.core.text import storable
from hermes.servers.api import parse
from hermes.servers.api.bodies import FormatBody, ResponseTextBody, SchemaBody, decode
from hermes.servers.api.content import INPUT_LIMITS, InputLimits
from hermes.servers.api.errors import bad_request
from hermes.services.gateway import Gateway
from hermes.store import chat_settings

CHAT_PARAM = "response_format"
RESPONSE_PARAM = "text.format"


def read_response_format(asked: Json | None, limits: InputLimits = INPUT_LIMITS) -> OutputFormat | None:
    """None where plain text is asked for, as nearly always."""
    return None if asked is None else _read(asked, asked.get("json_schema"), CHAT_PARAM, ".json_schema", limits)


def read_text_format(text: ResponseTextBody | None, limits: InputLimits = INPUT_LIMITS) -> OutputFormat | None:
    """The same for a response, whose schema stands beside its type."""
    asked = text.format if text is not None else None
    return None if asked is None else _read(asked, asked, RESPONSE_PARAM, "", limits)


def _read(asked: Json, schema: Any, where: str, box: str, limits: InputLimits) -> OutputFormat | None:
    kind = decode(asked, FormatBody, where).type
    if kind != "json_schema":
        return OutputFormat() if kind == "json_object" else None
    where = f"{where}{box}"
    form = decode(schema, SchemaBody, where)
    if len(form.description or "") > limits.description:
        message = f"description is a string of at most {limits.description:,} characters."
        raise bad_request(message, code="invalid_response_format", param=f"{where}.description")
    parse.check_depth(form.schema, f"{where}.schema", limits)
    if len(orjson.dumps(form.schema)) > limits.schema_bytes:
        message = (
            f"A schema may have {limits.schema_bytes:,} bytes at most: it goes along with every call of the model."
        )
        raise bad_request(message, code="content_too_long", param=f"{where}.schema")
    return OutputFormat(form.schema, form.name, storable(form.description or ""), form.strict)


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
