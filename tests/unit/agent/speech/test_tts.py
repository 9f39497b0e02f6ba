"""Who speaks is the owner's choice; whatever stands in the way is a sentence."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from hermes.agent.speech import ffmpeg
from hermes.agent.speech.edge import Edge, token
from hermes.agent.speech.programs import argv_of, run
from hermes.agent.speech.tts import MAX_TEXT_CHARS, Synthesizer, speakable
from hermes.config import Config, ModelConfig, ProviderConfig, TtsConfig
from hermes.core.errors import ToolError
from hermes.core.secret import Secret
from tests.fakes.files import OPUS, wav
from tests.fakes.speech import MP3, FakeSpeech


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeSpeech]:
    async with FakeSpeech() as fake:
        yield fake


def synthesizer(**tts: object) -> Synthesizer:
    openai = ProviderConfig("openai", "http://127.0.0.1:9/v1", Secret("sk-model"))
    config = Config(Path(), ModelConfig("m", "openai"), {"openai": openai}, tts=TtsConfig(**tts))  # type: ignore[arg-type]

    async def is_silent(_: str) -> bool:
        return False

    return Synthesizer(lambda: config, aiohttp.ClientSession, is_silent)


async def test_openai_is_sent_only_text_and_what_the_owner_chose(fake: FakeSpeech) -> None:
    fake.key = "sk-voice"
    speaker = synthesizer(provider="openai", voice="nova", base_url=fake.url, api_key=Secret("sk-voice"))
    speech = await speaker.say("Hello *there*.", as_voice=True)
    assert (speech.data, speech.is_voice, speech.ending) == (OPUS, True, ".ogg")
    assert fake.spoken == [
        {"model": "gpt-4o-mini-tts", "voice": "nova", "input": "Hello there.", "response_format": "opus"}
    ]


async def test_the_models_key_goes_to_no_other_address(fake: FakeSpeech) -> None:
    await synthesizer(provider="openai", base_url=fake.url).say("Hello.", as_voice=True)
    assert "Authorization" not in fake.headers[0]


async def test_elevenlabs_speaks(fake: FakeSpeech) -> None:
    fake.key = "xi-1"
    speaker = synthesizer(provider="elevenlabs", voice="v/1", base_url=fake.root, elevenlabs_api_key=Secret("xi-1"))
    assert (await speaker.say("Hello.", as_voice=False)).data == MP3
    assert fake.spoken == [{"text": "Hello.", "model_id": "eleven_multilingual_v2", "voice": "v/1"}]


async def test_edge_speaks_over_its_socket(fake: FakeSpeech) -> None:
    speaker = synthesizer(provider="edge", voice="de-DE-KatjaNeural", base_url=fake.root)
    assert (await speaker.say("Tom & <Jerry>", as_voice=False)).data == MP3
    assert fake.spoken == [{"voice": "de-DE-KatjaNeural", "input": "Tom &amp; &lt;Jerry&gt;"}]


async def test_edge_is_asked_again_with_its_own_time_when_our_clock_is_wrong(fake: FakeSpeech) -> None:
    edge = Edge("", fake.root, 5.0, aiohttp.ClientSession, now=lambda: time.time() - 86400)
    assert await edge.speak("Hello.") == MP3


def test_edges_token_holds_for_five_minutes() -> None:
    # 2024-01-01 00:00 UTC is 133485408000000000 in Windows' count.
    assert token(1_704_067_200) == token(1_704_067_499) != token(1_704_067_500)
    assert len(token(0.0)) == 64


@pytest.mark.parametrize(
    "status,text,told",
    [
        (401, "{}", "does not accept the key"),
        (429, "{}", "too many requests"),
        (503, "{}", "problem of its own"),
        (400, '{"error":{"message":"voice is unknown"}}', "voice is unknown"),
    ],
)
async def test_a_refusal_is_told_in_words(fake: FakeSpeech, status: int, text: str, told: str) -> None:
    fake.refuse_next(status, text)
    with pytest.raises(ToolError, match=told):
        await synthesizer(provider="openai", base_url=fake.url).say("Hello.", as_voice=True)


@pytest.mark.parametrize(
    "tts,told",
    [
        ({"provider": "elevenlabs"}, "ELEVENLABS_API_KEY"),
        ({"provider": "edge", "voice": "x' onload='"}, "no voice of Edge"),
        ({"provider": "edge", "base_url": "http://127.0.0.1:9"}, "could not be reached"),
        ({"provider": "command", "command": "no-such-program {output}"}, "cannot be started"),
        ({"provider": "command", "command": "false"}, "failed with exit code 1"),
        ({"provider": "command", "command": "sleep 9", "timeout_seconds": 0.05}, "took longer than"),
        ({"provider": "command", "command": "cat"}, "no sound"),
        ({"provider": "command", "command": "say 'it"}, "tts.command cannot be read"),
    ],
)
async def test_whatever_stands_in_the_way_is_told_in_words(tts: dict[str, object], told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await synthesizer(**tts).say("Hello.", as_voice=True)


async def test_a_voice_that_does_not_know_the_language_is_told(fake: FakeSpeech) -> None:
    with pytest.raises(ToolError, match=r"tts\.voice"):
        await synthesizer(voice="xx-XX-MuteNeural", base_url=fake.root).say("Hello.", as_voice=True)


async def test_a_text_that_is_too_long_or_says_nothing_is_refused() -> None:
    with pytest.raises(ToolError, match="too long"):
        await synthesizer().say("a" * (MAX_TEXT_CHARS + 1), as_voice=True)
    with pytest.raises(ToolError, match="nothing in this text"):
        await synthesizer().say("```\ncode\n```", as_voice=True)


async def test_a_command_gets_the_text_without_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "speak"
    script.write_text('#!/bin/sh\ncat "$1" > "$2.txt"; cp "$3" "$2"\n')
    script.chmod(0o755)
    (tmp_path / "sound.wav").write_bytes(wav())
    command = f"{script} {{text_file}} {{output}} {tmp_path}/sound.wav"
    speech = await synthesizer(provider="command", command=command).say("$(touch /tmp/owned); `id`", as_voice=False)
    assert speech.mime in ("audio/wav", "audio/mpeg")
    assert argv_of("a {text_file}; b", {"text_file": "x y; rm"}, "t") == ["a", "x y; rm;", "b"]


@pytest.mark.parametrize("stream", ["1", "2"])
async def test_a_program_that_prints_without_end_is_ended(stream: str) -> None:
    with pytest.raises(ToolError, match="printed more than 100000 bytes and was ended"):
        await run(["sh", "-c", f"yes >&{stream}"], seconds=20, most_bytes=100_000)


async def test_a_program_need_not_read_all_it_is_given() -> None:
    assert await run(["sh", "-c", "head -c 3"], stdin=b"one" + bytes(3_000_000), seconds=20) == b"one"


async def test_a_program_that_is_given_up_leaves_nothing_running(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(ToolError, match="took longer"):
        await run(["sh", "-c", f"(sleep 0.3; touch {mark}) & sleep 9"], seconds=0.1)
    await run(["sleep", "0.4"], seconds=5)
    assert not mark.exists()


async def test_a_program_whose_helper_left_its_group_is_given_up_in_time(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ > {pid}; exec sleep 60' & cat > /dev/null; echo hello; sleep 60"
    begun = asyncio.get_running_loop().time()
    with pytest.raises(ToolError, match="took longer than 1 s and was ended"):
        await run(["sh", "-c", script], stdin=b"x" * 1_000_000, seconds=1)
    assert asyncio.get_running_loop().time() - begun < 30  # the helper holds its output for a minute
    if pid.exists() and (number := pid.read_text().strip()):
        os.kill(int(number), signal.SIGKILL)


async def test_without_ffmpeg_the_sound_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ffmpeg, "ffmpeg", lambda: "")
    speech = await synthesizer().as_wanted(wav(), as_voice=True)
    assert (speech.data, speech.mime, speech.is_voice) == (wav(), "audio/wav", False)


async def test_a_playlist_in_the_clothes_of_a_sound_reads_no_file(tmp_path: Path) -> None:
    if not ffmpeg.ffmpeg():
        pytest.skip("there is no ffmpeg")
    (tmp_path / "secret.wav").write_bytes(wav())
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{tmp_path}/secret.wav\n#EXT-X-ENDLIST\n"
    with pytest.raises(ToolError, match="ffmpeg failed"):
        await ffmpeg.convert(playlist.encode(), "opus")


def test_only_words_are_said_aloud() -> None:
    text = "# News\n**Bold** and `code`:\n- one\n2. two\n[the page](https://x.y/z) https://a.b\n```py\nx=1\n```\nMEDIA:a.png\nEnd."
    assert speakable(text) == "News\nBold and code:\none\ntwo\nthe page\nEnd."
