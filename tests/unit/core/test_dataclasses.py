"""Our dataclass does what a reader of the code expects of the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from hermes.core import dataclasses as values


@values.dataclass(frozen=True, slots=True)
class Place:
    """One that can be found by its name, as pickle does."""

    city: str
    street: str = "Main"
    tags: tuple[str, ...] = ()


@values.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    names: list[str] = dataclasses.field(default_factory=list)
    secret: str = dataclasses.field(default="hidden", repr=False)
    note: str = dataclasses.field(default="", compare=False)

    @property
    def sum(self) -> int:
        return self.x + self.y


def test_a_value_is_made_shown_and_compared_as_its_fields_say() -> None:
    one = Point(1, names=["a"])
    assert (one.x, one.y, one.names, one.sum) == (1, 2, ["a"], 3)
    assert repr(one).endswith("Point(x=1, y=2, names=['a'], note='')")
    assert one == Point(1, 2, ["a"], note="not compared")
    assert one != Point(2, names=["a"])
    others: list[object] = [(1, 2, ["a"], "hidden"), None]
    assert one not in others
    assert Point(1).names is not Point(1).names
    assert [field.name for field in dataclasses.fields(Point)] == ["x", "y", "names", "secret", "note"]
    assert dataclasses.replace(one, x=5).x == 5
    assert dataclasses.asdict(one)["names"] == ["a"]
    assert list(inspect.signature(Point).parameters) == ["x", "y", "names", "secret", "note"]
    assert not hasattr(one, "__dict__")


def test_only_the_type_checker_enforces_frozen() -> None:
    one = Point(1)
    one.x = 2  # type: ignore[misc]  # mypy complains of an ignore that is not needed, so this holds that it refuses
    assert one.x == 2


def test_a_wrong_call_names_the_class() -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_frozen_values_are_keys_and_the_others_are_not() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Key:
        name: str

    @values.dataclass(frozen=True, slots=True)
    class Nothing:
        pass

    @values.dataclass(slots=True)
    class Box:
        name: str

        def __post_init__(self) -> None:
            self.name = self.name.upper()

    assert {Key("a"): 1}[Key("a")] == 1
    assert hash(Nothing()) == hash(Nothing())
    assert Nothing() == Nothing()
    box = Box("a")
    assert box == Box("a")
    box.name = "b"
    assert box.name == "b"
    assert Box("a").name == "A"
    with pytest.raises(TypeError, match="unhashable"):
        hash(box)


def test_what_a_class_writes_itself_stays() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Loud:
        name: str

        def __repr__(self) -> str:
            return "loud"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loud) and other.name.lower() == self.name.lower()

    assert repr(Loud("a")) == "loud"
    assert Loud("A") == Loud("a")
    assert hash(Loud("a")) == hash(Loud("a"))


def test_a_value_may_grow_out_of_another_and_be_matched() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Event:
        at: float

    @values.dataclass(frozen=True, slots=True)
    class Said(Event):
        text: str = ""

    said = Said(1.0, "hello")
    assert said != Event(1.0)
    match said:
        case Said(at, text):
            assert (at, text) == (1.0, "hello")


def test_one_that_holds_itself_is_shown() -> None:
    @values.dataclass(slots=True)
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")


def test_a_field_without_a_default_stands_before_those_with_one() -> None:
    with pytest.raises(TypeError, match="what has a default stands behind what has none"):

        @values.dataclass(frozen=True, slots=True)
        class Wrong:
            x: int = 1
            y: int  # type: ignore[misc]


def test_a_copy_is_equal() -> None:
    place = Place("Bern", tags=("old",))
    assert copy.copy(place) == place
    assert copy.deepcopy(place) == place
    assert pickle.loads(pickle.dumps(place)) == place  # noqa: S301 - our own bytes


def test_one_that_is_ordered_is_left_to_the_standard_library() -> None:
    @values.dataclass(frozen=True, slots=True, order=True)
    class Version:
        major: int

    assert Version(1) < Version(2)


@pytest.mark.parametrize("how", [{"init": False}, {"kw_only": True}])
def test_a_field_that_the_type_checker_would_see_otherwise_is_refused(how: dict[str, bool]) -> None:
    with pytest.raises(TypeError, match="Wrong: late: every field is an argument that has its place"):

        @values.dataclass(frozen=True, slots=True)
        class Wrong:
            late: int = dataclasses.field(default=3, **how)  # type: ignore[call-overload, misc]


@values.dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A default may stand before a field that has none: nothing depends on the order."""

    size: int = 3
    name: str
    tags: list[str] = dataclasses.field(default_factory=list)


def test_keyword_only_fields_are_given_by_name_in_any_order() -> None:
    assert Named(name="a") == Named(tags=[], name="a", size=3)
    assert Named(name="a").tags is not Named(name="a").tags
    with pytest.raises(TypeError, match="positional argument"):
        Named(4, name="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'name'"):
        Named(size=4)  # type: ignore[call-arg]


def test_keyword_only_values_are_replaced_and_copied() -> None:
    value = Named(name="a", tags=["x"])
    assert dataclasses.replace(value, size=5) == Named(name="a", tags=["x"], size=5)
    copied = copy.deepcopy(value)
    assert (copied, pickle.loads(pickle.dumps(value))) == (value, value)  # noqa: S301 - our own bytes
    assert copied.tags is not value.tags
    assert Named.__match_args__ == ()
