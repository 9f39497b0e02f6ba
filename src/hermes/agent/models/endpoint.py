"""Describe an endpoint: URL, model, keys and timeouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ModelError
from hermes.core.secret import Secret


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. ``first_byte`` is long for servers that load a model first, ``idle`` for silent thinking."""

    connect: float = 15.0
    first_byte: float = 120.0
    idle: float = 120.0
    # After the finish reason only the usage may come: worth a short wait.
    after_finish: float = 3.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``base_url`` is the API root, with its ``/v1``. ``key`` is asked before every call: a new one counts at once.

    ``other_key`` is told of a key that failed, with the error, and gives another one to try at once, or None.
    """

    provider: str
    base_url: str
    model: str
    key: Callable[[], Secret | None] = lambda: None
    other_key: Callable[[Secret | None, ModelError], Secret | None] = lambda _key, _error: None
    headers: Mapping[str, str] = field(default_factory=dict)
    has_tools: bool = True
    timeouts: Timeouts = field(default_factory=Timeouts)

    @property
    def label(self) -> str:
        return f"{self.provider} / {self.model}"


# Names that providers and makers of models share: on a router, `openai/gpt-4o` is the model's whole name.
MAKERS = frozenset({
    "amazon", "anthropic", "cohere", "deepseek", "google", "meta-llama", "microsoft", "minimax", "mistral", "mistralai",
    "moonshotai", "nousresearch", "nvidia", "openai", "perplexity", "qwen", "x-ai", "xai", "z-ai",
})  # fmt: skip
ROUTERS = frozenset({"openrouter"})


def bare_model(model: str, provider: str, providers: Collection[str] = ()) -> str:
    """Return the name that the provider knows: without a prefix that only our configuration knows.

    ``openkey/gpt-4o-mini`` at openkey is ``gpt-4o-mini``. A router's own names keep theirs (``openrouter/auto``),
    and so does a maker's name (``openai/gpt-4o`` at openrouter), even if a provider is called the same.
    """
    prefix, slash, rest = model.partition("/")
    if not slash or not rest:
        return model
    if prefix == provider:
        is_own_name = provider in ROUTERS and "/" not in rest
        return model if is_own_name else rest
    return rest if prefix in providers and prefix not in MAKERS else model
