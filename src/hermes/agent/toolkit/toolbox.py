"""Offer tools to a person and the model, check each call, and run it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hermes.agent.toolkit.context import ApprovalNeed, ToolContext, ToolOutput
from hermes.agent.toolkit.schema import Tool, did_you_mean
from hermes.agent.toolkit.search import FIND_TOOLS, names_found
from hermes.agent.toolkit.toolsets import EVERYTHING, Access, Where
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.i18n.catalogue import CATALOGUE
from hermes.core.messages import ChatMessage, ToolSpec
from hermes.core.roles import PersonRole, at_least
from hermes.core.secret import Redactor
from hermes.core.text import storable

log = logging.getLogger(__name__)

MAX_OFFERS = 100
OUTPUT_BYTES = 50_000
MAX_SECRET_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class _Offer:
    """Hold the tools described to one role under one ``access``; ``further`` are found by find_tools."""

    access: Access
    at_hand: tuple[ToolSpec, ...]
    further: frozenset[str] = frozenset()


class Toolbox:
    """Hold the tools of the agent by name: who may use them, approval, running, redaction.

    Tools given as a function are made by ``load``, in any thread, or at their first use. On the event loop await
    ``ready`` first.
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
        """Make the tools once; concurrent callers wait for the same result."""
        with self._making:
            if self._made is None:
                made = {tool.name: tool for tool in self._make()}
                self._specs = {name: tool.spec for name, tool in made.items()}
                self._made = made
            return self._made

    async def ready(self) -> None:
        """Make the tools in a thread, one for all waiters: their imports would block the event loop."""
        if self._made is None:
            if self._loading is None or self._loading.done():
                self._loading = asyncio.ensure_future(asyncio.to_thread(self.load))
            await asyncio.shield(self._loading)  # a cancelled waiter does not cancel the others

    @property
    def are_made(self) -> bool:
        return self._made is not None

    @property
    def _tools(self) -> dict[str, Tool]:
        return self._made if self._made is not None else self.load()

    def hide(self, text: str) -> str:
        """Redact secrets in text from outside: a provider's error may repeat the rejected key."""
        return self._redact(text)

    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def access(self, where: Where) -> Access:
        return self._access(where)

    def allowed(self, where: Where, role: PersonRole) -> list[Tool]:
        """Return the tools a role may use in this chat or on this platform."""
        access = self._access(where)
        return [
            tool
            for tool in self._tools.values()
            if at_least(role, tool.mark.role) and access.has(tool.mark.toolset, tool.name)
        ]

    def offered(self, where: Where, role: PersonRole, history: Sequence[ChatMessage]) -> tuple[ToolSpec, ...]:
        """Return the tools described to the model: those at hand, then those ``find_tools`` found in this session.

        The result depends on the history alone: it is the same after a restart and only grows at its end.
        """
        offer = self._offer(where, role)
        found = [self._specs[name] for name in names_found(history) if name in offer.further] if offer.further else ()
        return (*offer.at_hand, *found) if found else offer.at_hand

    def ready_names(self, where: Where, role: PersonRole) -> list[str]:
        """Return the names of the tools that a role may use here and that need no further set-up."""
        unready = self._access(where).unready
        return [tool.name for tool in self.allowed(where, role) if tool.name not in unready]

    def only(self, offered: Sequence[ToolSpec], names: Sequence[str]) -> tuple[ToolSpec, ...]:
        """Return those of the offered tools that ``names`` lists, by their own name or by that of their group."""
        return tuple(spec for spec in offered if self.is_among(spec.name, names))

    def is_among(self, name: str, names: Sequence[str] | None) -> bool:
        """Tell whether a request that wants only ``names`` may use this tool; None wants all."""
        if names is None or name in names:
            return True
        found = self._tools.get(name)
        return found is not None and found.group in names

    def check_among(self, name: str, names: Sequence[str] | None) -> None:
        """Raise a ToolError for a call of a tool that the request does not want."""
        if not self.is_among(name, names):
            raise ToolError(f"{name} is not offered in this request. Do without it.")

    def _offer(self, where: Where, role: PersonRole) -> _Offer:
        """Return the offer of a configuration: computed once, the same object from then on."""
        access = self._access(where)
        known = self._offers.get((id(access), role))  # an id stands for one object only: the offer keeps it alive
        if known is not None:
            return known
        allowed = self.allowed(where, role)
        further = {tool.name: tool.group for tool in self.further(where, role)} if FIND_TOOLS in self._tools else {}
        hidden = {*further, FIND_TOOLS}  # find_tools itself stands first, or is not offered
        specs = [self._specs[tool.name] for tool in allowed if tool.name not in hidden]
        if further:
            spec = self._specs[FIND_TOOLS]
            groups = ", ".join(dict.fromkeys(further.values()))
            specs.insert(0, replace(spec, description=f"{spec.description} There are tools for: {groups}."))
        if len(self._offers) >= MAX_OFFERS:
            self._offers.clear()
        offer = self._offers[id(access), role] = _Offer(access, tuple(specs), frozenset(further))
        return offer

    def further(self, where: Where, role: PersonRole) -> list[Tool]:
        """Return the allowed tools that are not offered at once: those ``find_tools`` searches."""
        unready = self._access(where).unready
        return [
            tool
            for tool in self.allowed(where, role)
            if tool.name != FIND_TOOLS and (not tool.mark.is_at_hand or tool.name in unready)
        ]

    def get(self, name: str) -> Tool:
        """Return the tool; the ToolError names the nearest one."""
        found = self._tools.get(name)
        if found is None:
            names = ", ".join(self._tools) or "none"
            raise ToolError(f"There is no tool {name!r}.{did_you_mean(name, self._tools)} Tools: {names}.")
        return found

    def _for(self, name: str, context: ToolContext) -> Tool:
        """Return the tool if this person may use it here; checked for every call, whatever was offered."""
        wanted = self.get(name)
        if not at_least(context.role, wanted.mark.role):
            raise ToolError(f"{name} needs the role {wanted.mark.role}; the person you talk with is {context.role}.")
        if not self._access(context.origin).has(wanted.mark.toolset, name):
            where = context.origin.platform
            raise ToolError(f"{name} is switched off on {where}. Do without it, and say so if that is not possible.")
        return wanted

    def has_rule(self, name: str) -> bool:
        """Tell whether a rule decides for each call if approval is needed."""
        return name in self._tools and self._tools[name].mark.approval is not None

    def is_repeatable(self, name: str) -> bool:
        """Tell whether a call that a crash interrupted may run again; an unknown tool only fails again."""
        return name not in self._tools or self._tools[name].mark.repeatable

    def is_personal(self, name: str) -> bool:
        """Tell whether a call reaches the person's own data; an unknown tool counts as one."""
        return name not in self._tools or self._tools[name].mark.is_personal

    def approval(
        self, name: str, arguments: str, context: ToolContext, otherwise: ApprovalNeed | None = None
    ) -> ApprovalNeed | None:
        """Return the question to ask before this call; None when none, or when the call cannot run.

        ``otherwise`` is asked where the tool's own rule has no question.
        """
        try:
            wanted = self._for(name, context)
            return self._need(wanted, wanted.parse(arguments), context) or otherwise
        except ToolError:
            return None  # ``call`` checks again before anything runs, and the model reads the error

    def _need(self, wanted: Tool, values: dict[str, Any], context: ToolContext) -> ApprovalNeed | None:
        """Return the question of the tool's rule; its ToolError rejects the call for everybody."""
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
        """Run one call. Its text is redacted and limited; every failure becomes a ToolError, redacted too.

        ``agreed`` is the question that was answered with yes. The rule is checked again just before the call runs:
        a symlink, a setting or an earlier call may have changed the effect of the same arguments.
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
        if need is None or (agreed is not None and need.is_same_question(agreed)):
            return
        if agreed is not None:  # asked in another language, when the person has changed it since
            for words in CATALOGUE.values():
                each = self._need(wanted, values, replace(context, words=words))
                if each is not None and each.is_same_question(agreed):
                    return
        raise ToolError(
            "Not run: the call's effect changed after it was checked or approved (a symlink, folder or setting). "
            "Call it again to ask again."
        )

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
        """Make text storable, without secrets, and short enough to send to a model."""
        # Redacting takes time by length: cut far beyond the limit first, redact, then drop the end, where that cut
        # may have left half a secret.
        room = 2 * self._output_bytes + MAX_SECRET_CHARS
        clean = self._redact(storable(text[:room]))
        if len(text) > room:
            clean = clean[:-MAX_SECRET_CHARS]
        raw = clean.encode()
        if len(raw) <= self._output_bytes and len(text) <= room:
            return clean
        head = raw[: self._output_bytes].decode("utf-8", "ignore")
        head = head[: head.rfind("\n") + 1] or head
        return f"{head}\n[Cut here: the result is longer than {self._output_bytes:,} bytes. Ask for less at a time.]"
