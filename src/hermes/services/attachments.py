"""Files that came with a message: fetched into the workspace before the model reads it, and told either way."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes.core.errors import PlatformError
from hermes.core.keys import Target
from hermes.core.messages import Attachment, ChatMessage, Role
from hermes.core.ports import Adapter, FetchesFiles
from hermes.core.text import one_line, visible
from hermes.services import words

FOLDER = "hermes-files"
FETCH_SECONDS = 120.0
MARK = "[files]"


class Attachments:
    def __init__(self, adapter_of: Callable[[Target], Adapter | None]) -> None:
        self._adapter_of = adapter_of

    async def fetch(
        self, target: Target, attachments: Sequence[Attachment], workspace: Path, turn_id: str
    ) -> ChatMessage:
        """Download what can be had. The message tells the model where each file is, or why it is not there."""
        folder = workspace / FOLDER / turn_id
        lines = [await self._one(target, each, folder, workspace) for each in attachments]
        return ChatMessage(Role.USER, "\n".join([MARK, *lines]))

    async def _one(self, target: Target, attachment: Attachment, folder: Path, workspace: Path) -> str:
        name = safe_name(attachment)
        adapter: object = self._adapter_of(target)
        if not isinstance(adapter, FetchesFiles):
            return words.FILE_NOT_FETCHED.format(name=name, reason="this platform cannot hand out files")
        try:
            await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
            async with asyncio.timeout(FETCH_SECONDS):
                path = await adapter.fetch(attachment, folder)
        except TimeoutError:
            return words.FILE_NOT_FETCHED.format(name=name, reason=f"it took longer than {FETCH_SECONDS:.0f} s")
        except (PlatformError, OSError) as error:
            return words.FILE_NOT_FETCHED.format(name=name, reason=visible(str(error)))
        return f"[{attachment.kind}: {path.relative_to(workspace)}]"


def safe_name(attachment: Attachment) -> str:
    return one_line(re.sub(r"[^\w.\- ]", "_", attachment.name) or attachment.kind.value, 80)
