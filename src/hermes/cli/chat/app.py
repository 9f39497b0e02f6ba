"""The chat in a real terminal: an input line at the bottom, answers above it, drawn by prompt_toolkit.

Finished lines are written once, above the input, and belong to the scrollback from then on. Below them stand the part
of the answer that is not finished, the tools at work, a question and the input; only these are drawn again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, completion_is_selected
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.styles import Style

from hermes.cli.chat import questions, sessions
from hermes.cli.chat.completion import ChatCompleter, CompletionHint, hints, is_completable
from hermes.cli.chat.lines import EMPTY, Line, StyledText, cut, line_width, plain
from hermes.cli.chat.mentions import read_mentions
from hermes.cli.chat.menu import Menu, MenuChoice
from hermes.cli.chat.surroundings import LEAVING, SAY_SECONDS, here, surroundings
from hermes.cli.chat.theme import coded, fragments
from hermes.cli.chat.turn_view import FollowedSay, TurnView, format_seconds
from hermes.cli.support.client import GatewayClient, load_config
from hermes.core.errors import GatewayError
from hermes.core.i18n.en import Texts
from hermes.hosting.terminal import (
    ask_width,
    begin_frame,
    end_frame,
    restore_title,
    save_title,
    set_title,
    write_styled,
)

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.output import Output

FRAME_SECONDS = 0.05
TICK_SECONDS = 1.0
ANSWER_SECONDS = 2.0  # of a terminal that is asked for its width
QUIET_SECONDS = 0.3  # after the window was resized; tmux tells of a second change up to 0.25 s late
LEAVE_SECONDS = 2.0
PASTED_LINES = 5  # from so many on, a paste is shown as its size
MIN_WIDTH = 20
REDRAWN_COMMANDS = frozenset({"/undo", "/branch", "/resume", "/new", "/reset"})
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse dim", "bottom-toolbar.text": "noreverse dim"})

News = tuple[str, FollowedSay, Any]


class TerminalApp:
    """``chat`` is the name of the conversation. ``run`` returns the exit code."""

    def __init__(self, client: GatewayClient, chat: str, words: Texts) -> None:
        self._client = client
        self._chat = chat
        self._words = words
        self._output = create_output()
        self._above = _Above(self._output)
        self._columns, self._rows_high = 80, 24
        self._measure()
        self._view = TurnView(words, self._width, has_links=shows_links(os.environ))
        self._news: deque[News] = deque()
        self._menu: Menu | None = None
        self._on_pick: Callable[[MenuChoice | None], None] = lambda _: None
        self._reason_for = ""  # the code of an approval whose refusal is being explained
        self._pastes: dict[str, str] = {}
        self._typed = ""  # the accepted line as it was shown, with pastes folded
        self._began = 0.0
        self._last_sent = ""
        self._progress = ""
        self._is_stopping = False
        self._pressed_at = -LEAVE_SECONDS
        self._status: dict[str, Any] = {}
        self._tokens = 0
        self._shown_rows: list[Line] = []
        self._frame: asyncio.TimerHandle | None = None
        self._is_resizing: asyncio.TimerHandle | None = None
        self._frames = _Frames()
        self._drawn_at = 0.0
        self._height = 0
        self._start: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._frames.believed = self._columns
        self._session = self._make_session()

    # The prompt

    def _make_session(self) -> PromptSession[str]:
        path = self._client.home / "history"
        with suppress(OSError):  # then the library says what is wrong with it
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        session: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            history=FileHistory(str(path)),
            completer=ChatCompleter(self._known_commands, lambda: Path(here() or ".")),
            complete_while_typing=Condition(lambda: is_completable(self._buffer.document.text_before_cursor)),
            complete_in_thread=True,
            key_bindings=self._keys(),
            bottom_toolbar=self._toolbar,
            prompt_continuation="  ",
            enable_open_in_editor=True,
            erase_when_done=True,
            style=_STYLE,
            output=self._output,
        )
        app = session.app
        app.ttimeoutlen, app.timeoutlen = 0.1, 0.3  # so long after Esc another key may belong to it
        app._on_resize = self._resized  # type: ignore[method-assign] # theirs does not know that a terminal reflows
        app._redraw = self._redraw  # type: ignore[method-assign] # nothing is drawn while the window changes
        app.after_render += self._after_render
        return session

    def _redraw(self, render_as_done: bool = False) -> None:
        if not render_as_done and self._is_resizing is None and self._measure():
            self._resized()  # before the system tells us: the library would erase as many rows as there were
        if self._is_resizing is None or render_as_done:
            type(self._app)._redraw(self._app, render_as_done)

    @property
    def _app(self) -> Application[str]:
        return self._session.app

    @property
    def _buffer(self) -> Buffer:
        return self._session.default_buffer

    def _known_commands(self) -> Sequence[CompletionHint]:
        """Called in a thread of its own: what a gateway at work has imported long ago is imported here now."""
        from hermes.app.tools import COMMANDS
        from hermes.cli.skills import open_library
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
        ticking = asyncio.create_task(self._tick())
        save_title(self._above)
        self._in_thread(self._refresh_status)
        try:
            started = False
            while True:
                try:
                    text = await self._session.prompt_async(
                        pre_run=self._wake if started else self._begin, handle_sigint=False
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
            restore_title(self._above)
            write_styled(self._above, map(coded, self._view.take()))
            self._output.flush()

    def _begin(self) -> None:
        self._start()
        self._wake()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._view.is_busy or self._wants_to_leave():
                self._draw()

    # Sending

    def _accept(self, text: str, shown: str) -> None:
        if self._reason_for:
            code, self._reason_for = self._reason_for, ""
            self.send(questions.answer_command(code, questions.DENY_WHY, text), f"{self._words.CHAT_NO}: {shown}")
            return
        bare = text.strip()
        if not bare:
            return
        if bare.lower() == "/verbose":
            self._view.is_verbose = not self._view.is_verbose
            self._view.show_message(shown)
            words = self._words
            self._view.note(words.CHAT_VERBOSE_ON if self._view.is_verbose else words.CHAT_VERBOSE_OFF)
            return
        if bare.lower() == "/resume":
            self.pick_session()
            return
        if bare.startswith("/"):
            self.send(text, shown)
            return
        mentioned = read_mentions(text, Path(here() or "."))
        self.send(mentioned.text, shown)
        for name, size in mentioned.added:
            self._view.note("  " + self._words.CHAT_FILE_ADDED.format(name=name, size=f"{size:,} B"))
        for name, reason in mentioned.left_out:
            self._view.note("  " + self._words.CHAT_FILE_LEFT_OUT.format(name=name, reason=reason), "bad")

    def send(self, text: str, shown: str | None = None) -> None:
        if shown is not None:
            self._view.show_message(shown)
        if not self._view.is_busy:
            self._began, self._is_stopping = time.monotonic(), False
            self._last_sent = shown or ""
        say = self._view.begin(text)
        self._in_thread(self._ask, say, text)
        self._wake()

    def _in_thread(self, act: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=act, args=args, daemon=True, name=f"chat {act.__name__}").start()

    def _ask(self, say: FollowedSay, text: str) -> None:
        """In a thread of its own: send a message and pass on what it causes."""
        outcome: Any = None
        try:
            if not text.lstrip().startswith("/"):
                # A fetch that failed is told by the model itself, as the answer to this message.
                with suppress(GatewayError):
                    ready = self._client.ask(
                        "model.ready", {"text": text}, lambda event: self._post("progress", say, event), SAY_SECONDS
                    )
                    self._status.setdefault("model", ready.get("label", ""))
            said = {"chat": self._chat, "text": text, "key": secrets.token_hex(12), **surroundings()}
            outcome = self._client.ask("say", said, lambda event: self._post("event", say, event), SAY_SECONDS)
            self._refresh_status()
            if text.split()[0].lower() in REDRAWN_COMMANDS and outcome["state"] == "answered":
                self._post("history", say, self._history(sessions.SHOWN_MESSAGES))
        except GatewayError as error:
            outcome = error
        finally:
            self._post("end", say, outcome)

    def _refresh_status(self) -> None:
        with suppress(GatewayError):
            found = self._history(0)
            self._status.update(found)
            self._post("status", FollowedSay(""), found)

    def _history(self, limit: int) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._client.ask("chat.history", {"chat": self._chat, "limit": limit})
        return found

    def _post(self, kind: str, say: FollowedSay, told: Any) -> None:
        """From any thread: leave news for the loop, and wake it where nothing waits there yet."""
        self._news.append((kind, say, told))
        if len(self._news) == 1 and self._loop is not None:
            with suppress(RuntimeError):  # the chat has just been left
                self._loop.call_soon_threadsafe(self._wake)

    def _take_news(self) -> None:
        now = time.monotonic()
        while self._news:
            kind, say, told = self._news.popleft()
            match kind:
                case "event":
                    self._progress = ""
                    self._view.handle(say, told, now)
                case "progress":
                    self._progress = str(told.get("text") or "")
                case "history":
                    self._view.add(sessions.conversation(told, self._words, self._width))
                case "sessions":
                    self._show_sessions(told)
                case "status":
                    set_title(self._above, f"Hermes: {told['title']}" if told.get("title") else "Hermes")
                case "end":
                    self._end(say, told)

    def _end(self, say: FollowedSay, outcome: Any) -> None:
        if isinstance(outcome, GatewayError):
            self._view.complain(outcome)
        result = outcome if isinstance(outcome, Mapping) else None
        self._view.end(say, result)
        if result is not None and (tokens := result.get("tokens")):
            self._tokens += tokens["prompt"] + tokens["completion"]
            self._status["model"] = result.get("model") or self._status.get("model", "")
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

    # Questions

    def _ask_approval(self, asked: Mapping[str, Any]) -> None:
        self._view.add(questions.approval_box(asked, self._words, self._width))
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

    def _open_menu(self, menu: Menu, on_pick: Callable[[MenuChoice | None], None]) -> None:
        self._menu, self._on_pick = menu, on_pick

    def _pick(self, choice: MenuChoice | None) -> None:
        """Close the menu with what was picked; None: nothing was."""
        self._menu = None
        self._on_pick(choice)
        self._draw()

    # Sessions

    def pick_session(self) -> None:
        def look() -> None:
            try:
                self._post("sessions", FollowedSay(""), self._client.ask("chat.sessions", {}))
            except GatewayError as error:
                self._post("end", FollowedSay(""), error)

        self._in_thread(look)

    def _show_sessions(self, found: Sequence[Mapping[str, Any]]) -> None:
        if not found:
            self._view.note(self._words.CHAT_PICK_NOTHING)
            return
        self._open_menu(sessions.picker(found, self._words, time.time()), self._resume)

    def _resume(self, choice: MenuChoice | None) -> None:
        if choice is not None:
            self.send(f"/resume {choice.value}")

    def show_history(self) -> None:
        def look() -> None:
            with suppress(GatewayError):  # an older gateway; the conversation goes on all the same
                self._post("history", FollowedSay(""), self._history(sessions.SHOWN_MESSAGES))

        self._in_thread(look)

    # Stopping and leaving

    def _stop(self) -> None:
        self._is_stopping = True
        say = FollowedSay("/stop")

        def ask() -> None:
            told = {"chat": self._chat, "text": "/stop", "key": secrets.token_hex(12)}
            try:
                self._client.ask("say", told, lambda event: self._post("event", say, event))
            except GatewayError as error:
                self._post("end", say, error)

        self._in_thread(ask)

    def _wants_to_leave(self) -> bool:
        return time.monotonic() - self._pressed_at < LEAVE_SECONDS

    # Keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        has_menu = Condition(lambda: self._menu is not None)

        @keys.add("c-j", filter=~has_menu, eager=True)  # Enter as it was typed before the prompt stood
        @keys.add("enter", filter=~has_menu & ~completion_is_selected, eager=True)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer is not self._buffer:  # the search line
                from prompt_toolkit.search import accept_search

                accept_search()
                return
            self._typed = buffer.text
            text = buffer.text
            for mark, pasted in self._pastes.items():
                text = text.replace(mark, pasted)
            self._pastes.clear()
            if text != buffer.text:
                buffer.document = Document(text)
            buffer.validate_and_handle()

        @keys.add("enter", filter=~has_menu & completion_is_selected, eager=True)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.complete_state = None

        @keys.add("escape", "enter", filter=~has_menu)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add(Keys.BracketedPaste, filter=~has_menu)
        def _(event: KeyPressEvent) -> None:
            data = event.data.replace("\r\n", "\n").replace("\r", "\n")
            count = data.count("\n") + 1
            if count < PASTED_LINES:
                event.current_buffer.insert_text(data)
                return
            mark = self._words.CHAT_PASTED.format(count=count)
            while mark in self._pastes:
                mark = f"{mark[:-1]}'{mark[-1]}"
            self._pastes[mark] = data
            event.current_buffer.insert_text(mark)

        @keys.add(Keys.CPRResponse, eager=True, save_before=lambda _: False)
        def _(event: KeyPressEvent) -> None:
            row, _, column = event.data[2:-1].partition(";")
            self._frames.answered(int(row), int(column))

        @keys.add("c-l", eager=True)
        def _(_event: KeyPressEvent) -> None:
            """A clean screen. Its first row stays free: tmux moves what is erased from there into its history."""
            with self._one_frame():
                self._app.renderer.clear()
                write_styled(self._above, [()])
                self._redraw()

        @keys.add("c-c", eager=True)
        def _(event: KeyPressEvent) -> None:
            self._pressed_stop(event)

        @keys.add("escape", filter=~has_menu)
        def _(event: KeyPressEvent) -> None:
            self._take_back(event.current_buffer)

        @keys.add("up", filter=has_menu, eager=True)
        @keys.add("c-p", filter=has_menu, eager=True)
        def _(_event: KeyPressEvent) -> None:
            self._move(-1)

        @keys.add("down", filter=has_menu, eager=True)
        @keys.add("c-n", filter=has_menu, eager=True)
        @keys.add("tab", filter=has_menu, eager=True)
        def _(_event: KeyPressEvent) -> None:
            self._move(1)

        @keys.add("enter", filter=has_menu, eager=True)
        def _(_event: KeyPressEvent) -> None:
            if self._menu is not None and self._menu.accepts(time.monotonic()) and self._menu.marked is not None:
                self._pick(self._menu.marked)

        @keys.add("escape", filter=has_menu, eager=True)
        @keys.add("c-d", filter=has_menu, eager=True)
        def _(_event: KeyPressEvent) -> None:
            self._pick(None)

        @keys.add("backspace", filter=has_menu, eager=True)
        def _(_event: KeyPressEvent) -> None:
            if self._menu is not None:
                self._menu.erase()
                self._draw()

        @keys.add(Keys.Any, filter=has_menu, eager=True)
        def _(event: KeyPressEvent) -> None:
            if self._menu is None or not self._menu.accepts(time.monotonic()):
                return
            if (choice := self._menu.typed(event.data)) is not None:
                self._pick(choice)
            else:
                self._draw()

        @keys.add(Keys.BracketedPaste, filter=has_menu, eager=True)
        def _(_event: KeyPressEvent) -> None:
            """A paste picks nothing."""

        return keys

    def _move(self, by: int) -> None:
        if self._menu is not None:
            self._menu.move(by)
            self._draw()

    def _pressed_stop(self, event: KeyPressEvent) -> None:
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
        self._draw()

    def _take_back(self, buffer: Buffer) -> None:
        """Esc: give up what is typed; on an empty line stop the turn and bring back the message for another try."""
        if buffer.complete_state is not None:
            buffer.cancel_completion()
        elif buffer.text or self._reason_for:
            self._reason_for = ""
            buffer.reset()
        elif self._view.is_busy and not self._is_stopping:
            self._stop()
            buffer.insert_text(self._last_sent)

    # Drawing

    def _measure(self) -> bool:
        """Ask for the size of the window. True when it is another one."""
        size = self._output.get_size()
        is_new = (size.columns, size.rows) != (self._columns, self._rows_high)
        self._columns, self._rows_high = size.columns, size.rows
        return is_new

    @property
    def _width(self) -> int:
        return max(MIN_WIDTH, self._columns - 1)

    def _wake(self) -> None:
        """Draw soon: at once after a pause, else with the next frame."""
        if self._frame is not None or self._loop is None:
            return
        pause = max(0.0, self._drawn_at + FRAME_SECONDS - time.monotonic())
        self._frame = self._loop.call_later(pause, self._draw)

    def _draw(self) -> None:
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None
        self._drawn_at = time.monotonic()
        app = self._app
        if not app.is_running or app._running_in_terminal:
            return  # the next prompt draws what waits; an editor is open
        if self._measure():
            self._resized()
        if self._is_resizing is not None:
            return
        self._take_news()
        lines = self._view.take()
        before = len(self._shown_rows)
        self._shown_rows = self._live_rows()
        self._frames.before, self._frames.lines = self._rows_drawn(), lines
        with self._one_frame():
            if lines or len(self._shown_rows) < before:
                app.renderer.erase(leave_alternate_screen=False)
                write_styled(self._above, map(coded, lines))
            self._redraw()
            if self._view.is_busy and self._frames.may_ask(self._drawn_at):
                ask_width(self._above)
            else:
                self._frames.width = self._columns

    @contextmanager
    def _one_frame(self) -> Iterator[None]:
        """What is written within reaches the terminal at once, so nothing flickers."""
        begin_frame(self._above)
        self._above.is_held = True
        try:
            yield
        finally:
            self._above.is_held = False
            end_frame(self._above)
            self._output.flush()

    def _resized(self) -> None:
        """Erase what stands at the old width, as it stands now, and draw it again once the window is quiet.

        While a window is dragged, a terminal may tell its new size late. What is drawn in between would be drawn for
        a width that is gone, and nobody could say how many rows it takes.
        """
        self._measure()
        if self._loop is None:
            return
        if self._is_resizing is not None:
            self._is_resizing.cancel()
        elif self._frames.may_ask(time.monotonic()) and self._frames.has_answered:
            self._frames.on_answer = self._erase_resized
            ask_width(self._above)
            self._output.flush()
        else:
            self._erase_resized()
        self._is_resizing = self._loop.call_later(QUIET_SECONDS, self._settle)

    def _erase_resized(self) -> None:
        """Erase the drawn rows. A frame that came too late for its width has left rows of the one before it above."""
        frames, renderer = self._frames, self._app.renderer
        frames.on_answer = None
        columns = frames.width or self._columns
        shown_at = frames.frame_width or frames.believed
        lines: list[Line] = []
        if reflows(os.environ):
            rows = _broken([min(width, shown_at) for width in self._rows_drawn()], columns)
            if shown_at != frames.believed:
                room = (frames.row or self._rows_high) - rows - 1
                heights = [max(1, -(-line_width(line) // columns)) for line in frames.lines]
                while len(lines) < len(frames.lines) and room >= heights[-1 - len(lines)]:
                    room -= heights[-1 - len(lines)]
                    rows += heights[-1 - len(lines)]
                    lines.insert(0, frames.lines[-1 - len(lines)])
                if len(lines) == len(frames.lines):
                    rows += min(room, _broken(frames.before, shown_at) - max(0, len(frames.before) - 1))
            renderer._cursor_pos = Point(x=columns, y=rows)  # as far left as it goes
        with self._one_frame():
            renderer.erase(leave_alternate_screen=False)
            write_styled(self._above, map(coded, lines))
        frames.lines = ()

    def _settle(self) -> None:
        if self._frames.on_answer is not None:  # a terminal that does not answer
            self._erase_resized()
        self._is_resizing = None
        self._measure()
        self._frames.believed = self._columns
        self._view.resize(self._width)
        self._draw()

    def _rows_drawn(self) -> list[int]:
        """The widths of the drawn rows above the cursor, and the column of the cursor."""
        renderer = self._app.renderer
        screen, cursor = renderer._last_screen, renderer._cursor_pos
        if screen is None:
            return []
        rows = [screen.data_buffer[y].items() for y in range(cursor.y)]
        widths = [max((x + max(1, char.width) for x, char in row if char.char.strip()), default=0) for row in rows]
        return [*widths, cursor.x]

    def _after_render(self, _app: object) -> None:
        """Where less is to be shown than before (a menu was closed), draw anew, since the height only grows."""
        buffer = self._buffer
        height = len(buffer.document.lines) + (8 if buffer.complete_state is not None else 0)
        height += 100 if self._app.layout.is_searching else 0  # what it finds may have any number of lines
        before, self._height = self._height, height
        if height < before and self._loop is not None:
            self._loop.call_soon(self._draw_smaller)

    def _draw_smaller(self) -> None:
        if self._is_resizing is None and self._app.is_running and not self._app._running_in_terminal:
            with self._one_frame():
                self._app.renderer.erase(leave_alternate_screen=False)
                self._redraw()

    def _live_rows(self) -> list[Line]:
        now, words = time.monotonic(), self._words
        most = max(3, min(8, self._rows_high // 3))
        rows = self._view.live(now, most)
        if self._view.is_busy and (self._is_stopping or not self._view.has_tools):
            doing = words.CHAT_STOPPING if self._is_stopping else self._progress or self._view.activity()
            spent = format_seconds(now - self._began)
            line = (
                StyledText("● ", "mark"),
                StyledText(f"{doing}  {spent}"),
                StyledText(f"  {words.CHAT_STOPS}", "dim"),
            )
            rows += [*([EMPTY] if rows else []), cut(line, self._width)]
        if self._menu is not None:
            rows += self._menu.rows(self._width)
        return rows

    def _message(self) -> StyleAndTextTuples:
        shown: StyleAndTextTuples = []
        for row in self._shown_rows:
            shown += fragments(row)
            shown.append(("", "\n"))
        prompt = f"{self._words.CHAT_REASON}> " if self._reason_for else "> "
        return [*shown, ("ansicyan bold", prompt)]

    def _toolbar(self) -> StyleAndTextTuples:
        if self._wants_to_leave():
            return [("", self._words.CHAT_PRESS_AGAIN)]
        parts = [str(self._status.get("model") or "")]
        if self._tokens:
            parts.append(self._words.CHAT_TOKENS.format(count=f"{self._tokens:,}"))
        used, window = int(self._status.get("used") or 0), int(self._status.get("window") or 0)
        if used and window:
            parts.append(self._words.CHAT_CONTEXT.format(percent=-(-used * 100 // window)))
        if self._view.waiting:
            parts.append(self._words.CHAT_WAITING.format(count=self._view.waiting))
        parts.append(str(self._status.get("title") or ""))
        line = cut(plain(" · ".join(filter(None, parts))), self._width)
        return list(fragments(line)) or [("", " ")]


class _Above:
    """Where finished lines are written: the output of the prompt, which is flushed once for each frame."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._flush = output.flush
        self.is_held = False
        setattr(output, "flush", self._flush_unless_held)  # noqa: B010 - a method is replaced
        # The height is ours: the terminal is not asked where the cursor is, and the status line needs one row.
        setattr(output, "enable_cpr", False)  # noqa: B010 - of one kind of output only
        setattr(output, "get_rows_below_cursor_position", lambda: 1)  # noqa: B010

    def write(self, text: str) -> None:
        self._output.write_raw(text)

    def _flush_unless_held(self) -> None:
        if not self.is_held:
            self._flush()


class _Frames:
    """What is known of the last frame: the width it was drawn for (``believed``) and the one it was shown at.

    ``before`` holds the widths of the rows that it replaced, ``lines`` what it wrote above them. ``width`` is that of
    the window as the terminal told last, ``row`` the one that the cursor was in then.
    """

    def __init__(self) -> None:
        self.believed = self.width = self.frame_width = self.row = 0
        self.before: Sequence[int] = ()
        self.lines: Sequence[Line] = ()
        self.on_answer: Callable[[], None] | None = None
        self.has_answered = False
        self._asked_at: deque[float] = deque()

    def may_ask(self, now: float) -> bool:
        """Whether to ask for the width, which is noted. One that never answers is asked no more."""
        if self._asked_at and not self.has_answered and now - self._asked_at[0] > ANSWER_SECONDS:
            return False
        self._asked_at.append(now)
        return True

    def answered(self, row: int, width: int) -> None:
        self.has_answered, self.row = True, row
        if self._asked_at:
            self._asked_at.popleft()
        self.frame_width, self.width = self.width, width
        if not self._asked_at and self.on_answer is not None:
            self.on_answer()


def _broken(widths: Sequence[int], columns: int) -> int:
    """How many rows these rows take above the cursor, whose column is the last number, once long ones are broken."""
    if not widths:
        return 0
    *rows, cursor = widths
    return sum(max(1, -(-width // columns)) for width in rows) + cursor // columns


def reflows(environ: Mapping[str, str]) -> bool:
    """Whether the terminal breaks long lines anew when its window gets narrower; xterm and consoles cut them."""
    if environ.get("TMUX"):
        return True
    if environ.get("XTERM_VERSION"):
        return False
    return not environ.get("TERM", "").startswith(("linux", "rxvt", "st-", "screen", "vt"))


def shows_links(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is one of those known to show hyperlinks."""
    if environ.get("TERM_PROGRAM") in {"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"}:
        return True
    if environ.get("TERM", "") in {"xterm-kitty", "alacritty", "foot", "xterm-ghostty", "contour"}:
        return True
    version = environ.get("VTE_VERSION", "")
    return bool(environ.get("WT_SESSION")) or (version.isdecimal() and int(version) >= 5000)
