"""SearXNG, a self-hosted search server: https://docs.searxng.org/dev/search_api.html"""

from __future__ import annotations

from typing import Any

from hermes.agent.web.search.base import Ask, Hit, Refusal, plain


class SearXng:
    name = "searxng"

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def ask(self, query: str, count: int) -> Ask:  # noqa: ARG002 - it has no count: a page is as long as it is
        return Ask("GET", f"{self._url}/search", params={"q": query, "format": "json"})

    def hits(self, answer: Any) -> list[Hit]:
        return [
            Hit(plain(hit.get("title")), hit["url"], plain(hit.get("content")), plain(hit.get("publishedDate")))
            for hit in answer["results"]
        ]

    def refused(self, refusal: Refusal) -> str:
        if refusal.status == 403:
            return (
                "searxng refuses to answer in JSON. The owner adds `json` under `search.formats` in its settings.yml."
            )
        if refusal.status == 429:
            return "searxng takes us for a robot (its limiter is on). The owner lets this machine through it."
        if refusal.status == 401:
            return "searxng asks for a login. The owner puts it into SEARXNG_URL: https://name:password@host."
        return ""
