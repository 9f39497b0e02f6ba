"""Calls put together from whatever order and shape their pieces come in."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hermes.agent.models.tool_calls import ToolCalls
from hermes.core.messages import ToolCall


def piece(arguments: Any = None, *, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def put_together(*deltas: list[Any]) -> list[tuple[str, str, str]]:
    numbers = itertools.count(1)
    calls = ToolCalls(lambda: f"made_{next(numbers)}")
    for delta in deltas:
        calls.add(delta)
    return [(call.id, call.name, call.arguments) for call in calls.finished()]


A, B = '{"path":"a"}', '{"path":"b"}'
TWO = [("x", "read", A), ("y", "read", B)]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param([[piece(A, name="read", id="x", index=0), piece(B, name="read", id="y", index=1)]], id="whole"),
        pytest.param([[piece(A, name="read", id="x"), piece(B, name="read", id="y")]], id="no index, in one delta"),
        pytest.param([[piece(A, name="read", id="x")], [piece(B, name="read", id="y")]], id="no index, one by one"),
        pytest.param(
            [[piece(A, name="read", id="x", index=0)], [piece(B, name="read", id="y", index=0)]], id="one index for all"
        ),
        pytest.param(
            [[piece(A, name="read", id="x", index=1)], [piece(B, name="read", id="y", index=2)]], id="counted from one"
        ),
        pytest.param(
            [
                [piece("", name="read", id="x", index=0), piece("", name="read", id="y", index=1)],
                [piece('{"path":', index=1)],
                [piece('{"path":', index=0)],
                [piece('"a"}', index=0), piece('"b"}', index=1)],
            ],
            id="interleaved",
        ),
        pytest.param(
            [
                [piece('{"path":', name="read", id="x", index=0)],
                [piece('"a"}', id="x", index=0)],
                [piece("", name="read", id="y", index=0)],
                [piece('{"path":', index=1)],
                [piece('"b"}', index=1)],
            ],
            id="the tail under another index",
        ),
        pytest.param(
            [
                [piece('{"path":', name="read", id="x", index=0)],
                [piece('"a"}', name="read", id="x", index=0)],
                [piece("", name="read", id="x", index=0)],
                [piece(B, name="read", id="y", index=1)],
            ],
            id="id and name repeated",
        ),
        pytest.param(
            [[piece("", name="re", id="x", index=0)], [piece(A, name="ad", index=0)], [piece(B, name="read", id="y")]],
            id="name in pieces",
        ),
        pytest.param(
            [[piece("", name="re", id="x")], [piece(A, name="read", id="x")], [piece(B, name="read", id="y")]],
            id="name that grows",
        ),
        pytest.param(
            [[piece({"path": "a"}, name="read", id="x")], [piece({"path": "b"}, name="read", id="y")]],
            id="arguments as objects",
        ),
        pytest.param(
            [
                [piece('{"path":', name="read", id="x", index=0)],
                [piece('"a"}', id="x-again", index=0)],
                [piece("{}", name="read", id="y", index=1)],
                [piece(B, id="y-again", index=1)],
            ],
            id="a new id with every delta, and an empty object first",
        ),
        pytest.param(
            [["nonsense", piece(A, name="read", id="x")], [{"function": None}], [piece(B, name="read", id="y")]],
            id="nonsense between",
        ),
    ],
)
def test_two_calls_stay_two_calls(deltas: list[list[Any]]) -> None:
    assert put_together(*deltas) == TWO


def test_calls_without_ids_get_their_own() -> None:
    one_by_one = put_together([piece(A, name="read", index=0)], [piece(B, name="read", index=0)])
    at_once = put_together([piece(A, name="read"), piece(B, name="read")])
    assert one_by_one == at_once == [("made_1", "read", A), ("made_2", "read", B)]


def test_ids_used_twice_become_different() -> None:
    deltas = [piece(A, name="read", id="read", index=0), piece(B, name="read", id="read", index=1)]
    assert put_together(deltas) == [("read", "read", A), ("made_1", "read", B)]


def test_no_arguments_are_an_empty_object() -> None:
    assert put_together([piece("", name="now", id="x")]) == [("x", "now", "{}")]
    assert put_together([piece(None, name="now", id="x")]) == [("x", "now", "{}")]


def test_call_without_a_name_is_none() -> None:
    assert put_together([piece(A, id="x", index=0)]) == []


def test_broken_arguments_are_kept_as_they_came() -> None:
    calls = ToolCalls(lambda: "made")
    calls.add([piece('{"path": "a', name="read", id="x")])
    assert calls.finished() == (ToolCall("x", "read", '{"path": "a'),)


def test_a_long_call_whose_name_comes_with_every_piece_is_soon_put_together() -> None:
    whole = '{"content":"' + "word " * 100_000 + '"}'
    pieces = [whole[start : start + 4] for start in range(0, len(whole), 4)]
    assert put_together(*([piece(part, name="write", id="x", index=0)] for part in pieces)) == [("x", "write", whole)]


def test_a_blank_behind_a_whole_call_does_not_open_it_again() -> None:
    deltas = [piece(A, name="read", index=0)], [piece("\n", index=0)], [piece(B, name="read", index=0)]
    assert [arguments.strip() for _, _, arguments in put_together(*deltas)] == [A, B]
