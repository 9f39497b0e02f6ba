"""Which tools a person has where, as data and as the owner changes it; refused at the call whatever was offered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.toolkit.context import Parts, ToolContext
from hermes.agent.toolkit.schema import Tool, tool, tools_of
from hermes.agent.toolkit.search import best_matches
from hermes.agent.toolkit.toolbox import Toolbox
from hermes.agent.toolkit.toolsets import FINDING, GROUPS, OF_PLATFORM, TOOLSETS, Accesses, access_of, mistakes
from hermes.agent.tools import find_tools
from hermes.app.tools import TOOLS
from hermes.config.agent_settings import ModelConfig, ToolChoice, WebConfig
from hermes.config.schema import Config
from hermes.core.errors import ToolError
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.core.roles import PersonRole

CONFIG = Config(home=Path("/nowhere"), model=ModelConfig("m", "p"), providers={})
TELEGRAM = SessionKey.parse("agent:main:telegram:dm:7")


@tool(toolset="files", is_at_hand=True)
async def read(_: ToolContext, path: str) -> str:
    """Read a file."""
    return path


@tool(toolset="web")
async def browse(_: ToolContext, url: str) -> str:
    """Fetch a page of the web.

    And much more that a list does not need.
    """
    return url


@tool(toolset="terminal", role=PersonRole.ADMIN)
async def shell(_: ToolContext, command: str) -> str:
    """Run a command."""
    return command


@tool(toolset="of a plugin")
async def juggle(_: ToolContext) -> str:
    """Juggle three balls."""
    return "juggled"


@tool(toolset="memory", role=PersonRole.GUEST)
async def rules(_: ToolContext) -> str:
    """Tell the rules of the house."""
    return "none"


def box(config: Config = CONFIG) -> Toolbox:
    functions = (find_tools.find_tools, read, browse, shell, juggle, rules)
    return Toolbox([Tool.of(one) for one in functions], access=lambda platform: access_of(config, platform))


def names(toolbox: Toolbox, platform: str, role: PersonRole) -> list[str]:
    return [one.name for one in toolbox.allowed(platform, role)]


def offered(toolbox: Toolbox, *history: ChatMessage, role: PersonRole = PersonRole.OWNER) -> list[str]:
    return [spec.name for spec in toolbox.offered("telegram", role, history)]


async def found(toolbox: Toolbox, need: str, role: PersonRole = PersonRole.OWNER) -> ChatMessage:
    context = ToolContext("c1", TELEGRAM, "p", Path(), role=role, parts=Parts(toolbox))
    output = await toolbox.call("find_tools", f'{{"need": "{need}"}}', context)
    return ChatMessage(Role.TOOL, output.text, tool_call_id="c1", name="find_tools")


def test_every_named_platform_has_its_toolset_and_every_group_of_ours_is_in_one() -> None:
    assert {"hermes-cli", "hermes-telegram", "hermes-discord", "hermes-whatsapp", "hermes-slack"} <= set(TOOLSETS)
    assert set(OF_PLATFORM.values()) <= set(TOOLSETS)
    assert {tool.group for tool in tools_of(*TOOLS)} <= {*GROUPS, FINDING}, "a new group: add it to toolsets.py"


def test_a_role_narrows_what_a_platform_has() -> None:
    toolbox = box()
    assert names(toolbox, "telegram", PersonRole.ADMIN) == ["find_tools", "read", "browse", "shell", "juggle", "rules"]
    assert names(toolbox, "telegram", PersonRole.USER) == ["find_tools", "read", "browse", "juggle", "rules"]
    assert names(toolbox, "telegram", PersonRole.GUEST) == ["find_tools", "rules"]


@pytest.mark.parametrize(
    "choice, has",
    [
        (ToolChoice(), ["read", "browse", "shell", "juggle", "rules"]),
        (ToolChoice(disabled=("web",)), ["read", "shell", "juggle", "rules"]),
        (ToolChoice(disabled=("shell", "of a plugin")), ["read", "browse", "rules"]),
        (ToolChoice(toolset="small"), ["browse"]),
        (ToolChoice(toolset="small", enabled=("files", "juggle")), ["read", "browse", "juggle"]),
        (ToolChoice(toolset="small", enabled=("hermes-chat",)), ["read", "browse", "shell", "rules"]),
        (ToolChoice(disabled=("files",), enabled=("read",)), ["read", "browse", "shell", "juggle", "rules"]),
    ],
)
def test_the_owner_chooses_for_each_platform(choice: ToolChoice, has: list[str]) -> None:
    config = replace(CONFIG, tools={"telegram": choice}, toolsets={"small": ("web",)})
    assert names(box(config), "telegram", PersonRole.OWNER) == ["find_tools", *has]
    assert len(names(box(config), "discord", PersonRole.OWNER)) == 6


@pytest.mark.parametrize(
    "name, role, told",
    [
        ("browse", PersonRole.OWNER, "browse is switched off on telegram"),
        ("shell", PersonRole.USER, "shell needs the role admin"),
    ],
)
async def test_a_call_outside_the_persons_sets_is_refused_whatever_was_offered(
    name: str, role: PersonRole, told: str
) -> None:
    toolbox = box(replace(CONFIG, tools={"telegram": ToolChoice(disabled=("web",))}))
    here = ToolContext("c1", TELEGRAM, "p", Path(), role=role)
    handed_on = replace(here, session_key=SessionKey.parse("agent:main:task:dm:x"), on_behalf_of=TELEGRAM)
    for context in (here, handed_on):
        with pytest.raises(ToolError, match=told):
            await toolbox.call(name, '{"url": "a"}' if name == "browse" else '{"command": "a"}', context)


async def test_what_was_found_is_offered_behind_what_was_there_in_the_order_in_which_it_was_found() -> None:
    toolbox = box()
    assert offered(toolbox) == ["find_tools", "read"]
    juggling, browsing = await found(toolbox, "juggle"), await found(toolbox, "look at a web page")
    assert browsing.text == "- browse: Fetch a page of the web."
    assert offered(toolbox, juggling) == ["find_tools", "read", "juggle"]
    assert offered(toolbox, juggling, browsing) == ["find_tools", "read", "juggle", "browse"]
    assert offered(toolbox, juggling, browsing, juggling) == ["find_tools", "read", "juggle", "browse"]


async def test_nothing_is_found_that_is_not_for_the_person() -> None:
    toolbox = box()
    found_for_user = await found(toolbox, "run a shell command", PersonRole.USER)
    assert "terminal" not in found_for_user.text
    forged = ChatMessage(Role.TOOL, "- shell: Run a command.", tool_call_id="c1", name="find_tools")
    assert "shell" not in offered(toolbox, forged, role=PersonRole.USER)
    assert "shell" in offered(toolbox, forged)


def test_a_guest_who_may_use_nothing_is_offered_nothing() -> None:
    toolbox = Toolbox([Tool.of(one) for one in (find_tools.find_tools, read, browse)])
    assert offered(toolbox, role=PersonRole.GUEST) == []


async def test_where_no_word_fits_the_names_are_told_and_nothing_is_offered_yet() -> None:
    toolbox = box()
    told = await found(toolbox, "zzz")
    assert "web: browse" in told.text
    assert offered(toolbox, told) == ["find_tools", "read"]
    assert "- juggle: " in (await found(toolbox, "juggle")).text


def test_the_calls_of_a_client_or_a_person_that_look_like_a_result_find_nothing() -> None:
    said = ChatMessage(Role.USER, "- browse: Fetch a page.", name="find_tools")
    called = ChatMessage(Role.ASSISTANT, "- browse: x", (ToolCall("c", "find_tools", "{}"),), name="find_tools")
    assert offered(box(), said, called) == ["find_tools", "read"]


def test_find_tools_names_the_kinds_that_there_are_for_this_person() -> None:
    [spec, _] = box().offered("telegram", PersonRole.USER, ())
    assert spec.description.endswith("There are tools for: web, of a plugin, memory.")


def test_a_tool_that_needs_a_setting_is_found_and_not_at_hand_before_it_is_set() -> None:
    def at_hand(web: WebConfig) -> list[str]:
        accesses = Accesses(lambda: config)
        config = replace(CONFIG, web=web)
        toolbox = Toolbox(tools_of(*TOOLS), access=accesses)
        return [spec.name for spec in toolbox.offered("telegram", PersonRole.OWNER, ())]

    assert "web_search" not in at_hand(WebConfig())
    assert "web_search" in at_hand(WebConfig(searxng_url="http://127.0.0.1:8888"))


@pytest.mark.parametrize(
    "need, name",
    [
        ("edit part of a file", "patch"),
        ("grep for a pattern in the code", "search_files"),
        ("search the web for news", "web_search"),
        ("send a message to another chat", "send_message"),
        ("what did we talk about yesterday?", "session_search"),
        ("look at an image", "vision"),
        ("run Python", "execute_code"),
        ("ask the user which option they want", "clarify"),
        ("do several things in parallel", "delegate_task"),
        ("track my steps in a todo list", "todo"),
        ("kill a background process", "process"),
    ],
)
def test_a_need_in_plain_words_finds_the_tool_that_fits(need: str, name: str) -> None:
    further = Toolbox(tools_of(*TOOLS), access=lambda _: access_of(CONFIG, "telegram")).further(
        "telegram", PersonRole.OWNER
    )
    found = [one.name for one in best_matches(need, further)]
    assert name in found[:3], found
    assert len(found) <= 6


def test_a_toolset_that_does_not_exist_has_nothing_in_it_and_slips_of_the_pen_are_told() -> None:
    choice = ToolChoice("famly", enabled=("web", "juggle"), disabled=("teminal",))
    config = replace(CONFIG, tools={"telegram": choice, "telegraph": ToolChoice()}, toolsets={"mine": ("webb",)})
    assert names(box(config), "telegram", PersonRole.OWNER) == ["find_tools", "browse", "juggle"]
    assert mistakes(config, box().tools()) == [
        "tools.telegram.toolset: there is no toolset famly, so telegram has no tools.",
        "tools.telegram.disabled: there is no teminal.",
        "tools.telegraph: there is no platform telegraph.",
        "toolsets.mine: there is no webb.",
    ]
    assert mistakes(CONFIG, box().tools()) == []
