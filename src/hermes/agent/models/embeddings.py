"""Pass texts to a provider's embeddings API, in OpenAI's shape both ways."""

from __future__ import annotations

import asyncio

import aiohttp
from yarl import URL

from hermes.agent.models import failure_messages, request_body
from hermes.agent.models.endpoint import Endpoint
from hermes.agent.models.errors import ProviderError, read_refusal, refusal, retry_after_of
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.core.secret import Redactor

SECONDS = 120.0
MAX_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 64_000


class EmbeddingsModel:
    """One model of one provider. Tries once: whoever asks tries again."""

    def __init__(self, endpoint: Endpoint, http: aiohttp.ClientSession) -> None:
        self._endpoint = endpoint
        self._http = http

    @property
    def label(self) -> str:
        return self._endpoint.label

    async def embed(self, body: Json) -> bytes:
        """Return the provider's answer as it came. Raises ModelError."""
        endpoint, key = self._endpoint, self._endpoint.key()
        url = URL(f"{endpoint.base_url.rstrip('/')}/embeddings").with_user(None)
        headers = {"Content-Type": "application/json", **endpoint.headers}
        if key:
            headers["Authorization"] = f"Bearer {key.reveal().strip()}"
        data = request_body.encode({**body, "model": endpoint.model})
        try:
            # A redirect is never followed: it would take the key along.
            async with (
                asyncio.timeout(SECONDS),
                self._http.post(url, data=data, headers=headers, allow_redirects=False) as answer,
            ):
                raw = await _up_to(MAX_BYTES if answer.status < 300 else MAX_ERROR_BYTES, answer.content)
        except TimeoutError:
            raise ProviderError(Kind.TRANSIENT, endpoint.provider, failure_messages.over_deadline(SECONDS)) from None
        except (aiohttp.ClientError, OSError) as error:
            reason = failure_messages.unreachable(describe_failure(error))
            raise ProviderError(Kind.TRANSIENT, endpoint.provider, reason) from None
        if answer.status < 300:
            return raw
        raise refusal(
            read_refusal(answer.status, raw),
            provider=endpoint.provider,
            model=endpoint.model,
            hide=Redactor([key] if key else []),
            has_key=bool(key),
            retry_after=retry_after_of(answer.headers),
        )


async def _up_to(most: int, content: aiohttp.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size < most and (data := await content.readany()):
        parts.append(data)
        size += len(data)
    return b"".join(parts)[:most]
