"""Choose the model that answers: configured, fallback or embedded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import aiohttp

from hermes.agent.models.anthropic_messages import AnthropicMessages
from hermes.agent.models.chat_completions import ChatCompletions
from hermes.agent.models.embedded.model import EmbeddedModel
from hermes.agent.models.endpoint import Endpoint, bare_model
from hermes.agent.models.fallback import Chain
from hermes.agent.models.http_model import HttpModel
from hermes.agent.models.key_rotation import KeyRotation
from hermes.agent.models.responses import Responses
from hermes.config import EMBEDDED, KNOWN, Config, Loaded, ProviderConfig
from hermes.config.providers import env_prefix
from hermes.core.errors import ConfigError
from hermes.core.i18n.catalogue import LocalizedText
from hermes.core.keys import SessionKey
from hermes.core.ports import Clock, Model
from hermes.services.http import ProxyRules, make_session

if TYPE_CHECKING:
    from hermes.agent.models.embeddings import EmbeddingsModel

DIALECTS: Mapping[str, Callable[[Endpoint, aiohttp.ClientSession], HttpModel]] = {
    "chat_completions": ChatCompletions,
    "responses": Responses,
    "anthropic_messages": AnthropicMessages,
}


BUILT_IN_DIALECT = "built-in"


class Models:
    """Builds a model from the configuration of the moment and keeps it until that changes."""

    def __init__(
        self,
        config: Callable[[], Config],
        embedded: EmbeddedModel,
        clock: Clock,
    ) -> None:
        self._config = config
        self._embedded = embedded
        self._clock = clock
        self._built_from: object = None
        self._built: dict[str, Model] = {}
        self._rings: dict[str, KeyRotation] = {}
        self._sessions: dict[ProxyRules, aiohttp.ClientSession] = {}
        self._answered_at: float | None = None
        self._failure = ""
        self._failed_under: object = None

    def model_for(self, key: SessionKey | None = None, name: str = "", chosen: str = "") -> Model:
        """The model that answers. ``name`` is what a request asked for; one without a route means the default.

        ``chosen`` is what the chat chose, as ``provider/model``; it counts while there is such a provider, and goes
        before what the configuration settles for this chat.
        """
        config = self._config()
        basis = (config.model, config.providers, config.proxies, config.model_routes)
        if self._built_from != basis:
            self._built, self._rings, self._built_from = {}, {}, basis
        route = config.model_routes.get(name, "") or route_of(config, key, chosen)
        if route not in self._built:
            self._built[route] = self._build(config, route)
        return self._built[route]

    def is_embedded(self, key: SessionKey, name: str = "", chosen: str = "") -> bool:
        """Whether the built-in model answers there, with nobody to stand in for it; asked as ``model_for`` is."""
        return self.model_for(key, name, chosen) is self._embedded

    def dialect_of(self, key: SessionKey, name: str = "", chosen: str = "") -> str:
        """Return which API the first model speaks that would answer; asked as ``model_for`` is."""
        config = self._config()
        route = config.model_routes.get(name, "") or route_of(config, key, chosen)
        provider = _split(route, config)[0] if route else config.model.provider
        known = config.providers.get(provider)
        if provider == EMBEDDED or known is None:
            return BUILT_IN_DIALECT
        return _mode(config, provider, known)

    def embeddings(self, name: str) -> EmbeddingsModel | None:
        """Return where texts are embedded: the provider of a route, or the default one; None where it has no such API.

        ``name`` without a route is the name of the provider's own model.
        """
        config = self._config()
        route = config.model_routes.get(name, "")
        provider, model = _split(route, config) if route else (config.model.provider, name)
        known = config.providers.get(provider)
        if provider == EMBEDDED or known is None or _mode(config, provider, known) == "anthropic_messages":
            return None
        from hermes.agent.models.embeddings import EmbeddingsModel  # few ask for it: a start does not import it

        return EmbeddingsModel(*self._endpoint(config, known, provider, model))

    def named(self, route: str, key: SessionKey | None = None) -> Model:
        """The model that a setting names as ``provider/model``, with the usual fallbacks; unnamed: the chat's own."""
        chats_own = self.model_for(key)
        if not route:
            return chats_own
        if route not in self._built:
            self._built[route] = self._build(self._config(), route)
        return self._built[route]

    def answered(self) -> None:
        """A turn ended with an answer: what status shows as the model's last sign of life."""
        self._answered_at = self._clock.monotonic()
        self._failure = ""

    def failed(self, kind: str) -> None:
        """A turn ended because of the model; said in status until the next answer, or until another is configured."""
        self._failure, self._failed_under = kind, self._config().model

    def status(self) -> dict[str, Any]:
        age = None if self._answered_at is None else self._clock.monotonic() - self._answered_at
        label = self.model_for().label
        is_failing = self._failure and self._failed_under == self._config().model
        notes = [f"the newest call failed ({self._failure}): hermes doctor"] if is_failing else []
        keys = self.keys()
        notes += [f"keys of {name}: {', '.join(states)}" for name, states in keys.items()]
        return {"label": label, "last_answer_age": age, "note": "; ".join(notes), "keys": keys}

    def keys(self) -> dict[str, list[str]]:
        """How the keys stand of every provider with several: which is in use, which ones rest."""
        return {name: [str(key) for key in ring.states()] for name, ring in self._rings.items() if ring.has_several}

    def only(self, provider: str, model: str) -> Model:
        """Return one model without fallbacks, to test it. ConfigError where the built-in model would answer."""
        check_exists(provider, model, self._config())
        return self._one(self._config(), provider, model)

    def _build(self, config: Config, route: str) -> Model:
        names = [_split(route, config) if route else (config.model.provider, config.model.default)]
        names += [_split(fallback, config) for fallback in config.model.fallbacks]
        models = [self._one(config, provider, model) for provider, model in names]
        if models == [self._embedded]:
            return self._embedded
        return Chain(models, clock=self._clock)

    def _one(self, config: Config, provider: str, model: str) -> Model:
        known = config.providers.get(provider)
        if provider == EMBEDDED or known is None:
            return self._embedded
        return DIALECTS[_mode(config, provider, known)](*self._endpoint(config, known, provider, model))

    def _endpoint(
        self, config: Config, known: ProviderConfig, provider: str, model: str
    ) -> tuple[Endpoint, aiohttp.ClientSession]:
        is_first = provider == config.model.provider
        ring = self._rings.setdefault(provider, KeyRotation(provider, known.api_keys, self._clock))
        endpoint = Endpoint(
            provider=provider,
            base_url=(config.model.base_url if is_first else "") or known.base_url,
            model=bare_model(model or known.default_model, provider, config.providers),
            key=ring.current,
            other_key=ring.after,
        )
        # One session for each way out, kept until the end.
        rules = ProxyRules.of(config.proxies, known.proxy)
        if rules not in self._sessions:
            self._sessions[rules] = make_session(rules, limit=0, total_seconds=None)
        return endpoint, self._sessions[rules]

    async def close(self) -> None:
        """Close what this opened; the embedded model belongs to its maker."""
        for session in self._sessions.values():
            await session.close()


def _mode(config: Config, provider: str, known: ProviderConfig) -> str:
    return (config.model.api_mode if provider == config.model.provider else "") or known.api_mode


def route_of(config: Config, key: SessionKey | None, chosen: str = "") -> str:
    """``provider/model`` of a chat: its own choice, else what is settled for it; '' is the default."""
    settled = config.chat(key).model if key is not None else ""
    return next((name for name in (chosen, settled) if name and is_there(name, config)), "")


def is_there(name: str, config: Config) -> bool:
    """Whether ``provider/model`` names a provider that can be asked."""
    provider = name.partition("/")[0]
    known = config.providers.get(provider)
    return provider == EMBEDDED or (known is not None and bool(known.base_url))


def ready(loaded: Loaded) -> list[ProviderConfig]:
    """The providers that can be asked: with a key, with an address that the owner wrote, or on this machine."""
    config = loaded.config
    return [
        provider
        for name, provider in config.providers.items()
        if provider.api_keys
        or name in (EMBEDDED, config.model.provider)
        or ("providers", name, "base_url") in loaded.sources
    ]


def full_model_name(name: str, loaded: Loaded) -> str:
    """Return the model that a person means by a name, as ``provider/model``. Raises ConfigError in words.

    It may be a route, a provider and one of its models, a provider alone, or a model of the provider in use.
    """
    if name in loaded.config.model_routes:
        return loaded.config.model_routes[name]
    route = _provider_and_model(name, loaded)
    provider, _, model = route.partition("/")
    check_exists(provider, model, loaded.config)
    return route


def check_exists(provider: str, model: str, config: Config) -> None:
    """Raise ConfigError for a provider that is not configured, and for a model that the built-in one is not."""
    if provider == EMBEDDED and model != KNOWN[EMBEDDED].default_model:
        raise ConfigError(LocalizedText(lambda words: words.MODEL_ONLY_BUILT_IN.format(model=model)))
    if provider != EMBEDDED and provider not in config.providers:
        known = ", ".join(config.providers)
        raise ConfigError(LocalizedText(lambda words: words.MODEL_NO_PROVIDER.format(provider=provider, known=known)))


def _provider_and_model(name: str, loaded: Loaded) -> str:
    config = loaded.config
    provider, _, model = name.partition("/")
    known = config.providers.get(provider)
    is_ready = known is not None and (known in ready(loaded) or is_local(provider))
    current = KNOWN.get(config.model.provider)
    if known is None and model and current is not None and not (current.is_relay or current.is_local):
        known_names = ", ".join(config.providers)
        raise ConfigError(
            LocalizedText(lambda words: words.MODEL_NO_PROVIDER.format(provider=provider, known=known_names))
        )
    if known is None or (not is_ready and model and current is not None and current.is_relay):
        return f"{config.model.provider}/{name}"
    if not is_ready:
        variable = f"{env_prefix(provider)}_API_KEY"
        raise ConfigError(LocalizedText(lambda words: words.MODEL_NO_KEY.format(provider=provider, variable=variable)))
    if not (model or known.default_model):
        raise ConfigError(LocalizedText(lambda words: words.MODEL_WHICH_OF.format(provider=provider)))
    return f"{provider}/{model or known.default_model}"


def is_local(provider: str) -> bool:
    return provider in KNOWN and KNOWN[provider].is_local


def _split(fallback: str, config: Config) -> tuple[str, str]:
    """``provider/model``; a name without a known provider stays with the first one."""
    provider, _, model = fallback.partition("/")
    if provider in config.providers or provider == EMBEDDED:
        return provider, model
    return config.model.provider, fallback
