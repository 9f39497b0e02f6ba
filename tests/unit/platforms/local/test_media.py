"""Pictures of a terminal, kept until the turn has read them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.core.errors import RejectedError
from hermes.core.messages import Attachment, AttachmentKind, Picture
from hermes.platforms.local.media import KEEP_SECONDS, PictureFolder


def test_a_kept_picture_is_copied_under_its_own_name(tmp_path: Path) -> None:
    folder, into = PictureFolder(tmp_path / "pictures"), tmp_path / "into"
    into.mkdir()
    (kept,) = folder.keep("k/../1", (Picture("../a b.png", b"data", "/home/ana/a b.png"),))
    assert kept.path == "/home/ana/a b.png"
    copied = folder.copy(kept, into)
    assert copied.parent == into
    assert copied.read_bytes() == b"data"
    assert os.stat(tmp_path / "pictures" / kept.file_id).st_mode & 0o077 == 0


def test_a_message_that_is_sent_again_keeps_one_file(tmp_path: Path) -> None:
    folder = PictureFolder(tmp_path / "pictures")
    assert folder.keep("k1", (Picture("a.png", b"1"),)) == folder.keep("k1", (Picture("a.png", b"2"),))
    assert [path.read_bytes() for path in (tmp_path / "pictures").iterdir()] == [b"2"]


@pytest.mark.parametrize("name", ["", "../secret", "gone", "/etc/passwd"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("s")
    with pytest.raises(RejectedError):
        PictureFolder(tmp_path / "pictures").copy(Attachment(AttachmentKind.IMAGE, name), tmp_path)


def test_old_pictures_are_removed_with_the_next_message(tmp_path: Path) -> None:
    folder = PictureFolder(tmp_path / "pictures")
    (old,) = folder.keep("k1", (Picture("a.png", b"1"),))
    os.utime(tmp_path / "pictures" / old.file_id, (1, KEEP_SECONDS))
    folder.keep("k2", (Picture("b.png", b"2"),))
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["k2-0"]
