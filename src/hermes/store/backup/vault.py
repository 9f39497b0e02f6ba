"""Encrypt the secrets of a backup with a passphrase: scrypt, then AES-256-GCM.

The parameters belong to the format and are not read from the archive, so that no archive can ask for all memory.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from hermes.core.errors import ConfigError
from hermes.store.backup import contents
from hermes.store.backup.archive import ArchiveRefusedError

MAX_BYTES = 256 << 20
MIN_PASSPHRASE = 12
_MAGIC = b"hermes-secrets-1"
_SALT_BYTES, _NONCE_BYTES = 16, 12


def check_passphrase(passphrase: str) -> None:
    if len(passphrase) < MIN_PASSPHRASE:
        raise ConfigError(f"A passphrase for secrets has at least {MIN_PASSPHRASE} characters.")


def seal(home: Path, archive_id: str, passphrase: str) -> bytes:
    """Encrypt every secret file of the home. ``archive_id`` ties them to one archive; b'' where there are none."""
    found = [pair for name in contents.SECRETS for pair in contents.files_below(home, name)]
    if not found:
        return b""
    if sum(path.stat().st_size for _, path in found) > MAX_BYTES:
        raise ConfigError(f"The secret files of {home} are larger than {MAX_BYTES >> 20} MB.")
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, path in found:
            content = path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
    sealed = AESGCM(_key(passphrase, salt)).encrypt(nonce, plain.getvalue(), _MAGIC + archive_id.encode())
    return _MAGIC + salt + nonce + sealed


def unseal(sealed: bytes, archive_id: str, passphrase: str, archive: str) -> Sequence[tuple[str, bytes]]:
    """Decrypt the secrets of an archive: names and contents. Raises ArchiveRefusedError."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head = len(_MAGIC)
    salt, nonce = sealed[head : head + _SALT_BYTES], sealed[head + _SALT_BYTES : head + _SALT_BYTES + _NONCE_BYTES]
    if sealed[:head] != _MAGIC or len(nonce) != _NONCE_BYTES:
        raise ArchiveRefusedError(f"{archive} is damaged: its secrets cannot be read.")
    try:
        body = sealed[head + _SALT_BYTES + _NONCE_BYTES :]
        plain = AESGCM(_key(passphrase, salt)).decrypt(nonce, body, _MAGIC + archive_id.encode())
    except InvalidTag:
        raise ArchiveRefusedError(
            f"The passphrase is not that of {archive}, or its secrets were changed after it was made."
        ) from None
    found = []
    # Whoever knows the passphrase wrote this; the names are checked all the same.
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as tar:
        for member in tar:
            reason = contents.why_refused(member.name, is_secret=True)
            if reason or member.type != tarfile.REGTYPE:
                raise ArchiveRefusedError(f"{archive} {reason or 'holds a link'}: {member.name[:200]}")
            found.append((member.name, cast("IO[bytes]", tar.extractfile(member)).read()))
    return found


def _key(passphrase: str, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=32, n=1 << 16, r=8, p=2).derive(passphrase.encode())
