"""Synthesize speech with a local program: espeak-ng, flite, piper or another."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from hermes.agent.programs import StartedGroup
from hermes.agent.speech.programs import argv_of, run
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError

SETTING = "tts.command"
# What is used when the owner names none, in this order; the second form is for a chosen voice.
KNOWN = {
    "espeak-ng": ("espeak-ng -f {text_file} -w {output}", "espeak-ng -v {voice} -f {text_file} -w {output}"),
    "flite": ("flite -f {text_file} -o {output}", "flite -voice {voice} -f {text_file} -o {output}"),
}


@dataclass(frozen=True, slots=True)
class CommandVoice:
    """The text is in a file ({text_file}) and on the standard input; the sound is read from {output}."""

    template: str
    voice: str
    seconds: float
    started_group: StartedGroup = None
    name = SETTING

    async def speak(self, text: str) -> bytes:
        folder = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="hermes-voice-")
        try:
            written, output = Path(folder.name, "text.txt"), Path(folder.name, "speech.wav")
            await asyncio.to_thread(written.write_text, text, "utf-8")
            values = {"text_file": str(written), "output": str(output), "voice": self.voice}
            argv = argv_of(self.template or self._known(), values, SETTING)
            printed = await run(argv, stdin=text.encode(), seconds=self.seconds, started_group=self.started_group)
            if await asyncio.to_thread(output.is_file):
                return await asyncio.to_thread(output.read_bytes)
            return printed  # of a program that writes sound to its standard output
        finally:
            await asyncio.to_thread(folder.cleanup)

    def _known(self) -> str:
        for name, (plain, voiced) in KNOWN.items():
            if shutil.which(name):
                return voiced if self.voice else plain
        names = " or ".join(KNOWN)
        raise ToolError(f"No program that speaks is on this machine. The owner installs {names}, or sets {SETTING}.")
