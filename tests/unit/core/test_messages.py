"""An event that cannot be read is kept, and known again."""

from __future__ import annotations

import json

from hermes.core.messages import Ignored, InboundEvent, Json, Unreadable, read, unreadable


def parse(raw: Json, kind: str) -> InboundEvent:
    return Ignored(f"{kind} {raw['name']}")


def test_what_can_be_read_is_read() -> None:
    assert read(parse, {"name": "Ana"}, "hello") == Ignored("hello Ana")


def test_what_cannot_is_kept_with_the_reason_and_has_the_same_key_each_time() -> None:
    first, again = (read(parse, {"nobody": 1}, "hello", dump=json.dumps) for _ in range(2))
    assert isinstance(first, Unreadable)
    assert (first.raw, first.reason) == ('{"nobody": 1}', "KeyError: 'name'")
    assert first == again
    assert first.keys != read(parse, {"nobody": 2}, "hello", dump=json.dumps).keys


def test_an_event_that_no_text_can_be_made_of_is_kept_by_its_upper_levels() -> None:
    deep: Json = {}
    for _ in range(100_000):
        deep = {"in": deep}
    for raw, dump in (({"bytes": b"x"}, json.dumps), (deep, repr)):
        kept = read(parse, raw, "hello", dump=dump)
        assert isinstance(kept, Unreadable)
        assert kept.raw.startswith("{'")
        assert kept.keys


def test_half_a_letter_names_an_event_too() -> None:
    assert unreadable("\ud800", "half").keys


def test_what_stays_the_same_names_an_event_that_comes_in_another_wrapping() -> None:
    assert unreadable("try 1: x", "?", same="x").keys == unreadable("try 2: x", "?", same="x").keys
