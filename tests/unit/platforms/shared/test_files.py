"""Files of every platform: what comes in is bounded and stays in its folder, what cannot go out is told in words."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.core.errors import RejectedError
from hermes.platforms.shared import files


async def pieces(*parts: bytes, breaks: bool = False) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if breaks:
        raise ConnectionResetError


async def test_what_comes_is_saved_under_its_name_for_us_alone_and_never_over_another(tmp_path: Path) -> None:
    saved = [await files.save(pieces(b"one", b"two"), tmp_path / "in", "../a.txt", 6) for _ in range(3)]
    assert [path.name for path in saved] == ["a.txt", "a-1.txt", "a-2.txt"]
    assert {path.read_bytes() for path in saved} == {b"onetwo"}
    assert {path.stat().st_mode & 0o777 for path in saved} == {0o600}


async def test_more_than_the_limit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match=r"film\.mp4 is larger than 5 bytes"):
        await files.save(pieces(b"one", b"two"), tmp_path / "in", "film.mp4", 5)
    assert os.listdir(tmp_path / "in") == []


async def test_a_download_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError):
        await files.save(pieces(b"one", breaks=True), tmp_path / "in", "film.mp4", 5)
    assert os.listdir(tmp_path / "in") == []


@pytest.mark.parametrize(
    "name,safe",
    [
        ("../../etc/passwd", "passwd"),
        ("..\\evil.exe", "evil.exe"),
        (".bashrc", "bashrc"),
        ("a\x00b\u202e.txt", "a_b_.txt"),
        ("", "file"),
        ("..", "file"),
        ("x" * 300 + ".txt", "x" * 80 + ".txt"),
    ],
)
def test_a_name_from_outside_stays_in_its_folder(name: str, safe: str) -> None:
    assert files.safe_name(name) == safe


async def test_a_file_that_goes_out_is_opened_and_measured(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(b"%PDF")
    async with files.opened(str(path), "", limit=4, platform="Pager") as upload:
        assert (upload.name, upload.size, upload.file.read()) == ("report.pdf", 4, b"%PDF")
    assert upload.file.closed


@pytest.mark.parametrize(
    "size,reason", [(5, "has 5 bytes; Pager takes files up to 4"), (0, "is empty"), (-1, "No such")]
)
async def test_a_file_that_cannot_go_out_is_told_by_its_name(tmp_path: Path, size: int, reason: str) -> None:
    path = tmp_path / "x"
    if size >= 0:
        path.write_bytes(b"x" * size)
    with pytest.raises(RejectedError, match=reason) as refused:
        async with files.opened(str(path), "plan.txt", limit=4, platform="Pager"):
            pytest.fail("it was opened")
    assert str(refused.value).startswith("plan.txt ")
