"""The standard library's ``dataclass``, made in a fifth of the time.

The gateway makes three hundred of them before it answers, and the standard library compiles six methods for each: that
was half of what its imports asked. Here ``__init__`` is compiled, once for all classes with as many fields; the other
methods are alike for all. What works on a dataclass works on these: ``fields``, ``replace``, ``asdict``, ``match``.
Only the type checker enforces ``frozen``: a check at run time would cost every instance one call per field.
See docs/adr/0014.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False, kw_only: bool = False
    ) -> Any:
        """Behave exactly as ``dataclasses.dataclass``; leave the forms that are not ours to it."""
        if order or not slots:
            return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, order=order, kw_only=kw_only)
        return lambda cls: _make(cls, frozen=frozen, eq=eq, kw_only=kw_only)


_NEW: Any = object()
"""Stands for an argument that was not given and is made anew each time."""


def _make(cls: type[Any], *, frozen: bool, eq: bool, kw_only: bool) -> type[Any]:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it is told its signature, which costs as much as the rest
    written = set(vars(cls))
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    fields = dataclasses.fields(made)
    if kw_only:
        setattr(made, "__match_args__", ())  # noqa: B010 - the type checker takes it for a constant
    methods: dict[str, Any] = {"__init__": _init(made, fields, kw_only=kw_only), "__repr__": _repr}
    if eq:
        methods["__eq__"] = _eq(fields)
        methods["__hash__"] = _hash(fields) if frozen else None
    if "__eq__" in written and vars(cls)["__hash__"] is None:
        written.discard("__hash__")  # Python's own doing, since the class wrote __eq__ alone
    for name, method in methods.items():
        if name not in written:
            setattr(made, name, method)
    return made


def _init(made: type[Any], fields: Sequence[Field[Any]], *, kw_only: bool) -> FunctionType:
    names = [field.name for field in fields]
    if unlike := [field.name for field in fields if field.kw_only or not field.init]:
        # The type checker takes us for the standard library's: what would differ must not pass.
        raise TypeError(f"{made.__qualname__}: {', '.join(unlike)}: every field is an argument that has its place")
    anew = tuple(number for number, field in enumerate(fields) if field.default_factory is not MISSING)
    needed = [field.name for number, field in enumerate(fields) if field.default is MISSING and number not in anew]
    if not kw_only and names[: len(needed)] != needed:
        raise TypeError(f"{made.__qualname__}: what has a default stands behind what has none")
    known = {"_NEW": _NEW, **{f"make{number}": fields[number].default_factory for number in anew}}
    code = _init_code(len(fields), anew, kw_only=kw_only, has_more_to_do=hasattr(made, "__post_init__"))
    named = {f"a{number}": name for number, name in enumerate(names)}
    optional = [field for field in fields if field.name not in needed]
    defaults = [_NEW if field.default is MISSING else field.default for field in optional]
    init = FunctionType(
        code.replace(co_varnames=("self", *names), co_names=tuple(named.get(name, name) for name in code.co_names)),
        known,
        "__init__",
        () if kw_only else tuple(defaults),
    )
    if kw_only:
        init.__kwdefaults__ = dict(zip((field.name for field in optional), defaults, strict=True))
    init.__qualname__ = f"{made.__qualname__}.__init__"  # a call with wrong arguments names the class
    return init


@cache
def _init_code(count: int, anew: tuple[int, ...], *, kw_only: bool, has_more_to_do: bool) -> CodeType:
    """Return an ``__init__`` for so many fields, whatever their names are: a few dozen of these serve all classes."""
    values = [f"make{n}() if a{n} is _NEW else a{n}" if n in anew else f"a{n}" for n in range(count)]
    lines = [f"self.a{n} = {value}" for n, value in enumerate(values)]
    lines += ["self.__post_init__()"] if has_more_to_do else []
    made: dict[str, Any] = {}
    arguments = ", ".join(["self", *(["*"] if kw_only and count else []), *(f"a{n}" for n in range(count))])
    exec(f"def __init__({arguments}):\n  " + "\n  ".join(lines or ["pass"]), made)  # noqa: S102 - numbers alone
    code: CodeType = made["__init__"].__code__
    return code


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
