"""vision: answer a question about a picture."""

from __future__ import annotations

import asyncio

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.vision import MAX_IMAGE_BYTES, VisionModel
from hermes.agent.web.safe_http import GuardedWeb
from hermes.agent.web.untrusted import framed
from hermes.agent.workspace.files import read_inside
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole

MAX_QUESTION_CHARS = 4000
TYPES = ("image/", "application/octet-stream", "binary/octet-stream")


@tool(toolset="vision", seconds=150)
async def vision(ctx: ToolContext, image: str, question: str = "What is in this picture?") -> str:
    """Look at a picture and answer a question about it.

    `image` is the path of a PNG, JPEG, GIF or WebP file in the workspace, or its http(s) address.
    """
    if not question.strip() or len(question) > MAX_QUESTION_CHARS:
        raise ToolError(f"'question' is 1 to {MAX_QUESTION_CHARS} characters.")
    sight = ctx.parts.get(VisionModel)
    if image.strip().lower().startswith(("http://", "https://")):
        is_owner = ctx.role is PersonRole.OWNER
        fetched = await ctx.parts.get(GuardedWeb).fetch(image, types=TYPES, is_owner=is_owner)
        if fetched.is_cut:
            raise ToolError(f"The picture is larger than {len(fetched.body):,} bytes, the most that is fetched.")
        data = fetched.body
    else:
        data = (await asyncio.to_thread(read_inside, ctx, image, MAX_IMAGE_BYTES)).data
    return framed(await sight.look(ctx.session_key, data, question), f"a model that looked at {image}")
