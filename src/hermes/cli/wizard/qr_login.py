"""Sign in to a platform with a QR code in this terminal."""

from __future__ import annotations

import asyncio
import shutil
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from hermes.cli.support.qr import drawn
from hermes.cli.support.screen import complain, say
from hermes.core.errors import ConfigError, PlatformError
from hermes.core.keys import MAIN
from hermes.core.manifest import AdapterParts, Manifest, SignedIn
from hermes.hosting.terminal import BLACK_ON_WHITE, erase_lines_above, out, rewrite_line
from hermes.services.adapters.probe import adapter_parts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from hermes.cli.support.prompts import Questions
    from hermes.config import Config


INTERRUPTED = 130
LINES_AROUND = 5  # of words, above and below a code

_Result = TypeVar("_Result")


class Terminal:
    """Where the code is shown. ``ask`` None: whoever looks at it cannot be asked anything."""

    def __init__(self, ask: Questions | None) -> None:
        self._ask = ask
        self._is_live = sys.stdout.isatty()
        self._replaceable = 0  # lines at the bottom of the screen whose place the next code takes
        self._is_line_open = False  # of progress

    def show_code(self, payload: str) -> None:
        try:
            picture = drawn(payload, in_colour=self._is_live)
        except ValueError:  # longer than any of theirs so far
            picture = ""
        is_link = payload.startswith(("https://", "http://"))
        how = "Scan it with the app on your phone"
        how += f", or open this link there:\n  {payload}" if is_link else "."
        how += _too_small(picture) if self._is_live else ""
        if self._replaceable:
            erase_lines_above(sys.stdout, self._replaceable)
        self.done()
        out()
        out(picture, style=BLACK_ON_WHITE if picture and self._is_live else "")
        say(f"\n{how}\n")
        size = shutil.get_terminal_size()
        below = f"\n\n{how}\n\n".split("\n")
        lines = picture.count("\n") + sum(max(1, -(-len(line) // size.columns)) for line in below)
        self._replaceable = lines if self._is_live and lines < size.lines else 0

    def say(self, text: str) -> None:
        self.done()
        say(text)
        self._replaceable = 0

    def progress(self, text: str) -> None:
        if not self._is_live:  # a log keeps every line, so it is shown none that changes
            return
        rewrite_line(sys.stdout, text)
        self._is_line_open = True
        self._replaceable = 0

    def done(self) -> None:
        """Whoever prints next begins on a line of their own."""
        if self._is_line_open:
            rewrite_line(sys.stdout)
            self._is_line_open = False

    async def ask(self, question: str) -> str:
        if self._ask is None:
            return ""
        self.done()
        self._replaceable = 0
        return await asyncio.to_thread(self._ask.line, question.rstrip(": "))


def _too_small(picture: str) -> str:
    """A line that says so where the window does not hold the whole code; '' where it does."""
    rows = picture.split("\n")
    columns, lines = max(map(len, rows)), len(rows) + LINES_AROUND
    size = shutil.get_terminal_size()
    if columns <= size.columns and lines <= size.lines:
        return ""
    return (
        f"\n! This window is too small for the code: it takes {columns} columns and {lines} lines, or a smaller font."
    )


def sign_in(
    manifest: Manifest,
    config: Config,
    account: str,
    ask: Questions | None,
    values: Mapping[str, str] = MappingProxyType({}),
) -> SignedIn:
    """Sign in; ``values`` override the configuration. Raises PlatformError or ConfigError in words."""
    if manifest.sign_in is None:
        raise ConfigError(f"{manifest.title} has no sign-in by QR code.")
    return asyncio.run(_done(manifest.sign_in, manifest, config, account, values, Terminal(ask)))


def lapsed(manifest: Manifest, config: Config, account: str) -> str:
    """Why what was signed in counts no more, in words; '' where nothing says so."""

    async def look() -> str:
        async with adapter_parts(manifest, config, account, {}) as parts:
            return manifest.lapsed(parts) if manifest.lapsed is not None else ""

    return asyncio.run(look())


def prepare(manifest: Manifest, config: Config) -> None:
    """Install what signing in would install, and nothing else."""
    if manifest.prepare is not None:
        asyncio.run(_done(manifest.prepare, manifest, config, MAIN, {}, Terminal(None)))


async def _done(
    act: Callable[[AdapterParts, Terminal], Awaitable[_Result]],
    manifest: Manifest,
    config: Config,
    account: str,
    values: Mapping[str, str],
    screen: Terminal,
) -> _Result:
    from hermes.store.home import make_home

    if manifest.prepare is not None:  # it installs something: the home has to be known as ours before
        make_home(config.home)
    async with adapter_parts(manifest, config, account, values) as parts:
        try:
            return await act(parts, screen)
        finally:
            screen.done()


def run_and_report(act: Callable[[list[str]], int]) -> int:
    """The exit code. ``act`` adds to the list what it has written, for whoever leaves after that."""
    from hermes.cli.support.prompts import LeftError
    from hermes.cli.wizard.page import describe_left

    done: list[str] = []
    try:
        return act(done)
    except (ConfigError, PlatformError) as error:
        complain(f"{error}\n  Nothing was written.")
        return 1
    except (KeyboardInterrupt, LeftError):
        say(f"\n{describe_left(done)}")
        return INTERRUPTED
