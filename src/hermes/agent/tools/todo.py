"""todo: keep the session's to-do list."""

from __future__ import annotations

from hermes.agent.todos import Item, TodoLists, checked, merged, short_form
from hermes.agent.toolkit.context import ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tool
from hermes.core.roles import PersonRole
from hermes.store.db import Tx


@tool(toolset="planning", role=PersonRole.GUEST, is_personal=False)
async def todo(ctx: ToolContext, items: list[Item] | None = None, merge: bool = False) -> ToolOutput:
    """Keep a list of things to do for longer work. Without `items`, show it.

    `items` becomes the whole list; with `merge`, only the items with these ids are changed or added, and one without
    a text keeps the text it has. States are pending, in_progress and done. Keep one item in_progress at a time.
    """
    lists = ctx.parts.get(TodoLists)
    if items is None:
        return ToolOutput(short_form(await lists.get(ctx.session_id)))
    wanted = checked(merged(await lists.get(ctx.session_id), items) if merge else items)

    def store(tx: Tx) -> None:
        lists.put(tx, ctx.session_id, wanted)

    return ToolOutput(short_form(wanted), effect=store)
