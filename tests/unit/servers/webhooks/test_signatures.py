"""Signatures of webhooks: the vectors that the senders publish, and everything that must be refused."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from multidict import CIMultiDict

from hermes.servers.webhooks.signatures import Signature, SignatureError, verify
from hermes.services.webhooks.sample import sample_headers
from hermes.services.webhooks.webhooks import WebhookRoute

AT = 1_700_000_000
SECRET, BODY = "s3cret", b'{"a":1}'
V2 = "1698a50bc74d1ff1db85c4e0a5297c2ad9fdba245d5737cdb789e4cc6e098940"
VECTORS = {
    Signature.GITHUB: (
        "It's a Secret to Everybody",
        {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
        b"Hello, World!",
        AT,
    ),
    Signature.SVIX: (
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        {
            "svix-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "svix-timestamp": "1614265330",
            "svix-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        b'{"test": 2432232314}',
        1_614_265_330,
    ),
    Signature.STRIPE: (SECRET, {"Stripe-Signature": f"t={AT},v1={V2},v0=ignored"}, BODY, AT),
    Signature.SLACK: (
        SECRET,
        {
            "X-Slack-Request-Timestamp": str(AT),
            "X-Slack-Signature": "v0=bd185b05da99402f371e04f620aeca81515f08c0ef7fcf979fccaa4d2f87d47c",
        },
        BODY,
        AT,
    ),
    Signature.HERMES: (SECRET, {"X-Webhook-Timestamp": str(AT), "X-Webhook-Signature-V2": V2}, BODY, AT),
    Signature.GITLAB: (SECRET, {"X-Gitlab-Token": SECRET}, BODY, AT),
}
TIMED = [Signature.SVIX, Signature.STRIPE, Signature.SLACK, Signature.HERMES]


def check_signature(
    kind: Signature, changes: dict[str, str] | None = None, *, chosen: Signature | None = None, now: float = 0.0
) -> None:
    secret, headers, body, at = VECTORS[kind]
    given = CIMultiDict({**headers, **(changes or {})})
    verify(chosen or kind, secret, given, body, now or at)


@pytest.mark.parametrize("kind", VECTORS)
def test_the_published_vector_is_accepted(kind: Signature) -> None:
    check_signature(kind)
    if kind is not Signature.GITLAB:
        check_signature(kind, chosen=Signature.AUTO)


@pytest.mark.parametrize("kind", VECTORS)
def test_another_body_or_secret_is_refused(kind: Signature) -> None:
    secret, headers, body, at = VECTORS[kind]
    with pytest.raises(SignatureError):
        verify(kind, f"{secret}x", CIMultiDict(headers), body, at)
    if kind is not Signature.GITLAB:  # which sends the secret itself
        with pytest.raises(SignatureError):
            verify(kind, secret, CIMultiDict(headers), body + b" ", at)


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize("text", ["", "sha256=", "v1,", "t=,v1=", "ключ", "\udcff\udcfe", "é" * 64, "v0=" + "0" * 64])
def test_a_bad_missing_or_non_ascii_header_is_refused_and_never_breaks(kind: Signature, text: str) -> None:
    secret, headers, body, at = VECTORS[kind]
    for name in headers:
        with pytest.raises(SignatureError):
            verify(kind, secret, CIMultiDict({**headers, name: text}), body, at)
    with pytest.raises(SignatureError):
        verify(kind, secret, CIMultiDict(), body, at)


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("away", [-301, 301, 86400])
def test_a_signature_outside_the_window_is_refused(kind: Signature, away: int) -> None:
    at = VECTORS[kind][3]
    check_signature(kind, now=at + 299)
    with pytest.raises(SignatureError, match="five minutes"):
        check_signature(kind, now=at + away)


def test_a_header_commits_to_its_scheme() -> None:
    """A stale signature of ours is not saved by a right one of a weaker kind beside it."""
    signed = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
    headers = CIMultiDict({"X-Webhook-Signature-V2": V2, "X-Hub-Signature-256": f"sha256={signed}"})
    with pytest.raises(SignatureError, match="X-Webhook-Timestamp is missing"):
        verify(Signature.AUTO, SECRET, headers, BODY, AT)


def test_the_secret_itself_as_a_token_counts_only_for_gitlab() -> None:
    with pytest.raises(SignatureError, match="no signature"):
        verify(Signature.AUTO, SECRET, CIMultiDict({"X-Gitlab-Token": SECRET}), BODY, AT)


@pytest.mark.parametrize("kind", list(Signature))
def test_a_route_without_a_secret_refuses_everybody(kind: Signature) -> None:
    empty = hmac.new(b"", BODY, hashlib.sha256).hexdigest()
    headers = CIMultiDict({"X-Hub-Signature-256": f"sha256={empty}", "X-Gitlab-Token": ""})
    with pytest.raises(SignatureError, match="no secret"):
        verify(kind, "", headers, BODY, AT)


def test_two_signatures_while_a_secret_is_changed() -> None:
    check_signature(Signature.STRIPE, {"Stripe-Signature": f"t={AT},v1={'0' * 64},v1={V2}"})
    own = f"v1,{base64.b64encode(b'wrong').decode()} {VECTORS[Signature.SVIX][1]['svix-signature']}"
    check_signature(Signature.SVIX, {"svix-signature": own})


def test_a_recorded_github_delivery_has_one_name_whatever_id_it_claims() -> None:
    secret, headers, body, at = VECTORS[Signature.GITHUB]
    first, second = (
        verify(Signature.GITHUB, secret, CIMultiDict({**headers, "X-GitHub-Delivery": own}), body, at)
        for own in ("one", "two")
    )
    assert first.key == second.key


@pytest.mark.parametrize("kind", list(Signature))
def test_the_sample_is_signed_as_its_route_wants(kind: Signature) -> None:
    route = WebhookRoute("ci", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", kind.value)
    headers = CIMultiDict(sample_headers(route, BODY, AT))
    assert verify(kind, route.secret, headers, BODY, AT).key
