"""The contract: `/openapi.json` agrees with the routes, with itself and with what was promised before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.servers.api.manage.openapi import document

GOLDEN = Path(__file__).with_name("openapi.golden.json")
REWRITE = "HERMES_TEST_REWRITE_GOLDEN"


def plain() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(json.dumps(document()))
    told["info"]["version"] = "0"  # it changes with every release, and nothing else needs to
    return told


def test_the_contract_changes_only_on_purpose() -> None:
    """After a change that is meant, run this test once with HERMES_TEST_REWRITE_GOLDEN=1."""
    if os.environ.get(REWRITE):
        GOLDEN.write_text(json.dumps(plain(), indent=1, sort_keys=True) + "\n", "utf-8")
    assert plain() == json.loads(GOLDEN.read_text("utf-8"))


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_reference_leads_somewhere_and_every_shape_is_used() -> None:
    told = plain()
    used = set(references(told))
    for reference in used:
        node: Any = told
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
    for kind in ("schemas", "responses"):
        for name in told["components"][kind]:
            assert f"#/components/{kind}/{name}" in used, name


def operations() -> list[tuple[str, str]]:
    return [(method, path) for path, methods in plain()["paths"].items() for method in methods]


@pytest.mark.parametrize("method, path", operations())
def test_every_route_says_what_it_answers(method: str, path: str) -> None:
    route = plain()["paths"][path][method]
    assert route["summary"]
    statuses = set(route["responses"])
    assert any(status.startswith("2") for status in statuses)
    assert "500" not in statuses
    names = {given["name"] for given in route.get("parameters", ()) if given["in"] == "path"}
    assert names == {part[1:-1] for part in path.split("/") if part.startswith("{")}
    if "requestBody" in route:
        assert "400" in statuses
    if route.get("security") != []:
        assert {"401", "403", "429", "503"} <= statuses
