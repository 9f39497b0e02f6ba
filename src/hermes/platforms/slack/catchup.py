"""What was written while nobody listened, read from the history of each channel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.errors import CredentialsError, PlatformError, RejectedError, UnreachableError
from hermes.core.messages import Json
from hermes.platforms.shared import history
from hermes.platforms.shared.history import Readers, patiently
from hermes.platforms.slack.api import Api
from hermes.platforms.slack.cursors import Places
from hermes.platforms.slack.parse import order

log = logging.getLogger(__name__)

LONGEST_SECONDS = 7 * 86400.0
MOST_MESSAGES = 1000
PAGE = 200
MOST_PAGES = 10
_KINDS = "im,mpim,private_channel,public_channel"


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The messages of one channel that were missed, oldest first; ``error`` ends the connection instead."""

    channel: str
    messages: Sequence[Json] = ()
    error: PlatformError | None = None


class CatchUp:
    """Reads a few channels at a time; one in which somebody speaks now comes first.

    Until a channel has been put, its live events have to wait.
    """

    def __init__(self, api: Api, places: Places, put: Callable[[CaughtUp], None]) -> None:
        self._api = api
        self._places = places
        self._put = put
        self._is_needed = bool(places.since)  # with no mark at all, it starts at now
        self._met: set[str] = set()
        self._done: set[str] = set()
        self._readers = Readers("slack", self._read, self._give_up, self._broke)
        for channel in _by_need(places):
            self._add(channel)

    def is_done(self, channel: str) -> bool:
        return not self._is_needed or channel in self._done

    def hurry(self, channel: str) -> None:
        """Somebody speaks there now."""
        if channel in self._met and not self._readers.is_waiting(channel):
            return  # it is being read
        self._met.add(channel)
        self._readers.add_first(channel)

    def _add(self, channel: str) -> None:
        if channel not in self._met:
            self._met.add(channel)
            self._readers.add(channel)

    def finish(self, channel: str) -> None:
        """What was missed there is stored."""
        self._done.add(channel)

    async def run(self) -> None:
        """Read until cancelled: whoever speaks later in a channel that nobody knew has it read then."""
        if not self._is_needed:
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._report_errors(self._list))
            group.create_task(self._readers.run())

    async def _report_errors(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except PlatformError as error:
            self._broke(error)

    def _broke(self, error: PlatformError) -> None:
        self._put(CaughtUp("", error=error))

    async def _read(self, channel: str) -> None:
        self._put(CaughtUp(channel, await self._missed(channel)))

    def _give_up(self, channel: str) -> None:
        self._put(CaughtUp(channel))

    async def _list(self) -> None:
        """Channels of which nothing is stored: somebody may have written there for the first time.

        Slack may fail to list them; those that are known are read and heard meanwhile.
        """
        tries = 0
        found = await self._listed(tries)
        while found is None:
            tries += 1
            await asyncio.sleep(history.pause_after(tries))
            found = await self._listed(tries)
        for channel in found:
            name = channel.get("id")
            if isinstance(name, str) and name:
                self._add(name)

    async def _listed(self, tries: int) -> list[Json] | None:
        """None when it is to be tried again."""
        about = {"platform": "slack"}
        try:
            return await self._pages("users.conversations", "channels", types=_KINDS, exclude_archived="true")
        except RejectedError as refused:
            log.warning("Channels not listed", extra={**about, "reason": str(refused)})
            return []
        except UnreachableError as error:
            if not tries:
                log.warning("Channels not listed yet", extra={**about, "reason": str(error)})
            return None

    async def _missed(self, channel: str) -> list[Json]:
        mark = max(self._places.mark(channel), f"{self._api.now() - LONGEST_SECONDS:.6f}", key=order)
        try:
            found = await self._pages("conversations.history", "messages", channel=channel, oldest=mark)
            threads = {str(root["ts"]): mark for root in found if root.get("reply_count")}
            threads |= {root: max(ts, mark, key=order) for root, ts in self._places.threads_in(channel).items()}
            for root, since in threads.items():
                found += await self._replies(channel, root, since)
        except CredentialsError:
            raise
        except RejectedError as refused:  # left, archived, or a scope is missing: the others go on
            log.warning("Not caught up", extra={"platform": "slack", "chat": channel, "reason": str(refused)})
            return []
        return _in_order(found, mark)

    async def _replies(self, channel: str, root: str, since: str) -> list[Json]:
        try:
            found = await self._pages("conversations.replies", "messages", channel=channel, ts=root, oldest=since)
        except RejectedError as refused:
            log.info("Thread not caught up", extra={"platform": "slack", "chat": channel, "reason": str(refused)})
            return []
        return [reply for reply in found if reply.get("ts") != root]  # Slack always shows the root too

    async def _pages(self, method: str, what: str, **form: str) -> list[Json]:
        found: list[Json] = []
        cursor = ""
        for _ in range(MOST_PAGES):
            more = {"cursor": cursor} if cursor else {}
            answer = await self._patiently(method, **form, **more, limit=str(PAGE))
            page = answer.get(what)
            found += [each for each in page if isinstance(each, dict)] if isinstance(page, list) else []
            told = answer.get("response_metadata")
            cursor = str(told.get("next_cursor") or "") if isinstance(told, dict) else ""
            if not cursor:
                return found
        log.warning("More than can be caught up", extra={"platform": "slack", "chat": form.get("channel", "")})
        return found

    async def _patiently(self, method: str, **form: str) -> Json:
        return await patiently(lambda: self._api.ask(method, form))


def _by_need(places: Places) -> list[str]:
    """Direct chats first, and of these the liveliest."""
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
    if len(ordered) > MOST_MESSAGES:
        log.warning(
            "Only the newest are caught up", extra={"platform": "slack", "left_out": len(ordered) - MOST_MESSAGES}
        )
    return ordered[-MOST_MESSAGES:]
