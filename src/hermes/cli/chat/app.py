"""The chat in a real terminal: an input line at the bottom, answers above it.

``TerminalApp`` connects the parts: ``screen`` draws, ``keys`` are pressed, ``calls`` ask the gateway, ``turn_view``
turns what happens into lines.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.styles import Style

from hermes.cli.chat import questions, sessions
from hermes.cli.chat.calls import ChatCalls
from hermes.cli.chat.completion import ChatCompleter, CompletionHint, hints, is_completable
from hermes.cli.chat.keys import bindings
from hermes.cli.chat.lines import EMPTY, Line, StyledText, cut, plain
from hermes.cli.chat.mentions import read_mentions
from hermes.cli.chat.menu import Menu, MenuChoice
from hermes.cli.chat.pastes import Pastes
from hermes.cli.chat.screen import Screen
from hermes.cli.chat.status_line import StatusLine
from hermes.cli.chat.surroundings import LEAVING, here
from hermes.cli.chat.theme import fragments, shows_links
from hermes.cli.chat.turn_view import FollowedSay, TurnView, format_seconds
from hermes.cli.support.client import GatewayClient
from hermes.cli.support.home import load_config
from hermes.core.errors import GatewayError
from hermes.core.i18n.en import Texts
from hermes.hosting.terminal import restore_title, save_title

TICK_SECONDS = 1.0
LEAVE_SECONDS = 2.0
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse dim", "bottom-toolbar.text": "noreverse dim"})


class TerminalApp:
    """``chat`` is the name of the conversation. ``run`` returns the exit code."""

    def __init__(self, client: GatewayClient, chat: str, words: Texts, *, wants_reasoning: bool = False) -> None:
        self._client = client
        self._words = words
        output = create_output()
        self._screen = Screen(output, self)
        self._view = TurnView(words, self._screen.width, has_links=shows_links(os.environ))
        self._calls = ChatCalls(client, chat, self._news_came)
        self._calls.wants_reasoning = wants_reasoning
        self._status = StatusLine(words)
        self._pastes = Pastes(words.CHAT_PASTED)
        self._menu: Menu | None = None
        self._on_pick: Callable[[MenuChoice | None], None] = lambda _: None
        self._reason_for = ""  # the code of an approval whose refusal is being explained
        self._typed = ""  # the accepted line as it was shown, with pastes folded
        self._began = 0.0
        self._last_sent = ""
        self._progress = ""
        self._is_stopping = False
        self._pressed_at = -LEAVE_SECONDS
        self._start: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session = self._make_session(output)
        self._screen.attach(self._session.app, self._session.default_buffer)

    # The prompt

    def _make_session(self, output: Any) -> PromptSession[str]:
        path = self._client.home / "history"
        with suppress(OSError):  # then the library says what is wrong with it
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        session: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            history=FileHistory(str(path)),
            completer=ChatCompleter(self._known_commands, _folder),
            complete_while_typing=Condition(
                lambda: is_completable(self._session.default_buffer.document.text_before_cursor)
            ),
            complete_in_thread=True,
            key_bindings=bindings(self),
            bottom_toolbar=self._toolbar,
            placeholder=self._placeholder,
            prompt_continuation="  ",
            enable_open_in_editor=True,
            erase_when_done=True,
            style=_STYLE,
            output=output,
        )
        session.app.ttimeoutlen, session.app.timeoutlen = 0.1, 0.3  # so long after Esc another key may belong to it
        return session

    def _known_commands(self) -> Sequence[CompletionHint]:
        """Called in a thread of its own: what a gateway at work has imported long ago is imported here now."""
        from hermes.app.tools import COMMANDS
        from hermes.cli.agent.skills import open_library
        from hermes.services.commands.base import collect

        home = self._client.home
        library = open_library(home, load_config(home))
        skills = [(skill.name, skill.description) for skill in library.offered("local")]
        return hints(collect(COMMANDS), skills)

    def start_with(self, act: Callable[[TerminalApp], None]) -> None:
        """Do this once the prompt stands."""
        self._start = lambda: act(self)

    def run(self) -> int:
        return asyncio.run(self._run())

    async def _run(self) -> int:
        self._loop = asyncio.get_running_loop()
        self._screen.begin(self._loop)
        ticking = asyncio.create_task(self._tick())
        save_title(self._screen.stream)
        self._calls.refresh_status()
        self._calls.follow()
        try:
            started = False
            while True:
                try:
                    text = await self._session.prompt_async(
                        pre_run=self._screen.wake if started else self._begin, handle_sigint=False
                    )
                except (EOFError, KeyboardInterrupt):
                    return 0
                started = True
                if text.strip().lower() in LEAVING:
                    return 0
                self._accept(text, self._typed or text)
                self._typed = ""
        finally:
            ticking.cancel()
            self._calls.close()
            restore_title(self._screen.stream)
            self._screen.write_rest()

    def _begin(self) -> None:
        self._start()
        self._screen.wake()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._view.is_busy or self._wants_to_leave():
                self._screen.draw()

    # Sending

    def _accept(self, text: str, shown: str) -> None:
        if self._reason_for:
            code, self._reason_for = self._reason_for, ""
            self.send(questions.answer_command(code, questions.DENY_WHY, text), f"{self._words.CHAT_NO}: {shown}")
            return
        bare = text.strip()
        if not bare or self._accept_own(" ".join(bare.lower().split()), shown):
            return
        if bare.startswith("/"):
            self.send(text, shown)
            return
        mentioned = read_mentions(text, _folder())
        self.send(mentioned.text, shown, mentioned.pictures)
        for name, size in mentioned.added:
            self._view.note("  " + self._words.CHAT_FILE_ADDED.format(name=name, size=f"{size:,} B"))
        for name, reason in mentioned.left_out:
            self._view.note("  " + self._words.CHAT_FILE_LEFT_OUT.format(name=name, reason=reason), "bad")

    def _accept_own(self, command: str, shown: str) -> bool:
        """Act on a command that concerns this window alone. False for everything else."""
        words = self._words
        match command:
            case "/verbose":
                self._view.is_verbose = not self._view.is_verbose
                note = words.CHAT_VERBOSE_ON if self._view.is_verbose else words.CHAT_VERBOSE_OFF
            case "/reasoning show" | "/reasoning hide":
                self._calls.wants_reasoning = command.endswith("show")
                note = words.CHAT_REASONING_ON if self._calls.wants_reasoning else words.CHAT_REASONING_OFF
            case "/resume":
                self.pick_session()
                return True
            case _:
                return False
        self._view.show_message(shown)
        self._view.note(note)
        return True

    def send(self, text: str, shown: str | None = None, pictures: tuple[dict[str, str], ...] = ()) -> None:
        if shown is not None:
            self._view.show_message(shown)
        if not self._view.is_busy:
            self._began, self._is_stopping = time.monotonic(), False
            self._last_sent = shown or ""
        self._calls.say(self._view.begin(text), text, pictures)
        self._screen.wake()

    def _news_came(self) -> None:
        """Called in any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the chat has just been left
                self._loop.call_soon_threadsafe(self._screen.wake)

    def _take_news(self) -> None:
        now, words, view = time.monotonic(), self._words, self._view
        while self._calls.news:
            kind, say, data = self._calls.news.popleft()
            match kind:
                case "event":
                    self._progress = ""
                    view.handle(say, data, now)
                case "progress":
                    self._progress = str(data.get("text") or "")
                case "model":
                    self._status.model = self._status.model or str(data)
                case "said":
                    view.show_elsewhere(data)
                case "elsewhere":
                    view.note(words.CHAT_ELSEWHERE.format(platform=data))
                case "back":
                    view.note(words.CHAT_BACK.format(platform=data))
                case "history" | "redraw":
                    if kind == "redraw" and view.has_shown:
                        self._screen.clear()
                    view.add(sessions.conversation(data, words, self._screen.width))
                case "sessions":
                    self._show_sessions(data)
                case "status":
                    self._status.take(data)
                    self._screen.set_title(f"Hermes: {data['title']}" if data.get("title") else "Hermes")
                case "end":
                    self._end(say, data)

    def _end(self, say: FollowedSay, outcome: Any) -> None:
        if isinstance(outcome, GatewayError):
            self._view.complain(outcome)
        result = outcome if isinstance(outcome, Mapping) else None
        self._view.end(say, result)
        if result is not None:
            self._status.spent(result)
        if say.text.strip().lower() == "/help":  # the gateway knows no terminal, so it cannot tell how to leave one
            self._view.note(self._words.HOW_TO_LEAVE, "")
            self._view.note(self._words.CHAT_HINT)
        if self._view.is_busy:
            return
        self._is_stopping, self._progress = False, ""
        if self._view.approvals:
            self._ask_approval(next(iter(self._view.approvals.values())))
        elif self._view.clarify is not None and self._view.clarify[1]:
            _, choices = self._view.clarify
            self._view.clarify = None
            self._open_menu(questions.clarify_menu(choices, self._words), self._clarified)

    # Questions and sessions: menus

    def _ask_approval(self, asked: Mapping[str, Any]) -> None:
        self._view.add(questions.approval_box(asked, self._words, self._screen.width))
        code = str(asked["code"])

        def picked(choice: MenuChoice | None) -> None:
            if choice is None:
                self._view.approvals.pop(code, None)
                self._view.note(self._words.CHAT_ANSWER_LATER.format(code=code))
            elif choice.value == questions.DENY_WHY:
                self._reason_for = code
            else:
                self.send(questions.answer_command(code, choice.value), choice.label)

        menu = questions.approval_menu(asked, self._words)
        menu.guard(time.monotonic())
        self._open_menu(menu, picked)

    def _clarified(self, choice: MenuChoice | None) -> None:
        if choice is not None and choice.value != questions.OWN_WORDS:
            self.send(choice.value, choice.value)

    def pick_session(self) -> None:
        self._calls.list_sessions()

    def show_history(self) -> None:
        self._calls.show_history()

    def _show_sessions(self, found: Sequence[Mapping[str, Any]]) -> None:
        if not found:
            self._view.note(self._words.CHAT_PICK_NOTHING)
            return
        self._open_menu(sessions.picker(found, self._words, time.time()), self._resume)

    def _resume(self, choice: MenuChoice | None) -> None:
        if choice is not None:
            self.send(f"/resume {choice.value}")

    def _open_menu(self, menu: Menu, on_pick: Callable[[MenuChoice | None], None]) -> None:
        self._menu, self._on_pick = menu, on_pick

    def _pick(self, choice: MenuChoice | None) -> None:
        """Close the menu with what was picked; None: nothing was."""
        self._menu = None
        self._on_pick(choice)
        self._screen.draw()

    # What keys do

    @property
    def has_menu(self) -> bool:
        return self._menu is not None

    def submit(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer is not self._session.default_buffer:  # the search line
            from prompt_toolkit.search import accept_search

            accept_search()
            return
        self._typed = buffer.text
        text = self._pastes.unfold(buffer.text)
        if text != buffer.text:
            buffer.document = Document(text)
        buffer.validate_and_handle()

    def paste(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(self._pastes.add(event.data, _folder()))

    def interrupt(self, event: KeyPressEvent) -> None:
        """Ctrl+C: close what is open, give up what is typed, stop what runs; a second time, leave."""
        if self._wants_to_leave():
            event.app.exit(exception=EOFError)
            return
        if self._menu is not None:
            self._pick(None)
            return
        buffer = event.current_buffer
        if buffer.text or self._reason_for:
            self._reason_for = ""
            buffer.reset()
            return
        self._pressed_at = time.monotonic()
        if self._view.is_busy:
            self._stop()
        self._screen.draw()

    def take_back(self, event: KeyPressEvent) -> None:
        """Esc: give up what is typed; on an empty line stop the turn and bring back the message for another try."""
        buffer = event.current_buffer
        if buffer.complete_state is not None:
            buffer.cancel_completion()
        elif buffer.text or self._reason_for:
            self._reason_for = ""
            buffer.reset()
        elif self._view.is_busy and not self._is_stopping:
            self._stop()
            buffer.insert_text(self._last_sent)

    def clear_screen(self) -> None:
        self._screen.clear()

    def terminal_answered(self, data: str) -> None:
        self._screen.terminal_answered(data)

    def menu_move(self, by: int) -> None:
        if self._menu is not None:
            self._menu.move(by)
            self._screen.draw()

    def menu_pick(self) -> None:
        if self._menu is not None and self._menu.accepts(time.monotonic()) and self._menu.marked is not None:
            self._pick(self._menu.marked)

    def menu_close(self) -> None:
        self._pick(None)

    def menu_erase(self) -> None:
        if self._menu is not None:
            self._menu.erase()
            self._screen.draw()

    def menu_type(self, character: str) -> None:
        if self._menu is None or not self._menu.accepts(time.monotonic()):
            return
        if (choice := self._menu.typed(character)) is not None:
            self._pick(choice)
        else:
            self._screen.draw()

    def _stop(self) -> None:
        self._is_stopping = True
        self._calls.stop()

    def _wants_to_leave(self) -> bool:
        return time.monotonic() - self._pressed_at < LEAVE_SECONDS

    # What the screen shows

    @property
    def is_busy(self) -> bool:
        return self._view.is_busy

    def take_lines(self) -> list[Line]:
        self._take_news()
        return self._view.take()

    def resize(self, width: int) -> None:
        self._view.resize(width)

    def live_rows(self) -> list[Line]:
        now, words, width = time.monotonic(), self._words, self._screen.width
        most = max(3, min(8, self._screen.rows_high // 3))
        rows = self._view.live(now, most)
        if self._view.is_busy and (self._is_stopping or not self._view.has_tools):
            doing = words.CHAT_STOPPING if self._is_stopping else self._progress or self._view.activity()
            spent = format_seconds(now - self._began)
            line = (
                StyledText("● ", "mark"),
                StyledText(f"{doing}  {spent}"),
                StyledText(f"  {words.CHAT_STOPS}", "dim"),
            )
            rows += [*([EMPTY] if rows else []), cut(line, width)]
        if self._menu is not None:
            rows += self._menu.rows(width)
        return rows

    def _message(self) -> StyleAndTextTuples:
        shown: StyleAndTextTuples = []
        for row in self._screen.rows:
            shown += fragments(row)
            shown.append(("", "\n"))
        prompt = f"{self._words.CHAT_REASON}> " if self._reason_for else "> "
        return [*shown, ("ansicyan bold", prompt)]

    def _placeholder(self) -> StyleAndTextTuples:
        """What Enter does while an answer is written."""
        words = self._words
        modes = {"interrupt": words.CHAT_INTERRUPTS, "queue": words.CHAT_QUEUES, "steer": words.CHAT_STEERS}
        hint = modes.get(self._status.busy_mode, "") if self._view.is_busy and not self._is_stopping else ""
        return list(fragments(cut(plain(hint, "dim"), self._screen.width - 2)))

    def _toolbar(self) -> StyleAndTextTuples:
        if self._wants_to_leave():
            return [("", self._words.CHAT_PRESS_AGAIN)]
        line = cut(self._status.line(self._view.waiting), self._screen.width)
        return list(fragments(line)) or [("", " ")]


def _folder() -> Path:
    return Path(here() or ".")
