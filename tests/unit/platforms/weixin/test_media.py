"""The lock on files, in the vectors of the protocol sheet, and addresses that lead nowhere else."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.core.errors import RejectedError
from hermes.core.messages import Attachment, AttachmentKind
from hermes.platforms.shared import files
from hermes.platforms.weixin import media

KEY = bytes(range(16))
RAW = "b64:AAECAwQFBgcICQoLDA0ODw=="
HEX = "b64:MDAwMTAyMDMwNDA1MDYwNzA4MDkwYTBiMGMwZDBlMGY="
CDN, API = "http://127.0.0.1:9/c2c", "http://127.0.0.1:9"

VECTORS = {
    b"": "954f64f2e4e86e9eee82d20216684899",
    b"hello": "5d8749e2af7531b2bf6661e9e5daf012",
    b"hello weixin cdn": "9846510d6a2bb68de59ef14d1f1a4bcb954f64f2e4e86e9eee82d20216684899",
    "你好，微信".encode(): "5fa24a0feba1b60f372f666f281eeea0",
}


@pytest.mark.parametrize("plain", VECTORS, ids=[str(len(plain)) for plain in VECTORS])
def test_a_file_is_locked_as_the_cdn_wants_it_and_opened_again(plain: bytes) -> None:
    locked = media.lock(plain, KEY)
    assert locked.hex() == VECTORS[plain]
    lock = media.Unlocked(KEY)
    opened = b"".join(lock.update(locked[at : at + 5]) for at in range(0, len(locked), 5))
    assert opened + lock.finish() == plain


@pytest.mark.parametrize("size, padded", [(0, 16), (15, 16), (16, 32), (17, 32), (1000, 1008), (1048576, 1048592)])
def test_locking_adds_at_least_a_byte(size: int, padded: int) -> None:
    assert len(media.lock(bytes(size), KEY)) == padded


@pytest.mark.parametrize("spelling", [KEY.hex(), RAW, HEX], ids=["hex", "base64", "base64 of hex"])
def test_every_spelling_of_a_key_is_understood(spelling: str) -> None:
    assert media.key_of(spelling) == KEY


@pytest.mark.parametrize("spelling", ["zz", "b64:%%%", "b64:AAEC", KEY.hex()[:-2], "b64:" + "zz" * 21 + "=="])
def test_what_is_no_key_is_refused_in_words(spelling: str) -> None:
    with pytest.raises(RejectedError, match="key of this file"):
        media.key_of(spelling)


def test_of_two_keys_of_a_picture_its_own_counts() -> None:
    item = {"type": 2, "image_item": {"aeskey": KEY.hex(), "media": {"encrypt_query_param": "E", "aes_key": "AAAA"}}}
    attachment = media.attachment(item)
    assert attachment is not None
    assert media.key_of(media.Handle.of(attachment.file_id).key) == KEY


def test_a_key_goes_out_in_the_one_spelling_that_phones_take() -> None:
    assert f"b64:{media.sent_key(KEY)}" == HEX


@pytest.mark.parametrize(
    "locked", [media.lock(b"hello", bytes(16)), media.lock(b"hello", KEY)[:-1], b"", b"x" * 15], ids=range(4)
)
async def test_a_file_that_its_key_does_not_open_leaves_nothing_behind(locked: bytes, tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield locked

    with pytest.raises(RejectedError, match="cannot be opened"):
        await files.save(media.unlocked(pieces(), KEY.hex()), tmp_path / "in", "a.txt", 100)
    assert os.listdir(tmp_path / "in") == []


async def test_a_picture_without_a_key_is_plain(tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"\xff\xd8 plain"

    path = await files.save(media.unlocked(pieces(), ""), tmp_path / "in", "../a.jpg", 100)
    assert path.read_bytes() == b"\xff\xd8 plain"
    assert os.listdir(tmp_path / "in") == ["a.jpg"]


@pytest.mark.parametrize(
    "url",
    [
        "https://novac2c.cdn.weixin.qq.com/c2c/download?encrypted_query_param=EQP-1",
        "https://mmbiz.qpic.cn/x",
        "http://127.0.0.1:9/c2c/download?x=1",
    ],
)
def test_an_address_of_weixin_is_followed(url: str) -> None:
    assert media.download_url(media.Handle("EQP", "", url), CDN, API) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://novac2c.cdn.weixin.qq.com/c2c/download",
        "https://novac2c.cdn.weixin.qq.com.evil.example/x",
        "https://novac2c.cdn.weixin.qq.com:8443/x",
        "http://127.0.0.1:10/c2c/download",
        "https://evil@127.0.0.1/x",
        "http://[half/",
        "file:///etc/passwd",
    ],
)
def test_any_other_address_is_not(url: str) -> None:
    made = media.download_url(media.Handle("E/Q+P", "", url), CDN, API)
    assert made == f"{CDN}/download?encrypted_query_param=E%2FQ%2BP"
    with pytest.raises(RejectedError, match="not Weixin's"):
        media.download_url(media.Handle("", "", url), CDN, API)


async def test_a_packed_file_asks_for_a_place_with_its_sizes_and_sum(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"film" * 5)
    package = await media.packed(Attachment(AttachmentKind.VIDEO, path=str(tmp_path / "a.mp4"), mime="video/mp4"))
    wanted = package.wanted("o1@im.wechat")
    assert (wanted["media_type"], wanted["rawsize"], wanted["filesize"]) == (2, 20, 32)
    assert wanted["rawfilemd5"] == hashlib.md5(b"film" * 5).hexdigest()  # noqa: S324 - theirs
    item = package.item("DL-1")
    assert item["type"] == 5
    assert item["video_item"]["video_size"] == 32


@pytest.mark.parametrize(
    "kind, number", [(AttachmentKind.IMAGE, 2), (AttachmentKind.VOICE, 4), (AttachmentKind.DOCUMENT, 4)]
)
async def test_sound_goes_out_as_a_file(kind: AttachmentKind, number: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    package = await media.packed(Attachment(kind, path=str(tmp_path / "a"), name="a"))
    assert package.item("DL-1")["type"] == number


def test_a_handle_that_is_none_is_refused() -> None:
    with pytest.raises(RejectedError, match="not a file"):
        media.Handle.of("{")
    assert media.Handle.of(str(media.Handle("p", "k", "u"))) == media.Handle("p", "k", "u")
