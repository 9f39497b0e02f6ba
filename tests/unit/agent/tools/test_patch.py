"""patch changes exactly what was meant, or nothing, and says what is there instead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import Tool
from hermes.agent.tools.patch import patch
from hermes.agent.workspace.checkpoints import Checkpoints
from hermes.agent.workspace.edits import Edit
from hermes.core.errors import ToolError


async def test_the_one_place_is_changed_and_shown(workspace: Path, equipped: ToolContext) -> None:
    told = await patch(equipped, "notes/plan.txt", [Edit("second", "2nd")])
    assert (workspace / "notes" / "plan.txt").read_text() == "first\n2nd\nthird\n"
    assert told == "Changed 'notes/plan.txt':\n@@ -1,3 +1,3 @@\n first\n-second\n+2nd\n third"


async def test_several_edits_are_made_in_order_or_not_at_all(workspace: Path, equipped: ToolContext) -> None:
    file = workspace / "notes" / "plan.txt"
    await patch(equipped, "notes/plan.txt", [Edit("first", "second"), Edit("second\nsecond", "both")])
    assert file.read_text() == "both\nthird\n"
    with pytest.raises(ToolError, match=r"Edit 2 does not fit: its 'old' text is not in 'notes/plan.txt'. Nothing was"):
        await patch(replace(equipped, call_id="t_1:2:0"), "notes/plan.txt", [Edit("both", "none"), Edit("zebra", "x")])
    assert file.read_text() == "both\nthird\n"


async def test_a_text_that_is_there_more_than_once_is_told_with_its_lines(
    workspace: Path, equipped: ToolContext, checkpoints: Checkpoints
) -> None:
    file = workspace / "twice.txt"
    file.write_text("a = 1\nb = 2\na = 1\n")
    with pytest.raises(ToolError, match=r"in 'twice.txt' 2 times \(lines 1, 3\)\. Nothing was written.*'all'"):
        await patch(equipped, "twice.txt", [Edit("a = 1", "a = 3")])
    assert file.read_text() == "a = 1\nb = 2\na = 1\n"
    assert await checkpoints.listed(str(equipped.origin), "local") == []
    await patch(equipped, "twice.txt", [Edit("a = 1", "a = 3", all=True)])
    assert file.read_text() == "a = 3\nb = 2\na = 3\n"


async def test_the_nearest_lines_are_shown_when_nothing_fits(workspace: Path, equipped: ToolContext) -> None:
    (workspace / "main.py").write_text(
        "import os\n\ndef plan(name):\n\treturn os.getcwd() + name\n\nprint(plan('x'))\n"
    )
    with pytest.raises(ToolError) as near:
        await patch(equipped, "main.py", [Edit("def plan(names):\n    return os.getcwd() + names", "x")])
    assert "The nearest lines are:\n3\tdef plan(name):\n4\t\treturn os.getcwd() + name" in str(near.value)
    with pytest.raises(ToolError) as spaces:
        await patch(equipped, "main.py", [Edit("def plan(name):\n    return os.getcwd() + name", "x")])
    assert "differs only in white space; the file has:\n3\tdef plan(name):" in str(spaces.value)
    with pytest.raises(ToolError, match=r"Nothing was written\.$"):
        await patch(equipped, "main.py", [Edit("§§§§§§§§§§§§§§", "x")])


@pytest.mark.parametrize(
    "before,edit,after",
    [
        (b"a\r\nb\r\nc\r\n", Edit("a\nb", "x\ny\nz"), b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb", Edit("b", "b\nc"), b"a\r\nb\r\nc"),
        (b"a\r\nb\nc\r\n", Edit("b\nc", "B\nC"), b"a\r\nB\nC\r\n"),
        (b"a\r\nb\nc\r\n", Edit("a\nb", "A\nB"), b"A\r\nB\nc\r\n"),
        (b"no end", Edit("no", "still no"), b"still no end"),
        (b"\xef\xbb\xbfhead\n", Edit("head", "top"), b"\xef\xbb\xbftop\n"),
        (b"caf\xe9 one\ntwo\n", Edit("two", "2"), b"caf\xe9 one\n2\n"),
        (b"one\ntwo\n\n\n", Edit("one", "1"), b"1\ntwo\n\n\n"),
    ],
    ids=["crlf", "crlf without an end", "mixed, as written", "mixed, the other", "no end", "mark", "latin", "ends"],
)
async def test_ends_of_lines_and_odd_bytes_stay_as_they_are(
    workspace: Path, equipped: ToolContext, before: bytes, edit: Edit, after: bytes
) -> None:
    (workspace / "file.txt").write_bytes(before)
    await patch(equipped, "file.txt", [edit])
    assert (workspace / "file.txt").read_bytes() == after


@pytest.mark.parametrize(
    "path,edits,told",
    [
        ("missing.txt", [Edit("a", "b")], "There is no file 'missing.txt'. To make one, use write_file"),
        ("notes", [Edit("a", "b")], "is a folder"),
        ("data.bin", [Edit("a", "b")], "not a text file"),
        ("notes/plan.txt", [Edit("", "b")], "has no 'old' text"),
        ("notes/plan.txt", [Edit("first", "first")], "changes nothing"),
        ("notes/plan.txt", [], "1 to 50 edits"),
        ("notes/plan.txt", [Edit("first", "\udc80")], "half of a character"),
        ("hermes/.env", [Edit("sk", "x")], "closed to tools"),
        ("../outside.txt", [Edit("plan", "x")], "outside the workspace"),
    ],
)
async def test_what_cannot_be_changed_is_told(
    workspace: Path, equipped: ToolContext, path: str, edits: list[Edit], told: str
) -> None:
    (workspace / "data.bin").write_bytes(b"a\0")
    with pytest.raises(ToolError, match=told):
        await patch(equipped, path, edits)


async def test_a_repeat_after_a_crash_finds_its_own_work_done(workspace: Path, equipped: ToolContext) -> None:
    await patch(equipped, "notes/plan.txt", [Edit("first", "first first")])
    told = await patch(equipped, "notes/plan.txt", [Edit("first", "first first")])
    assert told == "Changed 'notes/plan.txt'. (That was done before a restart.)"
    assert (workspace / "notes" / "plan.txt").read_text() == "first first\nsecond\nthird\n"
    again = replace(equipped, call_id="t_1:2:0")
    with pytest.raises(ToolError, match="2 times"):
        await patch(again, "notes/plan.txt", [Edit("first", "x")])


def test_the_model_sends_edits_as_objects() -> None:
    spec = Tool.of(patch)
    edit = spec.spec.parameters["properties"]["edits"]["items"]
    assert edit["required"] == ["old", "new"]
    assert edit["properties"]["all"] == {"type": "boolean", "default": False}
    sent = '{"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "p", "new": "q", "all": true}]}'
    assert spec.parse(sent)["edits"] == [Edit("x", "y"), Edit("p", "q", all=True)]
    for wrong in ('[{"old": "x"}]', '[{"old": "x", "new": 5}]', '[{"old": "x", "new": "y", "more": 1}]', '["x"]'):
        with pytest.raises(ToolError, match=r"a list, each an object with old, new, all \(optional\)"):
            spec.parse('{"path": "a", "edits": ' + wrong + "}")


async def test_thousands_of_repeated_lines_are_changed_without_comparing_all_with_all(
    workspace: Path, equipped: ToolContext
) -> None:
    lines = [f"line {number % 120}" for number in range(9_000)]
    (workspace / "log.txt").write_text("\n".join(["top", *lines]))
    told = await patch(equipped, "log.txt", [Edit("top", "the top")])
    assert "bytes became" in told
    assert (workspace / "log.txt").read_text().startswith("the top\nline 0\n")


async def test_a_small_change_of_a_long_file_with_many_empty_lines_is_still_shown(
    workspace: Path, equipped: ToolContext
) -> None:
    lines = [line for number in range(3_000) for line in (f"line {number}", "")]
    (workspace / "long.txt").write_text("\n".join(lines))
    told = await patch(equipped, "long.txt", [Edit("line 2500\n", "line two\n")])
    assert "-line 2500\n+line two" in told
