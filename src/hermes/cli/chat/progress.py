"""How far the fetch of the built-in model is, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from hermes.hosting.terminal import err, rewrite_line


class Progress:
    """How far the fetch of the built-in model is: one line on stderr that is rewritten, or a line now and then."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._printed_mb = -1
        self._is_line_open = False

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event.get("kind") != "progress":
            return
        text = f"Model    {event['text']}"
        if self._is_terminal:
            rewrite_line(sys.stderr, text)
            self._is_line_open = True
        elif event["done_mb"] >= self._printed_mb + 20 or self._printed_mb < 0:
            self._printed_mb = event["done_mb"]
            err(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_line_open:
            rewrite_line(sys.stderr)
