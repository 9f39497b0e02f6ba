"""Recognise edits in which nothing changed, such as reactions."""

from __future__ import annotations

from hermes.core.bounded import BoundedDict
from hermes.core.messages import Ignored, InboundEvent, InboundMessage

_MAX_REMEMBERED = 2000


class Seen:
    def __init__(self) -> None:
        self._contents = BoundedDict[tuple[str, str], int](_MAX_REMEMBERED)

    def ignore_unchanged(self, event: InboundEvent) -> InboundEvent:
        """The event, or that it is an edit of nothing: whoever heard the words before would answer them once more."""
        if not isinstance(event, InboundMessage):
            return event
        name = (event.session_key.chat, event.message_id)
        content = hash((event.text, *((file.kind, file.name, file.size) for file in event.attachments)))
        if event.is_edit and self._contents.get(name) == content:
            return Ignored(kind="an edit that changed nothing")
        self._contents[name] = content
        return event
