"""Declare which files Slack takes, and find the message that shows one."""

from __future__ import annotations

from hermes.core.messages import Json

MB = 1_000_000
UPLOAD_LIMIT = 1000 * MB
DOWNLOAD_LIMIT = 100 * MB
ALBUM_LIMIT = 10
UPLOAD_SECONDS = 600.0
DOWNLOAD_SECONDS = 300.0


def shared_as(file: Json, channel: str) -> str:
    """The message that shows a file in a channel; '' while Slack does not say yet."""
    shares = file.get("shares")
    for chats in (shares or {}).values() if isinstance(shares, dict) else ():
        for share in chats.get(channel) or () if isinstance(chats, dict) else ():
            if isinstance(share, dict) and isinstance(share.get("ts"), str):
                return str(share["ts"])
    return ""
