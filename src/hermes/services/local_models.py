"""Look for model servers on this machine: Ollama, LM Studio."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from hermes.config import KNOWN, Config
from hermes.core.dataclasses import dataclass
from hermes.services.http import make_session

LOOK_SECONDS = 2.0
MAX_LIST_BYTES = 2_000_000
MIN_CONTEXT_TOKENS = 16_000  # tokens: the tools and a talk of some length

ADVICE = {
    "ollama": (
        "Ollama gives a model 4,096 tokens of context on most machines and cuts off what is longer without a word. "
        "For tools and long talks: OLLAMA_CONTEXT_LENGTH=32768 ollama serve"
    ),
    "lmstudio": (
        "LM Studio loads a model with a small context unless you choose another one. "
        "For tools and long talks: set its context length to 32768 where the model is loaded."
    ),
}


@dataclass(frozen=True, slots=True)
class LocalServer:
    """``models`` are the names it serves; ``context`` is the smallest of the loaded ones, 0 where it does not say."""

    provider: str
    address: str
    is_running: bool = False
    models: tuple[str, ...] = ()
    context: int = 0

    @property
    def advice(self) -> str:
        """What to know of its context, or nothing where a loaded model has enough of it."""
        return "" if not self.is_running or self.context >= MIN_CONTEXT_TOKENS else ADVICE[self.provider]


async def find(config: Config) -> list[LocalServer]:
    """Look at every local server that is known, at the address that is configured for it."""
    local = [name for name, known in KNOWN.items() if known.is_local]
    async with make_session(total_seconds=LOOK_SECONDS) as http:
        return list(await asyncio.gather(*(_look(http, name, _root(config, name)) for name in local)))


def _root(config: Config, name: str) -> str:
    return config.providers[name].base_url.rstrip("/").removesuffix("/v1")


async def _look(http: aiohttp.ClientSession, name: str, root: str) -> LocalServer:
    if name == "ollama":
        tags, loaded = await asyncio.gather(_get(http, f"{root}/api/tags"), _get(http, f"{root}/api/ps"))
        models = _names(tags, "models", "name")
        context = min(_contexts(loaded, "models", "context_length"), default=0)
    else:
        listed, loaded = await asyncio.gather(_get(http, f"{root}/v1/models"), _get(http, f"{root}/api/v0/models"))
        tags, models = listed, _names(listed, "data", "id")
        context = min(_contexts(loaded, "data", "loaded_context_length"), default=0)
    return LocalServer(name, root, tags is not None, models, context)


async def _get(http: aiohttp.ClientSession, url: str) -> Mapping[str, Any] | None:
    """What it says, or None when nobody is there or somebody else answers."""
    try:
        async with http.get(url, allow_redirects=False) as response:
            body = await response.content.read(MAX_LIST_BYTES)
            found = orjson.loads(body) if response.status == 200 else None
    except (aiohttp.ClientError, OSError, orjson.JSONDecodeError):  # TimeoutError is an OSError
        return None
    return found if isinstance(found, dict) else None


def _entries(body: Mapping[str, Any] | None, field: str) -> list[Mapping[str, Any]]:
    found = (body or {}).get(field)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _names(body: Mapping[str, Any] | None, field: str, name: str) -> tuple[str, ...]:
    return tuple(str(entry[name]) for entry in _entries(body, field) if entry.get(name))


def _contexts(body: Mapping[str, Any] | None, field: str, name: str) -> list[int]:
    return [int(entry[name]) for entry in _entries(body, field) if isinstance(entry.get(name), int) and entry[name]]
