"""Store files in chunks, so that every node can deliver them. The row of a file is written last."""

from __future__ import annotations

import base64

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

CHUNK_BYTES = 384 * 1024
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_ALL_BYTES = 4 * 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredFile:
    """``sha256`` is that of the whole file."""

    id: str
    name: str
    size: int
    sha256: str
    created_at: float


def put_chunk(tx: Tx, file_id: str, number: int, data: bytes) -> None:
    """Store one piece of a file. Storing it again replaces it."""
    tx.run(
        """
        INSERT INTO file_chunks (file_id, number, data) VALUES (:file_id, :number, :data)
        ON CONFLICT (file_id, number) DO UPDATE SET data = excluded.data
        """,
        file_id=file_id,
        number=number,
        data=base64.b64encode(data).decode("ascii"),
    )


def complete(tx: Tx, file: StoredFile, chunks: int) -> None:
    """Add the row of a file whose chunks are stored; pieces of an earlier, longer file of this name go."""
    tx.run("DELETE FROM file_chunks WHERE file_id = :id AND number >= :chunks", id=file.id, chunks=chunks)
    tx.run(
        f"""
        INSERT INTO files (id, name, size, sha256, created_at) VALUES (:id, :name, :size, :sha256, {tx.dialect.now})
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, size = excluded.size, sha256 = excluded.sha256
        """,
        id=file.id,
        name=file.name,
        size=file.size,
        sha256=file.sha256,
    )


def get(tx: Tx, file_id: str) -> StoredFile | None:
    return tx.one("SELECT id, name, size, sha256, created_at FROM files WHERE id = :id", StoredFile, id=file_id)


def chunk(tx: Tx, file_id: str, number: int) -> bytes | None:
    """Return one piece; None behind the last one."""
    found = tx.value("SELECT data FROM file_chunks WHERE file_id = :id AND number = :number", id=file_id, number=number)
    return None if found is None else base64.b64decode(found)


def used_bytes(tx: Tx) -> int:
    return int(tx.value("SELECT COALESCE(SUM(size), 0) FROM files"))


def ids(tx: Tx) -> list[str]:
    """Name all files, those too that never became complete."""
    return tx.all("SELECT id FROM files UNION SELECT DISTINCT file_id FROM file_chunks", str)


def remove(tx: Tx, file_id: str) -> None:
    tx.run("DELETE FROM files WHERE id = :id", id=file_id)
    tx.run("DELETE FROM file_chunks WHERE file_id = :id", id=file_id)
