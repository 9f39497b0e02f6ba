"""What a person in a chat reads when a model fails: what happened, and what the owner can do about it."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.errors import ModelErrorKind as Kind

WHAT = {
    Kind.AUTH: "does not accept the key",
    Kind.QUOTA: "says the account is out of credit",
    Kind.RATE: "says that too many requests came at once",
    Kind.CONTEXT: "says this conversation has grown too long for it",
    Kind.MODEL: "does not know the model that is configured",
    Kind.REQUEST: "refused the request",
    Kind.TRANSIENT: "did not answer",
    Kind.EMPTY: "answered with nothing",
}

CURE = {
    Kind.AUTH: "Owner: check the key, then `hermes doctor`",
    Kind.QUOTA: "Owner: check the key and credit, then `hermes doctor`",
    Kind.RATE: "Please try again in a moment",
    Kind.CONTEXT: "/new starts a fresh session",
    Kind.MODEL: "Owner: set `model.default` to a model of this provider, then `hermes doctor`",
    Kind.REQUEST: "Owner: `hermes doctor` shows the provider and model in use",
    Kind.TRANSIENT: "Please try again in a moment. Owner: `hermes doctor` tells more",
    Kind.EMPTY: "Please ask again, perhaps in other words",
}


def happened(provider: str, clause: str) -> str:
    """``My model (openrouter) says the account is out of credit``: no full stop, so that it can go on."""
    return f"My model ({provider}) {clause}"


def with_cure(what: str, kind: Kind) -> str:
    return f"{what}. {CURE[kind]}."


def fell_back(what: str, fallback: str) -> str:
    return f"{what}. I answered with the fallback, {fallback}."


def no_fallback(what: str, kind: Kind) -> str:
    return f"{what}, and there is no fallback. {CURE[kind]}."


def fallbacks_failed(what: str, fallbacks: Sequence[str], kind: Kind) -> str:
    names = " and ".join(fallbacks)
    return f"{what}, and the fallback ({names}) failed too. {CURE[kind]}."


def asked_again(what: str) -> str:
    return f"{what}. I asked once more; the answer starts over."


def unreachable(reason: str) -> str:
    return f"could not be reached ({reason})"


def broke_off(reason: str = "") -> str:
    return "broke off in the middle of its answer" + (f" ({reason})" if reason else "")


def silent_for(seconds: float) -> str:
    return f"said nothing for {seconds:g} s"


def over_deadline(seconds: float) -> str:
    return f"did not finish within {seconds:g} s"


def wait_asked(seconds: float) -> str:
    return f"{WHAT[Kind.RATE]} and asks to wait {seconds:.0f} s"


def no_such_model(model: str) -> str:
    return f"does not know the model “{model}”" if model else WHAT[Kind.MODEL]


def refused(detail: str) -> str:
    return f"{WHAT[Kind.REQUEST]}: {detail}" if detail else WHAT[Kind.REQUEST]


def own_trouble(status: int, detail: str) -> str:
    told = f"HTTP {status}" if status >= 300 else ""
    reason = ": ".join(part for part in (told, detail) if part)
    return "has trouble of its own" + (f" ({reason})" if reason else "")


OVERLOADED = "has more to do than it can at the moment"
NO_KEY = "wants a key, and none is set"
ODD_KEY = "has a key with characters that no key has (a stray quote, space or line break?)"
WEB_PAGE = "answered with a web page instead of an answer; its base_url is probably not an API address"
NO_SUCH_ADDRESS = "has nothing at this address; its base_url is probably wrong (does it lack /v1?)"
MOVED = "says that it has moved; its base_url needs the new address"
UNREADABLE = "sent something that cannot be read"
TOO_LONG_FOR_LIMIT = "used up its token limit before it said anything"
FILTERED = "stopped the answer with its content filter"
