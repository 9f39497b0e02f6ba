"""Synthesize speech with any server of OpenAI's ``/audio/speech``."""

from __future__ import annotations

from hermes.agent.speech.http import OpenSession, ask, sendable
from hermes.core.dataclasses import dataclass
from hermes.core.secret import Secret

VOICE = "alloy"
MODEL = "gpt-4o-mini-tts"


@dataclass(frozen=True, slots=True)
class OpenAi:
    key: Secret | None
    voice: str
    model: str
    root: str
    seconds: float
    open_session: OpenSession
    name = "The speech server"

    async def speak(self, text: str) -> bytes:
        return await ask(
            self.name,
            self.open_session,
            f"{self.root.rstrip('/')}/audio/speech",
            seconds=self.seconds,
            headers={"Authorization": f"Bearer {sendable(self.key, self.name)}"} if self.key else {},
            body={
                "model": self.model or MODEL,
                "voice": self.voice or VOICE,
                "input": text,
                "response_format": "opus",
            },
        )
