"""Voice for real: flite speaks, ffmpeg makes Opus of it, pocketsphinx hears the same words."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from hermes.agent.speech import ffmpeg
from hermes.agent.speech.command import CommandVoice
from tests.fakes import listening
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, start
from tests.integration.watching import SECONDS

__all__ = ["start"]  # the fixture of the whole gateway

MISSING = [
    what
    for what, is_there in (
        ("flite (apt install flite)", shutil.which("flite")),
        ("ffmpeg (apt, or pip install imageio-ffmpeg)", ffmpeg.ffmpeg()),
        ("pocketsphinx (pip install pocketsphinx)", importlib.util.find_spec("pocketsphinx")),
    )
    if not is_there
]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"there is no {', no '.join(MISSING)}")

SPEAKS = "flite -voice slt -f {text_file} -o {output}"


async def spoken(text: str) -> bytes:
    """A voice message as a phone sends it: OGG/Opus."""
    return await ffmpeg.convert(await CommandVoice(SPEAKS, "", SECONDS).speak(text), "opus")


async def written(sound: bytes) -> str:
    return listening.heard(await ffmpeg.convert(sound, "wav"))


async def test_what_flite_says_and_opus_carries_pocketsphinx_hears() -> None:
    sound = await spoken("go forward ten meters")
    assert sound.startswith(b"OggS")
    assert await written(sound) == "go forward ten meters"


async def test_a_voice_note_comes_in_is_understood_and_answered_aloud(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    listens = f"{sys.executable} {Path(listening.__file__)} {{audio}}"
    model.says("Turn **left**.")
    async with start(TTS_PROVIDER="command", TTS_COMMAND=SPEAKS, STT_PROVIDER="command", STT_COMMAND=listens):
        telegram.user_says("/voice on")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, SECONDS)
        telegram.user_speaks(await spoken("go backward two meters"))
        await telegram.wait_for(lambda: len(telegram.sent) >= 3, SECONDS * 2)
    heard = [message["content"] for message in model.last_request["messages"] if message["role"] == "user"][-1]
    assert heard.endswith("go backward two meters")
    _, text, voice = telegram.sent
    assert (text.text, voice.is_voice) == ("Turn left.", True)
    assert await written(voice.file) == "turn left"
