"""Synthesize speech with ElevenLabs: one request, one MP3."""

from __future__ import annotations

from urllib.parse import quote

from hermes.agent.speech.http import OpenSession, ask, sendable
from hermes.core.dataclasses import dataclass
from hermes.core.secret import Secret

ROOT = "https://api.elevenlabs.io"
VOICE = "21m00Tcm4TlvDq8ikWAM"
MODEL = "eleven_multilingual_v2"


@dataclass(frozen=True, slots=True)
class ElevenLabs:
    key: Secret
    voice: str
    model: str
    root: str
    seconds: float
    open_session: OpenSession
    name = "ElevenLabs"

    async def speak(self, text: str) -> bytes:
        voice = quote(self.voice or VOICE, safe="")
        return await ask(
            self.name,
            self.open_session,
            f"{(self.root or ROOT).rstrip('/')}/v1/text-to-speech/{voice}?output_format=mp3_44100_64",
            seconds=self.seconds,
            headers={"xi-api-key": sendable(self.key, self.name), "Accept": "audio/mpeg"},
            body={"text": text, "model_id": self.model or MODEL},
        )
