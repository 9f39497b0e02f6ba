"""Fetch messages of each channel that were written while nobody listened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from hermes.core.errors import RejectedError, UnreachableError
from hermes.core.messages import Json
from hermes.platforms.shared import history
from hermes.platforms.shared.history import MAX_SECONDS, CaughtUp, objects, read_pages
from hermes.platforms.slack.api import Api
from hermes.platforms.slack.cursors import Places
from hermes.platforms.slack.parse import order

log = logging.getLogger(__name__)

MAX_MESSAGES = 1000
PAGE = 200
MAX_PAGES = 10
_KINDS = "im,mpim,private_channel,public_channel"


class CatchUp(history.CatchUp):
    platform = "slack"

    def __init__(self, api: Api, places: Places, put: Callable[[CaughtUp], None]) -> None:
        super().__init__(put)
        self._api = api
        self._places = places
        self._is_needed = bool(places.since)  # with no mark at all, it starts at now
        for channel in _by_need(places):
            self.want(channel)

    def is_done(self, channel: str) -> bool:
        return not self._is_needed or super().is_done(channel)

    async def run(self) -> None:
        if not self._is_needed:
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reported(self._list()))
            group.create_task(super().run())

    async def _list(self) -> None:
        """List channels without a stored mark; if Slack fails to list them, the known ones are still read."""
        tries = 0
        while True:
            try:
                found = await self._pages("users.conversations", "channels", types=_KINDS, exclude_archived="true")
                break
            except RejectedError as refused:
                log.warning("Channels not listed", extra={"platform": "slack", "reason": str(refused)})
                return
            except UnreachableError as error:
                if not tries:
                    log.warning("Channels not listed yet", extra={"platform": "slack", "reason": str(error)})
            tries += 1
            await asyncio.sleep(history.pause_after(tries))
        for channel in found:
            name = channel.get("id")
            if isinstance(name, str) and name and not self.is_done(name):
                self.want(name)

    async def missed(self, channel: str) -> Sequence[Json]:
        mark = max(self._places.mark(channel), f"{self._api.now() - MAX_SECONDS:.6f}", key=order)
        found = await self._pages("conversations.history", "messages", channel=channel, oldest=mark)
        threads = {str(root["ts"]): mark for root in found if root.get("reply_count")}
        threads |= {root: max(ts, mark, key=order) for root, ts in self._places.threads_in(channel).items()}
        for root, since in threads.items():
            try:
                replies = await self._pages("conversations.replies", "messages", channel=channel, ts=root, oldest=since)
            except RejectedError as refused:
                log.info("Thread not caught up", extra={"platform": "slack", "chat": channel, "reason": str(refused)})
                continue
            found += [reply for reply in replies if reply.get("ts") != root]  # Slack always shows the root too
        return _in_order(found, mark)

    async def _pages(self, method: str, what: str, **form: str) -> list[Json]:
        async def fetch(cursor: str) -> tuple[list[Json], str]:
            more = {"cursor": cursor} if cursor else {}
            answer = await self._api.ask(method, {**form, **more, "limit": str(PAGE)})
            metadata = answer.get("response_metadata")
            return objects(answer.get(what)), str(metadata.get("next_cursor") or "") if isinstance(
                metadata, dict
            ) else ""

        return await read_pages(fetch, MAX_PAGES, {"platform": "slack", "chat": form.get("channel", "")})


def _by_need(places: Places) -> list[str]:
    """Order channels for catching up: direct chats first, and of these the liveliest."""
    newest_first = sorted(places.channels, key=lambda channel: order(places.mark(channel)), reverse=True)
    return sorted(newest_first, key=lambda channel: not channel.startswith("D"))


def _in_order(found: Sequence[Json], mark: str) -> list[Json]:
    """Each message once, oldest first; of far too many the newest."""
    known: dict[str, Json] = {}
    for message in found:
        ts = message.get("ts")
        if isinstance(ts, str) and ts.replace(".", "", 1).isdecimal() and order(ts) > order(mark):
            known[ts] = message
    ordered = [known[ts] for ts in sorted(known, key=order)]
    if len(ordered) > MAX_MESSAGES:
        log.warning(
            "History cut to the newest messages", extra={"platform": "slack", "left_out": len(ordered) - MAX_MESSAGES}
        )
    return ordered[-MAX_MESSAGES:]
