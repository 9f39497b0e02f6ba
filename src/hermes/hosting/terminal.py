"""Write to the terminal: clean all text first, add our own colours after. A test keeps others from printing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable

from hermes.core.printable import printable, printable_json, printable_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Protocol

    class Writes(Protocol):
        def write(self, text: str, /) -> object: ...

    Styled = Iterable[Iterable[tuple[str, str, str]]]

DIM = "2"
BLACK_ON_WHITE = "30;107"


def keep_writes_whole() -> None:
    """Have each stream write all it is given where Python was told to use no buffer (PYTHONUNBUFFERED, `python -u`).

    A bare file ends a long write early when a signal comes, a resized window for example, and nobody above it looks
    at how much was written.
    """
    import io

    for name in ("stdout", "stderr"):
        bare = getattr(sys, name)
        if isinstance(getattr(bare, "buffer", None), io.RawIOBase):
            file = _whole_file(bare.fileno())
            whole = io.TextIOWrapper(file, bare.encoding, bare.errors, line_buffering=True, write_through=True)
            setattr(sys, name, whole)


def _whole_file(descriptor: int) -> IO[bytes]:
    import io
    import select

    class WholeFile(io.FileIO):
        def write(self, data: Any, /) -> int:
            left = memoryview(data).cast("B")
            while left:
                written = super().write(left)
                if written is None:  # a terminal that does not block
                    select.select([], [self.fileno()], [])
                left = left[written or 0 :]
            return len(data)

    return WholeFile(descriptor, "w", closefd=False)


def out(text: object = "", *, end: str = "\n", style: str = "", flush: bool = False) -> None:
    """Print on stdout."""
    write(sys.stdout, f"{text}", end=end, style=style, flush=flush)


def out_lines(lines: Iterable[str]) -> None:
    """Print a list, one entry a line: a line break inside an entry is spelled out, so that no name adds an entry."""
    out("\n".join(map(printable_line, lines)))


def err(text: object = "", *, end: str = "\n") -> None:
    """Print on stderr."""
    write(sys.stderr, f"{text}", end=end, flush=True)


def out_json(value: Any, *, indent: int | None = None, flush: bool = False) -> None:
    """Print a value as JSON. Control and direction characters are escaped, which changes no value."""
    import json

    sys.stdout.write(printable_json(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")
    if flush:
        sys.stdout.flush()


def out_result(value: Any, shown: str | Iterable[str], *, as_json: bool) -> int:
    """Print a command's result as JSON, or as a text or a list of lines; return the exit code 0."""
    if as_json:
        out_json(value)
    elif isinstance(shown, str):
        out(shown)
    else:
        out_lines(shown)
    return 0


def write(stream: IO[str], text: str, *, end: str = "", style: str = "", flush: bool = False) -> None:
    """Clean ``text`` and write it. ``style`` is a code of ours, such as ``DIM``, set for each line by itself."""
    clean = printable(text)
    if style:
        clean = "\n".join(f"\x1b[{style}m{line}\x1b[0m" for line in clean.split("\n"))
    stream.write(clean + end)
    if flush:
        stream.flush()


_STYLE = re.compile(r"[0-9;]*")
_ADDRESS = re.compile(r"(?:https?://|mailto:)[!-~]+", re.IGNORECASE)
MAX_ADDRESS = 2000
MAX_TITLE = 100


def write_styled(stream: Writes, lines: Styled, *, end: str = "\n") -> None:
    """Write lines made of (text, style, link): the text is cleaned, the style is a code of ours.

    A link becomes a hyperlink where its address is one of the web or of mail, in ASCII and of sensible length.
    """
    for line in lines:
        written: list[str] = []
        for text, style, link in line:
            clean = printable_line(text)
            if style and _STYLE.fullmatch(style):
                clean = f"\x1b[{style}m{clean}\x1b[0m"
            if link and len(link) <= MAX_ADDRESS and _ADDRESS.fullmatch(link):
                clean = f"\x1b]8;;{link}\x1b\\{clean}\x1b]8;;\x1b\\"
            written.append(clean)
        stream.write("".join(written) + end)


def set_title(stream: Writes, title: str) -> None:
    """Name the window."""
    stream.write(f"\x1b]2;{printable_line(title)[:MAX_TITLE]}\x1b\\")


def save_title(stream: Writes) -> None:
    """Let the terminal remember the name of its window, for ``restore_title``."""
    stream.write("\x1b[22;2t")


def restore_title(stream: Writes) -> None:
    stream.write("\x1b[23;2t")


def begin_frame(stream: Writes) -> None:
    """Ask the terminal to show what follows at once, with ``end_frame``. Terminals that do not know it ignore it."""
    stream.write("\x1b[?2026h")


def end_frame(stream: Writes) -> None:
    stream.write("\x1b[?2026l")


def ask_width(stream: Writes) -> None:
    """Let the terminal answer with the place of its last column, once it has shown all that was written before."""
    stream.write("\x1b7\x1b[999C\x1b[6n\x1b8")


def err_unbuffered(text: str) -> None:
    """Write a line to descriptor 2 at once: safe in a signal handler, and nothing happens if the window is closed."""
    try:
        os.write(2, printable(text).encode("utf-8", "replace") + b"\n")
    except OSError:
        return


def rewrite_line(stream: IO[str], text: str = "") -> None:
    """Erase the line that the cursor is in and write ``text`` there, with no line end."""
    stream.write(f"\r\x1b[K{printable(text)}")
    stream.flush()


def erase_lines_above(stream: IO[str], number: int) -> None:
    stream.write(f"\x1b[{number}F\x1b[J")


def ask(prompt: str) -> str:
    """``input`` with a clean prompt."""
    return input(printable(prompt))


def ask_hidden(prompt: str) -> str:
    """Read a line that is not shown while it is typed."""
    import getpass

    return getpass.getpass(printable(prompt))
