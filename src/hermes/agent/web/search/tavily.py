"""Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search"""

from __future__ import annotations

from typing import Any

from hermes.agent.web.search.base import Ask, Hit, Refusal, plain, sendable
from hermes.core.secret import Secret

ADDRESS = "https://api.tavily.com"


class Tavily:
    name = "tavily"

    def __init__(self, key: Secret, base_url: str = ADDRESS) -> None:
        self._key = key
        self._base_url = base_url

    def ask(self, query: str, count: int) -> Ask:
        return Ask(
            "POST",
            f"{self._base_url}/search",
            headers={"Authorization": f"Bearer {sendable(self._key, self.name)}"},
            body={"query": query, "max_results": count, "search_depth": "basic"},
        )

    def hits(self, answer: Any) -> list[Hit]:
        return [
            Hit(plain(hit.get("title")), hit["url"], plain(hit.get("content")), plain(hit.get("published_date")))
            for hit in answer["results"]
        ]

    def refused(self, refusal: Refusal) -> str:
        if refusal.status in (432, 433):  # the plan's limit, and the limit set on paying as one goes
            return "tavily says that the searches of this plan are used up. The owner checks the plan."
        return ""
