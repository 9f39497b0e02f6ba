"""A bounded dictionary keeps the newest entries, whichever way the entries came in."""

from __future__ import annotations

import orjson

from hermes.core.bounded import BoundedDict, Quota


def test_an_entry_that_is_set_again_is_kept_and_the_oldest_goes() -> None:
    people = BoundedDict[str, int](3)
    for number, name in enumerate(("ana", "ben", "cleo", "ana", "dan")):
        people[name] = number
    assert list(people.items()) == [("cleo", 2), ("ana", 3), ("dan", 4)]


def test_first_entries_update_and_setdefault_obey_the_limit() -> None:
    people = BoundedDict(2, {"ana": 1, "ben": 2, "cleo": 3})
    assert list(people) == ["ben", "cleo"]
    assert people.setdefault("dan", 4) == 4
    assert list(people) == ["cleo", "dan"]
    people.update(eve=5)
    assert list(people) == ["dan", "eve"]


def test_setdefault_of_a_known_key_returns_the_value_and_changes_no_order() -> None:
    people = BoundedDict(2, {"ana": 1, "ben": 2})
    assert people.setdefault("ana", 9) == 1
    assert list(people) == ["ana", "ben"]


def test_json_of_a_bounded_dictionary_is_that_of_a_dictionary() -> None:
    assert orjson.dumps(BoundedDict(2, {"ana": 1, "ben": 2})) == b'{"ana":1,"ben":2}'


def test_a_quota_gives_so_many_in_a_while_to_each_and_forgets_the_oldest_of_a_crowd() -> None:
    quota = Quota(2, 60.0, most=2)
    assert [quota.take("ana", now) for now in (0.0, 1.0, 59.0, 60.0)] == [True, True, False, True]
    assert quota.take("ben", 60.0)
    assert quota.has_room("ben", 60.0)
    assert [quota.take("cleo", 60.0) for _ in range(3)] == [True, True, False]
    assert quota.take("ana", 61.0), "forgotten, as the crowd is larger than what is remembered"


def test_a_quota_begins_anew_when_the_clock_is_set_back() -> None:
    quota = Quota(1, 60.0)
    assert quota.take("ana", 1000.0)
    assert quota.take("ana", 10.0)
