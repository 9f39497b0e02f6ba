"""Refusals sorted by who must act, in words without secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.errors import ProviderError, kind_of, presentable, read_refusal, refusal, retry_after_of
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.i18n.catalogue import CHINESE, ENGLISH, localize
from hermes.core.secret import Redactor, Secret


def error(message: str = "", **more: Any) -> bytes:
    return orjson.dumps({"error": {"message": message, **more}})


@pytest.mark.parametrize(
    "status, body, kind",
    [
        (401, error("No auth credentials found"), Kind.AUTH),
        (401, b"", Kind.AUTH),
        (403, error("Country not supported"), Kind.AUTH),
        (400, error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"), Kind.AUTH),
        (403, error("Your chosen model requires moderation and your input was flagged"), Kind.REQUEST),
        (403, error("Project does not have access to model `gpt-5`", code="model_not_found"), Kind.MODEL),
        (402, error("Insufficient Balance"), Kind.QUOTA),
        (402, b"", Kind.QUOTA),
        (429, error("You exceeded your current quota", code="insufficient_quota"), Kind.QUOTA),
        (403, error("user quota is not enough", code="insufficient_user_quota"), Kind.QUOTA),
        (403, error("用户额度不足, 剩余额度: ＄-0.01"), Kind.QUOTA),
        (400, error("Your credit balance is too low to access the API"), Kind.QUOTA),
        (429, error("You exceeded your current quota, check billing", status="RESOURCE_EXHAUSTED"), Kind.RATE),
        (429, error("Request too large for gpt-4o on tokens per min (TPM)"), Kind.RATE),
        (429, b"Too Many Requests", Kind.RATE),
        (400, error("This model's maximum context length is 8192 tokens"), Kind.CONTEXT),
        (400, error("the request exceeds the available context size, try increasing it"), Kind.CONTEXT),
        (400, error("prompt is too long: 210000 tokens > 200000 maximum"), Kind.CONTEXT),
        (413, b"", Kind.CONTEXT),
        (400, error("openkey/gpt-4o-mini is not a valid model ID", code=400), Kind.MODEL),
        (404, error("The model `gpt-9` does not exist or you do not have access to it."), Kind.MODEL),
        (404, error('model "llama9" not found, try pulling it first'), Kind.MODEL),
        (400, error("Model Not Exist"), Kind.MODEL),
        (503, error("当前分组 default 下对于模型 x 无可用渠道", code="model_not_found"), Kind.MODEL),
        (404, error("No endpoints found for foo/bar."), Kind.MODEL),
        (404, error("No endpoints found that support tool use.", code=404), Kind.REQUEST),
        (400, error("registry.ollama.ai/library/gemma:2b does not support tools"), Kind.REQUEST),
        (422, b'{"detail":[{"loc":["body"],"msg":"Input should be a valid string"}]}', Kind.REQUEST),
        (500, error("Internal"), Kind.TRANSIENT),
        (529, error("Overloaded", type="overloaded_error"), Kind.TRANSIENT),
        (408, b"", Kind.TRANSIENT),
        (200, error("Provider returned error", code=502), Kind.TRANSIENT),
        (200, error("Rate limit exceeded", code="rate_limit_exceeded"), Kind.RATE),
        (200, error("unsupported value", type="invalid_request_error"), Kind.REQUEST),
        (200, error("something odd"), Kind.TRANSIENT),
        (200, error("Provider returned error", code=400, metadata={"raw": "prompt is too long"}), Kind.CONTEXT),
    ],
)
def test_refusal_is_sorted_by_who_must_act(status: int, body: bytes, kind: Kind) -> None:
    assert kind_of(read_refusal(status, body)) is kind


@given(st.integers(200, 599), st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_whatever_a_provider_sends_becomes_a_sentence(status: int, body: bytes) -> None:
    error = refusal(read_refusal(status, body), provider="p", model="m", hide=Redactor())
    assert str(error).startswith("My model (p) ")
    assert "\n" not in str(error)
    assert len(str(error)) < 600


ODD: tuple[Any, ...] = (None, True, 403, "x", [], {}, [None], ["x"], [[]], {"message": ["x"]}, {"raw": {"message": 1}})
PLACES = ("error", "errors", "message", "code", "detail", "metadata", "msg", "status", "type")


@pytest.mark.parametrize("outer", [lambda body: body, lambda body: {"error": body}, lambda body: [body]])
def test_error_of_any_shape_is_read(outer: Callable[[Any], Any]) -> None:
    for odd in (*ODD, *({place: odd} for place in PLACES for odd in ODD)):
        for status in (200, 400):
            assert kind_of(read_refusal(status, orjson.dumps(outer(odd)))) in Kind


def test_secrets_are_hidden_even_if_the_provider_shows_them() -> None:
    key = Secret("0123456789abcdef")
    shown = presentable(f"bad key {key.reveal()}, or sk-proj-12****89, sent as Bearer xyz", Redactor([key]))
    assert shown == "bad key [hidden], or [hidden], sent as [hidden]"


def test_long_detail_is_one_short_line() -> None:
    shown = presentable("a\nb " * 400, Redactor())
    assert len(shown) <= 200
    assert "\n" not in shown


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"Retry-After": "Mon, 05 Jan 2026 12:00:30 GMT", "Date": "Mon, 05 Jan 2026 12:00:00 GMT"}, 30),
        ({"Retry-After": "Mon, 05 Jan 2026 11:00:30 GMT", "Date": "Mon, 05 Jan 2026 12:00:00 GMT"}, 0),
        ({"Retry-After": "Mon, 05 Jan 2026 12:00:30 GMT"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
    ],
)
def test_wait_is_read_from_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_of(headers) == seconds


def test_there_are_words_for_every_kind() -> None:
    for kind in Kind:
        for language in (ENGLISH, CHINESE):
            failed = localize(ProviderError(kind, "openrouter"), language)
            assert "openrouter" in failed
            assert failed.endswith((".", "。"))
