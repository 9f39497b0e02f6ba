"""Run one model call: stream deltas, return the whole reply."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import cast

from hermes.agent.models import failure_messages
from hermes.core.errors import ModelError, ModelErrorKind
from hermes.core.ports import Model, ModelNotice, ModelReply, ModelRequest, ReasoningDelta, TextDelta


async def ask_model(
    model: Model,
    request: ModelRequest,
    on_text: Callable[[str], None],
    on_notice: Callable[[str], None],
    on_reasoning: Callable[[str], None] = lambda _: None,
) -> ModelReply:
    """Stream one answer. Cancelling closes the connection to the provider."""
    stream = model.stream(request)
    # Every model is an async generator; closing it is what ends the provider's call when we are cancelled.
    async with aclosing(cast("aclosing[object]", stream)):  # type: ignore[type-var] # see above
        async for event in stream:
            if isinstance(event, TextDelta):
                on_text(event.text)
            elif isinstance(event, ReasoningDelta):
                on_reasoning(event.text)
            elif isinstance(event, ModelNotice):
                on_notice(event.text)
            elif isinstance(event, ModelReply):
                return event
    raise ModelError(ModelErrorKind.EMPTY, failure_messages.ENDED_EARLY, provider=model.label)
