"""Between the look at a path and its opening, somebody may change what is there. It does not help them."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.tools import search_files as searching
from hermes.agent.workspace.files import NoFileError, open_inside, place_of, read_inside
from hermes.core.errors import ToolError
from hermes.core.keys import ChatKind, SessionKey


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "plan.txt").write_text("mine\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "plan.txt").write_text("canary\n")
    return folder


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    return ToolContext("t_1:1:0", SessionKey("local", ChatKind.DM, "me"), "local", workspace)


class SwappedContext(ToolContext):
    """A context in which something happens right after a path was found to be inside."""

    happens: Callable[[], None]

    def inside(self, path: str) -> Path:
        target = ToolContext.inside(self, path)
        type(self).happens()
        return target


def swapping(context: ToolContext, happens: Callable[[], None]) -> ToolContext:
    kind = type("Swapped", (SwappedContext,), {"happens": staticmethod(happens), "__slots__": ()})
    swapped: ToolContext = kind(context.call_id, context.session_key, context.person_id, context.workspace)
    return swapped


def test_a_folder_swapped_for_a_link_is_not_followed(workspace: Path, context: ToolContext, tmp_path: Path) -> None:
    def swap() -> None:
        (workspace / "notes").rename(workspace / "away")
        (workspace / "notes").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ToolError, match=r"no file 'notes/plan\.txt'|cannot be read"):
        read_inside(swapping(context, swap), "notes/plan.txt", 100)


def test_a_file_swapped_for_a_link_is_not_followed(workspace: Path, context: ToolContext, tmp_path: Path) -> None:
    def swap() -> None:
        (workspace / "notes" / "plan.txt").unlink()
        (workspace / "notes" / "plan.txt").symlink_to(tmp_path / "elsewhere" / "plan.txt")

    with pytest.raises(ToolError, match="not a regular file"):
        read_inside(swapping(context, swap), "notes/plan.txt", 100)


def test_a_write_into_a_swapped_folder_goes_nowhere(workspace: Path, context: ToolContext, tmp_path: Path) -> None:
    def swap() -> None:
        (workspace / "notes").rename(workspace / "away")
        (workspace / "notes").symlink_to(tmp_path / "elsewhere")

    with (
        pytest.raises(ToolError),
        place_of(swapping(context, swap), "notes/plan.txt", makes_folders=True) as place,
    ):
        place.write(b"x", token="t")
    assert (tmp_path / "elsewhere" / "plan.txt").read_text() == "canary\n"


def test_what_is_swapped_while_the_folder_is_held_changes_nothing_either(
    workspace: Path, context: ToolContext, tmp_path: Path
) -> None:
    with place_of(context, "notes/plan.txt") as place:
        (workspace / "notes").rename(workspace / "away")
        (workspace / "notes").symlink_to(tmp_path / "elsewhere")
        assert place.read(100).data == b"mine\n"
        place.write(b"new", token="t")
    assert (workspace / "away" / "plan.txt").read_bytes() == b"new"
    assert (tmp_path / "elsewhere" / "plan.txt").read_text() == "canary\n"


def test_somebody_who_swaps_all_the_time_gets_nothing_out(
    workspace: Path, context: ToolContext, tmp_path: Path
) -> None:
    stop = threading.Event()
    (workspace / "other").symlink_to(tmp_path / "elsewhere")

    def swap() -> None:
        here = os.open(workspace, os.O_RDONLY)
        while not stop.is_set():
            for one, other in (("notes", "x"), ("other", "notes"), ("x", "other")):
                os.rename(one, other, src_dir_fd=here, dst_dir_fd=here)
        os.close(here)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        read = set()
        for _ in range(1500):
            try:
                read.add(read_inside(context, "notes/plan.txt", 100).data)
            except ToolError:
                read.add(b"refused")
    finally:
        stop.set()
        swapper.join()
    assert b"canary\n" not in read
    assert read <= {b"mine\n", b"refused"}


async def test_a_search_shows_only_what_the_guarded_way_reads(
    workspace: Path, context: ToolContext, tmp_path: Path
) -> None:
    # What a search would print that was led outside for a moment: the folder is its own again when we look.
    reader = searching._MatchRenderer(context, workspace)
    assert reader.render_match("notes/plan.txt\x001:canary") == "notes/plan.txt:1: mine"
    assert reader.render_match("notes/secret.txt\x001:canary") == ""
    assert reader.render_match("notes/secret.txt") == ""
    assert reader.render_match("../elsewhere/plan.txt\x001:canary") == ""
    assert reader.render_match("notes/plan.txt\x0099:canary") == ""


def test_a_missing_file_is_told_apart_from_one_that_is_closed(workspace: Path, context: ToolContext) -> None:
    with pytest.raises(NoFileError, match=r"There is no file 'notes/none.txt'"):
        open_inside(context, "notes/none.txt")
    with pytest.raises(NoFileError, match=r"There is no file 'none/none.txt'"):
        open_inside(context, "none/none.txt")
    closed = replace(context, forbidden=(workspace / "notes",))
    with pytest.raises(ToolError, match="closed to tools") as refused:
        open_inside(closed, "notes/plan.txt")
    assert not isinstance(refused.value, NoFileError)


def test_a_new_file_is_made_once(workspace: Path, context: ToolContext) -> None:
    with open_inside(context, "deep/er/new.txt", "xb") as file:
        file.write(b"new")
    assert (workspace / "deep" / "er" / "new.txt").read_bytes() == b"new"
    with pytest.raises(ToolError, match="cannot be made: File exists"):
        open_inside(context, "deep/er/new.txt", "xb")


def test_a_file_is_read_up_to_a_limit(workspace: Path, context: ToolContext) -> None:
    assert read_inside(context, "notes/plan.txt", 5).data == b"mine\n"
    with pytest.raises(ToolError, match=r"too large for this \(5 bytes; at most 4\)"):
        read_inside(context, "notes/plan.txt", 4)


def test_a_second_name_of_an_ordinary_file_is_open(workspace: Path, context: ToolContext, tmp_path: Path) -> None:
    (workspace / "second").hardlink_to(workspace / "notes" / "plan.txt")
    (tmp_path / "hermes").mkdir()
    mine = replace(context, forbidden=(tmp_path / "hermes",))
    assert read_inside(mine, "second", 100).data == b"mine\n"


def test_a_second_name_of_a_neighbours_file_is_closed(workspace: Path, context: ToolContext, tmp_path: Path) -> None:
    home = tmp_path / "hermes"
    ana, ben = home / "workspaces" / "ana", home / "workspaces" / "ben"
    for folder in (ana, ben):
        folder.mkdir(parents=True)
    (ana / "diary.txt").write_text("canary\n")
    (ben / "own.txt").write_text("mine\n")
    (ben / "own-too.txt").hardlink_to(ben / "own.txt")
    (ben / "second").hardlink_to(ana / "diary.txt")
    of_ben = replace(context, workspace=ben, forbidden=(home,))
    with pytest.raises(ToolError, match="another name of a file that is closed"):
        read_inside(of_ben, "second", 100)
    assert read_inside(of_ben, "own-too.txt", 100).data == b"mine\n"


def test_no_handle_is_left_open(workspace: Path, context: ToolContext) -> None:
    os.mkfifo(workspace / "pipe")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("notes/plan.txt", "notes/none.txt", "none/x/y", "pipe", "notes", "..", "notes/plan.txt/x"):
        try:
            read_inside(context, path, 100)
        except ToolError:
            continue
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_half_written_file_of_a_dead_process_is_taken_over(workspace: Path, context: ToolContext) -> None:
    for _ in range(2):
        with place_of(context, "new.txt", makes_folders=True) as place:
            place._write_half(".hermes-0.tmp", io.BytesIO(b"half"), None, None)
            place.write(b"whole", token="t")
            place._remove(".hermes-0.tmp")
    assert sorted(path.name for path in workspace.iterdir()) == ["new.txt", "notes"]
