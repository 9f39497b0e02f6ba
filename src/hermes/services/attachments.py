"""Files that came with a message: fetched into the workspace before the model reads it, and told either way."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes.agent.files import place_of
from hermes.agent.toolkit import ToolContext
from hermes.core.errors import PlatformError, ToolError
from hermes.core.keys import Target
from hermes.core.messages import Attachment, ChatMessage, Role
from hermes.core.ports import Adapter, FetchesFiles
from hermes.core.text import one_line, visible

FOLDER = "hermes-files"
FETCH_SECONDS = 120.0
MARK = "[files]"
NOT_FETCHED = "[{name}: could not be fetched: {reason}]"  # for the model


class Attachments:
    def __init__(self, adapter_of: Callable[[Target], Adapter | None]) -> None:
        self._adapter_of = adapter_of

    async def fetch(self, target: Target, attachments: Sequence[Attachment], ctx: ToolContext) -> ChatMessage:
        """Download what can be had. The message tells the model where each file is, or why it is not there.

        Fetched outside the workspace and taken in by the guarded way: what a person's own processes do in there, such
        as putting links, changes nothing about where a file comes to lie.
        """
        fetched = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="hermes-")
        try:
            lines = [await self._one(target, each, Path(fetched.name), ctx) for each in attachments]
        finally:
            await asyncio.to_thread(fetched.cleanup)
        return ChatMessage(Role.USER, "\n".join([MARK, *lines]))

    async def _one(self, target: Target, attachment: Attachment, folder: Path, ctx: ToolContext) -> str:
        name = safe_name(attachment)
        adapter: object = self._adapter_of(target)
        if not isinstance(adapter, FetchesFiles):
            return NOT_FETCHED.format(name=name, reason="this platform cannot hand out files")
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                path = await adapter.fetch(attachment, folder)
            where = f"{FOLDER}/{ctx.turn_id}/{path.name}"
            await asyncio.to_thread(_take_in, ctx, path, where)
        except TimeoutError:
            return NOT_FETCHED.format(name=name, reason=f"it took longer than {FETCH_SECONDS:.0f} s")
        except (PlatformError, ToolError, OSError) as error:
            return NOT_FETCHED.format(name=name, reason=visible(str(error)))
        return f"[{attachment.kind}: {where}]"


def _take_in(ctx: ToolContext, path: Path, where: str) -> None:
    with path.open("rb") as file, place_of(ctx, where, makes_folders=True) as place:
        place.write(file, token=f"{ctx.turn_id}:{path.name}", mode=0o600)


def safe_name(attachment: Attachment) -> str:
    return one_line(re.sub(r"[^\w.\- ]", "_", attachment.name) or attachment.kind.value, 80)
