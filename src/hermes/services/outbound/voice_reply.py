"""Make a voice message of an answer."""

from __future__ import annotations

from hermes.agent.messaging import GeneratedFile, OutgoingFiles
from hermes.agent.speech.tts import MAX_TEXT_CHARS, Synthesizer, speakable
from hermes.core.errors import ToolError
from hermes.core.i18n.en import Texts
from hermes.core.keys import Target
from hermes.core.messages import AttachmentKind, OutboundMessage, TextUnit
from hermes.core.text import one_line, trim, visible
from hermes.services.outbound.media import Media
from hermes.services.outbound.rows import OutboxWriter
from hermes.store.ids import new_id
from hermes.store.outbox import OutboxKind


class VoiceReply:
    def __init__(self, synthesizer: Synthesizer, media: Media, outbox_writer: OutboxWriter) -> None:
        self._synthesizer = synthesizer
        self._media = media
        self._outbox_writer = outbox_writer

    async def say(self, target: Target, text: str, words: Texts, *, lane: str, turn_id: str) -> OutgoingFiles | None:
        """Return the voice message, a note on why there is none, or None. A long answer is spoken as far as it fits."""
        spoken = speakable(text)
        if not spoken:
            return None
        limits = self._outbox_writer.capabilities(target)
        try:
            speech = await self._synthesizer.say(
                trim(spoken, MAX_TEXT_CHARS, TextUnit.CHARACTERS), as_voice=limits.voice
            )
            is_voice = speech.is_voice and limits.voice
            kind = AttachmentKind.VOICE if is_voice else AttachmentKind.AUDIO
            made = GeneratedFile(speech.data, f"answer{speech.ending}", speech.mime, kind, new_id("ob"))
            return await self._media.pack(target, made, lane, turn_id, words)
        except ToolError as error:
            notice = words.NOT_SAID.format(reason=one_line(visible(str(error)), 300).rstrip("."))
            return OutgoingFiles(
                self._outbox_writer.rows(OutboundMessage(target, notice), OutboxKind.REPLY, turn_id=turn_id), ()
            )
