"""Transcribe voice messages with the configured service or program."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import aiohttp
import orjson

from hermes.agent.programs import StartedGroup
from hermes.agent.speech import ffmpeg
from hermes.agent.speech.http import OpenSession, ask, sendable
from hermes.agent.speech.programs import argv_of, run
from hermes.agent.speech.tts import ENDINGS
from hermes.config import Config, SttConfig
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.secret import Secret

MAX_SOUND_BYTES = 25_000_000
MAX_TRANSCRIPT_CHARS = 20_000
NOBODY = (
    "nobody is set up to write down what is said. The owner sets stt.provider: openai (or any server that speaks like "
    "it) or command"
)


class Hearer(Protocol):
    async def hear(self, sound: bytes) -> str:
        """Return the words, '' when there are none; ToolError when they cannot be had."""


class Transcriber:
    def __init__(self, config: Callable[[], Config], open_session: OpenSession) -> None:
        self._config = config
        self._open_session = open_session

    async def hear(self, sound: bytes, started_group: StartedGroup = None) -> str:
        """Transcribe a sound; the ToolError says why it could not be transcribed."""
        if not ffmpeg.type_of(sound):
            raise ToolError("it is no sound that I know")
        if len(sound) > MAX_SOUND_BYTES:
            raise ToolError(f"it is longer than can be listened to ({len(sound):,} bytes)")
        words = " ".join((await self._hearer(started_group).hear(sound)).split())
        if not words:
            raise ToolError("no words were heard in it")
        return words[:MAX_TRANSCRIPT_CHARS]

    def _hearer(self, started_group: StartedGroup) -> Hearer:
        config = self._config()
        stt, openai = config.stt, config.providers["openai"]
        chosen = stt.provider or ("openai" if stt.base_url or config.model.provider == "openai" else "")
        if chosen == "command":
            return CommandTranscriber(stt, started_group)
        if chosen != "openai":
            raise ToolError(NOBODY)
        # A key is only for the address it belongs to.
        key = stt.api_key or (None if stt.base_url else openai.api_key)
        return OpenAiTranscriber(stt, key, stt.base_url or openai.base_url, self._open_session)


@dataclass(frozen=True, slots=True)
class OpenAiTranscriber:
    """Any server that speaks OpenAI's ``/audio/transcriptions``."""

    config: SttConfig
    key: Secret | None
    root: str
    open_session: OpenSession

    async def hear(self, sound: bytes) -> str:
        name, mime = "The transcription server", ffmpeg.type_of(sound)
        form = aiohttp.FormData()
        form.add_field("model", self.config.model)
        form.add_field("response_format", "json")
        if self.config.language:
            form.add_field("language", self.config.language)
        form.add_field("file", sound, filename=f"voice{ENDINGS.get(mime, '.bin')}", content_type=mime)
        answer = await ask(
            name,
            self.open_session,
            f"{self.root.rstrip('/')}/audio/transcriptions",
            seconds=self.config.timeout_seconds,
            headers={"Authorization": f"Bearer {sendable(self.key, name)}"} if self.key else {},
            form=form,
        )
        try:
            return str(orjson.loads(answer)["text"])
        except (ValueError, KeyError, TypeError):
            raise ToolError(f"{name} sent an answer that cannot be read.") from None


@dataclass(frozen=True, slots=True)
class CommandTranscriber:
    """A program on this machine: it gets a WAV file (16 kHz, mono) where ffmpeg can make one, and prints the words."""

    config: SttConfig
    started_group: StartedGroup = None

    async def hear(self, sound: bytes) -> str:
        if await ffmpeg.is_there():
            sound = await ffmpeg.convert(sound, "wav", self.started_group)
        folder = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="hermes-hearing-")
        try:
            audio = Path(folder.name) / f"voice{ENDINGS.get(ffmpeg.type_of(sound), '.bin')}"
            await asyncio.to_thread(audio.write_bytes, sound)
            values = {"audio": str(audio), "language": self.config.language}
            argv = argv_of(self.config.command, values, "stt.command")
            printed = await run(argv, seconds=self.config.timeout_seconds, started_group=self.started_group)
        finally:
            await asyncio.to_thread(folder.cleanup)
        return printed.decode("utf-8", "replace")
