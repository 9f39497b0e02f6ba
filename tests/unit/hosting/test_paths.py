"""A home that cannot be kept is known before anything is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.hosting.paths import why_unusable

SOURCES = Path(__file__).resolve().parents[3] / "src"


def test_a_home_in_a_folder_of_ours_is_usable(tmp_path: Path) -> None:
    assert why_unusable(str(tmp_path / "new" / "ü n 🦊")) == ""


def test_a_name_that_no_file_system_takes_is_told(tmp_path: Path) -> None:
    assert "a name in it is longer than the 255 bytes" in why_unusable(str(tmp_path / "new" / ("ü" * 128)))


def test_a_path_with_no_room_for_our_files_is_told(tmp_path: Path) -> None:
    assert why_unusable(str(tmp_path / "/".join(["deep"] * 1000))) == "it is too long to keep files below it"


def test_a_read_only_disk_is_told_with_the_command_that_makes_it_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = os.statvfs(tmp_path)
    flags = [*[*found][:8], found.f_flag | os.ST_RDONLY, found.f_namemax]
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(flags))
    reason, _, cure = why_unusable(str(tmp_path / "home")).partition(" → ")
    assert reason == "its disk is read-only"
    mount = cure.removeprefix("sudo mount -o remount,rw ")
    assert os.path.ismount(mount)
    assert str(tmp_path).startswith(mount)


@pytest.mark.parametrize(
    "verb, words, cure", [("run", "cannot start in", "hermes doctor"), ("start", "did not start", "gateway run")]
)
def test_a_place_where_nothing_can_be_written_is_told_with_what_to_type(
    tmp_path: Path, verb: str, words: str, cure: str
) -> None:
    # No file may grow: what a full disk does to the first one that the gateway writes.
    script = f"ulimit -f 0; exec {sys.executable} -m hermes gateway {verb}"
    environ = os.environ | {"PYTHONPATH": str(SOURCES), "HERMES_HOME": str(tmp_path / "home")}
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=60, env=environ)
    assert done.returncode == 1, done
    assert words in done.stderr
    assert cure in done.stderr
    assert "Traceback" not in done.stderr
