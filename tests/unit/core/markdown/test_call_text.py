"""A call as text: the command as it runs, nothing hidden in it, nothing pushed out of sight."""

from __future__ import annotations

import json
import re

import pytest

from hermes.core.markdown import blocks, call_text
from hermes.core.markdown.call_text import (
    CallPart,
    as_markdown,
    as_plain_text,
    blocks_of,
    fenced,
    literal,
    reveal,
)


def test_a_command_is_shown_as_a_command_and_other_arguments_by_their_names() -> None:
    call = json.dumps({"command": "rm -rf build && ls\necho done", "folder": "src", "timeout": 5})
    assert blocks_of("terminal", call) == [
        CallPart("rm -rf build && ls\necho done"),
        CallPart("folder: src\ntimeout: 5"),
    ]
    assert "{" not in as_markdown(blocks_of("terminal", call))


def test_a_file_is_shown_with_its_path_and_its_content() -> None:
    call = json.dumps({"path": "notes.txt", "content": "one\ntwo"})
    assert as_markdown(blocks_of("write_file", call)) == "```\npath: notes.txt\n```\ncontent:\n```\none\ntwo\n```"


def test_a_patch_is_shown_as_lines_that_go_and_lines_that_come() -> None:
    call = json.dumps({"path": "a.py", "edits": [{"old": "x = 1", "new": "x = 2\ny = 3"}, {"old": "", "new": "z"}]})
    assert as_plain_text(blocks_of("patch", call)) == (
        "path: a.py\n\nedits 1:\n- x = 1\n+ x = 2\n+ y = 3\n\nedits 2:\n- \n+ z"
    )


@pytest.mark.parametrize(
    "arguments, text",
    [
        ('{"tasks": ["read", "write"], "deep": {"a": {"b": true}}}', "tasks 1: read\ntasks 2: write\ndeep.a.b: true"),
        ("not json", "not json"),
        ("[1, 2]", "[1, 2]"),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=["lists and objects", "no JSON", "a list", "nothing", "nested too deep"],
)
def test_every_other_tool_is_shown_argument_by_argument(arguments: str, text: str) -> None:
    assert as_plain_text(blocks_of("anything", arguments)) == text


def test_an_argument_of_one_name_that_comes_twice_is_shown_as_it_counts() -> None:
    call = '{"command": "ls", "command": "rm -rf /"}'
    assert blocks_of("terminal", call) == [CallPart("rm -rf /")]


@pytest.mark.parametrize(
    "hidden, text",
    [
        ("a\u202eb", "a‹U+202E›b"),
        ("a\u200bb", "a‹U+200B›b"),
        ("rm\u00a0-rf", "rm‹U+00A0›-rf"),
        ("a\u2800b", "a‹U+2800›b"),
        ("a\rb", "a‹U+000D›b"),
        ("a\x1b[8mb", "a‹U+001B›[8mb"),
        ("ls" + "\n" * 80 + "rm x", "ls\n‹79 blank lines›\nrm x"),
        ("ls" + " \n" * 80 + "rm x", "ls \n‹79 blank lines›\nrm x"),
        ("ls" + " " * 500 + "; rm x", "ls‹500 blanks›; rm x"),
        ("ls" + "\t" * 40 + "; rm x", "ls‹40 blanks›; rm x"),
        ("e" + "\u0301" * 5, "e" + "‹U+0301›" * 5),
        ("    if x:\n\n\n        pass\té 日本語 ❤️", "    if x:\n\n\n        pass\té 日本語 ❤️"),
    ],
)
def test_what_nobody_would_see_is_spelled_out_and_padding_is_counted(hidden: str, text: str) -> None:
    assert reveal(hidden) == text


@pytest.mark.parametrize("code", ["```\nOK\n```", "``` ```", "`````", "~~~\nx\n~~~", "a\n````\nb", "`a` ``b``"])
def test_no_text_closes_the_block_that_holds_it(code: str) -> None:
    [block] = blocks.parse(fenced(code), blocks.Style())
    ticks = {f"‹{count} backticks›": "`" * count for count in (3, 4, 5)}
    assert (block.kind, "```" in block.text) == ("code", False)
    assert re.sub("‹.*?›", lambda spelled: ticks[spelled[0]], block.text) == code


@pytest.mark.parametrize(
    "text", ["**bold** _it_ ~~gone~~ ||spoiler||", "[safe](http://x.example)", "`a` __init__.py \\"]
)
def test_a_sentence_shows_every_sign_that_markdown_would_swallow(text: str) -> None:
    assert blocks.render(literal(text), blocks.Style()) == text


def test_a_long_padding_takes_no_long_time() -> None:
    text = reveal(("x" + " " * 40 + "\n" * 3) * 20_000)
    assert len(text) > 500_000
    assert call_text.fewer_lines(text).count("\n") == 40
