"""The chat without a real terminal, and one question for scripts: plain text, JSON, exit codes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal
from tests.fakes.model import FakeModel, Refusal, Reply, calls_tools

ANSWER = (
    "# Plans\n\nSome **bold** words and `code`.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- item\n\n```python\nx = 1\n```\n"
)
SHOWN = ["Plans", "", "Some bold words and code.", "", "a │ b", "──┼──", "1 │ 2", "", "• item", "", "  x = 1"]


@pytest.fixture
async def terminal(tmp_path: Path, model: FakeModel) -> Terminal:
    made = Terminal(tmp_path)
    made.model_url = model.url
    return made


async def run(terminal: Terminal, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    import asyncio

    return await asyncio.to_thread(terminal.hermes, *words, typed=typed)


async def test_over_a_pipe_no_mark_of_markdown_is_left(terminal: Terminal, model: FakeModel) -> None:
    model.says(ANSWER, tokens=tuple(ANSWER))
    done = await run(terminal, typed="plans\n/exit\n")
    assert done.stdout.splitlines()[1:] == SHOWN
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("script") is None, reason="script is not installed: apt-get install bsdutils")
@pytest.mark.parametrize("how", ["TERM=dumb", "TERM=xterm"])
async def test_on_a_dumb_terminal_nothing_but_text_is_written(
    terminal: Terminal, model: FakeModel, tmp_path: Path, how: str
) -> None:
    import asyncio

    model.says(ANSWER, tokens=tuple(ANSWER))
    plain = " --plain" if how == "TERM=xterm" else ""
    command = f"{how} {shlex.join(terminal.command('chat'))}{plain}"
    if plain:
        command = f"(sleep 4; printf 'plans\\n'; sleep 4; printf '/exit\\n') | {command} | cat"
    log = tmp_path / "typescript"
    done = await asyncio.to_thread(
        subprocess.run,
        ["script", "-q", "-e", "-c", command, str(log)],
        input=b"" if plain else b"plans\n/exit\n",
        capture_output=True,
        env=terminal.environ,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    text = re.sub(r"(?m)^Script (?:started|done).*\n", "", log.read_text(encoding="utf-8")).replace("\r", "")
    assert "\x1b" not in text
    assert "Some bold words and code." in text
    assert not any(mark in text for mark in ("**", "```", "|--", "# Plans"))


async def transcript(terminal: Terminal, tmp_path: Path, how: str, typed: str) -> str:
    """Everything that a chat writes: over a pipe, or on a dumb terminal as ``script`` records it."""
    import asyncio

    if how == "pipe":
        done = await run(terminal, typed=typed)
        return done.stdout + done.stderr
    log = tmp_path / "typescript"
    command = shlex.join(terminal.command("chat"))
    feed = asyncio.to_thread(
        subprocess.run,
        ["script", "-q", "-e", "-E", "never", "-c", f"TERM=dumb {command}", str(log)],
        input=typed.encode(),
        capture_output=True,
        env=terminal.environ,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert (await feed).returncode == 0
    text = log.read_text(encoding="utf-8").replace("\r", "")
    return re.sub(r"(?m)^Script (?:started|done).*\n", "", text)


SCREENS: dict[str, tuple[list[str], list[Reply | Refusal], list[str]]] = {
    "first start": ([], [], ["Welcome to Hermes Agent!"]),
    "answer": (["plans"], [Reply(ANSWER, tokens=tuple(ANSWER))], [line for line in SHOWN if line]),
    "tool run": (
        ["run it"],
        [calls_tools(("terminal", {"command": "echo re''ady"})), Reply("It is **ready**.")],
        ["echo re''ady", "It is ready."],
    ),
    "approval": (
        ["remove it"],
        [calls_tools(("terminal", {"command": "rm -rf build && echo 'a|b'"}))],
        ["May I run this?", "rm -rf build && echo 'a|b'", "/approve "],
    ),
    "paste": (
        ["\n".join(f"line {number}" for number in range(200))],
        [Reply("I **read** them.")],
        ["[pasted 200 lines]", "I read them."],
    ),
    "picker": (["one", "/new", "/resume"], [Reply("*Bread*.")], ["Bread.", "Fresh session", "1"]),
    "model error": (["still there?"], [Refusal(401, "bad key")], ["hermes doctor"]),
    "Chinese": (
        ["你好"],
        [Reply("你好！这是**很长**的句子。\n\n- 第一\n- 第二")],
        ["你好！这是很长的句子。", "• 第一"],
    ),
}


@pytest.mark.parametrize("how", ["dumb", "pipe"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_a_transcript_of_each_screen_holds_no_markdown_and_no_escape_sequence(
    tmp_path: Path, model: FakeModel, how: str, screen: str
) -> None:
    if how == "dumb" and shutil.which("script") is None:
        pytest.skip("script is not installed: apt-get install bsdutils")
    typed, answers, expected = SCREENS[screen]
    if how == "pipe" and screen == "paste":
        pytest.skip("over a pipe every line is a message of its own")
    terminal = Terminal(tmp_path, **({"HERMES_LANGUAGE": "zh"} if screen == "Chinese" else {}))
    terminal.model_url = model.url
    model.script(answers)
    if screen == "paste":
        # The shell of a person waits between a paste and the next line; here that line is the end of the input.
        shown = await transcript(terminal, tmp_path, how, "\n".join(typed) + "\n")
        assert "line 0\nline 1\n" in str(model.last_request["messages"][-1]["content"])
        assert "line 199" in str(model.last_request["messages"][-1]["content"])
    else:
        shown = await transcript(terminal, tmp_path, how, "\n".join([*typed, "/exit", ""]))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert not any(mark in shown for mark in ("**", "```", "|--", "# Plans", "*Bread*"))
    for words in expected if screen != "first start" else ["Hermes"]:
        assert words in shown


async def test_one_question_prints_the_answer_as_the_model_wrote_it(terminal: Terminal, model: FakeModel) -> None:
    model.says(ANSWER)
    done = await run(terminal, "-z", "plans")
    assert done.stdout.strip() == ANSWER.strip()


async def test_events_are_printed_as_lines_and_the_result_last(terminal: Terminal, model: FakeModel) -> None:
    model.says("Hello.", tokens=("Hel", "lo."))
    done = await run(terminal, "-z", "hi", "--output-format", "stream-json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert "".join(event["text"] for event in events if event["kind"] == "delta") == "Hello."
    assert events[-1]["kind"] == "result"
    assert events[-1]["answer"] == "Hello."
    assert events[-1]["tokens"] == {"prompt": 12, "completion": 7, "cached": 0}


async def test_a_question_that_takes_too_long_is_stopped(terminal: Terminal, model: FakeModel) -> None:
    model.hold(silently=True)
    done = await run(terminal, "-z", "hi", "--timeout", "3", "--json")
    assert done.returncode == 124
    assert json.loads(done.stdout)["state"] == "timeout"
    assert "no answer within 3 s" in done.stderr


@pytest.mark.parametrize("approve, code", [("none", 1), ("safe", 1), ("all", 0)])
async def test_approvals_are_given_as_far_as_the_script_says(
    terminal: Terminal, model: FakeModel, tmp_path: Path, approve: str, code: int
) -> None:
    (tmp_path / "build").mkdir()
    model.script([calls_tools(("terminal", {"command": "rm -rf build"})), Reply("Gone.")])
    done = await run(terminal, "-z", "remove it", "--approve", approve)
    assert done.returncode == code
    assert (tmp_path / "build").exists() == (code == 1)
    assert ("Gone." in done.stdout) == (code == 0)
