"""Put the document together: routes, schemas, and the bodies of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec
import orjson

from hermes import __version__
from hermes.servers.api import bodies
from hermes.servers.api.openapi.routes import ERRORS, EXAMPLES, HEADERS, ROUTES
from hermes.servers.api.openapi.schemas import ANSWERS, FORMS
from hermes.servers.api.openapi.shapes import JSON_TYPE, Schema, ref


def document(
    routes: Sequence[tuple[str, Schema]] = (),
    answers: Mapping[str, Schema] = MappingProxyType({}),
    more_bodies: Sequence[type[msgspec.Struct]] = (),
) -> Schema:
    """Return the contract with further routes, their answers and their bodies."""
    needed = [bodies.FunctionBody, bodies.SchemaBody, bodies.FunctionCallBody, bodies.FunctionCallOutputBody]
    needed += [bodies.McpCallBody, bodies.McpApprovalResponseBody]
    (message, *_), declared = msgspec.json.schema_components(
        [bodies.MessageBody, *EXAMPLES, *needed, *more_bodies], ref_template=bodies.SCHEMAS + "{name}"
    )
    message["description"] = (
        "A last one of the assistant is the beginning of the answer. Every result has to follow its call."
    )
    requests = orjson.loads(orjson.dumps({"Message": message, **declared}).replace(b'Body"', b'"'))
    paths: Schema = {}
    for address, operation in (*ROUTES, *routes):
        method, path = address.split(" ")
        paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hermes",
            "version": __version__,
            "description": "One agent, asked over HTTP in the shapes of OpenAI, and in some of its own.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {**requests, **FORMS, **ANSWERS, **answers},
            "responses": {
                name: {"description": says, "content": {JSON_TYPE: {"schema": ref("Error")}}, **HEADERS.get(status, {})}
                for status, (name, says) in ERRORS.items()
            },
        },
    }
