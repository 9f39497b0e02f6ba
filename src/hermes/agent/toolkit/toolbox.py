"""What a tool is: a marked function. Its signature is the schema, its docstring what the model reads.

Approval, limits and redaction wrap a tool from outside; the tool itself only does its work or raises ToolError.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import json
import logging
import os
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hermes.agent.real_path import real_path
from hermes.agent.toolkit.search import FIND_TOOLS, names_found
from hermes.agent.toolkit.toolsets import EVERYTHING, Access, Where
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.i18n.catalogue import CATALOGUE, ENGLISH
from hermes.core.i18n.en import Texts
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Image, Json, ToolSpec
from hermes.core.roles import PersonRole, at_least
from hermes.core.secret import Redactor
from hermes.core.text import storable
from hermes.store.db import Tx

log = logging.getLogger(__name__)

MOST_OFFERS = 100
OUTPUT_BYTES = 50_000
TOOL_SECONDS = 120.0
LONGEST_SECRET = 10_000
KERNEL_FOLDERS = (Path("/proc"), Path("/sys"), Path("/dev"))
"""No files but doors: to the memory and the environment of processes, to devices, to the machine itself."""
_MARK = "__hermes_tool__"


Part = TypeVar("Part")


class Parts:
    """What tools work with beyond their arguments (the store, terminals, the guarded web ...), found by its type.

    Bootstrap fills it once. A tool asks for a class and gets the one object of it, so a new tool changes no signature.
    """

    def __init__(self, *parts: object) -> None:
        self._parts = {type(part): part for part in parts}

    def get(self, kind: type[Part]) -> Part:
        """The part of exactly this class. ToolError where this gateway has none: the model chooses another way."""
        found = self._parts.get(kind)
        if not isinstance(found, kind):
            raise ToolError(f"This gateway runs without {kind.__name__}, which this tool needs.")
        return found


NO_PARTS = Parts()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Who calls and what they may touch.

    ``call_id`` names the call for good: whoever writes something for it twice writes it once.
    ``forbidden`` folders are refused even inside the workspace, unless the workspace itself lies in one.
    ``started_group`` is told the process group of every process a tool starts, so that it dies with its turn.
    ``words`` are those of the person: for what they read, not for what the model does.
    ``depth`` counts errands within errands: 0 in a turn that a person asked for.
    """

    call_id: str
    session_key: SessionKey
    person_id: str
    workspace: Path
    forbidden: tuple[Path, ...] = ()
    started_group: Callable[[int], Awaitable[None]] | None = None
    role: PersonRole = PersonRole.USER
    session_id: str = ""
    turn_id: str = ""
    parts: Parts = NO_PARTS
    on_behalf_of: SessionKey | None = None
    depth: int = 0
    words: Texts = ENGLISH

    @property
    def origin(self) -> SessionKey:
        """The chat for which this is done: the session's own, or that of the turn which handed the task on."""
        return self.on_behalf_of or self.session_key

    @property
    def closed(self) -> tuple[Path, ...]:
        """Every folder that no tool enters, unless the workspace itself lies in it."""
        return (*self.forbidden, *KERNEL_FOLDERS)

    def inside(self, path: str) -> Path:
        """The real place of a path in the workspace, symlinks followed; ToolError when it is not for this person."""
        if _ADDRESS.match(path):
            raise ToolError(f"{path!r} is an address, not a path. Write the path of a file in the workspace.")
        try:
            workspace = self.workspace.resolve()
            target = real_path(workspace / Path(path).expanduser())
            if not target.is_relative_to(workspace):
                raise ToolError(f"{path!r} is outside the workspace. Only files in {self.workspace} can be reached.")
            if any(_lies_in(target, folder) and not _lies_in(workspace, folder) for folder in self.closed):
                raise ToolError(f"{path!r} belongs to Hermes or to the system and is closed to tools.")
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL, a name too long, no such user
            raise ToolError(f"{path!r} is not a usable path ({error}).") from error
        return target

    def relative_path(self, path: Path) -> str:
        """A path as the model should write it: relative to the workspace."""
        workspace = self.workspace.resolve()
        return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def _lies_in(path: Path, folder: Path) -> bool:
    """By name, and by identity: where case does not count, ``.HERMES`` is the same folder as ``.hermes``."""
    folder = folder.resolve()
    if path.is_relative_to(folder):
        return True
    try:
        wanted = os.stat(folder)
    except OSError:
        return False
    return any(_is_same(parent, wanted) for parent in (path, *path.parents))


def _is_same(path: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), wanted)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class ApprovalNeed:
    """The question to ask before a call. ``touches_host``: only an admin or the owner may answer it.

    ``subject`` is what a standing grant is given for (the kind of danger and the back end, not one command); with
    none, each call is asked about. ``where`` names the back end and the folder in which it would run.
    """

    question: str
    touches_host: bool = True
    subject: str = ""
    where: str = ""

    def is_same_question(self, agreed: ApprovalNeed) -> bool:
        """Whether somebody who said yes to that one has read the same."""
        return (self.question, self.where, self.touches_host) == (agreed.question, agreed.where, agreed.touches_host)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call gives back when plain text is not enough.

    ``effect`` writes to our own store in the transaction that records the result: both happen, once, or neither.
    ``after`` is called once that is committed, for what only wakes somebody. ``asks``: ``text`` is a question to the
    person; it ends the turn, and their next message answers it.
    """

    text: str
    effect: Callable[[Tx], None] | None = None
    after: Callable[[], None] | None = None
    images: tuple[Image, ...] = ()
    asks: bool = False


ApprovalRule = Callable[..., ApprovalNeed | None]
"""Called with the context and the call's arguments by name; None when this call needs no approval.

A ToolError says that the call is refused for everybody: nothing is asked, and the model reads why.
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


def tool(
    *,
    toolset: str,
    repeatable: bool = True,
    approval: ApprovalRule | None = None,
    seconds: float = TOOL_SECONDS,
    role: PersonRole = PersonRole.USER,
    is_at_hand: bool = False,
) -> Callable[[F], F]:
    """Mark an async function as a tool; nothing is registered anywhere.

    ``repeatable``: running it again after a crash does no harm. ``seconds`` bounds one call. ``role`` is the lowest
    that may use it. ``is_at_hand``: offered with every request; the others are found through ``find_tools``.
    """

    def mark(function: F) -> F:
        setattr(function, _MARK, Mark(toolset, repeatable, approval, seconds, role, is_at_hand))
        return function

    return mark


def tools_of(*modules: ModuleType | str) -> list[Tool]:
    """Every tool that is defined in these modules. One that is given by its name is imported now."""
    return [
        Tool.of(value)
        for module in (import_module(module) if isinstance(module, str) else module for module in modules)
        for value in vars(module).values()
        if hasattr(value, _MARK) and value.__module__ == module.__name__
    ]


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
    """A function with what its signature and its mark say about it."""

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
            schema_of(parameter.hint)  # a type we cannot describe is a mistake of the author: said at start-up
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
        """The call's arguments as Python values, or a ToolError that tells the model what to send instead."""
        given = self._as_object(arguments)
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given.keys() - known.keys():
            raise ToolError(f"{self.name} has no argument {name!r}.{_nearest(name, known)} It takes: {self._takes()}.")
        for parameter in self.parameters:
            if parameter.is_required and parameter.name not in given:
                needed = _words(parameter.hint)
                raise ToolError(f"{self.name} needs the argument {parameter.name!r} ({needed}).")
        return {name: self._value(known[name], value) for name, value in given.items()}

    def _as_object(self, arguments: str) -> dict[str, Any]:
        if not arguments.strip():
            return {}
        try:
            given = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise ToolError(
                f"The arguments of {self.name} are not valid JSON ({error}). Send one JSON object."
            ) from None
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise ToolError(f"The arguments of {self.name} must be one JSON object, like {self._example()}.")
        return given

    def _value(self, parameter: Parameter, value: Any) -> Any:
        try:
            return _convert(parameter.hint, value)
        except ValueError:
            shown = json.dumps(value, ensure_ascii=False)[:80]
            must = _words(parameter.hint)
            raise ToolError(f"{self.name}: {parameter.name!r} must be {must}, not {shown}.") from None

    def _takes(self) -> str:
        return ", ".join(parameter.name for parameter in self.parameters) or "nothing"

    def _example(self) -> str:
        return json.dumps({parameter.name: "..." for parameter in self.parameters[:2]})


def schema_of(hint: Any) -> Json:
    """The JSON schema of a type hint; TypeError for a type that tools do not take."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint][0]}
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is list:
        return {"type": "array", "items": schema_of(args[0])}
    if _is_record(hint):
        return _schema_of_record(hint)
    if origin in (Union, UnionType) and NoneType in args and len(args) == 2:
        inner = schema_of(_without_none(args))
        return {**inner, "type": [inner["type"], "null"]} if "enum" not in inner else inner
    raise TypeError(
        f"A tool cannot take {hint!r}: use str, int, float, bool, list[...], Literal[...], a dataclass or ... | None"
    )


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _schema_of_record(hint: Any) -> Json:
    """A dataclass is an object; what has a default may be left out."""
    hints = get_type_hints(hint)
    return {
        "type": "object",
        "properties": {
            one.name: schema_of(hints[one.name]) | ({} if one.default is MISSING else {"default": one.default})
            for one in fields(hint)
        },
        "required": [one.name for one in fields(hint) if one.default is MISSING],
        "additionalProperties": False,
    }


def _record(hint: Any, given: dict[str, Any]) -> Any:
    hints = get_type_hints(hint)
    known = {one.name: one for one in fields(hint)}
    missing = {name for name, one in known.items() if one.default is MISSING} - given.keys()
    if missing or given.keys() - known.keys():
        raise ValueError
    return hint(**{name: _convert(hints[name], value) for name, value in given.items()})


_PLAIN: Mapping[Any, tuple[str, str]] = {
    str: ("string", "text"),
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
}


def _without_none(args: Sequence[Any]) -> Any:
    return next(arg for arg in args if arg is not NoneType)


def _words(hint: Any) -> str:
    """How a type is called in a sentence."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint][1]
    if origin is Literal:
        return "one of " + ", ".join(map(repr, args))
    if origin is list:
        return f"a list, each {_words(args[0])}"
    if _is_record(hint):
        return "an object with " + ", ".join(
            one.name if one.default is MISSING else f"{one.name} (optional)" for one in fields(hint)
        )
    return f"{_words(_without_none(args))}, or null"


def _convert(hint: Any, value: Any) -> Any:
    """The value, if it fits the hint; ValueError otherwise. 5.0 is a whole number; true is none."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return None if value is None else _convert(_without_none(args), value)
    if origin is list and isinstance(value, list):
        return [_convert(args[0], item) for item in value]
    if _is_record(hint) and isinstance(value, dict):
        return _record(hint, value)
    if origin is Literal and value in args:
        return value
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in _PLAIN and type(value) is hint:
        return value
    raise ValueError


_NOT_AS_AGREED = (
    "It was not run: what it would do now is not what was looked at or allowed before (a link, a folder or a setting "
    "has changed since). Make the call again, so that it is asked about as it is now."
)


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What somebody of one role is told of where this is the ``access``."""

    access: Access
    at_hand: tuple[ToolSpec, ...]
    further: frozenset[str] = frozenset()


class Toolbox:
    """The tools an agent may use, by name.

    Given as a function they are not made yet: ``load`` makes them, in any thread, or else their first use does. On the
    event loop wait for ``ready`` first.
    """

    def __init__(
        self,
        tools: Iterable[Tool] | Callable[[], Iterable[Tool]],
        *,
        access: Callable[[Where], Access] = lambda _: EVERYTHING,
        redact: Redactor | None = None,
        output_bytes: int = OUTPUT_BYTES,
    ) -> None:
        self._make = tools if callable(tools) else lambda: tools
        self._making = threading.Lock()
        self._made: dict[str, Tool] | None = None
        self._loading: asyncio.Future[dict[str, Tool]] | None = None
        self._specs: dict[str, ToolSpec] = {}
        self._access = access
        self._offers: dict[tuple[int, PersonRole], _Offer] = {}
        self._redact = redact or Redactor()
        self._output_bytes = output_bytes

    def load(self) -> dict[str, Tool]:
        """Once; whoever asks meanwhile waits until it is done."""
        with self._making:
            if self._made is None:
                made = {tool.name: tool for tool in self._make()}
                self._specs = {name: tool.spec for name, tool in made.items()}
                self._made = made
            return self._made

    async def ready(self) -> None:
        """Have them made by a thread, one for all who wait: what they import would hold up the loop for long."""
        if self._made is None:
            if self._loading is None or self._loading.done():
                self._loading = asyncio.ensure_future(asyncio.to_thread(self.load))
            await asyncio.shield(self._loading)  # whoever is cancelled waits for himself alone

    @property
    def are_made(self) -> bool:
        return self._made is not None

    @property
    def _tools(self) -> dict[str, Tool]:
        return self._made if self._made is not None else self.load()

    def hide(self, text: str) -> str:
        """The text without secrets, for what somebody else wrote: a provider repeats the key that it refuses."""
        return self._redact(text)

    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def access(self, where: Where) -> Access:
        return self._access(where)

    def allowed(self, where: Where, role: PersonRole) -> list[Tool]:
        """The tools that somebody of this role has in this chat, or on this platform."""
        access = self._access(where)
        return [
            tool
            for tool in self._tools.values()
            if at_least(role, tool.mark.role) and access.has(tool.mark.toolset, tool.name)
        ]

    def offered(self, where: Where, role: PersonRole, history: Sequence[ChatMessage]) -> tuple[ToolSpec, ...]:
        """What the model is told of: the tools at hand, then those that ``find_tools`` found in this talk, as found.

        It follows from the talk alone, so it is the same after a restart and only ever grows at its end.
        """
        offer = self._offer(where, role)
        found = [self._specs[name] for name in names_found(history) if name in offer.further] if offer.further else ()
        return (*offer.at_hand, *found) if found else offer.at_hand

    def _offer(self, where: Where, role: PersonRole) -> _Offer:
        """Worked out once for each configuration, and the very same object from then on."""
        access = self._access(where)
        known = self._offers.get((id(access), role))  # an id stands for one object only: the offer keeps it alive
        if known is None:
            if len(self._offers) >= MOST_OFFERS:
                self._offers.clear()
            known = self._offers[id(access), role] = self._work_out(access, where, role)
        return known

    def _work_out(self, access: Access, where: Where, role: PersonRole) -> _Offer:
        allowed = self.allowed(where, role)
        if FIND_TOOLS not in self._tools:
            return _Offer(access, tuple(self._specs[tool.name] for tool in allowed))
        further = {tool.name: tool.group for tool in self.further(where, role)}
        specs = [self._specs[tool.name] for tool in allowed if tool.name not in {*further, FIND_TOOLS}]
        if not further:
            return _Offer(access, tuple(specs))
        groups = ", ".join(dict.fromkeys(further.values()))
        spec = self._specs[FIND_TOOLS]
        first = replace(spec, description=f"{spec.description} There are tools for: {groups}.")
        return _Offer(access, (first, *specs), frozenset(further))

    def further(self, where: Where, role: PersonRole) -> list[Tool]:
        """What this person has and is not told of at once: what ``find_tools`` looks through."""
        unready = self._access(where).unready
        return [
            tool
            for tool in self.allowed(where, role)
            if tool.name != FIND_TOOLS and (not tool.mark.is_at_hand or tool.name in unready)
        ]

    def get(self, name: str) -> Tool:
        """The tool, or a ToolError that names the nearest one."""
        found = self._tools.get(name)
        if found is None:
            names = ", ".join(self._tools) or "none"
            raise ToolError(f"There is no tool {name!r}.{_nearest(name, self._tools)} Tools: {names}.")
        return found

    def _for(self, name: str, context: ToolContext) -> Tool:
        """The tool, if it is for this person here: asked anew for every call, whatever the model was offered."""
        wanted = self.get(name)
        if not at_least(context.role, wanted.mark.role):
            raise ToolError(f"{name} needs the role {wanted.mark.role}; the person you talk with is {context.role}.")
        if not self._access(context.origin).has(wanted.mark.toolset, name):
            where = context.origin.platform
            raise ToolError(f"{name} is switched off on {where}. Do without it, and say so if that is not possible.")
        return wanted

    def has_rule(self, name: str) -> bool:
        """Whether something decides for each call if it is asked about."""
        return name in self._tools and self._tools[name].mark.approval is not None

    def is_repeatable(self, name: str) -> bool:
        """Whether a call that a crash interrupted may run again. What does not exist only says so again."""
        return name not in self._tools or self._tools[name].mark.repeatable

    def approval(self, name: str, arguments: str, context: ToolContext) -> ApprovalNeed | None:
        """What must be asked before this call; None when nothing, and for a call that cannot run anyway."""
        try:
            wanted = self._for(name, context)
            values = wanted.parse(arguments)
        except ToolError:
            return None  # ``call`` raises it again, and the model reads it
        try:
            return self._need(wanted, values, context)
        except ToolError:
            return None  # the same: ``call`` asks the rule again before anything runs

    def _need(self, wanted: Tool, values: dict[str, Any], context: ToolContext) -> ApprovalNeed | None:
        """What the tool's rule wants to be asked; its ToolError when it refuses the call for everybody."""
        rule = wanted.mark.approval
        if rule is None:
            return None
        try:
            need = rule(context, **values)
        except ToolError:
            raise
        except Exception:  # the edge "tool call": a rule that breaks means ask, never allow
            log.exception("Approval rule failed", extra={"tool": wanted.name})
            need = ApprovalNeed(context.words.ASK_BROKEN.format(name=wanted.name))
        return need and replace(need, question=self._redact(need.question))

    async def call(
        self, name: str, arguments: str, context: ToolContext, agreed: ApprovalNeed | None = None
    ) -> ToolOutput:
        """Run one call. Its text is redacted and limited; whatever goes wrong in it is a ToolError, redacted too.

        ``agreed`` is the question that was answered with yes. The rule is asked once more just before the call runs:
        a link, a setting or an earlier call may have changed meanwhile what the same words do.
        """
        try:
            wanted = self._for(name, context)
            values = wanted.parse(arguments)
            if wanted.mark.approval is not None:
                await asyncio.to_thread(self._check_agreed, wanted, values, context, agreed)
            given = await self._run(wanted, values, context)
        except ToolError as error:
            raise ToolError(self._fit(str(error))) from error
        except Exception as error:
            log.exception("Tool failed", extra={"tool": name, "call_id": context.call_id})
            raise ToolError(self._fit(f"{name} failed: {type(error).__name__}: {error}")) from error
        output = given if isinstance(given, ToolOutput) else ToolOutput(given)
        return replace(output, text=self._fit(output.text))

    def _check_agreed(
        self, wanted: Tool, values: dict[str, Any], context: ToolContext, agreed: ApprovalNeed | None
    ) -> None:
        need = self._need(wanted, values, context)
        if need is not None and not self._is_agreed(need, agreed, wanted, values, context):
            raise ToolError(_NOT_AS_AGREED)

    def _is_agreed(
        self,
        need: ApprovalNeed,
        agreed: ApprovalNeed | None,
        wanted: Tool,
        values: dict[str, Any],
        context: ToolContext,
    ) -> bool:
        """Whether it is the same question, in whichever language it was put: that may have been chosen anew since."""
        if agreed is None or need.is_same_question(agreed):
            return agreed is not None
        spoken = (self._need(wanted, values, replace(context, words=words)) for words in CATALOGUE.values())
        return any(each is not None and each.is_same_question(agreed) for each in spoken)

    async def _run(self, wanted: Tool, values: dict[str, Any], context: ToolContext) -> str | ToolOutput:
        limit = asyncio.timeout(wanted.mark.seconds)
        try:
            async with limit:
                return await wanted.function(context, **values)
        except TimeoutError:
            if limit.expired():
                raise ToolError(f"{wanted.name} was stopped: it took longer than {wanted.mark.seconds:g} s.") from None
            raise

    def _fit(self, text: str) -> str:
        """Storable, without secrets, and short enough to send to a model."""
        # Redacting costs time by length, so what is far beyond the limit goes first, and after it the end in which
        # that cut may have left half a secret.
        room = 2 * self._output_bytes + LONGEST_SECRET
        clean = self._redact(storable(text[:room]))
        if len(text) > room:
            clean = clean[:-LONGEST_SECRET]
        raw = clean.encode()
        if len(raw) <= self._output_bytes and len(text) <= room:
            return clean
        kept = raw[: self._output_bytes].decode("utf-8", "ignore")
        kept = kept[: kept.rfind("\n") + 1] or kept
        return f"{kept}\n[Cut here: the result is longer than {self._output_bytes:,} bytes. Ask for less at a time.]"
