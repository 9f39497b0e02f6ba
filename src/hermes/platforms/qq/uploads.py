"""Upload a file to QQ, which answers with its ``file_info``."""

from __future__ import annotations

import asyncio
from typing import Any

from hermes.core.errors import RejectedError, UnreachableError
from hermes.core.messages import Attachment, Json
from hermes.platforms.qq import media, wire
from hermes.platforms.qq.api import Api

_MAX_TRIES = 3
_RETRY_SECONDS = 1.0
_MAX_PARTS = 1000


class Uploads:
    def __init__(self, api: Api, in_one_piece: int = media.IN_ONE_PIECE) -> None:
        self._api = api
        self._in_one_piece_bytes = in_one_piece

    async def upload(self, attachment: Attachment, place: str) -> str:
        """What QQ calls the file in this kind of chat. ``place`` is the path of the chat."""
        async with media.opened(attachment) as upload:
            for attempt in range(1, _MAX_TRIES + 1):
                try:
                    is_large = upload.size > self._in_one_piece_bytes
                    answer = await (self._in_parts if is_large else self._in_one_piece)(upload, place)
                except wire.RefusedError as refused:
                    if refused.code not in wire.MEDIA_FAILED or attempt == _MAX_TRIES:
                        raise
                    continue
                info = answer.get("file_info")
                if isinstance(info, str) and info:
                    return info
                raise RejectedError(f"QQ took {upload.name} and does not say how to send it.")
        raise AssertionError("every try returns or raises")

    async def _in_one_piece(self, upload: media.Upload, place: str) -> Json:
        data = await asyncio.to_thread(upload.whole)
        body: Json = {"file_type": upload.type, "srv_send_msg": False, "file_data": data}
        if upload.type == media.FILE:
            body["file_name"] = upload.name
        return await self._api.call(
            "POST", f"{place}/files", body, what=f"the file {upload.name}", seconds=media.UPLOAD_SECONDS
        )

    async def _in_parts(self, upload: media.Upload, place: str) -> Json:
        what = f"the file {upload.name}"
        wanted: Json = {"file_type": upload.type, "file_name": upload.name, "file_size": upload.size}
        wanted |= await asyncio.to_thread(upload.digests)
        plan = _plan(await self._api.call("POST", f"{place}/upload_prepare", wanted, what=what), upload)
        for index, url in plan.parts:
            data = await asyncio.to_thread(upload.part, (index - 1) * plan.block_size, plan.block_size)
            await self._api.put_part(url, data)
            done = {"upload_id": plan.id, "part_index": index, "block_size": len(data), "md5": media.md5_of(data)}
            await self._finish_part(f"{place}/upload_part_finish", done, what, plan.patience)
        return await self._api.call(
            "POST", f"{place}/files", {"upload_id": plan.id}, what=what, seconds=media.UPLOAD_SECONDS
        )

    async def _finish_part(self, path: str, done: Json, what: str, patience: float) -> None:
        """QQ may need a while until it has seen the part."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        while True:
            try:
                await self._api.call("POST", path, done, what=what)
            except wire.RefusedError as refused:
                if refused.code != wire.PART_NOT_READY or loop.time() >= until:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return


class _Plan:
    """How QQ wants a large file."""

    def __init__(self, upload_id: str, block_size: int, parts: list[tuple[int, str]], patience: float) -> None:
        self.id = upload_id
        self.block_size = block_size
        self.parts = parts
        self.patience = patience


def _plan(answer: Json, upload: media.Upload) -> _Plan:
    inner: Any = answer.get("data") if isinstance(answer.get("data"), dict) else answer
    try:
        block_size = int(inner["block_size"])
        parts = sorted((int(part["index"]), str(part["presigned_url"])) for part in inner["parts"])
        patience = min(float(inner.get("retry_timeout") or 60.0), media.MAX_PART_WAIT_SECONDS)
        upload_id = str(inner["upload_id"])
    except (KeyError, TypeError, ValueError):
        raise UnreachableError(f"QQ does not say how it wants {upload.name}.") from None
    covers = block_size > 0 and [index for index, _ in parts] == list(range(1, -(-upload.size // block_size) + 1))
    if not covers or len(parts) > _MAX_PARTS:
        raise UnreachableError(f"QQ wants {upload.name} in parts that do not make it whole.")
    return _Plan(upload_id, block_size, parts, patience)
