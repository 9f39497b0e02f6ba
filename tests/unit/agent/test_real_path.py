"""A link that leads to itself ends the way of a path, on every Python, and hides nothing that stands behind it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from hermes.agent.real_path import real_path
from hermes.agent.toolkit.context import ToolContext
from hermes.core.errors import ToolError
from hermes.core.keys import ChatKind, SessionKey

LOOPS = (
    "loop",
    "loop/below",
    "loop-a/below",
    "to-loop",
    "loop/../plain.txt",  # the kernel does not pass the loop either
    "loop/../out",  # before Python 3.13 `resolve` put this back together without following the link "out"
    "loop/../up/outside.txt",
    "missing/../loop/../out",
    "missing/../loop/../up/outside.txt",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "workspace"
    folder.mkdir()
    (tmp_path / "outside.txt").write_text("not for tools")
    (folder / "plain.txt").write_text("for tools")
    links = {
        "loop": folder / "loop",
        "loop-a": folder / "loop-b",
        "loop-b": folder / "loop-a",
        "to-loop": folder / "loop",
        "out": tmp_path / "outside.txt",
        "up": tmp_path,
        "plain": folder / "plain.txt",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return folder


@pytest.mark.parametrize("path", LOOPS)
def test_path_through_a_loop_of_links_never_counts_as_inside_the_workspace(folder: Path, path: str) -> None:
    context = ToolContext("t_1:1:0", SessionKey("local", ChatKind.DM, "me"), "local", folder)
    with pytest.raises(ToolError, match=r"not a usable path|outside the workspace"):
        context.inside(path)


@pytest.mark.parametrize("path", ["loop", "loop/below", "loop-b/below", "to-loop"])
def test_loop_of_links_is_an_error_with_its_number(folder: Path, path: str) -> None:
    with pytest.raises(OSError, match="symbolic links") as caught:
        real_path(folder / path)
    assert caught.value.errno == errno.ELOOP


def test_other_paths_are_resolved_whether_they_exist_or_not(folder: Path) -> None:
    assert real_path(folder / "plain") == folder / "plain.txt"
    assert real_path(folder / "up" / "outside.txt") == folder.parent / "outside.txt"
    assert real_path(folder / "new" / "x.txt") == folder / "new" / "x.txt"
    assert real_path(folder / "new" / ".." / "plain") == folder / "plain.txt"
