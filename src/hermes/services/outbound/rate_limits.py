"""Limit the rate of outgoing calls per account and chat; final replies go first.

A platform that is called too often tells everybody to wait, so each call asks for a place before it is made. A place is
taken from the beginning of the call until the rate's time has passed since its answer: only then the platform, too, is
sure to count it no longer. With nothing to wait for, nothing here runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import IntEnum

from hermes.core.keys import Target
from hermes.core.messages import Capabilities, Rate, Rates

FEW_CHATS = 256


class Urgency(IntEnum):
    """Who goes first. The less urgent leave a part of the places free, so that a final hardly ever waits for them."""

    FINAL = 0  # a reply, a question, a notice: what somebody waits for
    EDIT = 1  # a preview that grows
    SIGN = 2  # typing


_SHARES = {Urgency.FINAL: 1.0, Urgency.EDIT: 0.8, Urgency.SIGN: 0.4}


class _Window:
    """Count the calls under one rate."""

    __slots__ = ("_freed", "_limits", "_seconds", "in_flight")

    def __init__(self, rate: Rate) -> None:
        self._seconds = rate.seconds
        self._limits = tuple(max(1, int(rate.calls * _SHARES[urgency])) for urgency in Urgency)
        self._freed: deque[float] = deque()  # when each call that has ended stops to count
        self.in_flight = 0

    def used(self, now: float) -> int:
        freed = self._freed
        while freed and freed[0] <= now:
            freed.popleft()
        return self.in_flight + len(freed)

    def has_room(self, urgency: Urgency, now: float) -> bool:
        return self.used(now) < self._limits[urgency]

    def has_room_at(self, urgency: Urgency, now: float) -> float:
        """When it will have room, if nobody else comes. Infinite: not before a call in flight has ended."""
        too_many = self.used(now) - self._limits[urgency]
        if too_many < 0:
            return now
        return self._freed[too_many] if too_many < len(self._freed) else float("inf")

    def ended(self, now: float) -> None:
        self.in_flight -= 1
        self._freed.append(now + self._seconds)


class _ChatLimit:
    __slots__ = ("asking", "held_until", "key", "timer", "windows")

    def __init__(self, key: str, rates: tuple[Rate, ...]) -> None:
        self.key = key
        self.windows = tuple(_Window(rate) for rate in rates)
        self.held_until = 0.0
        self.asking: list[_Waiter] = []  # all who wait for a place here, the most urgent first
        self.timer: asyncio.TimerHandle | None = None

    def has_room(self, urgency: Urgency, now: float) -> bool:
        return self.held_until <= now and all(window.has_room(urgency, now) for window in self.windows)

    def has_room_at(self, urgency: Urgency, now: float) -> float:
        return max([self.held_until, *(window.has_room_at(urgency, now) for window in self.windows)])

    def is_quiet(self, now: float) -> bool:
        return not self.asking and self.held_until <= now and not any(window.used(now) for window in self.windows)


class Slot:
    """A call's place. Whoever has it ends it when the call was answered, or gives it back when none was made."""

    __slots__ = ("_account", "_chat", "_is_open", "is_handed_on")

    def __init__(self, account: _AccountLimit | None, chat: _ChatLimit | None) -> None:
        self._account = account
        self._chat = chat
        self._is_open = account is not None
        self.is_handed_on = False

    def end(self) -> None:
        self._close(counts=True)

    def give_back(self) -> None:
        self._close(counts=False)

    def _close(self, *, counts: bool) -> None:
        if self._is_open and self._account is not None:
            self._is_open = False
            self._account.leave(self._chat, counts=counts)


NO_LIMITS = Slot(None, None)
"""The place of every call where nothing is counted. Ending it changes nothing."""


class _Waiter:
    __slots__ = ("chat", "has_chat", "place", "urgency")

    def __init__(self, chat: _ChatLimit, urgency: Urgency, place: asyncio.Future[Slot | None]) -> None:
        self.chat = chat
        self.urgency = urgency
        self.place = place
        self.has_chat = False  # the chat has room for it; it waits for the account


class _AccountLimit:
    """First the chat must have room, then the account: nobody who waits for a chat holds up the others."""

    def __init__(self, rates: Rates) -> None:
        self.rates = rates
        self._loop = asyncio.get_running_loop()
        self._window = _Window(rates.in_all) if rates.in_all is not None else None
        self._chats: dict[str, _ChatLimit] = {}
        self._many_chats = FEW_CHATS
        self._ready: tuple[deque[_Waiter], deque[_Waiter]] = (deque(), deque())
        self._timer: asyncio.TimerHandle | None = None
        self._held_until = 0.0

    def try_enter(self, chat_id: str, urgency: Urgency) -> Slot | None:
        """Take a slot at once, or None; never before others as urgent."""
        now = self._loop.time()
        if urgency is Urgency.SIGN:
            # Typing is not shown as a message: it counts only in all. It never waits, and never keeps anybody waiting.
            known = self._chats.get(chat_id)
            is_held = known is not None and known.held_until > now
            return None if is_held or any(self._ready) or not self._has_room(urgency, now) else self._place(None)
        chat = self._chat(chat_id, now)
        if any(asker.urgency <= urgency for asker in chat.asking) or not chat.has_room(urgency, now):
            return None
        if any(self._ready[: urgency + 1]) or not self._has_room(urgency, now):
            return None
        _take(chat)
        return self._place(chat)

    async def enter(self, chat_id: str, urgency: Urgency) -> Slot | None:
        place = self.try_enter(chat_id, urgency)
        if place is not None:
            return place
        now = self._loop.time()
        chat = self._chat(chat_id, now)
        if urgency is Urgency.FINAL:
            for other in [asker for asker in chat.asking if asker.urgency > urgency]:
                # Somebody more urgent is there for the same chat: what this one would show is overtaken.
                self._forget(other)
                if not other.place.done():
                    other.place.set_result(None)
        asker = _Waiter(chat, urgency, self._loop.create_future())
        chat.asking.append(asker)
        chat.asking.sort(key=lambda each: each.urgency)
        self._look_at(chat)
        try:
            return await asker.place
        except asyncio.CancelledError:
            self._forget(asker)
            raise

    def leave(self, chat: _ChatLimit | None, *, counts: bool) -> None:
        now = self._loop.time()
        for window in (*((self._window,) if self._window is not None else ()), *(chat.windows if chat else ())):
            if counts:
                window.ended(now)
            else:
                window.in_flight -= 1
        if chat is not None and chat.asking:
            self._look_at(chat)
        elif any(self._ready):
            self._look()

    def hold(self, chat_id: str, seconds: float, *, in_all: bool) -> None:
        """The platform said to wait. When it says so of two chats at once, it means all of them."""
        now = self._loop.time()
        chat = self._chat(chat_id, now)
        others = (each for each in self._chats.values() if each is not chat)
        if in_all or any(each.held_until > now for each in others):
            self._held_until = max(self._held_until, now + seconds)
        chat.held_until = max(chat.held_until, now + seconds)

    # Looking who may go

    def _look_at(self, chat: _ChatLimit) -> None:
        """Let those of a chat go on to the account's line for whom the chat has room."""
        now = self._loop.time()
        if chat.timer is not None:
            chat.timer.cancel()
            chat.timer = None
        for asker in chat.asking:
            if asker.has_chat:
                continue
            if not chat.has_room(asker.urgency, now):
                opens_at = chat.has_room_at(asker.urgency, now)
                if opens_at != float("inf"):
                    chat.timer = self._loop.call_at(opens_at, self._look_at, chat)
                break
            asker.has_chat = True
            _take(chat)
            self._ready[asker.urgency].append(asker)
        self._look()

    def _look(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._loop.time()
        for urgency in (Urgency.FINAL, Urgency.EDIT):
            ready = self._ready[urgency]
            while ready:
                if not self._has_room(urgency, now):
                    opens_at = self._window.has_room_at(urgency, now) if self._window is not None else now
                    opens_at = max(opens_at, self._held_until)
                    if opens_at != float("inf"):
                        self._timer = self._loop.call_at(opens_at, self._look)
                    return
                asker = ready.popleft()
                if not asker.place.done():  # else it was dropped, or gave up
                    asker.chat.asking.remove(asker)
                    asker.place.set_result(self._place(asker.chat))

    def _has_room(self, urgency: Urgency, now: float) -> bool:
        return self._held_until <= now and (self._window is None or self._window.has_room(urgency, now))

    def _place(self, chat: _ChatLimit | None) -> Slot:
        if self._window is not None:
            self._window.in_flight += 1
        return Slot(self, chat)

    # Those who go away

    def _forget(self, asker: _Waiter) -> None:
        if asker in asker.chat.asking:
            asker.chat.asking.remove(asker)
            if asker.has_chat:
                for window in asker.chat.windows:
                    window.in_flight -= 1
            self._look_at(asker.chat)
        elif asker.place.done() and not asker.place.cancelled() and (place := asker.place.result()) is not None:
            place.give_back()

    # The chats

    def _chat(self, chat_id: str, now: float) -> _ChatLimit:
        chat = self._chats.get(chat_id)
        if chat is None:
            if len(self._chats) >= self._many_chats:
                self._chats = {key: each for key, each in self._chats.items() if not each.is_quiet(now)}
                self._many_chats = max(FEW_CHATS, 2 * len(self._chats))
            chat = self._chats[chat_id] = _ChatLimit(chat_id, self.rates.of_chat(chat_id))
        return chat


def _take(chat: _ChatLimit) -> None:
    for window in chat.windows:
        window.in_flight += 1


class RateLimiter:
    """Hands out places. An account whose platform names no rates, or that is not known now, has all the room."""

    def __init__(self, capabilities: Callable[[Target], Capabilities | None]) -> None:
        self._capabilities = capabilities
        self._accounts: dict[tuple[str, str], _AccountLimit] = {}

    def at_once(self, target: Target, urgency: Urgency = Urgency.FINAL) -> Slot | None:
        """A place, if there is one now and nobody as urgent waits for it."""
        account = self._account(target)
        return NO_LIMITS if account is None else account.try_enter(target.chat, urgency)

    async def final(self, target: Target) -> Slot:
        """Wait for the place of something that somebody waits for."""
        account = self._account(target)
        place = None if account is None else await account.enter(target.chat, Urgency.FINAL)
        return place or NO_LIMITS

    async def edit(self, target: Target) -> Slot | None:
        """Wait for the place of an edit. None: a final for the same chat came meanwhile, so it would be overtaken."""
        account = self._account(target)
        return NO_LIMITS if account is None else await account.enter(target.chat, Urgency.EDIT)

    def hold(self, target: Target, seconds: float, *, in_all: bool = False) -> None:
        """The platform refused a call and said how long to wait."""
        account = self._account(target)
        if account is not None:
            account.hold(target.chat, seconds, in_all=in_all)

    def _account(self, target: Target) -> _AccountLimit | None:
        limits = self._capabilities(target)
        if limits is None or limits.rates is None:
            return None
        key = (target.platform, target.account)
        account = self._accounts.get(key)
        if account is None or (account.rates is not limits.rates and account.rates != limits.rates):
            account = self._accounts[key] = _AccountLimit(limits.rates)
        return account
