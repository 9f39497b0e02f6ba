"""The menu behind the "/" button: set at the start, by role, in the person's language, and followed when it changes."""

from __future__ import annotations

from pathlib import Path

from hermes.core.roles import PersonRole
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.test_about_commands import configure
from tests.integration.test_session_commands import ask
from tests.integration.watching import SECONDS, make


async def test_everybody_sees_what_users_may_say_and_an_admin_more_in_their_own_chat(
    start: Start, telegram: FakeTelegram
) -> None:
    async with start() as gateway:
        await telegram.wait_for(lambda: "" in telegram.menus, SECONDS)
        assert telegram.menus[""]["new"] == "Start a fresh session in this chat"
        assert list(telegram.menus[""])[:3] == ["new", "stop", "retry"]
        assert "restart" not in telegram.menus[""]
        await ask(telegram, "hello")
        assert str(USER) not in telegram.menus
        await make(gateway, USER, PersonRole.OWNER)
    async with start():
        await telegram.wait_for(lambda: str(USER) in telegram.menus, SECONDS)
        assert "restart" in telegram.menus[str(USER)]
        assert "restart" not in telegram.menus[""]


async def test_the_menu_follows_the_language_and_is_not_set_anew_without_need(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with start():
        await telegram.wait_for(lambda: "" in telegram.menus, SECONDS)
        telegram.drop_connection()
        await ask(telegram, "hello")
        assert telegram.counts["setMyCommands"] == 1
        configure(tmp_path, "language: zh\n")
        await telegram.wait_for(lambda: telegram.menus[""]["new"] == "在这里开始新会话", SECONDS)


async def test_a_refused_menu_does_no_harm_and_comes_with_the_next_start(start: Start, telegram: FakeTelegram) -> None:
    # Another account that connects later, as the terminal's may, brings the next look and so another attempt.
    telegram.refuse_next("setMyCommands", 400, "Bad Request: BOT_COMMAND_INVALID", times=9)
    async with start():
        await telegram.wait_for(lambda: telegram.counts["setMyCommands"] >= 1, SECONDS)
        assert await ask(telegram, "hello") == "echo: hello"
        assert telegram.menus == {}
    telegram.accept("setMyCommands")
    async with start():
        await telegram.wait_for(lambda: "" in telegram.menus, SECONDS)
