"""Shapes as they are published: no field is missing, and none is there that nobody knows.

Three sources, all of them packages that the tests install: the types of the official SDK (Apache-2.0), OpenAI's OpenAPI
document (MIT) and that of Open Responses (Apache-2.0), which llm-comply carries.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel, TypeAdapter

Json = dict[str, Any]

OURS = frozenset({"hermes", "reasoning_content"})
"""Fields that we add to bodies, chunks and messages; clients leave out what they do not know."""
NOT_IN_THE_SDK = {
    "Response": {"frequency_penalty", "presence_penalty", "store"},  # Open Responses demands them
    "ResponseFunctionCallArgumentsDoneEvent": {"name"},  # types of earlier releases demand it
    "McpCall": {"call_id"},  # ours: the id by which later requests name the call
    "McpApprovalRequest": {"approval_code", "question"},  # ours: what a person reads and types
}


# The SDK


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def check_type(kind: Any, data: Any) -> Any:
    """Read data as the SDK's type. Fail where a required field is missing, or one is unknown to the type."""
    found = _adapter(kind).validate_python(data)
    unknown = sorted(set(_unknown(found)))
    assert not unknown, f"{unknown} in {data}"
    return found


def _unknown(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, BaseModel):
        known = OURS | NOT_IN_THE_SDK.get(type(value).__name__, set())
        for name in (value.model_extra or {}).keys() - known:
            yield f"{path}.{name} of {type(value).__name__}"
        for name in type(value).model_fields:
            yield from _unknown(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for one in value:
            yield from _unknown(one, f"{path}[]")
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _unknown(one, f"{path}.{name}")


# The documents


class Document:
    """An OpenAPI document whose objects take no field but those that they declare."""

    def __init__(self, name: str, **newer: tuple[str, ...]) -> None:
        """``newer`` are fields of the SDK's types, and of ours, that the document does not have, by schema."""
        raw = orjson.loads((files("llm_comply") / "specs" / f"{name}.json").read_bytes())
        self._schemas: Json = raw["components"]["schemas"]
        for schema, fields in newer.items():
            self._schemas[schema]["properties"] |= {name: {} for name in fields}
        self._closed: Json = {title: self._close(schema, is_part=False) for title, schema in self._schemas.items()}

    def check(self, title: str, data: Any) -> None:
        schema = {"$ref": f"#/components/schemas/{title}", "components": {"schemas": self._closed}}
        found = sorted(Draft202012Validator(schema).iter_errors(data), key=lambda error: list(error.path))
        told = [
            f"{error.json_path}: {error.message[:200]} {[e.message[:120] for e in error.context or ()]}"
            for error in found
        ]
        assert not told, f"{title}: {told}"

    def _close(self, schema: Any, *, is_part: bool) -> Any:
        """The same schema for JSON Schema 2020-12. Parts of an `allOf` stay open: their whole is closed."""
        if isinstance(schema, list):
            return [self._close(one, is_part=False) for one in schema]
        if not isinstance(schema, dict):
            return schema
        if is_part and "$ref" in schema:
            return self._close(copy.deepcopy(self._schemas[schema["$ref"].rpartition("/")[2]]), is_part=True)
        made = {
            key: self._close_map(value) if key == "properties" else self._close_key(key, value)
            for key, value in schema.items()
            if key not in ("discriminator", "nullable", "example", "default", "x-oaiMeta", "description")
        }
        is_object = "properties" in made or "allOf" in made
        if is_object and not is_part and not made.get("additionalProperties"):
            made.pop("additionalProperties", None)
            made["unevaluatedProperties"] = False
            made.setdefault("properties", {})
            made["properties"] |= {name: {} for name in OURS}
        return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made

    def _close_key(self, key: str, value: Any) -> Any:
        if key == "allOf":
            return [self._close(one, is_part=True) for one in value]
        return self._close(value, is_part=False) if isinstance(value, dict | list) and key != "enum" else value

    def _close_map(self, fields: Json) -> Json:
        return {name: self._close(schema, is_part=False) for name, schema in fields.items()}


@cache
def openai() -> Document:
    return Document("openai_chat", Error=("response_id",))


@cache
def open_responses() -> Document:
    return Document(
        "openresponses",
        ResponseResource=("conversation", "user"),
        ReasoningBody=("status",),
        InputTokensDetails=("cache_write_tokens",),
        ResponseFunctionCallArgumentsDoneStreamingEvent=("name",),
    )
