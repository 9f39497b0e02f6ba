"""Brave Search: https://api-dashboard.search.brave.com/documentation"""

from __future__ import annotations

from typing import Any

from hermes.agent.web.search.base import Ask, Hit, Refusal, plain, sendable
from hermes.core.secret import Secret

ADDRESS = "https://api.search.brave.com"
MAX_WORDS = 50


class Brave:
    name = "brave"

    def __init__(self, key: Secret, base_url: str = ADDRESS) -> None:
        self._key = key
        self._base_url = base_url

    def ask(self, query: str, count: int) -> Ask:
        return Ask(
            "GET",
            f"{self._base_url}/res/v1/web/search",
            params={
                "q": " ".join(query.split()[:MAX_WORDS]),  # more is refused with 422
                "count": str(count),
                "text_decorations": "false",
                "result_filter": "web",
            },
            headers={"X-Subscription-Token": sendable(self._key, self.name)},
        )

    def hits(self, answer: Any) -> list[Hit]:
        found = (answer.get("web") or {}).get("results") or []  # nothing found: there is no "web" at all
        return [
            Hit(plain(hit.get("title")), hit["url"], plain(hit.get("description")), plain(hit.get("age")))
            for hit in found
        ]

    def refused(self, refusal: Refusal) -> str:
        # A wrong key is 422 here, like any other field that is not as it should be.
        if refusal.status == 422 and "SUBSCRIPTION_TOKEN_INVALID" in refusal.text:
            return "brave does not accept the key. The owner checks BRAVE_API_KEY."
        if refusal.status in (402, 429) and "QUOTA" in refusal.text.upper():
            return "brave says that the searches of this plan are used up. The owner checks the plan."
        return ""
