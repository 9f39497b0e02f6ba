"""Make tools from functions: the signature is the schema, the docstring the text.

Approval, limits and redaction wrap a tool from outside; the tool itself only does its work or raises ToolError.
"""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hermes.agent.toolkit.context import ApprovalNeed, ToolOutput
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.messages import Json, ToolSpec
from hermes.core.roles import PersonRole

TOOL_SECONDS = 120.0
_MARK = "__hermes_tool__"

ApprovalRule = Callable[..., ApprovalNeed | None]
"""Called with the context and the call's arguments by name; None when this call needs no approval.

A ToolError rejects the call for everybody: nobody is asked, and the model reads the reason.
"""

ToolFunction = Callable[..., Awaitable[str | ToolOutput]]
F = TypeVar("F", bound=ToolFunction)


@dataclass(frozen=True, slots=True)
class Mark:
    toolset: str
    repeatable: bool
    approval: ApprovalRule | None
    seconds: float
    role: PersonRole
    is_at_hand: bool
    is_personal: bool = True


def tool(
    *,
    toolset: str,
    repeatable: bool = True,
    approval: ApprovalRule | None = None,
    seconds: float = TOOL_SECONDS,
    role: PersonRole = PersonRole.USER,
    is_at_hand: bool = False,
    is_personal: bool = True,
) -> Callable[[F], F]:
    """Mark an async function as a tool; nothing is registered anywhere.

    ``repeatable``: running it again after a crash does no harm. ``seconds`` bounds one call. ``role`` is the lowest
    that may use it. ``is_at_hand``: offered with every request; the others are found through ``find_tools``.
    ``is_personal``: the call reaches what is the person's own: files, the machine, conversations elsewhere.
    """

    def mark(function: F) -> F:
        setattr(function, _MARK, Mark(toolset, repeatable, approval, seconds, role, is_at_hand, is_personal))
        return function

    return mark


def tools_of(*modules: ModuleType | str) -> list[Tool]:
    """Collect the tools defined in these modules; a module given by its name is imported now."""
    found = (import_module(module) if isinstance(module, str) else module for module in modules)
    return [tool for module in found for tool in _tools_in(module)]


@cache
def _tools_in(module: ModuleType) -> tuple[Tool, ...]:
    return tuple(
        Tool.of(value)
        for value in vars(module).values()
        if hasattr(value, _MARK) and value.__module__ == module.__name__
    )


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    hint: Any
    is_required: bool
    default: Any = None

    @property
    def schema(self) -> Json:
        schema = schema_of(self.hint)
        return schema if self.is_required or self.default is None else {**schema, "default": self.default}


@dataclass(frozen=True, slots=True)
class Tool:
    """Describe a tool function: its schema from the signature, its rules from the mark."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    mark: Mark
    function: ToolFunction

    @classmethod
    def of(cls, function: ToolFunction) -> Tool:
        mark = getattr(function, _MARK, None)
        name: str = getattr(function, "__name__", "")
        if not isinstance(mark, Mark) or not inspect.iscoroutinefunction(function):
            raise TypeError(f"{name or function!r} is not a tool: write @tool(toolset=...) over an async function")
        hints = get_type_hints(function)
        _, *rest = inspect.signature(function).parameters.values()  # the first one is the context
        parameters = tuple(
            Parameter(parameter.name, hints[parameter.name], True)
            if parameter.default is parameter.empty
            else Parameter(parameter.name, hints[parameter.name], False, parameter.default)
            for parameter in rest
        )
        for parameter in parameters:
            schema_of(parameter.hint)  # fail at start-up on a type without a schema
        return cls(name, inspect.getdoc(function) or "", parameters, mark, function)

    @property
    def group(self) -> str:
        return self.mark.toolset

    @property
    def spec(self) -> ToolSpec:
        schema: Json = {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.is_required],
            "additionalProperties": False,
        }
        return ToolSpec(self.name, self.description, schema)

    def parse(self, arguments: str) -> dict[str, Any]:
        """Parse the call's arguments to Python values; the ToolError tells the model what to send instead."""
        try:
            given = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise ToolError(
                f"The arguments of {self.name} are not valid JSON ({error}). Send one JSON object."
            ) from None
        given = {} if given is None else given
        if not isinstance(given, dict):
            example = json.dumps({parameter.name: "..." for parameter in self.parameters[:2]})
            raise ToolError(f"The arguments of {self.name} must be one JSON object, like {example}.")
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given.keys() - known.keys():
            raise ToolError(
                f"{self.name} has no argument {name!r}.{did_you_mean(name, known)}"
                f" It takes: {', '.join(known) or 'nothing'}."
            )
        for name, parameter in known.items():
            if parameter.is_required and name not in given:
                raise ToolError(f"{self.name} needs the argument {name!r} ({_describe(parameter.hint)}).")
        values = {}
        for name, value in given.items():
            try:
                values[name] = _convert(known[name].hint, value)
            except ValueError:
                must, got = _describe(known[name].hint), json.dumps(value, ensure_ascii=False)[:80]
                raise ToolError(f"{self.name}: {name!r} must be {must}, not {got}.") from None
        return values


def schema_of(hint: Any) -> Json:
    """Return the JSON schema of a type hint; TypeError for a type that tools do not take."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint][0]}
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is list:
        return {"type": "array", "items": schema_of(args[0])}
    if _is_record(hint):
        hints = get_type_hints(hint)  # a dataclass is an object; fields with a default may be left out
        return {
            "type": "object",
            "properties": {
                field_.name: schema_of(hints[field_.name])
                | ({} if field_.default is MISSING else {"default": field_.default})
                for field_ in fields(hint)
            },
            "required": [field_.name for field_ in fields(hint) if field_.default is MISSING],
            "additionalProperties": False,
        }
    if origin in (Union, UnionType) and NoneType in args and len(args) == 2:
        inner = schema_of(_without_none(args))
        return {**inner, "type": [inner["type"], "null"]} if "enum" not in inner else inner
    raise TypeError(
        f"A tool cannot take {hint!r}: use str, int, float, bool, list[...], Literal[...], a dataclass or ... | None"
    )


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


_PLAIN: Mapping[Any, tuple[str, str]] = {
    str: ("string", "text"),
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
}


def _without_none(args: Sequence[Any]) -> Any:
    return next(arg for arg in args if arg is not NoneType)


def _describe(hint: Any) -> str:
    """Describe a type in words for an error sentence."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint][1]
    if origin is Literal:
        return "one of " + ", ".join(map(repr, args))
    if origin is list:
        return f"a list, each {_describe(args[0])}"
    if _is_record(hint):
        return "an object with " + ", ".join(
            field_.name if field_.default is MISSING else f"{field_.name} (optional)" for field_ in fields(hint)
        )
    return f"{_describe(_without_none(args))}, or null"


def _convert(hint: Any, value: Any) -> Any:
    """Return the value if it fits the hint, else ValueError. 5.0 is a whole number; true is not."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return None if value is None else _convert(_without_none(args), value)
    if origin is list and isinstance(value, list):
        return [_convert(args[0], item) for item in value]
    if _is_record(hint) and isinstance(value, dict):
        hints, known = get_type_hints(hint), {field_.name: field_ for field_ in fields(hint)}
        missing = {name for name, field_ in known.items() if field_.default is MISSING} - value.keys()
        if missing or value.keys() - known.keys():
            raise ValueError
        return hint(**{name: _convert(hints[name], item) for name, item in value.items()})
    if origin is Literal and value in args:
        return value
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in _PLAIN and type(value) is hint:
        return value
    raise ValueError


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name nearest to a misspelled one; '' when none is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
