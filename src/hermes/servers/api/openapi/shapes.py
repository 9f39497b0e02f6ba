"""Write JSON schemas in a short form: an object as one line of field names."""

from __future__ import annotations

import re
from typing import Any

from hermes.servers.api import bodies

Schema = dict[str, Any]
JSON_TYPE = "application/json"
STREAM_TYPE = "text/event-stream"
TEXT: Schema = {"type": "string"}


def ref(name: str) -> Schema:
    return {"$ref": f"{bodies.SCHEMAS}{name}"}


def shape(required: str, optional: str = "", **special: Schema) -> Schema:
    """An object of fields: ``name`` is a text, ``name=a|b`` one of these words, ``name:type`` anything else.

    A type is text, flag, number, whole, null, object or the name of a schema; ``[]`` after it is an array of these,
    ``{}`` an object whose values are these, ``?`` null as well. ``special`` are schemas of fields said in no such way.
    """
    properties, names = {}, []
    for field in f"{required} {optional}".split():
        name, sign, kind = re.split(r"([=:]|$)", field, maxsplit=1)
        names.append(name)
        choices = kind.split("|")
        const = {"const": kind} if len(choices) == 1 else {"enum": choices}
        properties[name] = special.get(name) or (const if sign == "=" else typed(kind or "text"))
    names = names[: len(required.split())]
    return {"type": "object", "properties": properties, **({"required": names} if names else {})}


def typed(kind: str) -> Schema:
    match kind[-1], kind:
        case "?", _:
            return {"anyOf": [typed(kind[:-1]), {"type": "null"}]}
        case "]", _:
            return {"type": "array", "items": typed(kind[:-2])}
        case "}", _:
            return {"type": "object", "additionalProperties": typed(kind[:-2])}
        case _, "object":
            return {"type": "object", "properties": {}, "additionalProperties": True}
        case _:
            plain = {"text": "string", "flag": "boolean", "number": "number", "whole": "integer", "null": "null"}
            return {"type": plain[kind]} if kind in plain else ref(kind)
