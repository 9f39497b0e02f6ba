"""Turn an answer and the files it names into outbox rows, in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path

from hermes.agent.messaging import GeneratedFile, OutgoingFiles
from hermes.agent.speech.tts import Synthesizer
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.workspace.files import place_of
from hermes.agent.workspace.sensitive import ask_for_keys
from hermes.core import media
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.i18n.en import Texts
from hermes.core.keys import Target
from hermes.core.lane import DOORS
from hermes.core.media import WantedFile
from hermes.core.messages import Attachment, AttachmentKind, Capabilities, ChatMessage, OutboundMessage, Role
from hermes.core.roles import PersonRole, at_least
from hermes.core.text import length, one_line, visible
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.outbound.spool import Spool, TooBigError
from hermes.store import codec
from hermes.store.ids import new_id
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.outbox_files import UNDELIVERED, OutboxFile, word_of

log = logging.getLogger(__name__)

MAX_FILES = 20
MAX_SPEECH_BYTES = 25_000_000
MAX_NAME_CHARS = 80
MAX_REASON_CHARS = 300
SHOWN_TOGETHER = (AttachmentKind.IMAGE, AttachmentKind.VIDEO)


@dataclass(frozen=True, slots=True)
class ComposedReply:
    """What an answer becomes. ``files`` go with some of the rows; ``refused`` tells of those that go with none."""

    rows: Sequence[Outgoing] = ()
    files: Sequence[OutboxFile] = ()
    refused: Sequence[str] = ()

    @property
    def note(self) -> Sequence[ChatMessage]:
        """What the model reads about it with the next turn."""
        return [ChatMessage(Role.USER, "\n".join([UNDELIVERED, *self.refused]))] if self.refused else []


@dataclass(frozen=True, slots=True)
class Ready:
    """A file in the spool, under the name of the row that will carry it."""

    row_id: str
    attachment: Attachment

    @property
    def goes_in_album(self) -> bool:
        return self.attachment.kind in SHOWN_TOGETHER and self.attachment.mime != "image/gif"


@dataclass(slots=True)
class _Draft:
    """One answer on its way to rows. Only the call that makes it touches it."""

    to: OutboundMessage
    turn_id: str
    lane: str
    preview: str
    words: Texts
    rows: list[Outgoing] = field(default_factory=list)
    files: list[OutboxFile] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Media:
    def __init__(self, spool: Spool, outbox_writer: OutboxWriter, synthesizer: Synthesizer) -> None:
        self._spool = spool
        self._outbox_writer = outbox_writer
        self._synthesizer = synthesizer

    async def compose(
        self,
        message: OutboundMessage,
        ctx: Callable[[], ToolContext],
        words: Texts,
        *,
        turn_id: str,
        lane: str,
        preview: str = "",
    ) -> ComposedReply:
        """The rows of an answer: its text, and each file that it names. Every file goes out or is told about.

        Only files of the person's workspace are sent, opened by the guarded way and copied before this returns. What
        stands in ``preview`` is overwritten by the first text.
        """
        if message.target.platform in DOORS:
            return ComposedReply()
        found = media.pieces(message.text)
        draft = _Draft(message, turn_id, lane, preview, words)
        if not any(isinstance(piece, WantedFile) for piece in found):
            text = "\n".join(piece.text for piece in found if isinstance(piece, media.TextPart)) or message.text
            self._write(draft, text)
            return ComposedReply(draft.rows)
        taken = await self._take_all(found, ctx(), draft)
        groups = _grouped(taken, self._outbox_writer.capabilities(message.target).album_limit)
        bound = [await asyncio.to_thread(self._bound, group) for group in groups]
        await self._spool.share(file.attachment for group in bound if not isinstance(group, str) for file in group)
        self._arrange(bound, draft)
        return ComposedReply(draft.rows, draft.files, draft.refused)

    async def pack(
        self, target: Target, made: GeneratedFile, lane: str, turn_id: str = "", words: Texts = ENGLISH
    ) -> OutgoingFiles:
        """A file that we made, in the spool and ready to go; ToolError when this chat cannot take it."""
        limits = self._outbox_writer.capabilities(target)
        if not limits.media:
            raise ToolError(words.FILE_HERE_CANNOT)
        limit = self._spool.limit(limits.upload_limit_bytes)
        if len(made.data) > limit:
            size, most = words.amount(len(made.data)), words.amount(limit)
            raise ToolError(words.FILE_TOO_BIG.format(size=size, most=most))
        try:
            path = await asyncio.to_thread(self._spool.put, made.data, made.key)
        except OSError as error:
            raise ToolError(words.FILE_NOT_COPIED.format(reason=error.strerror)) from error
        file = Attachment(made.kind, path=str(path), name=made.name, mime=made.mime, size=len(made.data))
        await self._spool.share([file])
        message = OutboundMessage(target, "", attachment=file)
        rows = self._outbox_writer.rows(message, OutboxKind.REPLY, turn_id=turn_id, key=made.key)
        return OutgoingFiles(rows, [OutboxFile(made.key, 0, lane, made.name)])

    async def _take_all(
        self, found: Sequence[media.TextPart | WantedFile], ctx: ToolContext, draft: _Draft
    ) -> list[str | Ready]:
        limits = self._outbox_writer.capabilities(draft.to.target)
        taken: list[str | Ready] = []
        count = 0
        for piece in found:
            if isinstance(piece, media.TextPart):
                taken.append(piece.text)
                continue
            count += 1
            try:
                if count > MAX_FILES:
                    raise ToolError(draft.words.FILES_TOO_MANY.format(most=MAX_FILES))
                taken.append(await self._take(piece, ctx, limits, draft.words))
            except ToolError as error:
                notice = refusal(draft.words, piece.name, str(error))
                draft.refused.append(notice)
                taken.append(notice)
        return taken

    async def _take(self, wanted: WantedFile, ctx: ToolContext, limits: Capabilities, words: Texts) -> str | Ready:
        await asyncio.to_thread(_check, wanted, ctx, words)
        if not limits.media:
            path = await asyncio.to_thread(_look, wanted, ctx)
            return words.FILE_LIES_AT.format(name=display_name(wanted.name), path=path)
        row_id = new_id("ob")
        file = await asyncio.to_thread(self._copy, wanted, ctx, limits, row_id, words)
        if wanted.as_voice and not wanted.as_document and limits.voice and file.kind is AttachmentKind.AUDIO:
            file = await self._as_voice(file, row_id)
        return Ready(row_id, file)

    async def _as_voice(self, file: Attachment, row_id: str) -> Attachment:
        """A voice message of what is only sound so far. Where that cannot be made it stays what it is."""
        if file.size > MAX_SPEECH_BYTES:
            return file
        try:
            sound = await asyncio.to_thread(Path(file.path).read_bytes)
            speech = await self._synthesizer.as_wanted(sound, as_voice=True)
            if not speech.is_voice:
                return file
            path = await asyncio.to_thread(self._spool.put, speech.data, row_id)
        except (ToolError, OSError) as error:
            log.warning("Voice message not made", extra={"reason": str(error)})
            return file
        name = f"{Path(file.name).stem}.ogg"
        return Attachment(AttachmentKind.VOICE, path=str(path), name=name, mime=speech.mime, size=len(speech.data))

    def _copy(
        self, wanted: WantedFile, ctx: ToolContext, limits: Capabilities, row_id: str, words: Texts
    ) -> Attachment:
        limit = self._spool.limit(limits.upload_limit_bytes)
        with place_of(ctx, wanted.path) as place, place.open() as file:
            try:
                path = self._spool.take_in(file, row_id, 0, limit)
            except TooBigError as error:
                size, most = words.amount(error.size), words.amount(limit)
                raise ToolError(words.FILE_TOO_BIG.format(size=size, most=most)) from None
            except OSError as error:
                raise ToolError(words.FILE_NOT_COPIED.format(reason=error.strerror)) from error
        return described(path, wanted, limits, words)

    def _bound(self, group: str | list[Ready]) -> str | list[Ready]:
        """An album goes with one row, so its files are named after that one."""
        if isinstance(group, str):
            return group
        first, *others = group
        for position, other in enumerate(others, 1):
            path = self._spool.place(first.row_id, position)
            os.replace(other.attachment.path, path)
            group[position] = Ready(first.row_id, replace(other.attachment, path=str(path)))
        return group

    def _arrange(self, groups: Sequence[str | list[Ready]], draft: _Draft) -> None:
        """Rows in the order of the text. Pictures in a row are an album; a short text before one file its caption."""
        limits = self._outbox_writer.capabilities(draft.to.target)
        match groups:
            case [str(text), [Ready() as only]] if not draft.preview:
                has_room = length(text, limits.text_unit) <= limits.caption_limit
                if has_room and only.attachment.kind is not AttachmentKind.VOICE:
                    self._send(draft, [only], text)
                    return
        for group in groups:
            if isinstance(group, str):
                self._write(draft, group)
            else:
                self._send(draft, group)
        if draft.preview:  # it stays as it is otherwise: half a text that nobody finishes
            names = ", ".join(display_name(file.name) for file in draft.files)
            self._write(draft, f"📎 {names}")

    def _write(self, draft: _Draft, text: str) -> None:
        message, reply_to = draft.to, self._reply_to(draft)
        if (text, reply_to) != (message.text, message.reply_to):
            message = replace(message, text=text, reply_to=reply_to)
        draft.rows += self._outbox_writer.rows(message, OutboxKind.REPLY, turn_id=draft.turn_id, replaces=draft.preview)
        draft.preview = ""

    def _send(self, draft: _Draft, files: Sequence[Ready], text: str = "") -> None:
        first, *others = files
        message = replace(
            draft.to,
            text=text,
            reply_to=self._reply_to(draft),
            attachment=first.attachment,
            album=tuple(other.attachment for other in others),
        )
        # A letter of its own: when the platform refuses a file, the words behind it go out all the same.
        draft.rows += self._outbox_writer.rows(message, OutboxKind.REPLY, turn_id=draft.turn_id, key=first.row_id)
        names = [display_name(file.attachment.name) for file in files]
        draft.files += [OutboxFile(first.row_id, position, draft.lane, name) for position, name in enumerate(names)]

    @staticmethod
    def _reply_to(draft: _Draft) -> str:
        """Only the first message quotes what it answers."""
        return "" if draft.rows else draft.to.reply_to


def described(path: Path, wanted: WantedFile, limits: Capabilities, words: Texts) -> Attachment:
    """A spooled file as the platform gets it: its kind by its bytes, and as its sender wished."""
    with path.open("rb") as file:
        head = file.read(media.HEAD_BYTES)
        size = file.seek(0, 2)
    if not size:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        raise ToolError(words.FILE_IS_EMPTY)
    kind, mime = media.kind_of(head, wanted.name)
    if wanted.as_document:
        kind = AttachmentKind.DOCUMENT
    elif wanted.as_voice and kind is AttachmentKind.AUDIO and limits.voice and media.is_opus(head):
        kind = AttachmentKind.VOICE
    return Attachment(kind, path=str(path), name=display_name(wanted.name), mime=mime, size=size)


def refusal(words: Texts, name: str, reason: str) -> str:
    return words.FILE_NOT_SENT.format(
        name=display_name(name), reason=one_line(visible(reason), MAX_REASON_CHARS).rstrip(".")
    )


def display_name(name: str) -> str:
    return one_line(name, MAX_NAME_CHARS)


def lost(
    words: Texts, target: Target, row_id: str, body: OutboundMessage, reason: str, *, expires_at: float
) -> Outgoing | None:
    """What the person reads in place of a file that the platform would not take; its caption is not lost with it."""
    if body.attachment is None:
        return None
    names = ", ".join(display_name(file.name or file.kind) for file in (body.attachment, *body.album))
    notice = words.FILE_NOT_TAKEN.format(name=names, reason=one_line(visible(reason), MAX_REASON_CHARS))
    text = "\n\n".join(part for part in (body.text, notice) if part)
    key = word_of(row_id)
    message = OutboundMessage(target, text, idempotency_key=key)
    return Outgoing(key, str(target), key, 0, OutboxKind.REPLY, codec.dump(message), expires_at)


def _check(wanted: WantedFile, ctx: ToolContext, words: Texts) -> None:
    """What no tool would read for this person unasked is not sent either, whatever the model writes."""
    if not at_least(ctx.role, PersonRole.USER):
        raise ToolError(words.FILE_NOT_FOR_GUESTS)
    if ctx.is_among_others:
        raise ToolError(words.FILE_NOT_AMONG_OTHERS)
    if ask_for_keys(ctx, wanted.path) is not None:
        raise ToolError(words.FILE_HOLDS_KEYS)


def _look(wanted: WantedFile, ctx: ToolContext) -> str:
    with place_of(ctx, wanted.path) as place, place.open():
        return str(place.target)


def _grouped(taken: Sequence[str | Ready], most: int) -> list[str | list[Ready]]:
    groups: list[str | list[Ready]] = []
    for piece in taken:
        last = groups[-1] if groups else None
        if isinstance(piece, str):
            groups[-1:] = [f"{last}\n{piece}"] if isinstance(last, str) else [*groups[-1:], piece]
        elif isinstance(last, list) and len(last) < most and piece.goes_in_album and last[0].goes_in_album:
            last.append(piece)
        else:
            groups.append([piece])
    return groups
