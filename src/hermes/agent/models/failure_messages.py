"""Format what a person reads when a model fails, and what the owner can do.

English wherever a program or a log reads it; told to a person in their own language (``core.i18n.catalogue.localize``).
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.i18n.catalogue import LocalizedText, localize
from hermes.core.i18n.en import Texts


def _what(kind: Kind, words: Texts) -> str:
    clauses = {
        Kind.AUTH: words.PROVIDER_AUTH,
        Kind.QUOTA: words.PROVIDER_QUOTA,
        Kind.RATE: words.PROVIDER_RATE,
        Kind.CONTEXT: words.PROVIDER_CONTEXT,
        Kind.MODEL: words.PROVIDER_MODEL,
        Kind.REQUEST: words.PROVIDER_REQUEST,
        Kind.TRANSIENT: words.PROVIDER_TRANSIENT,
        Kind.EMPTY: words.PROVIDER_EMPTY,
    }
    return clauses[kind]


def _cure(kind: Kind, words: Texts) -> str:
    cures = {
        Kind.AUTH: words.CURE_AUTH,
        Kind.QUOTA: words.CURE_QUOTA,
        Kind.RATE: words.CURE_RATE,
        Kind.CONTEXT: words.CURE_CONTEXT,
        Kind.MODEL: words.CURE_MODEL,
        Kind.REQUEST: words.CURE_REQUEST,
        Kind.TRANSIENT: words.CURE_TRANSIENT,
        Kind.EMPTY: words.CURE_EMPTY,
    }
    return cures[kind]


def what(kind: Kind) -> LocalizedText:
    return LocalizedText(lambda words: _what(kind, words))


def happened(provider: str, clause: str) -> LocalizedText:
    """``My model (openrouter) says the account is out of credit``: no full stop, so that it can go on."""
    return LocalizedText(lambda words: words.PROVIDER_DID.format(provider=provider, clause=localize(clause, words)))


def with_cure(what: str, kind: Kind) -> LocalizedText:
    return LocalizedText(
        lambda words: words.PROVIDER_FAILED.format(what=localize(what, words), cure=_cure(kind, words))
    )


def without_cure(text: str, kind: Kind) -> str:
    """The English text of ``with_cure`` without the advice for a chat: a command gives its own."""
    return text.removesuffix(f" {_cure(kind, Texts())}.")


def fell_back(what: str, fallback: str) -> LocalizedText:
    return LocalizedText(lambda words: words.FELL_BACK.format(what=localize(what, words), fallback=fallback))


def no_fallback(what: str, kind: Kind) -> LocalizedText:
    return LocalizedText(lambda words: words.NO_FALLBACK.format(what=localize(what, words), cure=_cure(kind, words)))


def fallbacks_failed(what: str, fallbacks: Sequence[str], kind: Kind) -> LocalizedText:
    def form(words: Texts) -> str:
        names = words.AND.join(fallbacks)
        return words.FALLBACKS_FAILED.format(what=localize(what, words), names=names, cure=_cure(kind, words))

    return LocalizedText(form)


def retrying(what: str) -> LocalizedText:
    return LocalizedText(lambda words: words.ASKED_AGAIN.format(what=localize(what, words)))


def unreachable(reason: str) -> LocalizedText:
    return LocalizedText(lambda words: words.PROVIDER_UNREACHABLE.format(reason=localize(reason, words)))


def broke_off(reason: str = "") -> LocalizedText:
    if not reason:
        return LocalizedText(lambda words: words.PROVIDER_BROKE_OFF)
    return LocalizedText(lambda words: words.PROVIDER_BROKE_OFF_BECAUSE.format(reason=reason))


def silent_for(seconds: float) -> LocalizedText:
    return LocalizedText(lambda words: words.PROVIDER_SILENT.format(seconds=seconds))


def over_deadline(seconds: float) -> LocalizedText:
    return LocalizedText(lambda words: words.PROVIDER_OVER_DEADLINE.format(seconds=seconds))


def rate_limited_for(seconds: float) -> LocalizedText:
    return LocalizedText(lambda words: words.PROVIDER_RATE_WAIT.format(seconds=seconds))


def no_such_model(model: str) -> LocalizedText:
    return LocalizedText(lambda words: words.PROVIDER_NO_SUCH_MODEL.format(model=model)) if model else what(Kind.MODEL)


def refused(detail: str) -> LocalizedText:
    return LocalizedText(lambda words: words.PROVIDER_REFUSED.format(detail=detail)) if detail else what(Kind.REQUEST)


def own_trouble(status: int, detail: str) -> LocalizedText:
    status_text = f"HTTP {status}" if status >= 300 else ""
    reason = ": ".join(part for part in (status_text, detail) if part)
    if not reason:
        return LocalizedText(lambda words: words.PROVIDER_TROUBLE)
    return LocalizedText(lambda words: words.PROVIDER_TROUBLE_BECAUSE.format(reason=reason))


NO_CONNECTION = LocalizedText(lambda words: words.NO_CONNECTION_IN_TIME)
OVERLOADED = LocalizedText(lambda words: words.PROVIDER_OVERLOADED)
NO_KEY = LocalizedText(lambda words: words.PROVIDER_NO_KEY)
ODD_KEY = LocalizedText(lambda words: words.PROVIDER_ODD_KEY)
WEB_PAGE = LocalizedText(lambda words: words.PROVIDER_WEB_PAGE)
NO_SUCH_ADDRESS = LocalizedText(lambda words: words.PROVIDER_NO_SUCH_ADDRESS)
MOVED = LocalizedText(lambda words: words.PROVIDER_MOVED)
UNREADABLE = LocalizedText(lambda words: words.PROVIDER_UNREADABLE)
TOO_LONG_FOR_LIMIT = LocalizedText(lambda words: words.PROVIDER_TOO_LONG)
FILTERED = LocalizedText(lambda words: words.PROVIDER_FILTERED)
ENDED_EARLY = LocalizedText(lambda words: words.ANSWER_ENDED_EARLY)
