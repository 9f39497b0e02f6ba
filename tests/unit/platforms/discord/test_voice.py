"""How long a voice message is and how it looks, without decoding it."""

from __future__ import annotations

import base64
import random

from hermes.platforms.discord.voice import MAX_POINTS, measure
from tests.fakes.files import OPUS


def page(samples: int, *packets: bytes) -> bytes:
    lacing = b"".join(bytes([255] * (len(each) // 255) + [len(each) % 255]) for each in packets)
    head = b"OggS\0\0" + samples.to_bytes(8, "little", signed=True) + bytes(12) + bytes([len(lacing)])
    return head + lacing + b"".join(packets)


def sound(*pages: bytes) -> bytes:
    return page(0, b"OpusHead" + bytes(11)) + page(0, b"OpusTags" + bytes(8)) + b"".join(pages)


def test_its_length_is_that_of_the_last_page_and_louder_packets_stand_higher() -> None:
    voice = measure(sound(page(48_000, b"a" * 10, b"b" * 300), page(120_000, b"c" * 100)))
    assert voice is not None
    assert voice.seconds == 2.5
    low, high, middle = base64.b64decode(voice.waveform)
    assert low < middle < high


def test_a_long_one_has_no_more_points_than_discord_takes() -> None:
    voice = measure(sound(*[page(960 * number, *[b"x" * (number % 50)] * 5) for number in range(200)]))
    assert voice is not None
    assert len(base64.b64decode(voice.waveform)) == MAX_POINTS


def test_what_is_not_opus_is_no_voice_message() -> None:
    assert measure(b"") is None
    assert measure(b"OggS" + bytes(100) + b"vorbis") is None
    assert measure(OPUS) is not None


def test_broken_sound_is_measured_somehow() -> None:
    chance = random.Random(2)
    whole = bytearray(sound(page(48_000, b"a" * 300, b"b" * 20)))
    for _ in range(500):
        broken = bytes(whole[: chance.randrange(len(whole))]) + bytes(chance.randrange(256) for _ in range(5))
        voice = measure(broken)
        assert voice is None or voice.seconds > 0
