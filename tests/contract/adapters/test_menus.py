"""A platform with a command menu of its own shows what it is given, within its own limits."""

from __future__ import annotations

import pytest

from hermes.core.ports import CommandHint, SetsCommands
from tests.fakes.server import FakeServer

HINTS = (
    CommandHint("new", "Start a fresh session"),
    CommandHint("stop", ""),
    CommandHint("long", "words " * 200),
    CommandHint("git-work", "A skill's name"),
    CommandHint("x" * 90, "A name that is too long"),
    CommandHint("名字", "A name in other letters"),
)


async def test_who_says_to_have_a_menu_can_set_one_and_nobody_else_can(server: FakeServer) -> None:
    async with server.adapter() as adapter:
        assert isinstance(adapter, SetsCommands) == server.capabilities.command_menu


async def test_a_menu_shows_what_fits_and_is_set_again_in_place_of_the_old_one(server: FakeServer) -> None:
    if not server.capabilities.command_menu:
        pytest.skip(f"{server.platform} has no command menu")
    async with server.adapter() as adapter:
        assert isinstance(adapter, SetsCommands)
        await adapter.set_commands(HINTS)
        shown = server.menus[""]
        assert shown["new"] == "Start a fresh session"
        assert set(shown) >= {"new", "stop", "long"}
        assert all(shown.values())
        await adapter.set_commands([CommandHint(f"c{number}", "many") for number in range(150)])
        assert "new" not in server.menus[""]
        assert len(server.menus[""]) >= 50


async def test_one_direct_chat_can_have_a_menu_of_its_own(server: FakeServer) -> None:
    if not server.capabilities.chat_menus:
        pytest.skip(f"{server.platform} has no menus of single chats")
    server.user_says("hello")
    chat = server.target().chat
    async with server.adapter() as adapter:
        assert isinstance(adapter, SetsCommands)
        await adapter.set_commands(HINTS[:1])
        await adapter.set_commands(HINTS[:2], chat=chat)
    assert list(server.menus[""]) == ["new"]
    assert list(server.menus[chat]) == ["new", "stop"]
