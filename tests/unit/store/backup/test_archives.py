"""Archives that are damaged, torn or changed are refused in one sentence, and nothing of them is used."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.store.backup import archive, contents, restore, shelf, vault
from hermes.store.backup.archive import ArchiveRefusedError
from hermes.store.backup.create import BackupRequest, create
from hermes.store.backup.secret_marks import fill_in, mark_secrets
from tests.fakes.started_home import copy_home

PASSPHRASE = "correct horse battery"
Parts = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    copy_home(home)
    (home / "config.yaml").write_text("model:\n  api_key: sk-planted-key-1\n  default: openai/gpt\n")
    (home / ".env").write_text("OPENAI_API_KEY=sk-planted-key-2\n")
    (home / "scripts").mkdir()
    (home / "scripts" / "évening.sh").write_text("#!/bin/sh\n")
    (home / "scripts" / "évening.sh").chmod(0o700)
    (home / "scripts" / "link").symlink_to("/etc/passwd")
    return home


@pytest.fixture
def made(home: Path) -> Path:
    return create(BackupRequest(home, "1.0", secrets=["sk-planted-key-1"])).path


def parts_of(path: Path) -> Parts:
    with tarfile.open(path) as tar:
        return [(member, content.read() if (content := tar.extractfile(member)) else b"") for member in tar]


def packed(path: Path, parts: Parts) -> None:
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for member, content in parts:
            tar.addfile(member, io.BytesIO(content))


def part(
    name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = len(content), kind, link
    return member, content


def relisted(parts: Parts, change: Callable[[dict[str, Any]], None], key: bytes | None = None) -> Parts:
    """Change the list, and sign it anew by whoever knows the key."""
    plain = json.loads(parts[0][1])
    change(plain)
    listed = json.dumps(plain).encode()
    signature = archive.sign(key, listed).encode() if key else parts[1][1]
    return [part(archive.MANIFEST, listed), part(archive.SIGNATURE, signature), *parts[2:]]


def flip(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 0x40]) + raw[at + 1 :]


def damages(path: Path, key: bytes) -> Iterator[tuple[str, Callable[[], object], str]]:
    """Each kind of damage: its name, what does it to the file, and words of the refusal."""
    raw, parts = path.read_bytes(), parts_of(path)
    at = next(n for n, (member, _) in enumerate(parts) if member.name == "scripts/évening.sh")
    other = b"#!/bin/no\n"

    def listed(plain: dict[str, Any]) -> None:
        plain["files"][at - 2][1:] = [len(other), 0o700, hashlib.sha256(other).hexdigest()]

    def renamed(name: str) -> Callable[[], object]:
        def change(plain: dict[str, Any]) -> None:
            plain["files"][at - 2][0] = name

        return lambda: packed(path, [*relisted(parts, change, key)[:at], part(name), *parts[at + 1 :]])

    def huge(plain: dict[str, Any]) -> None:
        plain["files"][at - 2][1] = 1 << 39

    def newer(plain: dict[str, Any]) -> None:
        plain["format"] = 99

    changed = [*parts[:at], part("scripts/évening.sh", other), *parts[at + 1 :]]
    yield "one flipped bit", lambda: path.write_bytes(flip(raw, len(raw) // 2)), "damaged|not as it was written|early"
    yield "torn in the middle", lambda: path.write_bytes(raw[: len(raw) // 2]), "ends too early"
    yield "its last bytes missing", lambda: path.write_bytes(raw[:-6]), "ends too early|damaged"
    yield "empty", lambda: path.write_bytes(b""), "ends too early|no backup|damaged"
    yield "another file", lambda: path.write_bytes(b"PK\x03\x04 not ours"), "is no backup of Hermes"
    yield "another tar", lambda: packed(path, [part("hello")]), "is no backup of Hermes"
    yield "a file replaced", lambda: packed(path, changed), "changed after it was made|not as it was written"
    yield (
        "a file replaced, and the list with it",
        lambda: packed(path, relisted(changed, listed)),
        "its list of files is not the signed one",
    )
    yield "a file missing", lambda: packed(path, [*parts[:at], *parts[at + 1 :]]), "changed after|ends too early"
    yield "a file added", lambda: packed(path, [*parts, part("scripts/more.sh")]), "goes on behind its last file"
    yield "bytes behind the end", lambda: path.write_bytes(raw + b"more"), "damaged|goes on|no backup"
    yield (
        "a link",
        lambda: packed(path, [*parts[:at], part("scripts/évening.sh", b"", tarfile.SYMTYPE, "/etc/passwd")]),
        "no plain file",
    )
    yield (
        "a device",
        lambda: packed(path, [*parts[:at], part("scripts/évening.sh", b"", tarfile.CHRTYPE)]),
        "no plain file",
    )
    yield "a path upwards", renamed("scripts/../../evil"), "outside the home"
    yield "an absolute path", renamed("/etc/cron.d/evil"), "outside the home"
    yield "a name of ours that is no part of a backup", renamed("run/owner.lock"), "no backup of Hermes holds"
    yield "a file twice", renamed("config.yaml"), "names a file twice"
    yield "a file where a folder is", renamed("scripts"), "no backup of Hermes holds|twice"
    yield "a huge size", lambda: packed(path, relisted(parts, huge, key)), "MB left|its list names"
    yield "a newer format", lambda: packed(path, relisted(parts, newer, key)), "newer Hermes"
    yield (
        "a list that is no list",
        lambda: packed(path, [part(archive.MANIFEST, b"[" * 90_000), parts[1]]),
        "cannot be read",
    )


def test_every_kind_of_damage_is_refused_in_one_sentence_and_changes_nothing(home: Path, made: Path) -> None:
    key = shelf.read_key(home)
    assert key is not None
    whole = made.read_bytes()
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    kinds = 0
    for name, damage, words in damages(made, key):
        made.write_bytes(whole)
        damage()
        for act in (lambda: restore.verify(made, key), lambda: restore.prepare(home, made)):
            with pytest.raises(ArchiveRefusedError, match=words) as refused:
                act()
            assert "\n" not in str(refused.value), name
        assert sorted(path.relative_to(home) for path in home.rglob("*")) == before, name
        kinds += 1
    assert kinds >= 10
    made.write_bytes(whole)
    assert restore.verify(made, key).files


def test_any_single_changed_byte_is_noticed_unless_it_changes_nothing(home: Path, made: Path) -> None:
    key, raw = shelf.read_key(home), made.read_bytes()
    for at in range(10, len(raw), max(1, len(raw) // 150)):
        made.write_bytes(flip(raw, at))
        try:
            restore.verify(made, key)
        except ArchiveRefusedError:
            continue
        assert gzip.decompress(made.read_bytes()) == gzip.decompress(raw), "bits that fill up the last byte of a block"


def test_header_that_asks_for_all_memory_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("@LongLink")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    bomb = tmp_path / "bomb.tar.gz"
    with gzip.open(bomb, "wb") as file:
        file.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(8):
            file.write(bytes(1 << 20))
    with pytest.raises(ArchiveRefusedError, match="larger than listed"):
        restore.verify(bomb, None)


def test_headers_that_nest_a_thousand_times_are_refused(tmp_path: Path) -> None:
    header, content = part("x", b"6 a=b\n", kind=tarfile.XHDTYPE)
    block = header.tobuf(tarfile.USTAR_FORMAT) + content.ljust(tarfile.BLOCKSIZE, b"\0")
    path = tmp_path / "hermes-20260101-000000-manual.tar.gz"
    path.write_bytes(gzip.compress(block * 5000))
    with pytest.raises(ArchiveRefusedError, match="damaged"):
        restore.verify(path, None)


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -1e300, 1e300])
def test_list_with_a_time_that_no_clock_shows_is_refused(made: Path, moment: float) -> None:
    listed = json.loads(parts_of(made)[0][1])
    with pytest.raises(ArchiveRefusedError, match="cannot be read"):
        archive.parse(json.dumps({**listed, "created_at": moment}).encode(), made.name)


def test_archive_of_another_home_needs_a_word_of_trust(home: Path, made: Path) -> None:
    shelf.key_file(home).write_text(os.urandom(32).hex())
    with pytest.raises(ArchiveRefusedError, match="was not made by this home"):
        restore.prepare(home, made)
    assert restore.prepare(home, made, accepts_other_home=True).manifest.files


def test_secrets_are_in_no_backup_that_was_not_asked_for_them(home: Path, made: Path) -> None:
    content = b"".join(content for _, content in parts_of(made))
    assert b"sk-planted-key" not in content
    assert b"default: openai/gpt" in content
    prepared = restore.prepare(home, made, secrets=["sk-planted-key-1"])
    assert (home / ".restore/new/config.yaml").read_text() == (home / "config.yaml").read_text()
    assert prepared.missing_secrets == 0
    assert restore.prepare(home, made).missing_secrets == 1


def test_secrets_that_were_asked_for_are_encrypted_and_come_back_with_the_passphrase(home: Path) -> None:
    made = create(BackupRequest(home, "1.0", secrets=["sk-planted-key-1"], passphrase=PASSPHRASE)).path
    assert b"sk-planted-key" not in b"".join(content for _, content in parts_of(made))
    with pytest.raises(ArchiveRefusedError, match="passphrase is not that of"):
        restore.prepare(home, made, passphrase="another horse battery")
    assert restore.verify(made, shelf.read_key(home), PASSPHRASE).has_secrets
    (home / ".env").write_text("LOST=1\n")
    restore.decide(home, restore.prepare(home, made, passphrase=PASSPHRASE).names, 1.0)
    restore.finish(home)
    assert (home / ".env").read_text() == "OPENAI_API_KEY=sk-planted-key-2\n"


def test_secrets_of_one_archive_cannot_be_put_into_another(home: Path) -> None:
    sealed = vault.seal(home, "first", PASSPHRASE)
    assert dict(vault.unseal(sealed, "first", PASSPHRASE, "a"))[".env"] == b"OPENAI_API_KEY=sk-planted-key-2\n"
    with pytest.raises(ArchiveRefusedError, match="secrets were changed"):
        vault.unseal(sealed, "second", PASSPHRASE, "a")


@pytest.mark.parametrize(
    "name", ["/x", "../x", "skills/../../x", "skills//x", "skills/./x", "skills", "x\0y", "", ".env", "backups/key"]
)
def test_name_that_no_backup_holds_is_refused(name: str) -> None:
    assert contents.why_refused(name)


def test_secret_inside_an_address_or_json_is_marked_and_filled_in_again() -> None:
    text = 'a: pa/ss"word\nb: pa%2Fss%22word\nc: pa/ss\\"word\n'
    marked, count = mark_secrets(text, ['pa/ss"word'], b"key")
    assert count == 3
    assert "ss" not in marked
    assert fill_in(marked, ['pa/ss"word'], b"key") == (text, 0)
    assert fill_in(marked, ['pa/ss"word'], b"other")[1] == 3
