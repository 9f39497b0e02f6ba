"""Sign a sample as a route's sender would, for `hermes webhook test`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from hermes.services.webhooks.webhooks import WebhookRoute


def sample_headers(route: WebhookRoute, body: bytes, now: float) -> dict[str, str]:
    at, own = str(int(now)), f"test_{secrets.token_hex(8)}"
    key = route.secret.encode()

    def signed(data: bytes) -> str:
        return hmac.new(key, data, hashlib.sha256).hexdigest()

    headers = {"Content-Type": "application/json"}
    match route.signature:
        case "github":
            return {**headers, "X-Hub-Signature-256": f"sha256={signed(body)}", "X-GitHub-Delivery": own}
        case "gitlab":
            return {**headers, "X-Gitlab-Token": route.secret, "X-Gitlab-Event-UUID": own}
        case "stripe":
            return {**headers, "Stripe-Signature": f"t={at},v1={signed(at.encode() + b'.' + body)}"}
        case "slack":
            mark = f"v0={signed(b'v0:' + at.encode() + b':' + body)}"
            return {**headers, "X-Slack-Signature": mark, "X-Slack-Request-Timestamp": at}
        case "svix":
            try:
                key = base64.b64decode(route.secret.removeprefix("whsec_"), validate=True)
            except (binascii.Error, ValueError):
                key = route.secret.encode()
            mark = base64.b64encode(hmac.new(key, f"{own}.{at}.".encode() + body, hashlib.sha256).digest()).decode()
            return {**headers, "Svix-Id": own, "Svix-Timestamp": at, "Svix-Signature": f"v1,{mark}"}
        case _:
            mark = signed(at.encode() + b"." + body)
            return {
                **headers, "X-Webhook-Timestamp": at, "X-Webhook-Signature-V2": mark, "X-Request-ID": own,
            }  # fmt: skip
