"""Two hundred ways of writing a path: none reads or writes anything outside the workspace, or Hermes' own folder."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.workspace.files import open_inside, place_of
from hermes.core.errors import ToolError
from hermes.core.keys import ChatKind, SessionKey

SECRET = b"canary-4711"
UP = "../"

CLIMBING = [
    "..",
    "../",
    "../.",
    "./..",
    "../outside.txt",
    "./../outside.txt",
    ".//../outside.txt",
    "notes/../../outside.txt",
    "notes/../../workspace/../outside.txt",
    "notes/./.././../outside.txt",
    "notes//..//..//outside.txt",
    "missing/../../outside.txt",
    "missing/deep/../../../outside.txt",
    "../workspace-two/outside.txt",
    "../workspace/../outside.txt",
    "../workspace/notes/../../outside.txt",
    "notes/plan.txt/../../../outside.txt",
    UP * 10 + "etc/passwd",
    UP * 60 + "etc/passwd",
    "notes/" + UP * 30 + "etc/shadow",
    "../../",
    "../neighbour/diary.txt",
    "../neighbour/../neighbour/diary.txt",
    "./" * 50 + "../outside.txt",
    "notes/.//./../..//outside.txt",
    "hermes/../../outside.txt",
    "../outside.txt/",
    "../outside.txt/.",
    "..//outside.txt",
    "..///outside.txt",
]
ABSOLUTE = [
    "/",
    "//",
    "///",
    "/.",
    "/..",
    "/etc/passwd",
    "//etc/passwd",
    "///etc//passwd",
    "/etc/../etc/passwd",
    "/./etc/passwd",
    "/etc/shadow",
    "/root/.ssh/id_rsa",
    "/home",
    "/tmp",
    "/var/log/syslog",
    "/usr/bin/env",
    "/bin/sh",
    "/boot",
    "/run",
    "/etc/ssl/private/x.key",
    "{parent}/outside.txt",
    "{parent}//outside.txt",
    "{workspace}/../outside.txt",
    "{workspace}//..//outside.txt",
    "{workspace}-two/outside.txt",
    "{workspace}/hermes/.env",
    "{workspace}/link-up/outside.txt",
    "{parent}/neighbour/diary.txt",
    "{parent}/./workspace/../neighbour/diary.txt",
    "{workspace}/notes/../../outside.txt",
]
KERNEL = [
    "/proc",
    "/proc/",
    "/proc/self/environ",
    "/proc/self/cmdline",
    "/proc/self/mem",
    "/proc/self/maps",
    "/proc/1/environ",
    "/proc/self/root/etc/passwd",
    "/proc/self/root{parent}/outside.txt",
    "/proc/self/cwd/../outside.txt",
    "/proc/thread-self/root{parent}/outside.txt",
    "/proc/{pid}/root{parent}/outside.txt",
    "/proc/self/fd/0",
    "/proc/self/fd/1",
    "/proc/self/task/{pid}/environ",
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/proc/net/tcp",
    "/sys",
    "/sys/kernel/uevent_helper",
    "/sys/class/net",
    "/dev",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/stdin",
    "/dev/fd/0",
    "/dev/tty",
    "/dev/mem",
    "/dev/sda",
    "/dev/shm/x",
    "/dev/pts/0",
    "/dev/tcp/127.0.0.1/80",
]
HOMES = [
    "~",
    "~/",
    "~/.ssh/id_rsa",
    "~/.bashrc",
    "~/.hermes/.env",
    "~root",
    "~root/.bashrc",
    "~root/../etc/passwd",
    "~daemon/x",
    "~nobody-of-this-name",
    "~nobody-of-this-name/x",
    "~/../../etc/passwd",
    "~+/x",
    "~-/x",
    "~1/x",
]
LINKS = [
    "link-out",
    "link-out/",
    "link-out/.",
    "link-out/../outside.txt",
    "link-up",
    "link-up/outside.txt",
    "link-up/./outside.txt",
    "link-up/neighbour/diary.txt",
    "link-to-link/outside.txt",
    "link-relative/outside.txt",
    "link-root/etc/passwd",
    "link-proc/environ",
    "link-null",
    "link-etc/passwd",
    "link-up/../etc/passwd",
    "notes/link-up/outside.txt",
    "link-up/workspace/hermes/.env",
    "link-dangling",
    "link-dangling/x",
    "loop",
    "loop/x",
    "loop-a",
    "loop-a/x",
    "loop/../link-out",
    "loop-a/../link-out",
    "loop/../link-up/outside.txt",
    "loop/../notes/../link-env",
    "missing/../loop/../link-out",
    "missing/../loop/../link-up/outside.txt",
    "missing/../loop-a/../link-env",
    "link-to-loop",
    "link-to-loop/x",
    "notes/../loop",
    "loop/",
    "loop/.",
    "link-hermes",
    "link-hermes/.env",
    "link-env",
    "link-hermes/../hermes/.env",
    "link-neighbour/diary.txt",
    "link-up/outside.txt/",
]
OWN = [
    "hermes",
    "hermes/",
    "hermes/.",
    "hermes/.env",
    "hermes//.env",
    "./hermes/.env",
    "hermes/./.env",
    "hermes/new.txt",
    "hermes/state.txt",
    "hermes/../hermes/state.txt",
    "notes/../hermes/.env",
    "hermes/deeper/new.txt",
    "hermes/.env/",
    "hermes/checkpoints/x",
    "hermes/missing/../.env",
]
HARD = ["hard-env", "hard-state", "./hard-env", "notes/../hard-env", "{workspace}/hard-env", "link-to-hard"]
ODD = [
    "",
    ".",
    "./",
    "notes",
    "notes/",
    "notes/.",
    "pipe",
    "socket",
    "a\0b",
    "notes/plan.txt\0.png",
    "\0",
    "../outside.txt\0",
    "x" * 300,
    "x" * 5000,
    "d/" * 2500 + "x",
    "notes/" + "y" * 256,
    "\ud800",
    "notes/\udcff\udcfe/x",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "FILE:///etc/passwd",
    "http://127.0.0.1/",
    "https://example.org/x",
    "ftp://host/x",
    "smb://server/share",
    "data://x",
    "file:///{workspace}/notes/plan.txt",
]
REFUSED = [*CLIMBING, *ABSOLUTE, *KERNEL, *HOMES, *LINKS, *OWN, *HARD, *ODD]

# Odd names, but names: they mean a file of that name in the workspace, and nothing else.
ONLY_NAMES = [
    "..\\outside.txt",
    "..\\..\\etc\\passwd",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "\\\\server\\share\\x",
    "\\\\?\\C:\\x",
    "%2e%2e/outside.txt",
    "%2e%2e%2foutside.txt",
    "..%2foutside.txt",
    "..%c0%af..%c0%afetc/passwd",
    "..;/outside.txt",
    "$HOME/.bashrc",
    "${HOME}/x",
    "$(cat /etc/passwd)",
    "`id`",
    "%USERPROFILE%/x",
    "*",
    "*.txt",
    "notes/*",
    "[a-z]*",
    "{a,b}",
    "．．/outside.txt",
    "‥/outside.txt",
    "․․/outside.txt",
    "..∕outside.txt",
    "..／outside.txt",
    "..⁄outside.txt",
    "…/outside.txt",
    ". ./outside.txt",
    ".. /outside.txt",
    " ../outside.txt",
    "...",
    ".../outside.txt",
    "....//outside.txt",
    "..../x",
    "..a/x",
    "a..",
    "-rf",
    "--help",
    "CON",
    "NUL",
    "aux.txt",
    "notes/plan.txt:stream",
    "notes/plan.txt::$DATA",
    "Hermes-notes",
    "ｈermes/.env",
    "һermes/.env",
    "hermes\u200b/.env",
    "hermes /.env",
    ".hermes-other/x",
    "\u202egnp.exe",
    "line\nbreak",
    "tab\there",
    "e\u0301.txt",
    "\u00e9.txt",
    "😀.txt",
    "notes/\u202ex",
    "|cat",
    ";ls",
    "a&b",
    "'",
    '"',
    "#x",
    "file:/etc/passwd",
    "mailto:x",
    "a~b",
    "notes/~root",
]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "workspace"
    for inner in ("notes", "hermes"):
        (folder / inner).mkdir(parents=True)
    (tmp_path / "neighbour").mkdir()
    (tmp_path / "workspace-two").mkdir()
    secrets = ("outside.txt", "neighbour/diary.txt", "workspace-two/outside.txt", "workspace/hermes/.env")
    for secret in (*secrets, "workspace/hermes/state.txt"):
        (tmp_path / secret).write_bytes(SECRET)
    (folder / "notes" / "plan.txt").write_text("first\n")
    links = {
        "link-out": tmp_path / "outside.txt", "link-up": tmp_path, "link-to-link": folder / "link-up",
        "link-relative": Path("..") / ".." / tmp_path.name, "link-root": Path("/"), "link-proc": Path("/proc/self"),
        "link-null": Path("/dev/null"), "link-etc": Path("/etc"), "notes/link-up": tmp_path,
        "link-dangling": tmp_path / "not-yet", "loop": folder / "loop", "loop-a": folder / "loop-b",
        "loop-b": folder / "loop-a", "link-hermes": folder / "hermes", "link-env": folder / "hermes" / ".env",
        "link-neighbour": tmp_path / "neighbour", "link-to-hard": folder / "hard-env",
        "link-to-loop": folder / "loop",
    }  # fmt: skip
    for name, target in links.items():
        (folder / name).symlink_to(target)
    (folder / "hard-env").hardlink_to(folder / "hermes" / ".env")
    (folder / "hard-state").hardlink_to(folder / "hermes" / "state.txt")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as door:
        here = os.open(folder, os.O_RDONLY)
        try:
            door.bind(f"/proc/self/fd/{here}/socket")  # the plain path may be too long for a socket
        finally:
            os.close(here)
        yield folder


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    key = SessionKey("local", ChatKind.DM, "me")
    return ToolContext("t_1:1:0", key, "local", workspace, forbidden=(workspace / "hermes",))


def written(form: str, workspace: Path) -> str:
    for name, value in (("parent", workspace.parent), ("workspace", workspace), ("pid", os.getpid())):
        form = form.replace(f"{{{name}}}", str(value))
    return form


def closed_files(workspace: Path) -> dict[Path, bytes]:
    """Everything outside the workspace and in Hermes' folder."""
    outside = [path for path in workspace.parent.rglob("*") if not path.is_relative_to(workspace)]
    own = [*(workspace / "hermes").rglob("*")]
    return {path: path.read_bytes() for path in (*outside, *own) if path.is_file() and not path.is_symlink()}


def named(form: str) -> str:
    return form[:40].encode("unicode_escape").decode() or "empty"


def test_there_are_two_hundred() -> None:
    assert len(set(REFUSED)) == len(REFUSED)
    assert len(set(ONLY_NAMES)) == len(ONLY_NAMES)
    assert len(REFUSED) + len(ONLY_NAMES) >= 200


@pytest.mark.parametrize("form", REFUSED, ids=named)
def test_a_path_that_leads_out_is_neither_read_nor_written(workspace: Path, context: ToolContext, form: str) -> None:
    path, before = written(form, workspace), closed_files(workspace)
    with pytest.raises(ToolError), open_inside(context, path) as file:
        file.read()
    if form not in HARD:  # a write gives such a name a file of its own: see below
        with pytest.raises(ToolError), place_of(context, path, makes_folders=True) as place:
            place.write(b"x", token="t")
    assert closed_files(workspace) == before


@pytest.mark.parametrize("form", ONLY_NAMES, ids=named)
def test_an_odd_name_is_a_file_of_that_name_in_the_workspace(workspace: Path, context: ToolContext, form: str) -> None:
    before = closed_files(workspace)
    with place_of(context, form, makes_folders=True) as place:
        place.write(b"mine", token="t")
    with open_inside(context, form) as file:
        assert file.read() == b"mine"
        real = Path(os.readlink(f"/proc/self/fd/{file.fileno()}"))
    assert real.is_relative_to(workspace)
    assert not real.is_relative_to(workspace / "hermes")
    assert closed_files(workspace) == before


def test_writing_over_a_second_name_leaves_the_first_as_it_was(workspace: Path, context: ToolContext) -> None:
    with place_of(context, "hard-env", makes_folders=True) as place:
        place.write(b"mine", token="t")
    assert (workspace / "hermes" / ".env").read_bytes() == SECRET
    assert (workspace / "hard-env").read_bytes() == b"mine"
