"""write_file writes the whole file in one step, keeps what was there, and refuses what is no ordinary file."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.tools import read_file, search_files
from hermes.agent.tools.write_file import WRITE_BYTES, ask_first, write_file
from hermes.agent.workspace.checkpoints import Checkpoints
from hermes.agent.workspace.sensitive import why_sensitive
from hermes.core.errors import ToolError
from hermes.core.i18n.catalogue import ENGLISH


def halves(folder: Path) -> list[Path]:
    return list(folder.rglob(".hermes-*.tmp"))


async def test_a_new_file_is_made_with_its_folders(workspace: Path, equipped: ToolContext) -> None:
    told = await write_file(equipped, "a/b/c.txt", "one\ntwo\n")
    assert told == "Made 'a/b/c.txt': 2 lines, 8 bytes."
    assert (workspace / "a" / "b" / "c.txt").read_text() == "one\ntwo\n"


async def test_a_file_is_replaced_and_keeps_its_permissions(workspace: Path, equipped: ToolContext) -> None:
    script = workspace / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o750)
    told = await write_file(equipped, "run.sh", "#!/bin/sh\r\necho €\r\n")
    assert told == "Replaced 'run.sh': 2 lines, 21 bytes; it had 10."
    assert script.read_bytes() == "#!/bin/sh\r\necho €\r\n".encode()
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert halves(workspace) == []


async def test_a_link_inside_stays_a_link_and_its_file_is_written(workspace: Path, equipped: ToolContext) -> None:
    (workspace / "today").symlink_to("notes/plan.txt")
    await write_file(equipped, "today", "new\n")
    assert (workspace / "today").is_symlink()
    assert (workspace / "notes" / "plan.txt").read_text() == "new\n"


async def test_what_is_there_already_is_not_written_again(
    workspace: Path, equipped: ToolContext, checkpoints: Checkpoints
) -> None:
    before = (workspace / "notes" / "plan.txt").stat()
    told = await write_file(equipped, "notes/plan.txt", "first\nsecond\nthird\n")
    assert "holds exactly this now" in told
    assert (workspace / "notes" / "plan.txt").stat().st_ino == before.st_ino
    assert await checkpoints.listed(str(equipped.origin), "local") == []


@pytest.mark.parametrize(
    "path,told",
    [
        ("notes", "is a folder"),
        ("notes/", "names a folder"),
        ("notes/new/", "names a folder"),
        ("pipe", "not a regular file"),
        ("notes/plan.txt/deeper", "There is no file"),
        ("../outside.txt", "outside the workspace"),
        ("hermes/new.txt", "closed to tools"),
        ("n" * 300, "File name too long"),
        ("d/" * 2500 + "x", "too long"),
        ("\ud800", "not a usable path"),
        ("\udcff.txt", "not a usable path"),
    ],
)
async def test_what_cannot_be_written_is_told_and_leaves_nothing(
    workspace: Path, equipped: ToolContext, checkpoints: Checkpoints, path: str, told: str
) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolError, match=told):
        await write_file(equipped, path, "x")
    assert halves(workspace) == []
    assert await checkpoints.listed(str(equipped.origin), "local") == []


async def test_too_much_and_half_characters_are_refused(equipped: ToolContext) -> None:
    with pytest.raises(ToolError, match="at most 5,000,000 can be written"):
        await write_file(equipped, "big.txt", "x" * (WRITE_BYTES + 1))
    with pytest.raises(ToolError, match="half of a character"):
        await write_file(equipped, "odd.txt", "\ud83d")


@pytest.mark.parametrize(
    "path",
    [
        ".bashrc", ".ssh/authorized_keys", "sub/.git/hooks/pre-commit", ".config/systemd/user/x.service", ".BASHRC",
        ".config/autostart/x.desktop", ".netrc", ".aws/credentials", "link-rc", "notes/../.profile",
    ],
)  # fmt: skip
async def test_a_file_that_is_more_than_a_file_needs_an_admins_yes(
    workspace: Path, equipped: ToolContext, path: str
) -> None:
    (workspace / "link-rc").symlink_to(".zshrc")
    need = ask_first(equipped, path, "x")
    assert need is not None
    assert need.touches_host
    assert need.subject


@pytest.mark.parametrize(
    "path",
    [".ssh/id_rsa", ".ssh", ".aws/credentials", ".netrc", "notes/../.kube/config", "link", "app/.env", "server.key"],
)
def test_reading_keys_needs_an_admins_yes(workspace: Path, context: ToolContext, path: str) -> None:
    (workspace / "link").symlink_to(".ssh")
    for asks in (read_file.ask_first(context, path, first_line=1), search_files.ask_first(context, path, limit=5)):
        assert asks is not None
        assert asks.touches_host
    assert search_files.ask_first(context) is None
    assert read_file.ask_first(context, ".bashrc") is None
    assert read_file.ask_first(context, "app/.env.example") is None


def test_in_a_corner_of_their_own_nobody_is_asked(context: ToolContext, tmp_path: Path) -> None:
    own = replace(context, workspace=tmp_path / "home" / "workspaces" / "ben", forbidden=(tmp_path / "home",))
    assert ask_first(own, ".git/hooks/pre-commit", "x") is None
    assert read_file.ask_first(own, ".ssh/id_rsa") is None


@pytest.mark.parametrize("path", ["notes/plan.txt", "bashrc", "my.profile", "src/login", ".gitignore", "ssh/config"])
def test_an_ordinary_file_needs_none(equipped: ToolContext, path: str) -> None:
    assert ask_first(equipped, path, "x") is None
    assert why_sensitive(f"/home/ana/{path}", ENGLISH) == ""
