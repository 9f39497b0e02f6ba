"""Read the sampling fields of a request, and refuse those that the model's API does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes.core.keys import SessionKey
from hermes.core.messages import Sampling
from hermes.core.requests import TurnOptions
from hermes.core.text import storable
from hermes.servers.api.errors import bad_request
from hermes.services.gateway import Gateway
from hermes.services.models import BUILT_IN_DIALECT
from hermes.store import chat_settings

MAX_STOPS = 16
MAX_STOP_CHARS = 1000
LOGPROBS_INCLUDED = "message.output_text.logprobs"

EFFORTS = {"none": "off", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}

MISSING = {
    "responses": frozenset({"stop"}),
    "anthropic_messages": frozenset({"logprobs"}),
    BUILT_IN_DIALECT: frozenset({"stop", "logprobs"}),
}
"""Fields that change an answer and that a dialect does not have. Hints (top_p, penalties, seed) are left out there."""


_HINTS = ("top_p", "presence_penalty", "frequency_penalty", "seed")
_FIELDS = (*_HINTS, "stop", "parallel_tool_calls", "logprobs", "top_logprobs", "include")


def read_sampling(body: Any) -> Sampling | None:
    """Return the fields that a body declares and sets; None when it sets none, as nearly always."""
    for name in _FIELDS:
        if getattr(body, name, None) is not None:
            break
    else:
        return None
    stop = _read_stop(getattr(body, "stop", None))
    parallel, logprobs = getattr(body, "parallel_tool_calls", None), getattr(body, "logprobs", None)
    top_logprobs = getattr(body, "top_logprobs", None)
    include: Sequence[Any] = getattr(body, "include", None) or ()
    hints = {name: getattr(body, name, None) for name in _HINTS}
    if top_logprobs and logprobs is False:
        message = "top_logprobs asks for what logprobs: false switches off. Send logprobs: true, or leave both out."
        raise bad_request(message, code="invalid_value", param="top_logprobs")
    sampling = Sampling(
        **hints,
        stop=stop,
        parallel_tool_calls=parallel,
        logprobs=bool(logprobs) or bool(top_logprobs) or LOGPROBS_INCLUDED in include,
        top_logprobs=top_logprobs or 0,
    )
    return None if sampling == Sampling() else sampling


def _read_stop(value: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value or []
    if len(words) > MAX_STOPS or any(not word or len(word) > MAX_STOP_CHARS for word in words):
        message = f"stop is a text, or up to {MAX_STOPS} of them, none empty or over {MAX_STOP_CHARS:,} characters."
        raise bad_request(message, code="invalid_value", param="stop")
    return tuple(map(storable, words))


def read_effort(value: Any, param: str) -> str:
    """Return how hard the model is to think: '' where nothing is said."""
    if value is None:
        return ""
    if not isinstance(value, str) or value not in EFFORTS:
        raise bad_request(f"{param} is one of {', '.join(EFFORTS)}.", code="invalid_value", param=param)
    return EFFORTS[value]


async def check_sampling(gateway: Gateway, key: SessionKey, options: TurnOptions) -> None:
    """Refuse by name what the API of the model that answers here does not have."""
    sampling = options.sampling
    if sampling is None or not (sampling.stop or sampling.logprobs):
        return
    wanted = {"stop": bool(sampling.stop), "logprobs": sampling.logprobs}
    chosen = (await gateway.db.read(chat_settings.of_lane, str(key))).model
    dialect = gateway.models.dialect_of(key, options.model, chosen)
    for name in MISSING.get(dialect, ()):
        if wanted[name]:
            label = gateway.models.model_for(key, options.model, chosen).label
            message = f"{label}, which answers here, takes no {name} ({dialect}). Leave {name} out."
            raise bad_request(message, code="unsupported_parameter", param=name)
