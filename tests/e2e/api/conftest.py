"""The API as its users meet it: official clients, unpatched, over real HTTP to a gateway with a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.integration.api.serving import Served, default_key, served
from tests.integration.conftest import Start, start

__all__ = ["start"]  # the gateway in this process, as the integration tests have it

PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Sdk:
    """The official client as people write it, and the server it talks to."""

    client: AsyncOpenAI
    api: Served

    @property
    def key(self) -> str:
        return default_key(self.api.gateway).reveal()

    @property
    def base_url(self) -> str:
        return f"{self.api.url}/v1"

    def client_with(self, key: str) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=self.base_url, api_key=key, max_retries=0, timeout=PATIENCE_SECONDS)


StartSdk = Callable[..., AbstractAsyncContextManager[Sdk]]


@pytest.fixture
def start_sdk(start: Start) -> StartSdk:
    @asynccontextmanager
    async def starter(**environ: Any) -> AsyncIterator[Sdk]:
        async with served(start, **environ) as api:
            key = default_key(api.gateway).reveal()
            async with AsyncOpenAI(
                base_url=f"{api.url}/v1", api_key=key, max_retries=0, timeout=PATIENCE_SECONDS
            ) as client:
                yield Sdk(client, api)

    return starter


@pytest.fixture
async def sdk(start_sdk: StartSdk) -> AsyncIterator[Sdk]:
    async with start_sdk() as running:
        yield running
