"""Convert sound with ffmpeg: the system's, or ``imageio-ffmpeg``'s (extra ``voice``)."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
from typing import Literal

from hermes.agent.programs import StartedGroup
from hermes.agent.speech.programs import run
from hermes.core import media
from hermes.core.messages import AttachmentKind

SECONDS = 60.0
Form = Literal["opus", "mp3", "wav"]

# By the bytes of the sound, told to ffmpeg: left to guess, it would open a playlist and read the files named in there.
_READS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/ogg": "ogg", "audio/flac": "flac", "audio/mp4": "mov"}
_WRITES = {
    "opus": ("-c:a", "libopus", "-b:a", "32k", "-ar", "48000", "-ac", "1", "-f", "ogg"),
    "mp3": ("-c:a", "libmp3lame", "-b:a", "64k", "-ac", "1", "-f", "mp3"),
    "wav": ("-c:a", "pcm_s16le", "-ar", "16000", "-ac", "1", "-f", "wav"),
}


def ffmpeg() -> str:
    """Return where ffmpeg is, or ''. Blocking: call it in a thread."""
    found = shutil.which("ffmpeg")
    if found is None and importlib.util.find_spec("imageio_ffmpeg") is not None:
        import imageio_ffmpeg

        try:
            found = imageio_ffmpeg.get_ffmpeg_exe()
        except RuntimeError:  # a package without its binary, as on some systems
            found = None
    return found or ""


def type_of(sound: bytes) -> str:
    """``audio/wav`` and the like by the first bytes; '' when it is no sound that we know."""
    kind, mime = media.kind_of(sound[: media.HEAD_BYTES], "")
    is_sound = kind is AttachmentKind.AUDIO
    return mime if is_sound else "audio/mp4" if mime == "video/mp4" else ""


async def is_there() -> bool:
    return bool(await asyncio.to_thread(ffmpeg))


async def convert(sound: bytes, form: Form, started_group: StartedGroup = None, *, seconds: float = SECONDS) -> bytes:
    """The sound in another form; ToolError where there is no ffmpeg or it fails. Nothing but the pipe is read."""
    reads = _READS.get(type_of(sound), "")
    argv = (
        await asyncio.to_thread(ffmpeg) or "ffmpeg",
        *("-hide_banner", "-nostdin", "-loglevel", "error", "-protocol_whitelist", "pipe"),
        *("-f", reads or "wav", "-i", "pipe:0", "-vn", "-map_metadata", "-1", *_WRITES[form], "pipe:1"),
    )
    made = await run(argv, stdin=sound, seconds=seconds, started_group=started_group, what="ffmpeg")
    return _with_sizes(made) if form == "wav" else made


def _with_sizes(wav: bytes) -> bytes:
    """Into a pipe ffmpeg cannot go back to write how long it became; some programs read nothing without that."""
    data = wav.find(b"data", 12)
    if data < 0:
        return wav
    riff, size = (len(wav) - 8).to_bytes(4, "little"), (len(wav) - data - 8).to_bytes(4, "little")
    return wav[:4] + riff + wav[8 : data + 4] + size + wav[data + 8 :]
