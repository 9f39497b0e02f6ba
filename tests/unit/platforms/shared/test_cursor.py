"""Marks belong to the bot that made them, not to the place where it is configured."""

from __future__ import annotations

from hermes.platforms.shared.cursor import of_identity


def test_marks_of_the_same_one_are_its_own() -> None:
    cursor = {"identity": "a", "seq": "5"}
    assert of_identity(cursor, "a") == (cursor, {})


def test_marks_from_before_it_was_written_down_are_its_own_too() -> None:
    assert of_identity({"seq": "5"}, "a") == ({"seq": "5"}, {"identity": "a"})
    assert of_identity({}, "a") == ({}, {"identity": "a"})


def test_of_another_one_nothing_is_left_and_nothing_comes_back() -> None:
    cursor = {"identity": "a", "seq": "5", "chat:7": "x"}
    ours, news = of_identity(cursor, "b")
    assert ours == {}
    after = {**cursor, **news}
    assert of_identity(after, "b") == ({"identity": "b"}, {})
    assert of_identity(after, "a")[0] == {}, "nor for the first one, when it returns"
