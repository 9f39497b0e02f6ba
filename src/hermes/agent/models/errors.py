"""Classify provider errors as ModelErrors, without secrets in their text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from hermes.agent.models import failure_messages as words
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ModelError
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.i18n.catalogue import LocalizedText, localize
from hermes.core.secret import HIDDEN, Redactor

MAX_DETAIL_CHARS = 200


class ProviderError(ModelError):
    """A ModelError that keeps ``what`` happened apart from its cure, so that a chain can go on with the sentence.

    ``detail`` is all of the provider's own words, for whoever looks there for the name of a field. It is never shown.
    """

    def __init__(
        self,
        kind: Kind,
        provider: str,
        clause: str = "",
        *,
        detail: str = "",
        retry_after: float | None = None,
        partial: str = "",
        is_settled: bool = False,
        status: int = 0,
    ) -> None:
        self.what = words.happened(provider, clause or words.what(kind))
        self.add_text = detail
        reason = words.with_cure(self.what, kind)
        super().__init__(
            kind,
            reason,
            provider=provider,
            retry_after=retry_after,
            partial=partial,
            is_settled=is_settled,
            status=status,
        )


def what_happened(error: ModelError) -> str:
    """Return the first half of an error's sentence, without its full stop."""
    if isinstance(error, ProviderError):
        return error.what
    reason = error.args[0] if error.args else ""
    return LocalizedText(lambda words: localize(reason, words).rstrip(". 。"))


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """What a provider said about its refusal, whatever shape it gave it."""

    status: int
    code: str = ""
    text: str = ""
    param: str = ""
    is_page: bool = False

    @property
    def haystack(self) -> str:
        return f"{self.code} {self.text}".lower()


def read_refusal(status: int, body: bytes) -> ErrorDetails:
    """Read an error body: OpenAI's object, a bare string, FastAPI's detail, a list, plain text or a web page."""
    try:
        return parse_error(status, orjson.loads(body))
    except orjson.JSONDecodeError:
        text = body.decode("utf-8", "replace").strip()
        is_page = text[:1] == "<"
        return ErrorDetails(status, text="" if is_page else text, is_page=is_page)


def parse_error(status: int, parsed: Any) -> ErrorDetails:
    if isinstance(parsed, list):
        parsed = parsed[0] if parsed else {}
    if not isinstance(parsed, dict):
        return ErrorDetails(status, text=str(parsed))
    error = parsed.get("error") or parsed.get("errors") or parsed
    if isinstance(error, list):
        error = error[0] if error else {}
    if not isinstance(error, dict):
        return ErrorDetails(status, text=str(error))
    codes = " ".join(str(error[name]) for name in ("code", "type", "status") if error.get(name))
    return ErrorDetails(_status_of(status, error), codes, _message(error), str(error.get("param") or ""))


def _status_of(status: int, error: Mapping[str, Any]) -> int:
    """Inside a good answer the error's own number counts: OpenRouter sends ``"code": 429`` that way."""
    if status >= 300:
        return status
    for name in ("code", "status", "status_code"):
        value = str(error.get(name) or "")
        if value.isascii() and value.isdigit() and 300 <= int(value) < 600:
            return int(value)
    return status


def _message(error: Mapping[str, Any]) -> str:
    for name in ("message", "msg", "detail", "error_msg", "title"):
        if value := error.get(name):
            text = _flat(value)
            break
    else:
        text = ""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None  # OpenRouter: what the provider behind it said
    return f"{text} ({_flat(raw)})" if raw else text


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(_flat(item) for item in value)
    if isinstance(value, dict):
        return _flat(value.get("message") or value.get("msg") or "")
    return str(value)


OUT_OF_CREDIT = (
    "insufficient_quota", "insufficient_user_quota", "insufficient_balance", "insufficient balance",
    "insufficient credit", "insufficient fund", "quota is not enough", "exceeded your current quota", "out of credit",
    "more credits", "billing", "credit balance", "payment required", "arrearage", "额度不足", "余额不足", "欠费",
)  # fmt: skip
TOO_LONG = (
    "context_length_exceeded", "maximum context length", "context window", "context length", "context size",
    "prompt is too long", "input is too long", "too many tokens", "reduce the length", "exceeds the available context",
    "maximum input length", "string_above_max_length", "request too large", "entity too large", "exceed context limit",
)  # fmt: skip
TOO_MANY = ("rate_limit", "rate limit", "too many requests", "resource_exhausted", "throttl")
BAD_KEY = (
    "invalid_api_key", "incorrect api key", "invalid api key", "api key not valid", "invalid token",
    "no auth credentials", "authentication", "unauthorized", "api key is invalid", "missing api key",
)  # fmt: skip
NO_MODEL = (
    "model_not_found", "not a valid model", "invalid model", "invalid_model", "unknown model", "no such model",
    "no endpoints found for", "model not exist", "not_found_error model:",
)  # fmt: skip
MODEL_IS_MISSING = re.compile(r"\bmodel\b.{0,100}?\b(not found|(does not|doesn't|not) exist)", re.DOTALL)
FLAGGED = ("moderation", "flagged", "content policy", "content_policy", "content_filter", "guardrail", "sensitive")
ITS_OWN_FAULT = ("server_error", "internal", "overloaded", "timeout", "timed out", "unavailable", "upstream")
OUR_FAULT = (
    "invalid_request", "invalid_prompt", "invalid_image", "bad_request", "unsupported", "not support", "validation",
)  # fmt: skip
OVERLOADED = ("overloaded", "at capacity", "no capacity")


def kind_of(details: ErrorDetails) -> Kind:
    """Sort a refusal by who must act. Words count before the number: providers agree more on those."""
    text, status = details.haystack, details.status
    # Gemini words its limit per minute like OpenAI's empty account; the code tells them apart.
    if status == 402 or (_any(OUT_OF_CREDIT, text) and "resource_exhausted" not in text):
        return Kind.QUOTA
    if status == 429:
        return Kind.RATE
    if status not in (401, 403) and (status == 413 or _any(TOO_LONG, text)):
        return Kind.CONTEXT
    if _any(NO_MODEL, text) or (status in (400, 403, 404, 422) and MODEL_IS_MISSING.search(text)):
        return Kind.MODEL
    if status == 403 and _any(FLAGGED, text):
        return Kind.REQUEST
    if status in (401, 403) or (status < 500 and _any(BAD_KEY, text)):
        return Kind.AUTH
    return _kind_by_number(status, text)


def _kind_by_number(status: int, text: str) -> Kind:
    if status in (408, 409, 425) or status >= 500:
        return Kind.TRANSIENT
    if status >= 300:
        return Kind.REQUEST
    if _any(TOO_MANY, text):
        return Kind.RATE
    if _any(OUR_FAULT, text) and not _any(ITS_OWN_FAULT, text):
        return Kind.REQUEST
    return Kind.TRANSIENT


def _any(needles: tuple[str, ...], text: str) -> bool:
    return any(needle in text for needle in needles)


def refusal(
    details: ErrorDetails,
    *,
    provider: str,
    model: str,
    hide: Redactor,
    has_key: bool = True,
    retry_after: float | None = None,
    partial: str = "",
) -> ProviderError:
    """Put a refusal into words for a chat. The provider's own words are shown where they help, never a secret."""
    kind = kind_of(details)
    detail = presentable(details.text, hide)
    clause = _clause(kind, details, detail, model, has_key=has_key, retry_after=retry_after)
    reason = f"{details.text} {details.param}".strip()
    return ProviderError(
        kind, provider, clause, detail=reason, retry_after=retry_after, partial=partial, status=details.status
    )


def _clause(
    kind: Kind, details: ErrorDetails, detail: str, model: str, *, has_key: bool, retry_after: float | None
) -> str:
    if details.is_page and details.status < 500 and details.status not in (401, 402, 403, 429):
        return words.WEB_PAGE
    if kind is Kind.AUTH and not has_key:
        return words.NO_KEY
    if kind is Kind.RATE and retry_after and retry_after >= 1:
        return words.rate_limited_for(retry_after)
    if kind is Kind.MODEL:
        return words.no_such_model(model)
    if kind is Kind.REQUEST and details.status in (301, 302, 303, 307, 308):
        return words.MOVED
    if kind is Kind.REQUEST and details.status == 404:
        return words.NO_SUCH_ADDRESS if not details.code else words.refused(detail)
    if kind is Kind.REQUEST:
        return words.refused(detail)
    if kind is Kind.TRANSIENT and (details.status == 529 or _any(OVERLOADED, details.haystack)):
        return words.OVERLOADED
    if kind is Kind.TRANSIENT:
        return words.own_trouble(details.status, detail)
    return words.what(kind)


LOOKS_SECRET = re.compile(r"\b(?:sk|pk|rk|key|gsk|xai|AIza)[-_][\w*-]{6,}|Bearer\s+\S+", re.IGNORECASE)


def presentable(text: str, hide: Redactor) -> str:
    """One short line of a provider's own words, with every secret hidden (also keys that it shows half of)."""
    line = " ".join(LOOKS_SECRET.sub(HIDDEN, hide(text)).split())
    return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1].rstrip() + "…"


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from whichever header says it. A date is read against the answer's own Date."""
    if millis := _number(headers.get("retry-after-ms")):
        return millis / 1000
    value = headers.get("Retry-After")
    if value is None:
        return None
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        until, now = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("Date", ""))
    except ValueError:
        return None
    return max(0.0, (until - now).total_seconds())


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e7 else None
