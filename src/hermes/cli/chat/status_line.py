"""The line at the bottom: model, tokens, cost, how full the context is, what waits, the title."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.cli.chat.lines import Line, plain
from hermes.core.i18n.en import Texts


class StatusLine:
    def __init__(self, words: Texts) -> None:
        self.model = ""
        self.busy_mode = ""
        self._words = words
        self._title = ""
        self._used = self._window = self._tokens = 0
        self._cost = 0.0

    def take(self, found: Mapping[str, Any]) -> None:
        """What the gateway knows of the conversation: the answer to ``chat.history``."""
        self._title = str(found.get("title") or "")
        self.busy_mode = str(found.get("busy") or "")
        self._used, self._window = int(found.get("used") or 0), int(found.get("window") or 0)

    def spent(self, result: Mapping[str, Any]) -> None:
        """Count what a message took: the result of ``say``."""
        if tokens := result.get("tokens"):
            self._tokens += tokens["prompt"] + tokens["completion"]
            self.model = str(result.get("model") or self.model)
        self._cost += float(result.get("cost") or 0.0)

    def line(self, waiting: int) -> Line:
        words = self._words
        parts = [self.model]
        if self._tokens:
            parts.append(words.CHAT_TOKENS.format(count=f"{self._tokens:,}"))
        if self._cost:
            parts.append(format_cost(self._cost))
        if self._used and self._window:
            parts.append(words.CHAT_CONTEXT.format(percent=-(-self._used * 100 // self._window)))
        if waiting:
            parts.append(words.CHAT_WAITING.format(count=waiting))
        parts.append(self._title)
        return plain(" · ".join(filter(None, parts)))


def format_cost(dollars: float) -> str:
    """``$0.0031``: two digits that say something, cents from a dollar on."""
    if dollars >= 1:
        return f"${dollars:,.2f}"
    if dollars < 0.0001:
        return "<$0.0001"
    return f"${dollars:.4f}"
