"""Define how tools and commands reach jobs and the board, which are imported by their first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from hermes.agent.toolkit.context import ToolContext
from hermes.core.dataclasses import dataclass

if TYPE_CHECKING:
    from hermes.agent.kanban import Board


class JobTools(Protocol):
    """What the tools of jobs need. Each returns the text that the model reads, or raises GatewayError."""

    def create_for_tool(self, ctx: ToolContext, fields: Mapping[str, Any]) -> Awaitable[str]: ...
    def list_for_tool(self, ctx: ToolContext) -> Awaitable[str]: ...
    def change_for_tool(self, ctx: ToolContext, name: str, fields: Mapping[str, Any]) -> Awaitable[str]: ...
    def act_for_tool(self, ctx: ToolContext, name: str, action: str) -> Awaitable[str]: ...
    def foreign_targets(self, ctx: ToolContext, deliver: str) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Scheduling:
    """``jobs`` returns the service that keeps the jobs."""

    jobs: Callable[[], JobTools]


@dataclass(frozen=True, slots=True)
class BoardAccess:
    open: Callable[[], Board]
