"""Speaking aloud: by the tool, and in answer to voice messages where the chat wants that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.files import OPUS
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.speech import MP3, FakeSpeech
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.watching import answered, results


def speaking(speech: FakeSpeech) -> dict[str, str]:
    return {"TTS_PROVIDER": "openai", "TTS_BASE_URL": speech.url, "TTS_VOICE": "nova", "STT_BASE_URL": speech.url}


async def test_the_tool_speaks_and_the_chat_gets_a_voice_message(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("text_to_speech", {"text": "Good morning!"})), "Done."])
    async with FakeSpeech() as speech, start(**speaking(speech)):
        telegram.user_says("say good morning")
        await answered(telegram, "Done.")
        assert [(asked["input"], asked["voice"]) for asked in speech.spoken] == [("Good morning!", "nova")]
    voice, _ = telegram.sent
    assert (voice.is_voice, voice.file) == (True, OPUS)
    assert "on its way" in results(model)[0]


async def test_a_model_cannot_choose_the_voice(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.script([calls_tools(("text_to_speech", {"text": "Hi.", "voice": "shimmer"})), "Done."])
    async with FakeSpeech() as speech, start(**speaking(speech)):
        telegram.user_says("say hi")
        await answered(telegram, "Done.")
        assert speech.spoken == []
    assert "no argument 'voice'" in results(model)[0]


async def test_speech_that_cannot_be_had_is_told_to_the_model(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("text_to_speech", {"text": "Hi."})), "I have no voice today."])
    async with FakeSpeech() as speech, start(**speaking(speech)):
        speech.refuse_next(401)
        telegram.user_says("say hi")
        await answered(telegram, "I have no voice today.")
    assert "does not accept the key" in results(model)[0]


async def test_a_voice_message_is_answered_aloud_where_the_chat_wants_it(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script(["It is **noon**.", "Still noon."])
    async with FakeSpeech() as speech, start(**speaking(speech)):
        telegram.user_says("/voice on")
        await answered(telegram, "on: a voice message is answered aloud too.")
        telegram.user_speaks(OPUS)
        await telegram.wait_for(lambda: len(telegram.sent) >= 3, 10)
        telegram.user_says("and now?")
        await answered(telegram, "Still noon.")
        assert [asked["input"] for asked in speech.spoken] == ["It is noon."]
    assert [(sent.text, sent.is_voice) for sent in telegram.sent[1:]] == [
        ("It is noon.", False),
        ("", True),
        ("Still noon.", False),
    ]


async def test_an_answer_that_could_not_be_said_still_comes_in_writing(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.says("Noon.")
    async with FakeSpeech() as speech, start(**speaking(speech)):
        telegram.user_says("/voice on")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, 10)
        speech.sound = b"no sound at all"
        telegram.user_speaks(OPUS)
        await telegram.wait_for(lambda: len(telegram.sent) >= 3, 10)
    assert telegram.texts()[1:] == [
        "Noon.",
        "(I could not say this aloud: The speech server gave something that is no sound.)",
    ]


async def test_a_silent_chat_hears_nothing(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.script([calls_tools(("text_to_speech", {"text": "Hi."})), "As you wish."])
    async with FakeSpeech() as speech, start(**speaking(speech)):
        telegram.user_says("/voice off")
        await answered(telegram, "off: I say nothing aloud.")
        telegram.user_says("say hi")
        await answered(telegram, "As you wish.")
        assert speech.spoken == []
    assert "/voice off" in results(model)[0]


async def test_voice_tells_what_holds_and_what_else_there_is(start: Start, telegram: FakeTelegram) -> None:
    async with start():
        telegram.user_says("/voice")
        await telegram.wait_for(lambda: bool(telegram.sent), 10)
    assert telegram.texts() == [
        "only-when-asked: I say something aloud only when you ask for it. Others: /voice on, /voice off."
    ]


async def test_a_voice_message_outlives_a_crash_before_it_is_sent(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("text_to_speech", {"text": "Good morning!"})), "Done."])
    hold = telegram.hold("sendVoice")
    async with FakeSpeech() as speech:
        async with start(**speaking(speech)) as gateway:
            telegram.user_says("say good morning")
            await hold.reached()
            telegram.sent.clear()  # as if it had not arrived
            await crash(gateway)
            telegram.release("sendVoice")
        async with start(**speaking(speech)):
            await answered(telegram, "Done.")
    assert [sent.file for sent in telegram.sent if sent.is_voice] == [OPUS]
    assert len(speech.spoken) == 1


async def test_at_the_machine_itself_the_sound_lies_in_voice_memos(
    start: Start, model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ana"))
    (tmp_path / "ana").mkdir()
    model.script([calls_tools(("text_to_speech", {"text": "Good morning!"})), "Done."])
    async with FakeSpeech() as speech:
        chosen = {"TTS_PROVIDER": "elevenlabs", "TTS_API_KEY": "k", "TTS_BASE_URL": speech.root}
        async with start(**chosen) as gateway, gateway.hub.listen("desk") as heard:
            await gateway.hub.submit("desk", "say good morning", "k1")
            while (await heard.get()).text != "Done.":
                pass
    [memo] = (tmp_path / "ana" / "voice-memos").iterdir()
    assert (memo.suffix, memo.read_bytes()) == (".mp3", MP3)
    assert str(memo) in results(model)[0]
