"""web_search: search the web."""

from __future__ import annotations

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.web.search.service import MAX_QUERY_CHARS, MAX_RESULTS, WebSearch
from hermes.agent.web.untrusted import framed, one_line
from hermes.core.errors import ToolError


@tool(toolset="web", seconds=40, is_at_hand=True, is_personal=False)
async def web_search(ctx: ToolContext, query: str, count: int = 8) -> str:
    """Search the web. Returns titles, addresses and a few words of each; read a page with web_extract.

    `count` is at most 20.
    """
    query = " ".join(query.split())
    if not query or len(query) > MAX_QUERY_CHARS or not 1 <= count <= MAX_RESULTS:
        raise ToolError(f"'query' is 1 to {MAX_QUERY_CHARS} characters, and 'count' is 1 to {MAX_RESULTS}.")
    provider, hits = await ctx.parts.get(WebSearch).search(query, count)
    if not hits:
        return f"{provider} found nothing for {query!r}. Try fewer or other words."
    found = []
    for number, hit in enumerate(hits, 1):
        when = f" ({one_line(hit.published, 40)})" if hit.published else ""
        found.append(f"{number}. {one_line(hit.title, 200)}{when}")
        found.append(f"   {one_line(hit.url, 500)}\n   {one_line(hit.snippet, 600)}\n")
    return framed("\n".join(found).removesuffix("\n"), f"a search with {provider}")
