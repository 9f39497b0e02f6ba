"""Say something beside the answer, and complain."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.cli.support.program_name import as_typed
from hermes.hosting.terminal import err, out
from hermes.hosting.translation import tr


def say(text: str) -> None:
    """Print a sentence of ours, in the language of the terminal."""
    out(tr(text), flush=True)


def note(text: str) -> None:
    """A word beside the answer."""
    sys.stdout.flush()
    err(tr(text))


@contextmanager
def telling_interruption(state: Callable[[], str]) -> Iterator[None]:
    """On Ctrl+C, say what became of the work; ``state`` looks at it then."""
    try:
        yield
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            err()  # the terminal shows ^C on this line
        note(as_typed(f"! Interrupted. {state()}"))
        raise


def complain(reason: object) -> None:
    """Say on stderr what went wrong, with the commands it names as they can be typed here."""
    err(as_typed(tr(f"✗ {reason}")))
