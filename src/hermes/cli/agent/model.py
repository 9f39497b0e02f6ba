"""``hermes model``: list models, choose one, test it. Needs no gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import complain
from hermes.core.errors import ConfigError
from hermes.core.secret import HIDDEN
from hermes.hosting.terminal import err, out, out_json, out_lines

if TYPE_CHECKING:
    import argparse

    from hermes.config import Loaded, ProviderConfig
    from hermes.core.errors import ModelError
    from hermes.services.local_models import LocalServer

EXAMPLES = """\
  hermes model list                            configured models, and those running on this machine
  hermes model use anthropic/claude-haiku-5-5  a running gateway applies it within a second
  hermes model use ollama/qwen3
  hermes model test                            one small call to the model in use; exit code 1 if it fails
  hermes model test openrouter/openai/gpt-4o-mini
"""

VERBS = {
    "list": "list the models to choose from",
    "use": "choose the model for new answers",
    "test": "make one small call and report what fails",
}

TEST_SECONDS = 90.0
TEST_TOKENS = 512  # enough for a model that thinks first
TEST_PROMPT = "This is a test of the connection. Answer with the word OK."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added, name = add_verbs(parser, VERBS, EXAMPLES), "PROVIDER/MODEL"
    added["use"].add_argument("model", metavar=name, help="for example openrouter/openai/gpt-4o-mini")
    instead = "test this model instead of the one in use"
    added["test"].add_argument("model", metavar=name, nargs="?", default="", help=instead)


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    try:
        match args.verb:
            case "use":
                return _use(home, args.model, as_json=args.as_json)
            case "test":
                return _test(home, args.model, as_json=args.as_json)
            case _:
                return _list(load_config(home), as_json=args.as_json)
    except ConfigError as error:
        complain(error)
        return 1


# What there is


def _list(loaded: Loaded, *, as_json: bool) -> int:
    from hermes.services import local_models
    from hermes.services.models import ready

    servers = asyncio.run(local_models.find(loaded.config))
    providers = [_provider_to_dict(loaded, provider) for provider in ready(loaded)]
    if as_json:
        out_json({"providers": providers, "local": [_server_to_dict(server) for server in servers]})
        return 0
    width = max(len(provider["name"]) for provider in providers)
    for provider in providers:
        mark = "*" if provider["in_use"] else " "
        keys = f"key {', '.join(provider['keys'])}" if provider["keys"] else "no key"
        about = "on this machine" if not provider["base_url"] else f"{provider['api_mode']}, {keys}"
        out(f"{mark} {provider['name']:<{width}}  {provider['model'] or 'no model named'}   ({about})")
    out_lines(line for server in servers for line in _server_lines(server))
    return 0


def _provider_to_dict(loaded: Loaded, provider: ProviderConfig) -> dict[str, Any]:
    config = loaded.config
    is_used = provider.name == config.model.provider
    return {
        "name": provider.name,
        "in_use": is_used,
        "model": config.model.default if is_used else provider.default_model,
        "base_url": (config.model.base_url if is_used else "") or provider.base_url,
        "api_mode": config.model.api_mode if is_used else provider.api_mode,
        "keys": [key.hint() for key in provider.api_keys],
    }


def _server_to_dict(server: LocalServer) -> dict[str, Any]:
    facts = {"name": server.provider, "address": server.address, "is_running": server.is_running}
    return {**facts, "models": server.models, "context": server.context, "advice": server.advice}


def _server_lines(server: LocalServer) -> list[str]:
    if not server.is_running:
        return [f"  {server.provider} does not run at {server.address}"]
    if not server.models:
        return [f"  {server.provider} runs at {server.address} and has no model yet"]
    lines = [f"  {server.provider} runs at {server.address} and offers {', '.join(server.models)}"]
    lines += [f"    ! {server.advice}"] * bool(server.advice)
    return [*lines, f"    Use one: {command_name()} model use {server.provider}/{server.models[0]}"]


# Choosing


def _use(home: Path, name: str, *, as_json: bool) -> int:
    from hermes.config.edit import set_values
    from hermes.services.models import full_model_name, is_local
    from hermes.store.home import make_home

    refuse_foreign(home)
    loaded = load_config(home)
    provider, _, model = full_model_name(name, loaded).partition("/")
    refuse_what_stands_in_the_way(loaded, provider)
    make_home(home)
    changes = set_values(loaded, {"model.provider": provider, "model.default": model})
    notes = list(dict.fromkeys(change.note for change in changes if change.note))
    if is_local(provider):
        notes += _notes_of_server(loaded, provider, model)
    if as_json:
        value = {"provider": provider, "model": model, "file": str(changes[0].file), "notes": notes}
        out_json(value)
        return 0
    out(f"✓ {provider} / {model} answers from now on   (written to {changes[0].file})")
    for note in notes:
        out(f"! {note}")
    out(f"  Try it: {command_name()} model test")
    return 0


def refuse_what_stands_in_the_way(loaded: Loaded, provider: str) -> None:
    """An address or a dialect written for one provider must not be used for another."""
    if provider == loaded.config.model.provider:
        return
    for key in ("base_url", "api_mode"):
        if ("model", key) in loaded.sources:
            raise ConfigError(
                f"model.{key} is set for {loaded.config.model.provider} and would count for {provider} too. "
                f"Move it to providers.{loaded.config.model.provider}.{key}, then try again."
            )


def _notes_of_server(loaded: Loaded, provider: str, model: str) -> list[str]:
    from hermes.services import local_models

    server = next(server for server in asyncio.run(local_models.find(loaded.config)) if server.provider == provider)
    if not server.is_running:
        return [f"{provider} does not run at {server.address}: start it before somebody asks."]
    is_offered = model in server.models or f"{model}:latest" in server.models
    missing = [] if is_offered else [f"{provider} does not offer {model}; it has {', '.join(server.models) or 'none'}."]
    return [*missing, *[server.advice] * bool(server.advice)]


# Trying


def _test(home: Path, name: str, *, as_json: bool) -> int:
    from hermes.services.models import check_exists, full_model_name

    loaded = load_config(home)
    default = f"{loaded.config.model.provider}/{loaded.config.model.default}"
    provider, _, model = (full_model_name(name, loaded) if name else default).partition("/")
    check_exists(provider, model, loaded.config)
    result = asyncio.run(tried(home, loaded, provider, model))
    if as_json:
        out_json(result)
    else:
        (out if result["ok"] else err)("\n".join(lines(result)))
    return 0 if result["ok"] else 1


async def tried(home: Path, loaded: Loaded, provider: str, model: str) -> dict[str, Any]:
    from hermes.agent.models.embedded.download import Fetcher, find_installed
    from hermes.agent.models.embedded.model import EmbeddedModel
    from hermes.agent.models.failure_messages import without_cure
    from hermes.agent.step import ask_model
    from hermes.config import EMBEDDED
    from hermes.core.errors import ModelError, ModelErrorKind
    from hermes.core.messages import ChatMessage, Role
    from hermes.core.ports import ModelRequest
    from hermes.services.clock import SystemClock
    from hermes.services.models import Models

    clock, fetcher = SystemClock(), Fetcher(home)
    embedded = EmbeddedModel(home, fetcher)
    models = Models(lambda: loaded.config, embedded, clock)
    request = ModelRequest([ChatMessage(Role.USER, TEST_PROMPT)], max_tokens=TEST_TOKENS, deadline_seconds=TEST_SECONDS)
    result: dict[str, Any] = {"ok": True, "provider": provider, "model": model}
    if provider == EMBEDDED and not (find_installed(fetcher.folder) or find_installed(None)):
        text = "The built-in model is not on this machine yet; the first message fetches it."
        advice = f"Ask it something: {command_name()} -z hello"
        return {**result, "ok": False, "failed": "model", "text": text, "advice": advice, "keys": []}
    began = clock.monotonic()
    try:
        reply = await ask_model(models.only(provider, model), request, _unheard, _unheard)
        result |= {
            "said": reply.text.strip().partition("\n")[0][:80],
            "tokens": [reply.usage.prompt_tokens, reply.usage.completion_tokens],
        }
    except ModelError as error:
        text = without_cure(str(error), error.kind)
        is_good = error.kind is ModelErrorKind.EMPTY  # it was reached, and took the key and the name
        result |= {"ok": is_good, "failed": _failed(error), "kind": error.kind.value, "text": text}
    finally:
        result |= {"seconds": round(clock.monotonic() - began, 2), "keys": models.keys().get(provider, [])}
        await models.close()
        await embedded.aclose()
        await fetcher.aclose()
    return result if result["ok"] else {**result, "advice": _advice(loaded, provider, result["failed"])}


def _unheard(_: str) -> None:
    """Nobody reads along."""


def _failed(error: ModelError) -> str:
    from hermes.agent.models import failure_messages
    from hermes.core.errors import ModelErrorKind as Kind

    by_kind = {Kind.AUTH: "key", Kind.MODEL: "model name", Kind.QUOTA: "quota", Kind.RATE: "rate limit"}
    of_address = (
        failure_messages.WEB_PAGE,
        failure_messages.NO_SUCH_ADDRESS,
        failure_messages.MOVED,
        "could not be reached",
        "said nothing for",
    )
    if error.kind in by_kind:
        return by_kind[error.kind]
    return "address" if any(clause in str(error) for clause in of_address) else "provider"


def _advice(loaded: Loaded, provider: str, failed: str) -> str:
    from hermes.config import explain

    hermes, known = command_name(), loaded.config.providers[provider]
    match failed:
        case "key":
            setting = explain(loaded, f"providers.{provider}.api_key")
            present = "There is none."
            if known.api_keys:
                end = (
                    f" and ends in {setting.value}" if setting.value != HIDDEN else ""
                )  # of a short key nothing is shown
                present = f"It comes from {setting.winner}{end}."
            return f"{present} Set another: {hermes} config set {setting.env[0]} -"
        case "model name":
            return f"What {provider} offers: {hermes} model list, or its web page"
        case "quota":
            return f"Top up at {provider}, or use another: {hermes} model list"
        case "address":
            is_used = provider == loaded.config.model.provider and bool(loaded.config.model.base_url)
            key = "model.base_url" if is_used else f"providers.{provider}.base_url"
            setting = explain(loaded, key)
            return f"{key} is {setting.value} ({setting.winner})"
        case _:
            return f"Try again in a while, or use another: {hermes} model list"


def lines(result: dict[str, Any]) -> list[str]:
    label = f"{result['provider']} / {result['model']}"
    keys = [f"  keys: {', '.join(result['keys'])}"] * bool(result["keys"])
    if not result["ok"]:
        return [f"✗ {label}: the {result['failed']}. {result['text']}", f"  → {result['advice']}", *keys]
    if "text" in result:
        return [f"! {label} takes the call and answers with nothing ({result['seconds']} s).", *keys]
    asked, made = result["tokens"]
    return [f"✓ {label} answers in {result['seconds']} s ({asked} tokens in, {made} out): {result['said']}", *keys]
