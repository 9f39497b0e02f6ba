"""Check the model: its address, its key, its name, and, when asked, one live call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.checks.finding import ARROW, REASONS, Finding, Level
from hermes.core.secret import HIDDEN
from hermes.hosting import status

if TYPE_CHECKING:
    from hermes.cli.support.connectivity import Reached
    from hermes.config import Config, Explanation, Loaded


def describe_keys(config: Config, facts: status.Facts) -> list[str]:
    """Describe the keys of a provider that has several."""
    hints = (facts.snapshot or {}).get("model", {}).get("keys") or {
        name: [key.hint() for key in provider.api_keys]
        for name, provider in config.providers.items()
        if len(provider.api_keys) > 1
    }
    return [f"keys of {name}: {', '.join(keys)}" for name, keys in hints.items()]


def describe_key_source(loaded: Loaded) -> list[str]:
    """Which place the key of the model comes from, and which places were not heard."""
    from hermes.config import EMBEDDED, explain

    name = loaded.config.model.provider
    if name == EMBEDDED or name not in loaded.config.providers:
        return []
    setting = explain(loaded, f"providers.{name}.api_key")
    if setting.value == "not set":
        return []
    unused = [
        f"Not used: the key of {source.where}, {source.value} ({source.note})"
        for source in setting.stated
        if source.note
    ]
    return [_describe_key(setting), *unused]


def model_check(home: Path, loaded: Loaded, reached: Reached | None, command: str) -> Finding:
    from hermes.config import EMBEDDED

    model = loaded.config.model
    if model.provider == EMBEDDED:
        return _embedded_check(home, command)
    label = f"{model.provider} / {model.default}"
    provider = loaded.config.providers.get(model.provider)
    if reached is None or provider is None:
        return Finding("model", "trouble", f"{label}: no address is known → set providers.{model.provider}.base_url")
    if reached.failure:
        text = f"{model.provider} cannot be reached at {reached.shown}: {reached.failure} → {command} model test"
        return Finding("model", "trouble", text)
    if reached.moved_to:
        setting = "model.base_url" if model.base_url else f"providers.{model.provider}.base_url"
        text = f"{model.provider} has moved from {reached.shown} to {reached.moved_to} → correct {setting}"
        return Finding("model", "trouble", text)
    if reached.status == 200 and reached.is_page:
        setting = "model.base_url" if model.base_url else f"providers.{model.provider}.base_url"
        return Finding("model", "trouble", f"a web page answers at {reached.shown}, not an API → correct {setting}")
    if reached.status in {401, 403}:
        key = _key_words(loaded)
        cure = "" if " → " in key else f" → {command} model test"
        return Finding("model", "trouble", f"{model.provider} answers {reached.status}. {key}{cure}")
    if reached.status >= 500:
        text = (
            f"{model.provider} answers {reached.status}: the provider has a problem; try later → {command} model test"
        )
        return Finding("model", "trouble", text)
    if (
        reached.status == 200
        and reached.models
        and not (model.default in reached.models or model.default.partition("/")[2] in reached.models)
    ):
        text = f"{model.provider} answers, but does not list {model.default} → {command} model list"
        return Finding("model", "hint", text)
    missing = "" if provider.api_key else ", without a key"
    return Finding("model", "good", f"{label}, answers in {reached.milliseconds:.0f} ms{missing}")


def _key_words(loaded: Loaded) -> str:
    from hermes.config import explain

    key = f"providers.{loaded.config.model.provider}.api_key"
    setting = explain(loaded, key)
    if setting.value == "not set":
        return f"There is no key → set {setting.env[0] if setting.env else key}"
    return _describe_key(setting)


def _describe_key(setting: Explanation) -> str:
    if setting.value == HIDDEN:  # of a short key nothing is shown
        return f"Key from {setting.winner}"
    return f"Key from {setting.winner}, ends in {setting.value}"


def _embedded_check(home: Path, command: str) -> Finding:
    from hermes.agent.models.embedded.download import TOTAL_MB, Fetcher, find_installed

    fetcher = Fetcher(home)
    if find_installed(fetcher.folder) or find_installed(None):
        if reason := fetcher.check():
            return Finding("model", "trouble", f"built-in, and it cannot answer. {reason} → {command} model test")
        return Finding(
            "model", "good", f"built-in, installed. English small talk only; for a better model: {command} setup"
        )
    if reason := fetcher.last_failure():
        return Finding("model", "trouble", f"built-in, and it could not be fetched. {reason} → {command} -z hello")
    return Finding(
        "model", "hint", f"built-in, not fetched yet: the first message fetches {TOTAL_MB} MB → {command} -z hello"
    )


def live_check(results: Sequence[Mapping[str, Any]]) -> Finding:
    """Judge one small call to the model in use and one to each fallback."""
    lines = [describe_call(result) for result in results]
    if results[0]["ok"]:
        level: Level = "good" if all(result["ok"] for result in results) else "hint"
    else:
        level = "trouble"
    # What failed comes first: the first line is the one that is read.
    lines.sort(key=lambda line: ARROW not in line)
    return Finding("live", level, lines[0], tuple(lines[1:]), reason=REASONS["model"])


def describe_call(result: Mapping[str, Any]) -> str:
    label = f"{result['provider']} / {result['model']}"
    if not result["ok"]:
        return f"{label}: the {result['failed']}. {result['text']} → {result['advice']}"
    return f"{label} answered a test call in {result.get('seconds', 0.0)} s"


def ask_models(home: Path, loaded: Loaded) -> list[dict[str, Any]]:
    """Make one small call to the model in use and to each fallback."""
    import asyncio

    from hermes.cli.agent.model import tried

    model = loaded.config.model
    routes = [f"{model.provider}/{model.default}", *model.fallbacks]
    parts = [route.partition("/") for route in dict.fromkeys(routes)]
    known = [(provider, name) for provider, _, name in parts if provider in loaded.config.providers]
    return [asyncio.run(tried(home, loaded, provider, name)) for provider, name in known]
