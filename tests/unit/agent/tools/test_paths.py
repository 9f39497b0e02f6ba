"""No way of writing a path leads a tool out of its workspace or into Hermes' own folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.agent.toolkit.context import ToolContext
from hermes.core.errors import ToolError

ESCAPES = [
    "..",
    "../outside.txt",
    "notes/../../outside.txt",
    "notes/../../workspace/../outside.txt",
    "./../outside.txt",
    "notes/./.././../outside.txt",
    "notes//..//..//outside.txt",
    "missing/../../outside.txt",
    "../workspace-two/file",
    "/",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "/dev/stdin",
    "~",
    "~/.ssh/id_rsa",
    "~root/.bashrc",
    "~nobody-of-this-name/x",
    "a\0b",
    "notes/plan.txt\0.png",
    "link-out",
    "link-out/../outside.txt",
    "link-up/outside.txt",
    "link-to-link/outside.txt",
    "link-relative/outside.txt",
    "loop",
    "loop/x",
    "hermes",
    "hermes/.env",
    "hermes/new.txt",
    "notes/../hermes/.env",
    "./hermes//.env",
    "link-hermes/.env",
    "link-env",
    "hermes/../hermes/state.txt",
]


@pytest.fixture
def linked(workspace: Path, tmp_path: Path) -> Path:
    (workspace / "link-out").symlink_to(tmp_path / "outside.txt")
    (workspace / "link-up").symlink_to(tmp_path)
    (workspace / "link-to-link").symlink_to(workspace / "link-up")
    (workspace / "link-relative").symlink_to("../../" + tmp_path.name)
    (workspace / "loop").symlink_to(workspace / "loop")
    (workspace / "link-hermes").symlink_to(workspace / "hermes")
    (workspace / "link-env").symlink_to(workspace / "hermes" / ".env")
    return workspace


@pytest.mark.parametrize("path", ESCAPES, ids=lambda path: path[:30].replace("\0", "NUL"))
def test_path_that_leads_out_is_refused(linked: Path, context: ToolContext, path: str) -> None:
    with pytest.raises(ToolError, match=r"outside the workspace|closed to tools|not a usable path"):
        context.inside(path)


@pytest.mark.parametrize(
    "path", ["notes/plan.txt", "./notes/../notes/plan.txt", "notes//plan.txt", "notes/plan.txt/", "link-in/plan.txt"]
)
def test_path_that_stays_inside_is_taken(workspace: Path, context: ToolContext, path: str) -> None:
    (workspace / "link-in").symlink_to("notes")
    assert context.inside(path) == (workspace / "notes" / "plan.txt").resolve()


def test_full_path_and_a_file_that_does_not_exist_yet_are_taken(workspace: Path, context: ToolContext) -> None:
    assert context.inside(str(workspace / "notes" / "plan.txt")) == workspace / "notes" / "plan.txt"
    assert context.inside("notes/new.txt") == workspace / "notes" / "new.txt"
    assert context.inside("hermes-notes.txt") == workspace / "hermes-notes.txt"


def test_home_sign_means_the_owners_home_where_that_is_the_workspace(context: ToolContext) -> None:
    mine = replace(context, workspace=Path.home(), forbidden=(Path.home() / ".hermes",))
    assert mine.inside("~/letter.txt") == Path.home().resolve() / "letter.txt"
    with pytest.raises(ToolError, match="closed to tools"):
        mine.inside("~/.hermes/state.db")


def test_workspace_inside_the_home_of_hermes_is_open_and_its_neighbours_are_not(context: ToolContext) -> None:
    home = Path.home() / ".hermes"
    ben = replace(context, workspace=home / "workspaces" / "ben", forbidden=(home,))
    assert ben.inside("letter.txt") == home.resolve() / "workspaces" / "ben" / "letter.txt"
    for path in ("../ana/letter.txt", "../../state.db"):
        with pytest.raises(ToolError, match="outside the workspace"):
            ben.inside(path)


def test_forbidden_folder_is_known_by_identity_where_names_differ(workspace: Path, context: ToolContext) -> None:
    # As on a file system where case does not count: the rule is given one name, the path uses another.
    (workspace / "alias").symlink_to(workspace / "hermes")
    other = replace(context, forbidden=(workspace / "alias",))
    with pytest.raises(ToolError, match="closed to tools"):
        other.inside("hermes/.env")


PARTS = st.sampled_from(["..", ".", "notes", "hermes", "plan.txt", ".env", "link-up", "link-hermes", "", "~", "x"])


@given(parts=st.lists(PARTS, max_size=8), is_absolute=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the folder is only looked at
def test_whatever_is_taken_really_lies_inside(
    linked: Path, context: ToolContext, parts: list[str], is_absolute: bool
) -> None:
    path = ("/" if is_absolute else "") + "/".join(parts)
    try:
        target = context.inside(path)
    except ToolError:
        return
    real = os.path.realpath(target)
    inside = os.path.realpath(linked)
    assert real == inside or real.startswith(inside + os.sep)
    assert not real.startswith(os.path.join(inside, "hermes"))
