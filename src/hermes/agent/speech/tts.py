"""Synthesize speech: configured voice, size limits, the chat's format."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from hermes.agent.programs import StartedGroup
from hermes.agent.speech import ffmpeg
from hermes.agent.speech.http import OpenSession
from hermes.config import Config
from hermes.core import media
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError

MAX_TEXT_CHARS = 4000
ENDINGS = {
    "audio/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/wav": ".wav", "audio/flac": ".flac", "audio/mp4": ".m4a",
}  # fmt: skip


class Speaker(Protocol):
    name: str

    async def speak(self, text: str) -> bytes:
        """Return the sound in any of the usual forms; ToolError when it cannot be had."""


@dataclass(frozen=True, slots=True)
class Speech:
    """``is_voice``: OGG/Opus, which chats show as a voice message."""

    data: bytes
    mime: str
    is_voice: bool

    @property
    def ending(self) -> str:
        return ENDINGS.get(self.mime, ".bin")


class Synthesizer:
    """``is_silent`` tells of a chat whether it wants nothing said aloud."""

    def __init__(
        self, config: Callable[[], Config], open_session: OpenSession, is_silent: Callable[[str], Awaitable[bool]]
    ) -> None:
        self._config = config
        self._open_session = open_session
        self.is_silent = is_silent

    async def say(self, text: str, *, as_voice: bool, started_group: StartedGroup = None) -> Speech:
        """The text as sound: as a voice message where that is wanted and can be made, else as MP3 or as it comes."""
        words = speakable(text)
        if not words:
            raise ToolError("There is nothing in this text that can be said aloud.")
        if len(words) > MAX_TEXT_CHARS:
            raise ToolError(
                f"That is too long to say ({len(words):,} characters; {MAX_TEXT_CHARS:,} at most). Shorten it."
            )
        speaker = self._speaker(started_group)
        sound = await speaker.speak(words)
        if not ffmpeg.type_of(sound):
            raise ToolError(f"{speaker.name} gave something that is no sound.")
        return await self.as_wanted(sound, as_voice=as_voice, started_group=started_group)

    async def as_wanted(self, sound: bytes, *, as_voice: bool, started_group: StartedGroup = None) -> Speech:
        """The same sound in the form that a chat shows best; without ffmpeg as it is: then it is sent as a file."""
        is_opus = media.is_opus(sound[: media.HEAD_BYTES])
        if as_voice and not is_opus and await ffmpeg.is_there():
            sound, is_opus = await ffmpeg.convert(sound, "opus", started_group), True
        elif not as_voice and ffmpeg.type_of(sound) != "audio/mpeg" and await ffmpeg.is_there():
            sound, is_opus = await ffmpeg.convert(sound, "mp3", started_group), False
        return Speech(sound, ffmpeg.type_of(sound), is_opus)

    def _speaker(self, started_group: StartedGroup) -> Speaker:
        """Make the configured speaker; only its module is imported."""
        config = self._config()
        tts, openai = config.tts, config.providers["openai"]
        match tts.provider:
            case "elevenlabs":
                key = tts.elevenlabs_api_key or tts.api_key
                if key is None:
                    raise ToolError("tts.provider is elevenlabs, and it has no key. The owner sets ELEVENLABS_API_KEY.")
                from hermes.agent.speech.elevenlabs import ElevenLabs

                return ElevenLabs(key, tts.voice, tts.model, tts.base_url, tts.timeout_seconds, self._open_session)
            case "openai":
                # A key is only for the address it belongs to.
                key = tts.api_key or (None if tts.base_url else openai.api_key)
                if key is None and not tts.base_url:
                    raise ToolError("tts.provider is openai, and it has no key. The owner sets OPENAI_API_KEY.")
                root = tts.base_url or openai.base_url
                from hermes.agent.speech.openai import OpenAi

                return OpenAi(key, tts.voice, tts.model, root, tts.timeout_seconds, self._open_session)
            case "command":
                from hermes.agent.speech.command import CommandVoice

                return CommandVoice(tts.command, tts.voice, tts.timeout_seconds, started_group)
            case _:
                from hermes.agent.speech.edge import Edge

                return Edge(tts.voice, tts.base_url, tts.timeout_seconds, self._open_session)


_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")
_ADDRESS = re.compile(r"https?://\S+")
_MARKS = re.compile(r"(?m)^\s{0,3}(?:#{1,6}|>|[-*+•]|\d+[.)])\s+|[*_`~|]+")


def speakable(text: str) -> str:
    """Return the words of a text without what is only for the eye: markup, code, addresses, lines that name files."""
    text = _CODE.sub(" ", media.without_files(text))
    text = _MARKS.sub("", _ADDRESS.sub("", _LINK.sub(r"\1", text)))
    return "\n".join(line for line in (" ".join(line.split()) for line in text.splitlines()) if line)
