"""Values: the standard library's ``dataclass``, made in a quarter of the time.

The gateway makes three hundred of them before it answers, and the standard library compiles six methods for each: that
was half of what its imports asked. Here one is compiled, ``__init__``; the others are alike for all. What works on a
dataclass works on these: ``fields``, ``replace``, ``asdict``, ``match``. See docs/adr/0014.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False) -> Any:
        """Exactly as ``dataclasses.dataclass``; a form that is not ours is left to it."""
        if order or not slots:
            return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, order=order)
        return lambda cls: _make(cls, frozen=frozen, eq=eq)


_NEW: Any = object()
"""Stands for an argument that was not given and is made anew each time."""


def _make(cls: type[Any], *, frozen: bool, eq: bool) -> type[Any]:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it is told its signature, which costs as much as the rest
    written = set(vars(cls))
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    fields = dataclasses.fields(made)
    methods: dict[str, Any] = {"__init__": _init(made, fields, frozen=frozen), "__repr__": _repr}
    if eq:
        methods["__eq__"] = _eq(fields)
        methods["__hash__"] = _hash(fields) if frozen else None
    if frozen:
        methods.update(__setattr__=_refuse_to_set, __delattr__=_refuse_to_delete, __reduce__=_reduce)
    if "__eq__" in written and vars(cls)["__hash__"] is None:
        written.discard("__hash__")  # Python's own doing, since the class wrote __eq__ alone
    for name, method in methods.items():
        if name not in written:
            setattr(made, name, method)
    return made


def _init(made: type[Any], fields: Sequence[Field[Any]], *, frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"_NEW": _NEW}
    arguments, lines = ["self"], []
    for field in fields:
        name, given = field.name, field.name
        if field.default_factory is not MISSING:
            known[f"_make_{name}"] = field.default_factory
            arguments.append(f"{name}=_NEW")
            given = f"_make_{name}() if {name} is _NEW else {name}"
        elif field.default is not MISSING:
            known[f"_default_{name}"] = field.default
            arguments.append(f"{name}=_default_{name}")
        else:
            arguments.append(name)
        if frozen:
            known[f"_set_{name}"] = getattr(made, name).__set__  # the slot itself, past our own __setattr__
            lines.append(f"_set_{name}(self, {given})")
        else:
            lines.append(f"self.{name} = {given}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n  " + "\n  ".join(lines or ["pass"]), known)  # noqa: S102 - names of fields
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"  # a call with wrong arguments names the class
    return init


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _eq(fields: Sequence[Field[Any]]) -> Callable[[Any, Any], Any]:
    values = _values_of([field.name for field in fields if field.compare])

    def is_equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return is_equal


def _hash(fields: Sequence[Field[Any]]) -> Callable[[Any], int]:
    values = _values_of([field.name for field in fields if (field.compare if field.hash is None else field.hash)])
    return lambda self: hash(values(self))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse_to_set(_self: Any, name: str, _value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _reduce(self: Any) -> tuple[Any, ...]:
    """Copies are made by ``__init__``, since nothing can be set afterwards."""
    return self.__class__, tuple(getattr(self, field.name) for field in dataclasses.fields(self))
