"""Draw the chat: finished lines into the scrollback, once; live rows and the input below them, again and again.

The rows that are drawn again are those of prompt_toolkit. ``Screen`` decides when, keeps the finished lines above them
in the same frame, and brings order after the window was resized.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.data_structures import Point

from hermes.cli.chat.lines import Line
from hermes.cli.chat.theme import coded
from hermes.hosting.terminal import ask_width, begin_frame, end_frame, set_title, write_styled

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.output import Output

FRAME_SECONDS = 0.05
ANSWER_SECONDS = 2.0  # of a terminal that is asked for its width
QUIET_SECONDS = 0.3  # after the window was resized; tmux tells of a second change up to 0.25 s late
MIN_WIDTH = 20


class ScreenContent(Protocol):
    """What is shown. Asked once for each frame."""

    @property
    def is_busy(self) -> bool:
        """Whether an answer is being written, so that frames follow one another."""

    def take_lines(self) -> list[Line]:
        """The lines finished since the last frame."""

    def live_rows(self) -> list[Line]:
        """The rows above the input that may still change."""

    def resize(self, width: int) -> None: ...


class Screen:
    """``attach`` connects it with the prompt that it draws."""

    def __init__(self, output: Output, content: ScreenContent) -> None:
        self._output = output
        self._content = content
        self._above = _Above(output)
        self._application: Application[str] | None = None
        self._buffer: Buffer | None = None
        self._columns, self.rows_high = 80, 24
        self._measure()
        self._question = _WidthQuestion()
        self._frame: asyncio.TimerHandle | None = None
        self._resizing: asyncio.TimerHandle | None = None
        self._drawn_at = 0.0
        self._height = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self.rows: list[Line] = []
        """The live rows of the last frame, for the prompt to show."""

    def attach(self, application: Application[str], buffer: Buffer) -> None:
        self._application, self._buffer = application, buffer
        application._on_resize = self._resized  # type: ignore[method-assign] # theirs does not know that a terminal reflows
        application._redraw = self._redraw  # type: ignore[method-assign] # nothing is drawn while the window changes
        application.after_render += self._after_render

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    @property
    def _app(self) -> Application[str]:
        if self._application is None:
            raise RuntimeError("the screen is drawn before a prompt is attached")
        return self._application

    @property
    def width(self) -> int:
        return max(MIN_WIDTH, self._columns - 1)

    @property
    def stream(self) -> _Above:
        return self._above

    def set_title(self, title: str) -> None:
        set_title(self._above, title)

    def terminal_answered(self, data: str) -> None:
        """The terminal has told the place of its last column: the answer to ``ask_width``."""
        self._question.answered(int(data[2:-1].partition(";")[2]))

    def clear(self) -> None:
        """A clean screen. Its first row stays free: tmux moves what is erased from there into its history."""
        with self._one_frame():
            self._app.renderer.clear()
            write_styled(self._above, [()])
            self._redraw()

    def write_rest(self) -> None:
        """Write what is finished after the prompt is gone."""
        write_styled(self._above, map(coded, self._content.take_lines()))
        self._output.flush()

    # Frames

    def _redraw(self, render_as_done: bool = False) -> None:
        if not render_as_done and self._resizing is None and self._measure():
            self._resized()  # before the system tells us: the library would erase as many rows as there were
        if self._resizing is None or render_as_done:
            with self._one_frame():
                type(self._app)._redraw(self._app, render_as_done)
                if not render_as_done and self._may_park():
                    self._park()

    def _may_park(self) -> bool:
        """While an answer is written and nothing is typed. A person who types needs the cursor where they type."""
        buffer = self._buffer
        is_typing = buffer is None or bool(buffer.text) or self._app.layout.is_searching
        return self._content.is_busy and not is_typing

    def _park(self) -> None:
        """Leave the cursor, hidden, at the beginning of the live rows.

        A window that is resized keeps the cursor at its character, however it breaks the rows anew. So the next frame
        erases from the right place, though it was drawn before anybody told us of the new size.
        """
        renderer = self._app.renderer
        self._output.cursor_up(renderer._cursor_pos.y)
        self._output.write_raw("\r")
        self._output.hide_cursor()
        renderer._cursor_pos = Point(x=0, y=0)

    def wake(self) -> None:
        """Draw soon: at once after a pause, else with the next frame."""
        if self._frame is not None or self._loop is None:
            return
        pause = max(0.0, self._drawn_at + FRAME_SECONDS - time.monotonic())
        self._frame = self._loop.call_later(pause, self.draw)

    def _measure(self) -> bool:
        """Ask for the size of the window. True when it is another one."""
        size = self._output.get_size()
        is_new = (size.columns, size.rows) != (self._columns, self.rows_high)
        self._columns, self.rows_high = size.columns, size.rows
        return is_new

    def draw(self) -> None:
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None
        self._drawn_at = time.monotonic()
        app = self._app
        if not app.is_running or app._running_in_terminal:
            return  # the next prompt draws what waits; an editor is open
        if self._measure():
            self._resized()
        if self._resizing is not None:
            return
        lines = self._content.take_lines()
        before = len(self.rows)
        self.rows = self._content.live_rows()
        with self._one_frame():
            if lines or len(self.rows) < before:
                app.renderer.erase(leave_alternate_screen=False)
                write_styled(self._above, map(coded, lines))
            self._redraw()

    @contextmanager
    def _one_frame(self) -> Iterator[None]:
        """What is written within reaches the terminal at once, so nothing flickers."""
        if self._above.is_held:
            yield
            return
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
        if self._resizing is not None:
            self._resizing.cancel()
        elif not self._above.is_held and not self._is_parked and self._question.may_ask(time.monotonic()):
            self._question.on_answer = self._erase_resized
            ask_width(self._above)
            self._output.flush()
        else:
            self._erase_resized(self._columns)
        self._resizing = self._loop.call_later(QUIET_SECONDS, self._settle)

    @property
    def _is_parked(self) -> bool:
        return self._app.renderer._cursor_pos == Point(x=0, y=0)

    def _erase_resized(self, columns: int) -> None:
        """Erase the drawn rows, as many as they take in a window of so many columns."""
        renderer = self._app.renderer
        self._question.on_answer = None
        if reflows(os.environ) and not self._is_parked:
            renderer._cursor_pos = Point(x=columns, y=_broken(self._rows_drawn(), columns))  # as far left as it goes
        with self._one_frame():
            renderer.erase(leave_alternate_screen=False)

    def _settle(self) -> None:
        if self._question.on_answer is not None:  # a terminal that does not answer
            self._erase_resized(self._columns)
        self._resizing = None
        self._measure()
        self._content.resize(self.width)
        self.draw()

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
        if buffer is None:
            return
        height = len(buffer.document.lines) + (8 if buffer.complete_state is not None else 0)
        height += 100 if self._app.layout.is_searching else 0  # what it finds may have any number of lines
        before, self._height = self._height, height
        if height < before and self._loop is not None:
            self._loop.call_soon(self._draw_smaller)

    def _draw_smaller(self) -> None:
        if self._resizing is None and self._app.is_running and not self._app._running_in_terminal:
            with self._one_frame():
                self._app.renderer.erase(leave_alternate_screen=False)
                self._redraw()


class _Above:
    """Where finished lines are written: the output of the prompt, which is flushed once for each frame."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._flush = output.flush
        self.is_held = False
        setattr(output, "flush", self._flush_unless_held)  # noqa: B010 - a method is replaced
        # The height is ours: the terminal is not asked where the cursor is, and the status line needs one row.
        setattr(output, "enable_cpr", False)  # noqa: B010 - of one kind of output only
        setattr(output, "get_rows_below_cursor_position", lambda: 1)  # noqa: B010 - a method is replaced

    def write(self, text: str) -> None:
        self._output.write_raw(text)

    def _flush_unless_held(self) -> None:
        if not self.is_held:
            self._flush()


class _WidthQuestion:
    """The terminal is asked how wide it is. One that does not answer is asked no more."""

    def __init__(self) -> None:
        self.on_answer: Callable[[int], None] | None = None
        self._asked_at = 0.0
        self._has_answered = True

    def may_ask(self, now: float) -> bool:
        if not self._has_answered and now - self._asked_at > ANSWER_SECONDS:
            return False
        self._asked_at, self._has_answered = now, False
        return True

    def answered(self, columns: int) -> None:
        self._has_answered = True
        if self.on_answer is not None:
            self.on_answer(columns)


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
