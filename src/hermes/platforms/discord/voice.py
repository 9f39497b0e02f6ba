"""Measure a voice message: its length and its waveform."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from hermes.core.dataclasses import dataclass

MAX_POINTS = 256
_RATE = 48_000  # Opus counts its samples at this rate, whatever it was recorded at
_MARK = b"OggS"
_HEADER = 27
_LOWEST, _HIGHEST = 16, 255


@dataclass(frozen=True, slots=True)
class Voice:
    seconds: float
    waveform: str


@dataclass(frozen=True, slots=True)
class _Page:
    samples: int
    packets: tuple[int, ...]


def measure(sound: bytes) -> Voice | None:
    """Measure a voice message by its packet sizes, nothing decoded; None for what is not OGG/Opus."""
    if b"OpusHead" not in sound[:200]:
        return None
    pages = list(_pages(sound))
    samples = max((page.samples for page in pages), default=0)
    sizes = [size for page in pages[2:] for size in page.packets] or [0]
    count = min(MAX_POINTS, len(sizes))
    chosen = [sizes[index * len(sizes) // count] for index in range(count)]
    most = max(chosen) or 1
    points = bytes(_LOWEST + (_HIGHEST - _LOWEST) * size // most for size in chosen)
    return Voice(max(0.1, samples / _RATE), base64.b64encode(points).decode())


def _pages(sound: bytes) -> Iterator[_Page]:
    at = sound.find(_MARK)
    while at >= 0 and at + _HEADER <= len(sound):
        lacing = sound[at + _HEADER : at + _HEADER + sound[at + 26]]
        position = int.from_bytes(sound[at + 6 : at + 14], "little", signed=True)
        yield _Page(max(0, position), tuple(_packets(lacing)))
        at = sound.find(_MARK, at + _HEADER + len(lacing) + sum(lacing))


def _packets(lacing: bytes) -> Iterator[int]:
    size = 0
    for length in lacing:
        size += length
        if length < 255:  # a packet goes on in the next segment while segments are full
            yield size
            size = 0
