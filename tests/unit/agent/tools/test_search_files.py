"""search_files finds the same with and without ripgrep, ends in time, and never shows what is closed."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.tools.search_files import SearchCommand, collect, search_files, walk
from hermes.core.errors import ToolError


@pytest.fixture(params=["ripgrep", "python"], autouse=True)
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setenv("PATH", "")
    elif shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")


@pytest.fixture
def library(workspace: Path) -> Path:
    (workspace / "code").mkdir()
    (workspace / "code" / "main.py").write_text("import os\n\ndef Plan():\n    return os.getcwd()\n")
    (workspace / ".hidden").mkdir()
    (workspace / ".hidden" / "plan.txt").write_text("plan\n")
    (workspace / ".hidden.txt").write_text("plan\n")
    (workspace / "node_modules").mkdir()
    (workspace / "node_modules" / "plan.js").write_text("plan\n")
    (workspace / "data.bin").write_bytes(b"plan\0plan\n")
    (workspace / "notes" / "plan.txt").write_text("The plan:\n- a Plan\n- PLAN b\n")
    (workspace / "link.txt").symlink_to("../outside.txt")
    return workspace


async def test_text_is_found_with_path_and_line(library: Path, context: ToolContext) -> None:
    assert (await search_files(context, "plan")).splitlines() == [
        "code/main.py:3: def Plan():",
        "notes/plan.txt:1: The plan:",
        "notes/plan.txt:2: - a Plan",
        "notes/plan.txt:3: - PLAN b",
    ]


async def test_case_counts_once_the_pattern_has_upper_case(library: Path, context: ToolContext) -> None:
    assert await search_files(context, r"a\s+Plan") == "notes/plan.txt:2: - a Plan"
    assert len((await search_files(context, r"\Splan|plan")).splitlines()) == 4


async def test_files_are_chosen_by_a_glob_and_by_a_folder(library: Path, context: ToolContext) -> None:
    assert await search_files(context, "plan", files="*.PY") == "code/main.py:3: def Plan():"
    assert len((await search_files(context, "plan", path="notes")).splitlines()) == 3
    assert await search_files(context, "plan", path="notes/plan.txt", limit=1) == (
        "notes/plan.txt:1: The plan:\n[More than 1 results: narrow the pattern, the path or `files`.]"
    )


async def test_names_are_found_by_a_part_or_by_a_glob(library: Path, context: ToolContext) -> None:
    assert await search_files(context, "plan", kind="names") == "notes/plan.txt"
    assert await search_files(context, "*.p?", kind="names") == "code/main.py"
    assert await search_files(context, "*", kind="names") == "code/main.py\ndata.bin\nnotes/plan.txt"


async def test_closed_folder_is_not_searched_whatever_it_is_called(library: Path, context: ToolContext) -> None:
    odd = library / "od[d] {x}*!"
    (library / "hermes").rename(odd)
    closed = replace(context, forbidden=(odd,))
    assert "stranger" not in await search_files(closed, "str[a]nger|secret=")
    assert "state" not in await search_files(closed, "*", kind="names")
    with pytest.raises(ToolError, match="closed to tools"):
        await search_files(closed, "secret", path=odd.name)


async def test_nothing_found_and_nothing_there_are_told(library: Path, context: ToolContext) -> None:
    assert await search_files(context, "zebra") == "Nothing found for 'zebra' in '.'."
    with pytest.raises(ToolError, match="There is no file or folder 'zoo'"):
        await search_files(context, "zebra", path="zoo")
    with pytest.raises(ToolError, match="outside the workspace"):
        await search_files(context, "plan", path="..")


async def test_pattern_that_is_wrong_is_told(library: Path, context: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"The search failed: (.|\n)*unclosed|unterminated"):
        await search_files(context, "plan(")


async def test_pattern_that_looks_like_an_option_is_a_pattern(library: Path, context: ToolContext) -> None:
    assert await search_files(context, "--version") == "Nothing found for '--version' in '.'."


async def test_search_that_takes_for_ever_is_stopped_and_its_process_is_recorded(
    library: Path, context: ToolContext
) -> None:
    (library / "notes" / "trap.txt").write_text("a" * 60 + "\n")
    groups: list[int] = []

    async def note(group: int) -> None:
        groups.append(group)

    endless = walk("text", "(a+)+b", "trap.*", library, ())
    async with asyncio.timeout(20):
        found, end = await collect(replace(context, started_group=note), endless, 10, seconds=0.3)
    assert found == []
    assert end.startswith("[Stopped after 0.3 s: not everything was searched.")
    (group,) = groups
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


async def test_a_pipe_is_refused_at_once_instead_of_waited_for(workspace: Path, context: ToolContext) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolError, match="neither a regular file nor a folder"):
        await search_files(context, "plan", "pipe")


async def test_a_search_that_is_cut_short_ends_though_there_is_more_to_read_than_a_pipe_holds(
    workspace: Path, context: ToolContext
) -> None:
    endless = SearchCommand((sys.executable, "-c", "while True: print('notes/plan.txt')"), workspace)
    (workspace / "notes" / "plan.txt").write_text("plan\n")
    for _ in range(5):
        found, end = await collect(context, endless, 10, seconds=60)
        assert len(found) == 10
        assert end.startswith("[More than 10 results")
