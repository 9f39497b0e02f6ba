"""Only one module writes to the terminal, and nothing leaves it that a terminal would obey."""

from __future__ import annotations

import ast
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

import hermes
from hermes.hosting import terminal
from tests.unit.syntax_trees import without_collections

SOURCE = Path(hermes.__file__).parent
THE_ONE = SOURCE / "hosting" / "terminal.py"

CHILDREN = {
    "agent/web/child.py",
    "agent/tools/search_walk.py",
    "agent/models/embedded/child.py",
    "agent/backends/confine.py",
}
"""Programs of their own, whose stdout is a pipe that we read."""

FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if path != THE_ONE)

STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
HARMLESS = {"isatty", "flush", "fileno"}
"""What may be asked of a stream elsewhere."""

OURS = {"write", "rewrite_line", "erase_lines_above", "Questions", "Console"}
"""Who may be handed a stream: functions of the one place; and two classes that write through it or write only log
lines, which the formatter has cleaned."""

BY_HAND = {
    "cli/main.py": {"for stream in (sys.stdout, sys.stderr)"},  # it sets how they encode, and writes nothing
    "cli/chat/plain.py": {"self._out or sys.stdout"},  # handed on to write
    "cli/support/help.py": {"file or sys.stderr"},  # handed on to write
}


def ways_out(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every place that could write to the terminal: its line, and what it does there."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="print" | "input" | "getpass" as name, ctx=ast.Load()):
                yield node.lineno, f"uses {name}"
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="os"), attr="write"), args=[ast.Constant(value=1 | 2), *_]
            ):
                yield node.lineno, "writes to a descriptor of the terminal"
            case ast.Call(func=ast.Attribute(attr="print_help" | "print_usage")):
                yield node.lineno, "prints help"
            case ast.Attribute(value=ast.Name(id="sys"), attr=attr) if attr in STREAMS:
                if not _is_harmless(parents[node]):
                    yield node.lineno, f"uses sys.{attr}"


def _is_harmless(use: ast.AST) -> bool:
    match use:
        case ast.Attribute(attr=asked):
            return asked in HARMLESS
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
            return called in OURS
        case _:
            return False


WORDS = re.compile(r"\b(?:print|input|getpass|write|print_help|print_usage|stdout|stderr|__stdout__|__stderr__)\b")
"""A file without any of these words has no way out, and need not be parsed."""


def trees(*folders: str, words: re.Pattern[str] | None = None) -> Iterator[tuple[str, ast.Module, list[str]]]:
    for name in FILES:
        if name not in CHILDREN and (not folders or name.startswith(folders)):
            text = (SOURCE / name).read_text(encoding="utf-8")
            if words is None or words.search(text):
                yield name, ast.parse(text), text.splitlines()


@pytest.mark.one_python
def test_nobody_else_writes_to_the_terminal() -> None:
    with without_collections():
        found = [
            f"{name}:{line} {what}"
            for name, tree, rows in trees(words=WORDS)
            for line, what in ways_out(tree)
            if not any(known in rows[line - 1] for known in BY_HAND.get(name, ()))
        ]
    assert not found, "write with the functions of hosting/terminal.py"


def test_no_command_writes_to_a_stream_by_itself() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree, _ in trees("cli/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"write", "writelines"}
    ]
    assert not found


@pytest.mark.one_python
def test_only_the_one_place_holds_escape_sequences() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree, _ in trees("cli/", "hosting/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and not {"\x1b", "\x9b"}.isdisjoint(node.value)
    ]
    assert not found


@pytest.mark.parametrize(
    "code",
    [
        "print('x')",
        "f(print)",
        "input('x')",
        "import getpass\ngetpass.getpass('x')",
        "import sys\nsys.stdout.write('x')",
        "import sys\nsys.stderr.writelines(['x'])",
        "import sys\nwriter = sys.stdout",
        "import os\nos.write(1, b'x')",
        "parser.print_help()",
    ],
)
def test_another_way_would_be_found(code: str) -> None:
    assert WORDS.search(code)
    assert list(ways_out(ast.parse(code)))


# What the one place does


def test_a_style_of_ours_stands_around_cleaned_text() -> None:
    stream = io.StringIO()
    terminal.write(stream, "a\x1b[2J\nb", style=terminal.DIM)
    assert stream.getvalue() == "\x1b[2ma‹U+001B›[2J\x1b[0m\n\x1b[2mb\x1b[0m"


def test_json_decodes_to_what_it_was_and_holds_nothing_raw(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a": "\x1b]0;owned\x07", "b": "\x9b2J\x7f", "c": "‮你好", "d": "é 👨‍👩‍👧"}
    terminal.out_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert "你好" in shown
    assert shown.strip().replace("\u200d", "").isprintable()


def test_an_entry_of_a_list_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.out_lines(["user  Eve\nowner  Mallory", "user  Ana"])
    assert capsys.readouterr().out == "user  Eve\\nowner  Mallory\nuser  Ana\n"


def test_a_question_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: prompt)
    assert terminal.ask("Delete \x1b[8mall? ") == "Delete ‹U+001B›[8mall? "


def test_pieces_of_a_line_are_cleaned_and_only_our_codes_style_them() -> None:
    stream = io.StringIO()
    terminal.write_styled(stream, [[("a\x1b[2J\n", "1;36", ""), ("b", "0m\x1b]0;x", "")]])
    assert stream.getvalue() == "\x1b[1;36ma‹U+001B›[2J\\n\x1b[0mb\n"


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://a\x1b\\b",
        "https://a b",
        "https://a\x07",
        "https://" + "a" * 3000,
    ],
    ids=["script", "file", "escape", "blank", "bell", "long"],
)
def test_an_address_that_could_do_more_than_lead_somewhere_is_no_hyperlink(address: str) -> None:
    stream = io.StringIO()
    terminal.write_styled(stream, [[("words", "", address)]])
    assert stream.getvalue() == "words\n"


def test_an_address_of_the_web_is_a_hyperlink() -> None:
    stream = io.StringIO()
    terminal.write_styled(stream, [[("words", "", "https://example.org/a")]])
    assert stream.getvalue() == "\x1b]8;;https://example.org/a\x1b\\words\x1b]8;;\x1b\\\n"


def test_a_title_of_a_stranger_cannot_leave_the_title() -> None:
    stream = io.StringIO()
    terminal.set_title(stream, "plans\x07\x1b\\\x1b[2J\nmore")
    assert stream.getvalue() == "\x1b]2;plans‹U+0007›‹U+001B›\\‹U+001B›[2J\\nmore\x1b\\"


BOMBARDED = """
import signal, sys
from hermes.cli.main import print_anything
signal.signal(signal.SIGWINCH, lambda *_: None)
print_anything()
sys.stdout.write("ready\\n")
sys.stdout.write("".join(f"line {number}\\n" for number in range(20_000)))
sys.stdout.buffer.write(b"the end\\n")
"""


@pytest.mark.parametrize("buffering", [["-u"], []], ids=["unbuffered", "buffered"])
def test_a_resized_window_cuts_nothing_short_that_is_being_written(buffering: list[str]) -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    try:
        with subprocess.Popen([sys.executable, *buffering, "-c", BOMBARDED], stdout=theirs, env=environ) as process:
            shown = b""
            while not shown.endswith(b"the end\n"):
                ready, _, _ = select.select([ours], [], [], 20)
                assert ready, f"nothing came after {shown[-60:]!r}"
                shown += os.read(ours, 700)
                process.send_signal(signal.SIGWINCH)
            assert process.wait(20) == 0
    finally:
        os.close(theirs)
        os.close(ours)
    assert shown.decode().splitlines() == ["ready", *(f"line {number}" for number in range(20_000)), "the end"]
