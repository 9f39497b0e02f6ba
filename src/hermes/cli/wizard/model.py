"""Choose a model for ``hermes setup``, test its key, write it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hermes.cli.support.home import load_config
from hermes.cli.support.prompts import Choice, Questions
from hermes.cli.support.screen import say
from hermes.cli.wizard.page import wrap
from hermes.cli.wizard.platform import write
from hermes.config import EMBEDDED, KNOWN, ProviderConfig
from hermes.config.explain import without_password
from hermes.core.dataclasses import dataclass
from hermes.core.durations import count
from hermes.core.errors import ConfigError
from hermes.core.secret import Secret

if TYPE_CHECKING:
    from hermes.cli.support.connectivity import Reached
    from hermes.config import Loaded
    from hermes.services.local_models import LocalServer

KEEP = "keep"
OTHER = "other"
AGAIN = "again"
AFTER_A_REFUSAL = (
    Choice(AGAIN, "Try again", "what you typed is kept, and can be changed"),
    Choice("another", "Another one", "choose a provider once more"),
    Choice(KEEP, "Keep it", "save it anyway"),
)
KEY_WANTED = frozenset({401, 403})
NOT_FOUND = 404
LOCAL_HOSTS = ("localhost", "127.", "[::1]", "192.168.", "10.")
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
    wanted: ModelChoice | None = None
    while True:
        # Of a local server there is nothing to type again but its model, which is asked for with the choice.
        is_hosted = wanted is not None and not (wanted.provider in KNOWN and KNOWN[wanted.provider].is_local)
        wanted = _hosted(loaded, wanted.provider, ask, wanted) if wanted and is_hosted else _ask_model(loaded, ask)
        if wanted is None:
            return False
        try:
            _write(home, loaded, _tried(home, loaded, wanted, ask))
        except _AnotherOneError:
            wanted = None
        except _NotGoodError:
            ask.say("  Once more, then. Enter keeps what you typed.")
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
        models = servers[chosen].models
        name = ask.named("Model", _readable(models), models[0]) if models else _needed(ask, "Model", "")
        return ModelChoice(servers[chosen].provider, name)
    return _hosted(loaded, chosen, ask)


def _aside(name: str, aside: str, servers: Mapping[str, LocalServer]) -> str:
    server = servers.get(name)
    if server is None:
        return aside
    if not server.is_running:
        return f"does not run at {server.address}"
    return f"runs here, offers {', '.join(server.models[:2]) or 'no model yet'}"


def _hosted(loaded: Loaded, chosen: str, ask: Questions, before: ModelChoice | None = None) -> ModelChoice:
    """Address, key and model of a provider, each tried as soon as it is known. ``before`` was typed and not taken."""
    name = CUSTOM if chosen == OTHER else chosen
    provider = loaded.config.providers.get(name) or ProviderConfig(name)
    base_url = ""
    if name == CUSTOM:
        base_url = _address(loaded, provider, ask, before.base_url if before else provider.base_url)
        provider = replace(provider, base_url=base_url)
    elif provider.base_url:
        _greeted(loaded, provider, ask)
    key, models = _key(loaded, provider, ask, before.key if before else "")
    is_used = loaded.config.model.provider == name
    model = before.model if before else loaded.config.model.default if is_used else provider.default_model
    if models:
        present = model if model in models else models[0] if len(models) == 1 else ""
        return ModelChoice(name, ask.named("Model", models, present), key, base_url)
    return ModelChoice(name, _needed(ask, "Model", model), key, base_url)


def _address(loaded: Loaded, provider: ProviderConfig, ask: Questions, present: str) -> str:
    """An address at which something answers like a model's API, or one that somebody wants all the same."""
    while True:
        label = "Address" if present else "Address, such as https://host/v1"
        present = _with_scheme(_needed(ask, label, present).rstrip("/"))
        reached = _greeted(loaded, replace(provider, base_url=present), ask, is_told=False)
        if (reached.is_page or reached.status == NOT_FOUND) and not present.endswith("/v1"):
            deeper = _greeted(loaded, replace(provider, base_url=f"{present}/v1"), ask, is_told=False)
            if not _trouble(deeper):
                ask.say(f"  The API is at {present}/v1; setup uses this address.")
                reached, present = deeper, f"{present}/v1"
        if not (trouble := _trouble(reached)):
            ask.say(f"✓ {_welcome(reached)}")
            return present
        ask.say(wrap(f"✗ {reached.shown.removesuffix('/models')}: {trouble}"))
        if ask.yes("Keep it anyway?", default=False):
            return present


def _with_scheme(address: str) -> str:
    """``localhost:8080/v1`` as people type it: without encryption on this machine and its network, else with it."""
    if "://" in address:
        return address
    return f"{'http' if address.startswith(LOCAL_HOSTS) else 'https'}://{address}"


def _greeted(loaded: Loaded, provider: ProviderConfig, ask: Questions, *, is_told: bool = True) -> Reached:
    """Ask at the address, without a key, what answers there."""
    from hermes.cli.support.connectivity import reach_models

    ask.say(f"  Asking {without_password(provider.base_url)} …")
    reached = reach_models(loaded.config, provider, provider.api_mode, "")
    if is_told and reached.failure:
        ask.say(wrap(f"! {reached.host}: {_trouble(reached)} What you type can be kept and tried later."))
    return reached


def _trouble(reached: Reached) -> str:
    """Why this is no address of an API, in words; '' where it may be one."""
    if reached.failure:
        return reached.failure if reached.failure.endswith("?") else f"{reached.failure}."
    if reached.is_page:
        return "a web page answers there, not a model's API. Most addresses of APIs end in /v1."
    if reached.status == NOT_FOUND or reached.status >= 500:
        return f"it answers {reached.status} when it is asked for its models."
    return ""


def _welcome(reached: Reached) -> str:
    answers = f"{reached.host} answers in {reached.milliseconds:.0f} ms"
    if reached.status in KEY_WANTED:
        return f"{answers} and wants a key"
    return f"{answers} without a key and offers {count(len(reached.models), 'model')}"


def _key(loaded: Loaded, provider: ProviderConfig, ask: Questions, before: str) -> tuple[str, list[str]]:
    """The key ('' where the one there is stays) and the models that are offered for it."""
    from hermes.cli.support.connectivity import reach_models

    known = provider.api_key.reveal() if provider.api_key else ""
    while True:
        hint = Secret(before or known).hint() if before or known else ""
        typed = ask.secret("Key", hint)
        reached = reach_models(loaded.config, provider, provider.api_mode, typed or before or known)
        is_refused = reached.status in KEY_WANTED and bool(typed or before or known)
        if is_refused:
            ask.say(f"✗ {reached.host} refuses this key ({reached.status}).")
        before = typed or before
        if not is_refused or not typed:  # Enter after a refusal: it is meant
            return before, _readable(reached.models)


def _readable(models: Iterable[str]) -> list[str]:
    """Names that can be shown and typed, in their order."""
    return sorted(name for name in models if name.isprintable() and name.strip())


def _needed(ask: Questions, label: str, present: str) -> str:
    while not (typed := ask.line(label, present)):
        ask.say(f"  {label.partition(',')[0]} is needed.")
    return typed


# Trying and writing


class _NotGoodError(ConfigError):
    """The call failed; whoever can be asked is asked again, with what they typed kept."""


class _AnotherOneError(ConfigError):
    """The call failed, and another provider is wanted."""


def _tried(
    home: Path, loaded: Loaded, wanted: ModelChoice, ask: Questions | None = None, *, is_checked: bool = True
) -> ModelChoice:
    from hermes.cli.agent import model

    model.refuse_what_stands_in_the_way(loaded, wanted.provider)
    if not is_checked or wanted.provider == EMBEDDED:
        return wanted
    if ask is not None:
        ask.say(f"  Asking {wanted.provider} / {wanted.model} …")
    result: dict[str, Any] = asyncio.run(model.tried(home, _as_if(loaded, wanted), wanted.provider, wanted.model))
    if result["ok"]:
        say(f"✓ {wanted.provider} / {wanted.model}, answered in {result['seconds']:.1f} s")
        return wanted
    reason = f"{wanted.provider} / {wanted.model}: the {result['failed']}. {result['text']}"
    if ask is None:
        raise ConfigError(f"{reason}\n  Nothing was written. --no-check saves it anyway.")
    ask.say(wrap(f"✗ {reason}"))
    match ask.one("What now?", AFTER_A_REFUSAL, AGAIN):
        case "keep":
            return wanted
        case "another":
            raise _AnotherOneError(reason)
        case _:
            raise _NotGoodError(reason)


def _as_if(loaded: Loaded, wanted: ModelChoice) -> Loaded:
    """The configuration as it will be."""
    config = loaded.config
    provider = config.providers.get(wanted.provider) or ProviderConfig(wanted.provider)
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
