"""Work beside a chat: begun, listed, stopped, told when it is done; and nobody sees another's."""

from __future__ import annotations

from hermes.core.i18n.catalogue import ENGLISH
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash

WAIT_SECONDS = 30
TASK = "count the stars"
BEGUN = ENGLISH.BACKGROUND_BEGUN.format(task=TASK)
ANSWER = f"{ENGLISH.BACKGROUND_HEADER.format(task=TASK)}\n\necho: {TASK}"


async def said(telegram: FakeTelegram, count: int) -> None:
    await telegram.wait_for(lambda: len(telegram.sent) >= count, WAIT_SECONDS)


async def test_a_task_runs_beside_the_chat_and_is_told_under_its_name(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start():
        model.hold()
        telegram.user_says(f"/background {TASK}")
        await model.is_holding(WAIT_SECONDS)
        await said(telegram, 1)
        telegram.user_says("/busy")  # the chat itself is free
        await said(telegram, 2)
        model.release()
        await said(telegram, 3)
        telegram.user_says("hello")
        await said(telegram, 4)
    assert telegram.texts(7)[0] == BEGUN
    assert telegram.texts(7)[2:] == [ANSWER, "echo: hello"]
    assert TASK not in str(model.last_request["messages"]), "what was done beside the chat is no part of its talk"


async def test_it_goes_on_after_a_crash_and_is_told_once(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        model.hold()
        telegram.user_says(f"/background {TASK}")
        await model.is_holding(WAIT_SECONDS)
        await said(telegram, 1)
        await crash(gateway)
    model.release()
    async with start():
        await said(telegram, 2)
        telegram.user_says("/agents")
        await said(telegram, 3)
    assert telegram.texts(7) == [BEGUN, ANSWER, ENGLISH.AGENTS_NONE]


async def test_what_runs_is_listed_for_its_person_alone_and_stopped_by_name(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8"):
        model.hold()
        telegram.user_says(f"/background {TASK}")
        await model.is_holding(WAIT_SECONDS)
        await said(telegram, 1)
        telegram.user_says("/agents", chat=8)
        telegram.user_says("/agents stop all", chat=8)
        await telegram.wait_for(lambda: len(telegram.texts(8)) >= 2, WAIT_SECONDS)
        telegram.user_says("/agents")
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 2, WAIT_SECONDS)
        listed = telegram.texts(7)[1]
        name = listed.splitlines()[1].split()[0]
        telegram.user_says(f"/agents stop {name}")
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 3, WAIT_SECONDS)
        await model.is_hung_up_on(WAIT_SECONDS)
        model.release()
        telegram.user_says("/agents")
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 4, WAIT_SECONDS)
    assert telegram.texts(8) == [ENGLISH.AGENTS_NONE, ENGLISH.AGENT_UNKNOWN]
    assert TASK in listed
    assert ENGLISH.AGENT_IN_BACKGROUND in listed
    assert telegram.texts(7)[2:] == [ENGLISH.AGENT_STOPPED.format(tasks=TASK), ENGLISH.AGENTS_NONE]


async def test_a_model_that_fails_in_the_background_is_told_too(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.fails_next(401, "bad key")
    async with start():
        telegram.user_says(f"/background {TASK}")
        await said(telegram, 2)
    told = next(text for text in telegram.texts(7) if text != BEGUN)
    assert told.startswith(ENGLISH.BACKGROUND_HEADER.format(task=TASK))
    assert "My model" in told


async def test_only_so_many_run_at_once(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start():
        model.hold()
        for number in range(6):
            telegram.user_says(f"/background task {number}")
        await said(telegram, 6)
        telegram.user_says("/agents stop all")
        await said(telegram, 7)
        model.release()
    assert telegram.texts(7)[5] == ENGLISH.BACKGROUND_FULL.format(count=5)
    assert telegram.texts(7)[6].startswith("Stopped: ")
