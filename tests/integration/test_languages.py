"""In which language each person is spoken to, in the whole gateway. The story itself is in tests/e2e/test_story.py."""

from __future__ import annotations

from hermes.app.serve import say_goodbye
from hermes.core.i18n.catalogue import CHINESE, ENGLISH
from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.store import people
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.watching import SECONDS, answered, make

ANA = 5550142


async def language_of(gateway: Gateway, user: int = USER) -> str:
    person = await gateway.db.read(people.find, "telegram", str(user))
    return person.language if person is not None else "nobody"


async def reads(telegram: FakeTelegram, text: str, chat: int = USER) -> None:
    await telegram.wait_for(lambda: any(text in said for said in telegram.texts(chat)), SECONDS)


async def test_a_telephone_in_chinese_is_enough(start: Start, telegram: FakeTelegram) -> None:
    telegram.language = "zh-hans"
    async with start() as gateway:
        telegram.user_says("/start", chat=ANA)
        await reads(telegram, "配对码", ANA)
        telegram.user_says("/stpo")
        await reads(telegram, "你是想用 /stop 吗？")
        assert await language_of(gateway) == "zh"


async def test_what_somebody_writes_counts_more_than_their_telephone(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        telegram.user_says("你好")
        await answered(telegram, "echo: 你好")
        assert await language_of(gateway) == "zh"
        telegram.user_says("/stop")
        await answered(telegram, CHINESE.NOTHING_RUNNING)


async def test_language_changes_it_for_oneself_and_at_once(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        telegram.user_says("/language")
        await answered(telegram, ENGLISH.LANGUAGE_IS)
        telegram.user_says("/language zh")
        await answered(telegram, CHINESE.LANGUAGE_SET)
        telegram.user_says("/language klingon")
        await answered(telegram, CHINESE.LANGUAGE_UNKNOWN)
        telegram.user_says("/language auto")
        await answered(telegram, CHINESE.LANGUAGE_AUTO)
        assert await language_of(gateway) == "auto"
        telegram.user_says("/stop")
        await answered(telegram, ENGLISH.NOTHING_RUNNING)
        telegram.user_says("/stop 谢谢")
        await answered(telegram, CHINESE.NOTHING_RUNNING)
        telegram.user_says("/language en")
        await answered(telegram, ENGLISH.LANGUAGE_SET)


async def test_what_the_owner_settles_holds_for_everybody(start: Start, telegram: FakeTelegram) -> None:
    async with start(HERMES_LANGUAGE="zh", TELEGRAM_HOME_CHANNEL=str(USER)):
        telegram.user_says("hello", chat=ANA, name="Ana")
        await reads(telegram, "配对码", ANA)
        await reads(telegram, f"Ana (telegram {ANA}) 想和我聊天。")
        telegram.user_says("/language en")
        await reads(telegram, "主人给所有人定了中文")
        telegram.user_says("/stop")
        await answered(telegram, CHINESE.NOTHING_RUNNING)
        assert ENGLISH.NOTHING_RUNNING not in telegram.texts()


async def test_each_in_a_group_is_answered_in_their_own(start: Start, telegram: FakeTelegram) -> None:
    group = telegram.group(-100200)
    async with start(TELEGRAM_ALLOWED_USERS="7,8", TELEGRAM_GROUP_POLICY="open") as gateway:
        await make(gateway, 7, PersonRole.USER)
        await make(gateway, 8, PersonRole.USER)
        await gateway.db.write(people.set_language, "p_telegram_8", "zh")
        telegram.user_says("/stop", chat=group, user=7)
        await reads(telegram, ENGLISH.NOTHING_RUNNING, group)
        telegram.user_says("/stop", chat=group, user=8)
        await reads(telegram, CHINESE.NOTHING_RUNNING, group)
        assert len(telegram.texts(group)) == 2


async def test_a_refused_stranger_is_told_in_their_language(start: Start, telegram: FakeTelegram) -> None:
    async with start(TELEGRAM_DM_POLICY="allowlist"):
        telegram.user_says("你好", chat=ANA)
        await reads(telegram, f"请让机器人的主人把你的 ID {ANA} 加到 TELEGRAM_ALLOWED_USERS 里。", ANA)
        assert len(telegram.texts(ANA)) == 1


async def test_goodbye_is_said_in_the_language_of_who_waits(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.hold()
    async with start() as gateway:
        telegram.user_says("你好")
        await model.is_holding()
        await say_goodbye(gateway)
        await answered(telegram, CHINESE.SHUTTING_DOWN)
        model.release()
        await answered(telegram, "echo: 你好")
        assert ENGLISH.SHUTTING_DOWN not in telegram.texts()


async def test_the_language_outlives_a_restart_and_a_broken_command_is_told_in_it(
    start: Start, telegram: FakeTelegram
) -> None:
    async with start():
        telegram.user_says("你好")
        await answered(telegram, "echo: 你好")
    async with start() as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("/model use nowhere/x")
        await reads(telegram, "没有 'nowhere' 这个服务商")
        assert len(telegram.texts()) == 2
