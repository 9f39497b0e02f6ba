"""The chat in a real terminal, looked at: each screen is kept as text and compared.

``KEEP_SCREENS=1`` writes the screens anew; look at them before you commit them.
"""

from __future__ import annotations

import asyncio
import base64
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.core.i18n.catalogue import ENGLISH
from tests.e2e.panes import HAS_TMUX, Pane
from tests.e2e.terminal import Terminal
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram

SCREENS = Path(__file__).parent / "screens"
SIZES = [(80, 24), (120, 40)]
pytestmark = [
    pytest.mark.skipif(not HAS_TMUX, reason="tmux is not installed: apt-get install tmux"),
    pytest.mark.timeout(300),
]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

ANSWER = """\
# Plans for May

Some **bold** words, *others*, `code` and [a link](https://example.org/a).

| Name | What it does | Costs |
|------|--------------|------:|
| one  | the first of a long row of words that go on until they do not fit | 1 |
| 二号  | 中文说明，应当按两列计算宽度 | 22 |

- an item whose words go on and on until the window is full, and then some more of them
1. first
2. second

> quoted words

```python
def add(a: int, b: int) -> int:
    return a + b  # done
```

That is all."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a name of one length, so that what names it is wrapped alike."""
    made = Path(tempfile.mkdtemp(prefix="hermes-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@asynccontextmanager
async def chat(
    folder: Path, columns: int, rows: int, *words: str, lang: str = "C.UTF-8", **environ: str
) -> AsyncIterator[tuple[Pane, FakeModel]]:
    """A chat that has just begun, in a window of this size."""
    (folder / "work").mkdir(exist_ok=True)
    async with FakeModel() as model:
        terminal = Terminal(folder, **environ)
        terminal.model_url = model.url
        with Pane(folder / "work", terminal.environ, columns=columns, rows=rows, lang=lang) as pane:
            pane.types(f"clear; {sys.executable} -m hermes {' '.join(words)}")
            await pane.shows("\n>", 60)
            yield pane, model


async def settled(pane: Pane, words: str) -> str:
    """The screen once it shows these words and stands still."""
    await pane.shows(words, 60)
    before, since = "", time.monotonic()
    async with asyncio.timeout(60):
        while time.monotonic() - since < 1.0:
            shown = "\n".join(await asyncio.to_thread(pane.screen))
            if shown != before:
                before, since = shown, time.monotonic()
            await asyncio.sleep(0.1)
    return before


async def begun_again(pane: Pane, typed: str, words: str) -> str:
    """The screen of a chat that is begun where another was left, once it shows these words, which were shown before."""
    pane.types("clear")
    async with asyncio.timeout(60):
        while "left with 0" in "\n".join(await asyncio.to_thread(pane.screen)):  # noqa: ASYNC110 - only tmux knows it
            await asyncio.sleep(0.05)
        pane.types(typed)
        while words not in "\n".join(await asyncio.to_thread(pane.screen)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return await settled(pane, words)


def assert_same_screen(name: str, size: tuple[int, int], shown: str) -> None:
    text = re.sub(r"/tmp/hermes-[a-z0-9_]{8}", "/tmp/hermes-xxxxxxxx", shown)
    text = re.sub(r"(?m)(✓ \$ .*?)  \d+ s\b", r"\1", text)
    text = re.sub(r"\d\d:\d\d  ", "12:00  ", text)
    text = re.sub(r"\bs_[a-z0-9]{10,}", "s_xxxxxxxxxxxxxxx", text)
    path = SCREENS / f"{name}-{size[0]}x{size[1]}.txt"
    if os.environ.get("KEEP_SCREENS"):
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_screens_of_a_chat_look_as_they_were_kept(folder: Path, size: tuple[int, int]) -> None:
    async with chat(folder, *size) as (pane, model):
        assert_same_screen("first-start", size, await settled(pane, ENGLISH.BANNER))

        model.streams(tuple(re.findall(r"(?s).{1,6}", ANSWER)), 200)
        pane.types("Show me the plans")
        await settled(pane, "That is all.")
        # With what has scrolled away: how far the live rows pushed the screen up depends on the pace.
        assert_same_screen("answer", size, pane.text[pane.text.index(ENGLISH.BANNER) :].rstrip())

        pane.presses("C-l")
        model.calls_tools([("terminal", {"command": "seq 1 30; echo ready"})], text="Let me see.")
        model.says("It is **ready**.")
        pane.types("Run it")
        assert_same_screen("tool-run", size, await settled(pane, "It is ready."))

        pane.presses("C-l")
        model.calls_tools([("terminal", {"command": "rm -rf build && echo gone"})])
        model.says("Done.")
        pane.types("Remove it")
        assert_same_screen("approval", size, await settled(pane, ENGLISH.CHAT_CHOOSE))
        pane.presses("Down", "Down", "Up")
        assert_same_screen("approval-second", size, await settled(pane, f"❯ 2 {ENGLISH.CHAT_YES_SESSION}"))
        pane.presses("Enter")
        assert_same_screen("approved", size, await settled(pane, "Done."))

        pane.presses("C-l")
        pane.pastes("\n".join(f"line {number}" for number in range(200)))
        assert_same_screen("paste", size, await settled(pane, "[pasted 200 lines]"))
        model.says("I read them.")
        pane.presses("Enter")
        assert_same_screen("pasted", size, await settled(pane, "I read them."))
        assert "line 199" in model.last_request["messages"][-1]["content"]

        pane.presses("C-l")
        model.fails_next(401, "bad key")
        pane.types("Still there?")
        assert_same_screen("model-error", size, await settled(pane, "hermes doctor"))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_picker_finds_an_earlier_conversation_and_shows_it_again(folder: Path, size: tuple[int, int]) -> None:
    async with chat(folder, *size) as (pane, model):
        model.says("Bread and **cheese**.")
        pane.types("What do I buy?")
        await settled(pane, "Bread and cheese.")
        pane.types("/new")
        await settled(pane, "Fresh session")
        model.says("At eight.")
        pane.types("When does the train leave?")
        await settled(pane, "At eight.")
        pane.presses("C-l")
        pane.types("/resume")
        assert_same_screen("picker", size, await settled(pane, ENGLISH.CHAT_PICK))
        pane.writes("buy")
        await pane.shows("Type to search. buy")
        pane.presses("Enter")
        assert_same_screen("resumed", size, await settled(pane, "Continued here"))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_chinese_terminal_is_answered_in_chinese(folder: Path, size: tuple[int, int]) -> None:
    async with chat(folder, *size, HERMES_LANGUAGE="zh") as (pane, model):
        model.says(
            "你好！这是一个**很长**的句子，没有任何空格，因此需要在两个汉字之间换行，"
            "而且逗号和句号都不应该出现在一行的开头。\n\n- 第一\n- 第二"
        )
        pane.types("你好")
        assert_same_screen("chinese", size, await settled(pane, "第二"))


async def test_nothing_is_overdrawn_or_lost_after_fifty_resizes_during_a_stream(folder: Path) -> None:
    words = " ".join(f"w{number}" for number in range(40))
    parts = [
        f"## Part{n}x\n\nPara{n}x {words}\n\n| a | b |\n|---|---|\n| row{n}x | {words[:60]} |\n\n"
        f"- item{n}x {words[:99]}\n\n```python\ncode{n}x = 1\n```\n"
        for n in range(25)
    ]
    text = "\n".join(parts) + "\nThe end."
    chosen = random.Random(14)
    async with chat(folder, 100, 30) as (pane, model):
        model.streams(tuple(re.findall(r"(?s).{1,9}", text)), 60)
        pane.types("Go")
        await pane.shows("Part0x", 60)
        for _ in range(50):
            pane.resizes(chosen.randint(50, 140), chosen.randint(20, 45))
            await asyncio.sleep(chosen.choice([0.0, 0.01, 0.05, 0.1, 0.35, 0.5]))  # bursts, and windows at rest
        await settled(pane, "The end.")
        shown = pane.text
    marks = [f"{word}{n}x" for word in ("Part", "Para", "row", "item", "code") for n in range(25)]
    assert {mark: shown.count(mark) for mark in marks} == dict.fromkeys(marks, 1)
    assert shown.count(ENGLISH.CHAT_STOPS) == 0


async def test_ctrl_c_stops_a_turn_and_twice_leaves(folder: Path) -> None:
    async with chat(folder, 80, 24, "; echo left with $?") as (pane, model):
        model.hold(silently=True)
        pane.types("a long story")
        await pane.shows(ENGLISH.CHAT_THINKING, 60)
        pane.presses("C-c")
        await pane.shows(ENGLISH.CHAT_PRESS_AGAIN, 60)
        shown = await settled(pane, "Stopped.")
        assert ENGLISH.CHAT_STOPS not in shown
        pane.presses("C-c", "C-c")
        await pane.shows("left with 0", 60)


async def test_while_it_works_the_line_tells_what_enter_does(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, model):
        model.hold(silently=True)
        pane.types("a long story")
        await pane.shows(f"> {ENGLISH.CHAT_INTERRUPTS}", 60)
        pane.types("/busy queue")
        await pane.shows(f"> {ENGLISH.CHAT_QUEUES}", 60)
        pane.types("another one")
        await pane.shows(ENGLISH.CHAT_WAITING.format(count=1), 60)
        model.release()
        assert "echo: another one" in await settled(pane, "echo: another one")


async def test_esc_stops_a_turn_and_brings_the_message_back(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, model):
        model.hold(silently=True)
        pane.types("another story")
        await pane.shows(ENGLISH.CHAT_THINKING, 60)
        pane.presses("Escape")
        shown = await settled(pane, "Stopped.")
        assert shown.splitlines()[-2] == "> another story"


async def test_commands_their_arguments_and_files_are_completed(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, model):
        (folder / "work" / "notes.txt").write_text("the secret word is aubergine\n")
        pane.writes("/bus")
        await pane.shows("/busy", 60)
        pane.presses("Tab")
        await pane.shows("> /busy", 30)
        pane.presses("Enter")
        pane.writes(" qu")
        await pane.shows("\n           queue", 30)
        pane.presses("Tab")
        await pane.shows("> /busy queue", 30)
        pane.presses("Enter", "Enter")
        await settled(pane, "queue")
        pane.writes("what is in @not")
        await pane.shows("notes.txt", 30)
        pane.presses("Tab")
        await pane.shows("@notes.txt", 30)
        pane.presses("Enter", "Enter")
        await pane.shows("added notes.txt", 30)
        await settled(pane, "echo:")
        assert "aubergine" in model.last_request["messages"][-1]["content"]


async def test_a_choice_of_a_clarify_question_is_sent_as_the_answer(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, model):
        model.calls_tools([("clarify", {"question": "Which colour?", "choices": ["red", "green"]})])
        pane.types("Paint it")
        await pane.shows("❯ 1 red", 60)
        pane.presses("2")
        assert "echo: green" in await pane.shows("echo: green", 60)


async def test_the_refusal_of_an_approval_is_explained_to_the_agent(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, model):
        model.calls_tools([("terminal", {"command": "rm -rf build"})])
        pane.types("Remove it")
        await settled(pane, ENGLISH.CHAT_NO_WHY)  # keys that come at once are not meant for the box
        model.says("I leave it.")
        pane.writes("w")
        await pane.shows(f"{ENGLISH.CHAT_REASON}>")
        pane.types("not on a Sunday")
        await settled(pane, "I leave it.")
        assert "not on a Sunday" in str(model.last_request["messages"])


async def test_lines_of_a_running_command_are_shown_and_folded_away(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, model):
        model.calls_tools([("terminal", {"command": "echo first step; while [ ! -e go ]; do sleep 0.1; done"})])
        model.says("Over.")
        pane.types("Run it")
        await pane.shows("│ first step", 60)
        (folder / "work" / "go").touch()
        shown = await settled(pane, "Over.")
        assert "│ first step" not in shown
        assert "✓ $ echo first step" in shown


async def test_a_conversation_is_shown_again_and_its_title_names_the_window(folder: Path) -> None:
    async with chat(folder, 80, 24, "; echo left with $?") as (pane, _):
        pane.types("What do I **buy**?")
        await settled(pane, "echo: What do I buy?")
        pane.types("/title Shopping")
        await settled(pane, "Shopping")
        async with asyncio.timeout(30):
            while pane.title != "Hermes: Shopping":  # noqa: ASYNC110 - only tmux knows it
                await asyncio.sleep(0.1)
        pane.types("/exit")
        await pane.shows("left with 0", 60)
        pane.types(f"clear; {sys.executable} -m hermes --continue")
        shown = await settled(pane, "── Shopping")
        assert "> What do I **buy**?" in shown
        assert "echo: What do I buy?" in shown


def picture(folder: Path, name: str = "pic.png") -> Path:
    path = folder / "work" / name
    path.write_bytes(PNG)
    return path


async def test_a_picture_goes_with_the_message_by_mention_by_path_and_by_paste(folder: Path) -> None:
    async with chat(folder, 80, 24, HERMES_MODEL="gpt-4o") as (pane, model):
        dropped = picture(folder, "my pic.png")
        picture(folder)
        pane.types("what is in @pic.png")
        await pane.shows("added pic.png", 30)
        await settled(pane, "echo:")
        assert "image_url" in str(model.last_request["messages"][-1])
        pane.types(f"and in '{dropped}'?")
        await pane.shows("added my pic.png", 30)
        await settled(pane, "my pic.png]")
        assert str(model.last_request["messages"]).count("image_url'") >= 2
        pane.pastes(str(dropped).replace(" ", "\\ "))
        await pane.shows('> @"', 30)
        pane.presses("Enter")
        await settled(pane, "my pic.png]\n>")
        assert "@" in str(model.last_request["messages"][-2])
        assert not (folder / "work" / "hermes-files").exists()


async def test_reasoning_is_shown_dimmed_when_asked_and_the_cost_where_the_provider_tells_it(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, model):
        model.says("It is 4.", reasoning="Two and two.\nThat is four.", cost=0.0031)
        pane.types("2+2?")
        shown = await settled(pane, "It is 4.")
        assert "Two and two" not in shown
        assert "$0.0031" in shown.splitlines()[-1]
        pane.types("/reasoning show")
        await settled(pane, ENGLISH.CHAT_REASONING_ON)
        model.says("It is 6.", reasoning="Three and three.\nThat is six.")
        pane.types("3+3?")
        shown = await settled(pane, "It is 6.")
        assert "┊ Three and three.\n┊ That is six.\n\nIt is 6." in shown
        pane.types("/reasoning hide")
        await settled(pane, ENGLISH.CHAT_REASONING_OFF)


async def test_undo_and_branch_draw_the_conversation_anew(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, _):
        for text in ("first", "second"):
            pane.types(text)
            await settled(pane, f"echo: {text}")
        pane.types("/undo")
        await pane.shows("Taken back", 30)
        shown = await settled(pane, "echo: first")
        assert "echo: second" not in shown
        assert shown.count("echo: first") == 1
        pane.types("/branch Another way")
        shown = await settled(pane, "── Another way")
        assert shown.count("echo: first") == 1


async def test_a_conversation_is_taken_up_by_its_id(folder: Path) -> None:
    async with chat(folder, 80, 24, "; echo left with $?") as (pane, _):
        pane.types("the first one")
        await settled(pane, "echo: the first one")
        pane.types("/new")
        await settled(pane, "Fresh session")
        pane.types("the second one")
        await settled(pane, "echo: the second one")
        pane.types("/sessions")
        shown = await settled(pane, "/resume")
        ids = re.findall(r"s_[a-z0-9]{10,}", shown)
        pane.types("/exit")
        await pane.shows("left with 0", 60)
        wanted = ids[1] if len(ids) > 1 else "2"
        pane.types(f"clear; {sys.executable} -m hermes --resume {wanted}")
        shown = await settled(pane, "Continued here")
        assert "echo: the first one" in shown
        assert "the second one" not in shown


async def test_ctrl_x_ctrl_e_opens_the_editor_with_what_is_typed(folder: Path) -> None:
    editor = folder / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s and more" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    async with chat(folder, 80, 24, EDITOR=str(editor), VISUAL=str(editor)) as (pane, model):
        pane.writes("some words")
        pane.presses("C-x", "C-e")
        await pane.shows("> some words and more", 30)
        pane.presses("Enter")
        await settled(pane, "echo: some words and more")
        assert model.last_request["messages"][-1]["content"].endswith("some words and more")


@pytest.mark.parametrize("how", ["NO_COLOR", "--plain"])
async def test_without_colours_a_real_terminal_shows_plain_text(folder: Path, how: str) -> None:
    environ = {"NO_COLOR": "1"} if how == "NO_COLOR" else {}
    words = ("--plain",) if how == "--plain" else ()
    async with chat(folder, 80, 24, *words, **environ) as (pane, model):
        model.says(ANSWER, tokens=tuple(re.findall(r"(?s).{1,6}", ANSWER)))
        pane.types("plans")
        shown = await settled(pane, "That is all.")
        assert not any(mark in pane.text for mark in ("**", "```", "|--", "# Plans"))
        assert "  return a + b  # done" in shown
        coloured = pane.coloured()
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", coloured[coloured.index("Plans for May") :].partition("\n>")[0])


async def test_what_is_said_on_telegram_appears_here_and_typing_brings_the_conversation_back(
    folder: Path, telegram: FakeTelegram
) -> None:
    work = folder / "work"
    work.mkdir()
    token = {"TELEGRAM_BOT_TOKEN": telegram.token, "TELEGRAM_BASE_URL": telegram.url, "TELEGRAM_ALLOWED_USERS": "7"}
    with Terminal(folder, **token) as terminal:
        await asyncio.to_thread(terminal.start_gateway)
        telegram.user_says("hello")
        await telegram.wait_for(lambda: any("echo: hello" in text for text in telegram.texts()), 60)
        with Pane(work, terminal.environ, columns=80, rows=24) as pane:
            pane.types(f"clear; {sys.executable} -m hermes; echo left with $?")
            await pane.shows("\n>", 60)
            pane.types("I am in the kitchen.")
            await settled(pane, "echo: I am in the kitchen.")
            await asyncio.to_thread(terminal.hermes, "people", "link", "telegram:7", "local:local")
            shown = await asyncio.to_thread(terminal.told, "sessions", "list")
            (session,) = [one["id"] for one in shown if "local" in one["key"]]
            telegram.user_says(f"/resume {session}")
            await pane.shows(ENGLISH.CHAT_ELSEWHERE.format(platform="Telegram"), 60)
            telegram.user_says("Now on the **balcony**.")
            await settled(pane, "echo: Now on the balcony.")
            pane.types("And back again.")
            shown = await settled(pane, "echo: And back again.")
            assert "via Telegram · Ana\n> Now on the **balcony**.\n\necho: Now on the balcony.\n" in shown
            assert shown.count("Now on the **balcony**.") == 1
            assert ENGLISH.CHAT_BACK.format(platform="Telegram") in shown
            pane.types("/exit")
            await pane.shows("left with 0", 60)
            shown = await begun_again(pane, f"{sys.executable} -m hermes --continue", "echo: And back again.")
            said = ["I am in the kitchen.", "via Telegram · Ana", "> Now on the **balcony**.", "> And back again."]
            assert [text for text in said if text in shown] == said
            assert sorted(said, key=shown.index) == said


async def test_alt_enter_begins_a_line_and_ctrl_r_finds_an_earlier_one(folder: Path) -> None:
    async with chat(folder, 80, 24) as (pane, model):
        pane.writes("one")
        pane.presses("M-Enter")
        pane.writes("two")
        pane.presses("Enter")
        await settled(pane, "> one\n  two\n")
        assert model.last_request["messages"][-1]["content"].endswith("one\ntwo")
        pane.types("something else")
        await settled(pane, "echo: something else")
        pane.presses("C-r")
        pane.writes("tw")
        await pane.shows("I-search backward: tw", 30)
        pane.presses("Enter")
        await pane.shows("> one\n  two\nfake-1", 30)
