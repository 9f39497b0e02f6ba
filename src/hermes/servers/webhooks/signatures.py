"""Check who sent a webhook: the signatures of GitHub, GitLab, Stripe, Slack, Svix and our own.

Pure: headers, raw body and the time are handed in. Every comparison takes the same time, and is of bytes: a header may
hold anything.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from enum import StrEnum

from hermes.core.dataclasses import dataclass

WINDOW_SECONDS = 300.0
MAX_CANDIDATES = 20
"""Signatures in one header that are looked at: senders name two while a secret is changed."""


class Signature(StrEnum):
    """How a route's sender signs. ``auto`` looks which sender's header is there; GitLab must be named."""

    AUTO = "auto"
    GITHUB = "github"
    GITLAB = "gitlab"
    STRIPE = "stripe"
    SLACK = "slack"
    SVIX = "svix"
    HERMES = "hermes"


class SignatureError(Exception):
    """The sender did not prove who it is; the text says what is wrong and holds nothing secret."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A right signature. ``key`` names this delivery by what was signed, ``id`` as the sender calls it."""

    key: str
    id: str = ""


def verify(signature: Signature, secret: str, headers: Mapping[str, str], body: bytes, now: float) -> Proof:
    """Check the signature of a request. SignatureError: it is missing, wrong, or too old."""
    if not secret:
        raise SignatureError("this route has no secret")
    kind = _found(headers) if signature is Signature.AUTO else signature
    return _CHECKS[kind](secret, headers, body, now)


def _found(headers: Mapping[str, str]) -> Signature:
    """Return the sender whose header is there. A header commits to its scheme: nothing weaker is tried after it."""
    for kind, name in _HEADERS.items():
        if name in headers:
            return kind
    if "Webhook-Signature" in headers:
        return Signature.SVIX
    raise SignatureError("no signature was sent")


_HEADERS = {
    Signature.HERMES: "X-Webhook-Signature-V2",
    Signature.SVIX: "Svix-Signature",
    Signature.STRIPE: "Stripe-Signature",
    Signature.SLACK: "X-Slack-Signature",
    Signature.GITHUB: "X-Hub-Signature-256",
}


def _github(secret: str, headers: Mapping[str, str], body: bytes, _now: float) -> Proof:
    given = _header(headers, "X-Hub-Signature-256")
    _demand(given, f"sha256={_hex(secret, body)}")
    # The delivery's id is not signed. The body names it too: a recorded one is not taken again under another id.
    return Proof(f"body:{hashlib.sha256(body).hexdigest()}", headers.get("X-GitHub-Delivery", ""))


def _gitlab(secret: str, headers: Mapping[str, str], body: bytes, _now: float) -> Proof:
    _demand(_header(headers, "X-Gitlab-Token"), secret)
    own = headers.get("X-Gitlab-Event-UUID") or headers.get("Idempotency-Key") or ""
    return Proof(f"body:{hashlib.sha256(body).hexdigest()}", own)


def _stripe(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> Proof:
    parts = [part.strip().partition("=") for part in _header(headers, "Stripe-Signature").split(",")][:MAX_CANDIDATES]
    at = next((value for name, _, value in parts if name == "t"), "")
    _demand_fresh(at, now)
    signed = _hex(secret, at.encode() + b"." + body)
    _demand_one([value for name, _, value in parts if name == "v1"], signed)
    return Proof(f"signed:{signed}")


def _slack(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> Proof:
    given, at = _header(headers, "X-Slack-Signature"), _header(headers, "X-Slack-Request-Timestamp")
    _demand_fresh(at, now)
    signed = f"v0={_hex(secret, b'v0:' + at.encode() + b':' + body)}"
    _demand(given, signed)
    return Proof(f"signed:{signed}")


def _svix(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> Proof:
    """Check Svix and Standard Webhooks, which differ in the names of their headers."""
    prefix = "Svix" if "Svix-Signature" in headers else "Webhook"
    given, at, own = (_header(headers, f"{prefix}-{name}") for name in ("Signature", "Timestamp", "Id"))
    _demand_fresh(at, now)
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = secret.encode()
    signed = hmac.new(key, f"{own}.{at}.".encode("utf-8", "surrogateescape") + body, hashlib.sha256).digest()
    wanted = base64.b64encode(signed).decode()
    candidates = [part.partition(",") for part in given.split(" ")][:MAX_CANDIDATES]
    _demand_one([value for version, _, value in candidates if version == "v1"], wanted)
    return Proof(f"id:{own}", own)


def _hermes(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> Proof:
    given, at = _header(headers, "X-Webhook-Signature-V2"), _header(headers, "X-Webhook-Timestamp")
    _demand_fresh(at, now)
    signed = _hex(secret, at.encode() + b"." + body)
    _demand(given.removeprefix("sha256="), signed)
    return Proof(f"signed:{signed}", headers.get("X-Request-ID") or headers.get("Idempotency-Key") or "")


_CHECKS: Mapping[Signature, Callable[[str, Mapping[str, str], bytes, float], Proof]] = {
    Signature.GITHUB: _github,
    Signature.GITLAB: _gitlab,
    Signature.STRIPE: _stripe,
    Signature.SLACK: _slack,
    Signature.SVIX: _svix,
    Signature.HERMES: _hermes,
}


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name, "")
    if not value:
        raise SignatureError(f"the header {name} is missing")
    return value


def _hex(secret: str, data: bytes) -> str:
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()


def _demand(given: str, wanted: str) -> None:
    if not _is_same(given, wanted):
        raise SignatureError("the signature is wrong")


def _demand_one(given: list[str], wanted: str) -> None:
    if not any(_is_same(each, wanted) for each in given):
        raise SignatureError("the signature is wrong" if given else "no signature of a known version was sent")


def _is_same(given: str, wanted: str) -> bool:
    # Bytes: of a text that is not ASCII, compare_digest makes an error instead of an answer.
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _demand_fresh(at: str, now: float) -> None:
    if not at.isascii() or not at.isdigit() or len(at) > 15:
        raise SignatureError("the time of the signature is no number")
    if abs(now - int(at)) > WINDOW_SECONDS:
        raise SignatureError("the signature is older or newer than five minutes")
