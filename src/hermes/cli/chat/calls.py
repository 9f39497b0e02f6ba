"""Ask the gateway from threads; everything that comes back is left as news for the loop of the chat."""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from hermes.cli.chat import sessions
from hermes.cli.chat.surroundings import SAY_SECONDS, surroundings
from hermes.cli.chat.turn_view import FollowedSay
from hermes.cli.support.client import GatewayClient
from hermes.core.errors import GatewayError

REDRAWN_COMMANDS = frozenset({"/undo", "/branch", "/resume"})
FRESH_COMMANDS = frozenset({"/new", "/reset"})
FOLLOW_AGAIN_SECONDS = 5.0
NOBODY = FollowedSay("")

News = tuple[str, FollowedSay, Any]


class ChatCalls:
    """``news`` is filled from any thread; ``on_news`` is called when something lies in it that nobody took yet."""

    def __init__(self, client: GatewayClient, chat: str, on_news: Callable[[], None]) -> None:
        self._client = client
        self._chat = chat
        self._on_news = on_news
        self._is_over = threading.Event()
        self.news: deque[News] = deque()
        self.wants_reasoning = False
        self.session = ""
        """The conversation that is shown."""
        self._seq = 0
        self.elsewhere = ""
        """The platform where the conversation goes on now; '' while it is here."""

    def close(self) -> None:
        self._is_over.set()

    def say(self, say: FollowedSay, text: str, pictures: tuple[dict[str, str], ...] = ()) -> None:
        self._in_thread(self._say, say, text, pictures)

    def stop(self) -> None:
        """Stop the turn that runs. What the gateway says to it is shown; its end is that of the turn."""
        self._in_thread(self._stop)

    def refresh_status(self) -> None:
        self._in_thread(self._refresh_status)

    def list_sessions(self) -> None:
        self._in_thread(self._list_sessions)

    def show_history(self) -> None:
        self._in_thread(self._show_history)

    def follow(self) -> None:
        """Pass on what is said in this conversation on other platforms, as long as the chat is open."""
        self._in_thread(self._follow)

    def _in_thread(self, act: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=act, args=args, daemon=True, name=f"chat {act.__name__}").start()

    def _post(self, kind: str, say: FollowedSay, data: Any) -> None:
        self.news.append((kind, say, data))
        if len(self.news) == 1:
            self._on_news()

    def _say(self, say: FollowedSay, text: str, pictures: tuple[dict[str, str], ...]) -> None:
        outcome: Any = None
        is_command = text.lstrip().startswith("/")
        try:
            if not is_command:
                self._bring_back(say)
                # A fetch that failed is told by the model itself, as the answer to this message.
                with suppress(GatewayError):
                    progress = lambda event: self._post("progress", say, event)  # noqa: E731 - one argument of a call
                    ready = self._client.ask("model.ready", {"text": text}, progress, SAY_SECONDS)
                    self._post("model", say, ready.get("label", ""))
            args: dict[str, Any] = {"chat": self._chat, "text": text, "key": secrets.token_hex(12), **surroundings()}
            if pictures:
                args["pictures"] = list(pictures)
            if self.wants_reasoning:
                args["reasoning"] = True
            name = text.split()[0].lower() if is_command else ""
            if name in FRESH_COMMANDS:
                self.session, self.elsewhere = "", ""  # what was shown so far is not to be brought back
            if name in REDRAWN_COMMANDS:
                outcome = self._say_and_redraw(say, args)
            else:
                outcome = self._client.ask("say", args, lambda event: self._post("event", say, event), SAY_SECONDS)
            self._refresh_status()
        except GatewayError as error:
            outcome = error
        finally:
            self._post("end", say, outcome)

    def _say_and_redraw(self, say: FollowedSay, args: Mapping[str, Any]) -> Any:
        """Say what changes the conversation: it is shown anew, and the reply below it."""
        before = self._history(sessions.SHOWN_MESSAGES)
        events: list[Any] = []
        outcome = self._client.ask("say", args, events.append, SAY_SECONDS)
        after = self._history(sessions.SHOWN_MESSAGES)
        self.session, self.elsewhere = str(after["session"]), ""
        if (before["session"], before["messages"]) != (after["session"], after["messages"]) and after["messages"]:
            self._post("redraw", say, after)
        for event in events:
            self._post("event", say, event)
        return outcome

    def _bring_back(self, say: FollowedSay) -> None:
        """Take the conversation back from the platform where it went on: whoever types here goes on with it."""
        if not self.elsewhere or not self.session:
            return
        replies: list[str] = []
        args = {"chat": self._chat, "text": f"/resume {self.session}", "key": secrets.token_hex(12), **surroundings()}
        self._client.ask("say", args, lambda event: replies.append(str(event.get("text") or "")), SAY_SECONDS)
        if self._history(0)["session"] != self.session:
            raise GatewayError(" ".join(filter(None, replies)) or "The conversation could not be taken back.")
        self._post("back", say, self.elsewhere)
        self.elsewhere = ""

    def _stop(self) -> None:
        say = FollowedSay("/stop")
        args = {"chat": self._chat, "text": "/stop", "key": secrets.token_hex(12)}
        try:
            self._client.ask("say", args, lambda event: self._post("event", say, event))
        except GatewayError as error:
            self._post("end", say, error)

    def _history(self, limit: int) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._client.ask("chat.history", {"chat": self._chat, "limit": limit})
        return found

    def _refresh_status(self) -> None:
        with suppress(GatewayError):
            self._post("status", NOBODY, self._history(0))

    def _show_history(self) -> None:
        with suppress(GatewayError):  # an older gateway; the conversation goes on all the same
            self._post("history", NOBODY, self._history(sessions.SHOWN_MESSAGES))

    def _list_sessions(self) -> None:
        try:
            self._post("sessions", NOBODY, self._client.ask("chat.sessions", {}))
        except GatewayError as error:
            self._post("end", NOBODY, error)

    def _follow(self) -> None:
        while not self._is_over.is_set():
            with suppress(GatewayError):  # an older gateway, or one whose socket is out of reach: tried again
                known = {"chat": self._chat, "session": self.session, "seq": self._seq}
                self._client.ask("chat.follow", known, self._followed)
            self._is_over.wait(FOLLOW_AGAIN_SECONDS)

    def _followed(self, event: Mapping[str, Any]) -> None:
        """One event of ``chat.follow``; after a reconnection it may come a second time."""
        match event.get("kind"):
            case "place":
                before, self.elsewhere = self.elsewhere, str(event["platform"])
                if event["session"] != self.session:
                    self.session, self._seq = str(event["session"]), int(event["seq"])
                if self.elsewhere and self.elsewhere != before:
                    self._post("elsewhere", NOBODY, self.elsewhere)
            case "said" if event["session"] == self.session and event["seq"] > self._seq:
                self._seq = int(event["seq"])
                self._post("said", NOBODY, event)
            case _:
                pass
