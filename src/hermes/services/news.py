"""Publish what happens around the gateway: accounts, strangers, the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccountChanged:
    """An account is connected, or is not any more. ``account`` is ``telegram`` or ``telegram@work``."""

    account: str
    state: str


@dataclass(frozen=True, slots=True)
class StrangerKnocked:
    """Somebody wrote whom nobody has let in yet, and was shown this code."""

    platform: str
    user_id: str
    name: str
    code: str


@dataclass(frozen=True, slots=True)
class ModelFetched:
    """The built-in model can answer now; ``reason`` says why it cannot, where the fetch failed."""

    reason: str = ""


Event = AccountChanged | StrangerKnocked | ModelFetched


class News:
    """Watchers are plain callables that must not block. Published on the event loop."""

    def __init__(self) -> None:
        self._watchers: list[Callable[[Event], None]] = []

    def publish(self, event: Event) -> None:
        for watcher in tuple(self._watchers):
            watcher(event)

    @contextmanager
    def watch(self, watcher: Callable[[Event], None]) -> Iterator[None]:
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)
