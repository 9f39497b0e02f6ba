"""Fetch files that came with a message into the workspace, and describe them.

A voice message is written down, the beginning of a document is shown, a picture is shown to a model that can see.
What could not be had is told to the model and to the person.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from hermes.agent.speech.stt import Transcriber
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.vision import MAX_SHOWN_BYTES, kind_of
from hermes.agent.web import documents
from hermes.agent.web.reader import DocumentReader
from hermes.agent.web.untrusted import framed
from hermes.agent.workspace.files import place_of
from hermes.core.dataclasses import dataclass
from hermes.core.errors import PlatformError, RejectedError, ToolError
from hermes.core.i18n.en import Texts
from hermes.core.keys import Target
from hermes.core.messages import Attachment, AttachmentKind, ChatMessage, Image, Role
from hermes.core.ports import Adapter, FetchesFiles
from hermes.core.text import one_line, visible

log = logging.getLogger(__name__)

FOLDER = "hermes-files"
FETCH_SECONDS = 120.0
MARK = "[files]"
NOT_FETCHED = "[{name}: could not be fetched: {reason}]"  # for the model
MAX_FILES = 30
MAX_TEXT_CHARS = 20_000
MAX_PICTURES = 4


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """What the model is told about the files, and what the person is told of those that could not be had."""

    message: ChatMessage
    troubles: Sequence[str] = ()


@dataclass(slots=True)
class _Tale:
    """What is told, as it grows. Only the call that fetches touches it."""

    ctx: ToolContext
    sees: bool
    words: Texts
    lines: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    room: int = MAX_TEXT_CHARS


class Attachments:
    def __init__(
        self, adapter_of: Callable[[Target], Adapter | None], transcriber: Transcriber, reader: DocumentReader
    ) -> None:
        self._adapter_of = adapter_of
        self._transcriber = transcriber
        self._reader = reader

    async def fetch(
        self, target: Target, attachments: Sequence[Attachment], ctx: ToolContext, words: Texts, *, sees: bool = False
    ) -> PreparedMessage:
        """Download what can be had. The message tells the model where each file is, or why it is not there.

        Fetched outside the workspace and taken in by the guarded way: what a person's own processes do in there, such
        as putting links, changes nothing about where a file comes to lie. ``sees``: pictures are shown to the model.
        """
        tale = _Tale(ctx, sees, words)
        fetched = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="hermes-")
        try:
            for attachment in attachments[:MAX_FILES]:
                await self._one(target, attachment, Path(fetched.name), tale)
        finally:
            await asyncio.to_thread(fetched.cleanup)
        for attachment in attachments[MAX_FILES:]:
            _failed(tale, safe_name(attachment), words.FILES_TOO_MANY_TO_GET.format(most=MAX_FILES))
        message = ChatMessage(Role.USER, "\n".join([MARK, *tale.lines]), images=tuple(tale.images))
        return PreparedMessage(message, tale.troubles)

    async def _one(self, target: Target, attachment: Attachment, folder: Path, tale: _Tale) -> None:
        name = safe_name(attachment)
        try:
            path = await self._fetched(target, attachment, folder, tale.words)
            where = one_line(visible(attachment.path), 500)
            if not where:  # else it stands on this machine, and needs no copy in the workspace
                where = f"{FOLDER}/{tale.ctx.turn_id}/{path.name}"
                await asyncio.to_thread(_take_in, tale.ctx, path, where)
        except TimeoutError:
            _failed(tale, name, tale.words.FILE_TOO_SLOW.format(span=tale.words.span(FETCH_SECONDS)))
            _log_not_fetched(target, attachment, f"no answer within {FETCH_SECONDS:.0f} s")
            return
        except (PlatformError, ToolError, OSError) as error:
            _failed(tale, name, visible(str(error)))
            _log_not_fetched(target, attachment, str(error))
            return
        tale.lines.append(f"[{attachment.kind}: {where}]")
        match attachment.kind:
            case AttachmentKind.VOICE if not attachment.is_written_down:
                await self._hear(path, tale)
            case AttachmentKind.IMAGE:
                await _show(path, tale)
            case AttachmentKind.DOCUMENT if documents.is_document(path.name, attachment.mime):
                await self._read(path, attachment, where, tale)

    async def _fetched(self, target: Target, attachment: Attachment, folder: Path, words: Texts) -> Path:
        adapter = self._adapter_of(target)
        fetcher: object = adapter
        if adapter is None or not isinstance(fetcher, FetchesFiles):
            raise RejectedError(words.FILE_HERE_CANNOT)
        most = adapter.capabilities.download_limit_bytes
        if attachment.size > most:
            size = words.amount(attachment.size)
            raise RejectedError(words.FILE_TOO_BIG_TO_GET.format(size=size, most=words.amount(most)))
        async with asyncio.timeout(FETCH_SECONDS):
            return await fetcher.fetch(attachment, folder)

    async def _hear(self, path: Path, tale: _Tale) -> None:
        try:
            sound = await asyncio.to_thread(path.read_bytes)
            transcript = await self._transcriber.hear(sound, tale.ctx.started_group)
        except (ToolError, OSError) as error:
            reason = one_line(visible(str(error)), 300).rstrip(".")
            tale.lines.append(f"(What is said in it could not be written down: {reason}.)")
            tale.troubles.append(tale.words.NOT_HEARD.format(reason=reason))
        else:
            tale.lines.append(f"(Spoken by the person; written down by a machine, which may mishear:)\n{transcript}")

    async def _read(self, path: Path, attachment: Attachment, where: str, tale: _Tale) -> None:
        most = min(documents.MAX_SHOWN_CHARS, tale.room)
        try:
            data = await asyncio.to_thread(path.read_bytes)
            found = await documents.excerpt(
                self._reader,
                data,
                path.name,
                attachment.mime,
                most=max(most, 1),
                started_group=tale.ctx.started_group,
            )
            if found.whole and found.next_line:
                where = f"{where}.txt"
                await asyncio.to_thread(_write, tale.ctx, found.whole, where)
        except (ToolError, OSError) as error:
            tale.lines.append(f"(It cannot be shown as text: {one_line(visible(str(error)), 300)})")
            return
        if most > 0:
            tale.room -= len(found.shown)
            tale.lines.append(framed(found.shown, f"the file {path.name}"))
        if found.note:
            tale.lines.append(f"({found.note})")
        if found.next_line or most <= 0:
            line = found.next_line if most > 0 else 1
            tale.lines.append(f"(There is more of it: read_file {where!r} from line {line} on.)")


async def _show(path: Path, tale: _Tale) -> None:
    """Put a picture before the model's eyes, or say how it can look at it."""
    data = await asyncio.to_thread(path.read_bytes)
    try:
        mime = kind_of(data)
    except ToolError as error:
        tale.lines.append(f"({error})")
        return
    if tale.sees and len(tale.images) < MAX_PICTURES and len(data) <= MAX_SHOWN_BYTES:
        tale.images.append(Image(f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"))
    else:
        tale.lines.append("(You have not seen it; the tool vision looks at it.)")


def _log_not_fetched(target: Target, attachment: Attachment, reason: str) -> None:
    """What the platform did not hand out; the name of a file is the person's own and stays out of the log."""
    noun = "Picture" if attachment.kind is AttachmentKind.IMAGE else "File"
    fields = {"platform": target.platform, "kind": attachment.kind.value, "size": attachment.size, "reason": reason}
    log.warning("%s could not be fetched", noun, extra=fields)


def _failed(tale: _Tale, name: str, reason: str) -> None:
    tale.lines.append(NOT_FETCHED.format(name=name, reason=reason))
    tale.troubles.append(tale.words.FILE_DID_NOT_COME.format(name=name, reason=one_line(reason, 300)))


def _take_in(ctx: ToolContext, path: Path, where: str) -> None:
    with path.open("rb") as file, place_of(ctx, where, makes_folders=True) as place:
        place.write(file, token=f"{ctx.turn_id}:{path.name}", mode=0o600)


def _write(ctx: ToolContext, text: str, where: str) -> None:
    with place_of(ctx, where, makes_folders=True) as place:
        place.write(text.encode("utf-8", "replace"), token=f"{ctx.turn_id}:{where}", mode=0o600)


def safe_name(attachment: Attachment) -> str:
    return one_line(re.sub(r"[^\w.\- ]", "_", attachment.name) or attachment.kind.value, 80)
