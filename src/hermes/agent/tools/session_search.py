"""session_search: search earlier sessions of the same person."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes.agent.session_search import SessionHit, SessionSearch
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import ToolError
from hermes.core.text import one_line

MAX_RESULTS = 50
LINE_LENGTH = 1500


@tool(toolset="memory")
async def session_search(
    ctx: ToolContext, query: str = "", session: str = "", after_line: int = 0, count: int = 10
) -> str:
    """Search earlier conversations with this person, or read on in one of them.

    Give `query` to search (every word must occur), or `session` (an id from a result) to read it from `after_line` on.
    """
    recall = ctx.parts.get(SessionSearch)
    count = max(1, min(count, MAX_RESULTS))
    if session:
        lines = await recall.read(
            session, person_id=ctx.person_id, session_id=ctx.session_id, after=max(0, after_line), count=count
        )
        if not lines:
            more = f" after line {after_line}" if after_line else ""
            raise ToolError(f"There is nothing to read in a session {session!r}{more} of this person.")
        rendered = [f"{line.seq} {line.role}: {line.text[:LINE_LENGTH]}" for line in lines]
        return "\n".join([*rendered, f"[To read on: after_line={lines[-1].seq}.]"])
    if not query.strip():
        raise ToolError("Give a query to search for, or a session to read.")
    answer = await recall.search(query, person_id=ctx.person_id, session_id=ctx.session_id, count=count)
    hits = [_render_hit(found) for found in answer.found]
    if not hits:
        hits.append(f"Nothing was said about {query!r} in earlier conversations.")
    if not answer.is_complete:
        hits.append("[Older conversations are still being indexed: search again in a minute.]")
    return "\n".join(hits)


def _render_hit(found: SessionHit) -> str:
    day = datetime.fromtimestamp(found.hit.at, UTC).strftime("%Y-%m-%d")
    title = f" “{one_line(found.session.title, 60)}”" if found.session.title else ""
    snippet = one_line(found.hit.snippet, 400)
    return f"{day} {found.session.id}{title}, line {found.hit.seq}, {found.hit.role}: {snippet}"
