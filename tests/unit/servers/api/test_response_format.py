"""The form of an answer as clients ask for it, read or refused with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core.messages import OutputFormat
from hermes.servers.api import response_format
from hermes.servers.api.bodies import ChatRequestBody, ResponseRequestBody, decode
from hermes.servers.api.content import INPUT_LIMITS, InputLimits
from hermes.servers.api.response_format import format_to_dict
from tests.unit.servers.api.test_parse import nested, refused


def read_response_format(body: dict[str, Any]) -> OutputFormat | None:
    return response_format.read_response_format(decode({"messages": [], **body}, ChatRequestBody).response_format)


def read_text_format(body: dict[str, Any], limits: InputLimits = INPUT_LIMITS) -> OutputFormat | None:
    return response_format.read_text_format(decode({"input": "", **body}, ResponseRequestBody).text, limits)


TOWN = {"type": "object", "properties": {"name": {"type": "string"}}}
ASKED: list[tuple[dict[str, Any], OutputFormat | None]] = [
    ({"type": "text"}, None),
    ({}, None),
    ({"type": "json_object"}, OutputFormat()),
    ({"type": "json_schema", "name": "town", "schema": {}}, OutputFormat({}, "town")),
    (
        {"type": "json_schema", "name": "town", "schema": TOWN, "strict": True, "description": "Where\0it is"},
        OutputFormat(TOWN, "town", "Where\u2400it is", True),
    ),
    (
        {"type": "json_schema", "name": "town", "schema": TOWN, "strict": None, "description": None},
        OutputFormat(TOWN, "town"),
    ),
]


def boxed(form: dict[str, Any]) -> dict[str, Any]:
    """The same as chat completions have it."""
    if form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", "json_schema": {key: value for key, value in form.items() if key != "type"}}


@pytest.mark.parametrize("asked, form", ASKED)
def test_both_routes_read_the_same_out_of_their_own_shape(asked: dict[str, Any], form: OutputFormat | None) -> None:
    assert read_text_format({"text": {"format": asked}}) == form
    assert read_response_format({"response_format": boxed(asked)}) == form


@pytest.mark.parametrize(
    "body", [{}, {"text": None, "response_format": None}, {"text": {}}, {"text": {"format": None}}]
)
def test_who_asks_for_no_form_gets_text(body: dict[str, Any]) -> None:
    assert read_text_format(body) is None
    assert read_response_format(body) is None


@pytest.mark.parametrize("asked, form", ASKED[2:])
def test_what_a_response_repeats_can_be_asked_again(asked: dict[str, Any], form: OutputFormat) -> None:
    assert format_to_dict(form)["type"] == asked["type"]
    assert read_text_format({"text": {"format": format_to_dict(form)}}) == form


GOOD = {"type": "json_schema", "name": "town", "schema": TOWN}
WRONG: list[tuple[Any, str]] = [
    ("json", ""),
    ([], ""),
    (True, ""),
    ({"type": "yaml"}, ".type"),
    ({"type": None}, ".type"),
    ({"type": ["json_object"]}, ".type"),
    ({"type": "json_schema", "schema": TOWN}, ".name"),
    ({**GOOD, "name": ""}, ".name"),
    ({**GOOD, "name": "a town"}, ".name"),
    ({**GOOD, "name": "a" * 65}, ".name"),
    ({**GOOD, "name": 7}, ".name"),
    ({"type": "json_schema", "name": "town"}, ".schema"),
    ({**GOOD, "schema": None}, ".schema"),
    ({**GOOD, "schema": [TOWN]}, ".schema"),
    ({**GOOD, "schema": "{}"}, ".schema"),
    ({**GOOD, "strict": "yes"}, ".strict"),
    ({**GOOD, "strict": 1}, ".strict"),
    ({**GOOD, "description": 7}, ".description"),
    ({**GOOD, "description": "x" * 70_000}, ".description"),
]


@pytest.mark.parametrize("asked, place", WRONG)
def test_a_bad_shape_is_refused_and_its_place_is_named(asked: Any, place: str) -> None:
    code = "invalid_response_format"
    assert refused(read_text_format, {"text": {"format": asked}}) == (code, f"text.format{place}")
    if isinstance(asked, dict):
        box = ".json_schema" if place != ".type" else ""
        assert refused(read_response_format, {"response_format": boxed(asked)}) == (
            code,
            f"response_format{box}{place}",
        )


@pytest.mark.parametrize("asked", [{}, {"json_schema": None}, {"json_schema": "town"}, {"name": "town", "schema": {}}])
def test_chat_completions_have_the_schema_in_a_box_of_its_own(asked: dict[str, Any]) -> None:
    found = refused(read_response_format, {"response_format": {"type": "json_schema", **asked}})
    assert found == ("invalid_response_format", "response_format.json_schema")


def test_text_that_is_no_object_is_refused() -> None:
    assert refused(read_text_format, {"text": "json"}) == ("invalid_value", "text")


def test_a_schema_is_of_bounded_depth_and_size() -> None:
    deep = {**GOOD, "schema": {"allOf": nested(70, {})}}
    assert refused(read_text_format, {"text": {"format": deep}}) == ("content_too_deep", "text.format.schema")
    large = {"text": {"format": {**GOOD, "schema": {"description": "x" * 100}}}}
    assert refused(read_text_format, large, InputLimits(schema_bytes=100)) == ("content_too_long", "text.format.schema")
    assert read_text_format(large, InputLimits(schema_bytes=200)) is not None
