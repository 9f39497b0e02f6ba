"""What is said in a voice message is written down by whom the owner chose, or it is told why not."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from hermes.agent.speech.stt import Transcriber
from hermes.config import Config, ModelConfig, ProviderConfig, SttConfig
from hermes.core.errors import ToolError
from hermes.core.secret import Secret
from tests.fakes.files import OPUS, wav
from tests.fakes.speech import FakeSpeech


def transcriber(stt: SttConfig, *, answers: str = "relay", openai_url: str = "http://127.0.0.1:9/v1") -> Transcriber:
    openai = ProviderConfig("openai", openai_url, Secret("sk-model"))
    config = Config(Path(), ModelConfig("m", answers), {"openai": openai}, stt=stt)
    return Transcriber(lambda: config, aiohttp.ClientSession)


async def test_any_server_that_speaks_like_openai_can_listen() -> None:
    async with FakeSpeech() as fake:
        assert await transcriber(SttConfig(base_url=fake.url, language="en")).hear(OPUS) == "what is the time"
        assert fake.heard == [("voice.ogg", OPUS)]
        assert "Authorization" not in fake.headers[0], "the model's key is for the model's address"


async def test_openai_listens_by_itself_where_it_answers_anyway() -> None:
    async with FakeSpeech(key="sk-model") as fake:
        assert await transcriber(SttConfig(), answers="openai", openai_url=fake.url).hear(OPUS) == "what is the time"


async def test_nobody_listens_who_was_not_asked_to() -> None:
    for chosen in (transcriber(SttConfig()), transcriber(SttConfig(provider="none"), answers="openai")):
        with pytest.raises(ToolError, match=r"The owner sets stt\.provider"):
            await chosen.hear(OPUS)


async def test_silence_is_told() -> None:
    async with FakeSpeech() as fake:
        fake.words = "  "
        with pytest.raises(ToolError, match="no words were heard"):
            await transcriber(SttConfig(base_url=fake.url)).hear(OPUS)


async def test_a_refusal_is_told_in_words() -> None:
    async with FakeSpeech() as fake:
        fake.refuse_next(500)
        with pytest.raises(ToolError, match="problem of its own"):
            await transcriber(SttConfig(base_url=fake.url)).hear(OPUS)


async def test_a_command_gets_a_file_and_prints_the_words(tmp_path: Path) -> None:
    script = tmp_path / "listen"
    script.write_text('#!/bin/sh\nhead -c 4 "$1"; echo " heard in $2"\n')
    script.chmod(0o755)
    chosen = SttConfig(provider="command", command=f"{script} {{audio}} {{language}}", language="en")
    assert await transcriber(chosen).hear(wav()) == "RIFF heard in en"


async def test_what_is_no_sound_is_sent_to_nobody() -> None:
    with pytest.raises(ToolError, match="no sound"):
        await transcriber(SttConfig(), answers="openai").hear(b"<html>")
