"""The model's page of ``hermes setup``: which one answers, its key tried by one small call, then it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import load_config
from hermes.cli.support.prompts import Choice, Questions
from hermes.cli.wizard.page import wrap
from hermes.cli.wizard.platform import write
from hermes.config import EMBEDDED, KNOWN
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.secret import Secret

if TYPE_CHECKING:
    from hermes.config import Loaded, ProviderConfig
    from hermes.services.local_models import LocalServer

KEEP = "keep"
OTHER = "other"
CUSTOM = "custom"
"""The name under which an address of the owner's own is kept."""

TITLES = {
    "openai": ("OpenAI", "a key from platform.openai.com/api-keys"),
    "openrouter": ("OpenRouter", "many models with one key, from openrouter.ai/keys"),
    "anthropic": ("Anthropic", "a key from console.anthropic.com"),
    "ollama": ("Ollama", ""),
    "lmstudio": ("LM Studio", ""),
}


@dataclass(frozen=True, slots=True)
class ModelFlags:
    """What was said on the command line; '' where nothing was. ``name`` is ``provider/model``."""

    name: str = ""
    key: str = ""
    base_url: str = ""
    is_checked: bool = True

    def __bool__(self) -> bool:
        return bool(self.name or self.key or self.base_url)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A choice that is not written yet. '' for ``key`` and ``base_url``: what is known of the provider stays."""

    provider: str
    model: str
    key: str = ""
    base_url: str = ""

    def changes(self) -> dict[str, str]:
        written = {"model.provider": self.provider, "model.default": self.model}
        if self.key:
            written[f"providers.{self.provider}.api_key"] = self.key
        if self.base_url:
            written[f"providers.{self.provider}.base_url"] = self.base_url
        return written


def set_up(home: Path, flags: ModelFlags, ask: Questions | None) -> bool:
    """Choose, try, write; whether anything was chosen. Raises ConfigError in words, and nothing is written then."""
    loaded = load_config(home)
    if flags:
        _write(home, loaded, _tried(home, loaded, _from_flags(loaded, flags), is_checked=flags.is_checked))
        return True
    if ask is None:
        return False
    ask.say(f"\n── Model {'─' * 55}")
    while True:
        wanted = _ask_model(loaded, ask)
        if wanted is None:
            return False
        try:
            _write(home, loaded, _tried(home, loaded, wanted, ask))
        except _NotGoodError as error:
            ask.say(wrap(f"✗ {error}"))
        else:
            return True


# Choosing


def _from_flags(loaded: Loaded, flags: ModelFlags) -> ModelChoice:
    provider, _, model = (flags.name or loaded.config.model.provider).partition("/")
    known = loaded.config.providers.get(provider)
    if known is None and not flags.base_url:
        names = ", ".join(loaded.config.providers)
        raise ConfigError(f"There is no provider {provider!r}. Known: {names}; another one needs its --base-url.")
    model = model or (known.default_model if known else "")
    if not model:
        raise ConfigError(f"Which model of {provider}? Say --model {provider}/MODEL.")
    return ModelChoice(provider, model, flags.key, flags.base_url)


def _ask_model(loaded: Loaded, ask: Questions) -> ModelChoice | None:
    """None: all stays as it is."""
    from hermes.services import local_models

    config = loaded.config
    servers = {server.provider: server for server in asyncio.run(local_models.find(config))}
    choices = [Choice(name, title, _aside(name, aside, servers)) for name, (title, aside) in TITLES.items()]
    choices.append(Choice(OTHER, "Other", "any OpenAI-compatible address"))
    choices.append(Choice(EMBEDDED, "Built-in", "English small talk, no key, no tools"))
    present = config.model.provider
    if present != EMBEDDED:
        choices.insert(0, Choice(KEEP, "Keep", f"{present} / {config.model.default}"))
    chosen = ask.one("Which model answers?", choices, KEEP if present != EMBEDDED else EMBEDDED)
    if chosen == KEEP or chosen == present == EMBEDDED:
        return None
    if chosen == EMBEDDED:
        return ModelChoice(EMBEDDED, KNOWN[EMBEDDED].default_model)
    if chosen in servers:
        return _local(servers[chosen], ask)
    return _hosted(loaded, chosen, ask)


def _aside(name: str, aside: str, servers: Mapping[str, LocalServer]) -> str:
    server = servers.get(name)
    if server is None:
        return aside
    if not server.is_running:
        return f"does not run at {server.address}"
    return f"runs here, offers {', '.join(server.models[:2]) or 'no model yet'}"


def _local(server: LocalServer, ask: Questions) -> ModelChoice:
    model = _needed(ask, "Model", server.models[0] if server.models else "")
    return ModelChoice(server.provider, model)


def _hosted(loaded: Loaded, chosen: str, ask: Questions) -> ModelChoice:
    name, base_url = chosen, ""
    if chosen == OTHER:
        name = CUSTOM
        known = loaded.config.providers.get(CUSTOM)
        base_url = _needed(ask, "Address, such as https://host/v1", known.base_url if known else "")
    provider = loaded.config.providers.get(name)
    hint = provider.api_key.hint() if provider is not None and provider.api_key else ""
    key = ask.secret("Key", hint)
    is_used = loaded.config.model.provider == name
    model = loaded.config.model.default if is_used else (provider.default_model if provider else "")
    return ModelChoice(name, _needed(ask, "Model", model), key, base_url)


def _needed(ask: Questions, label: str, present: str) -> str:
    while not (typed := ask.line(label, present)):
        ask.say("  It cannot do without.")
    return typed


# Trying and writing


class _NotGoodError(ConfigError):
    """The call failed; whoever can be asked is asked again."""


def _tried(
    home: Path, loaded: Loaded, wanted: ModelChoice, ask: Questions | None = None, *, is_checked: bool = True
) -> ModelChoice:
    from hermes.cli import model

    model.refuse_what_stands_in_the_way(loaded, wanted.provider)
    if not is_checked or wanted.provider == EMBEDDED:
        return wanted
    if ask is not None:
        ask.say(f"  Asking {wanted.provider} / {wanted.model} …")
    told: dict[str, Any] = asyncio.run(model.tried(home, _as_if(loaded, wanted), wanted.provider, wanted.model))
    if told["ok"]:
        print(f"✓ {wanted.provider} / {wanted.model}, answered in {told['seconds']:.1f} s")
        return wanted
    reason = f"{wanted.provider} / {wanted.model}: the {told['failed']}. {told['text']}"
    if ask is None:
        raise ConfigError(f"{reason}\n  Nothing was written. --no-check writes it all the same.")
    ask.say(wrap(f"✗ {reason}"))
    if ask.yes("Keep it all the same?", default=False):
        return wanted
    raise _NotGoodError("Once more, then. (Ctrl+C leaves everything as it was.)")


def _as_if(loaded: Loaded, wanted: ModelChoice) -> Loaded:
    """The configuration as it will be."""
    from hermes.config import ProviderConfig

    config = loaded.config
    provider: ProviderConfig = config.providers.get(wanted.provider) or ProviderConfig(wanted.provider)
    if wanted.base_url:
        provider = replace(provider, base_url=wanted.base_url)
    if wanted.key:
        provider = replace(provider, api_key=Secret(wanted.key), api_keys=(Secret(wanted.key),))
    is_used = wanted.provider == config.model.provider
    chosen = replace(
        config.model,
        provider=wanted.provider,
        default=wanted.model,
        base_url=config.model.base_url if is_used else "",
        api_mode=config.model.api_mode if is_used else provider.api_mode,
    )
    providers = MappingProxyType({**config.providers, wanted.provider: provider})
    return replace(loaded, config=replace(config, model=chosen, providers=providers))


def _write(home: Path, loaded: Loaded, wanted: ModelChoice) -> None:
    config = loaded.config
    present = {"model.provider": config.model.provider, "model.default": config.model.default}
    stated = {key for key in present if tuple(key.split(".")) in loaded.sources}
    changes = {
        key: value
        for key, value in wanted.changes().items()
        if key not in present or present[key] != value or key not in stated
    }
    write(home, loaded, changes)
