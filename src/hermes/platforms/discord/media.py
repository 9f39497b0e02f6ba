"""Declare which files Discord takes."""

from __future__ import annotations

MB = 1_000_000
UPLOAD_LIMIT = 10 * 1024 * 1024  # what every server takes; one with boosts takes more
DOWNLOAD_LIMIT = 100 * MB
ALBUM_LIMIT = 10
UPLOAD_SECONDS = 300.0
DOWNLOAD_SECONDS = 300.0
