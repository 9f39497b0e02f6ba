"""Every payload that GitHub publishes as an example of its webhooks, signed as GitHub signs, to a real route."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients import npm
from tests.integration.conftest import Start
from tests.integration.test_webhooks import ports, receiving, subscribe

PACKAGE = "@octokit/webhooks-examples"  # the examples of GitHub's documentation, MIT

__all__ = ["ports"]


@pytest.fixture
async def examples() -> list[tuple[str, Any]]:
    """Each event's name with one example of it, and the largest example of all."""
    folder = await npm.installed(PACKAGE)
    published = json.loads((folder / "node_modules" / PACKAGE / "api.github.com" / "index.json").read_text("utf-8"))
    every = [(str(event["name"]), example) for event in published for example in event["examples"]]
    first = list({name: (name, example) for name, example in reversed(every)}.values())
    return [*first, max(every, key=lambda each: len(json.dumps(each[1])))]


async def test_every_published_github_payload_is_accepted_and_told(
    start: Start, ports: dict[str, str], examples: list[tuple[str, Any]], tmp_path: Path
) -> None:
    assert len(examples) > 40
    (tmp_path / "home" / "config.yaml").write_text("webhooks:\n  rate_limit: 10000\n", encoding="utf-8")
    async with start(**ports) as gateway:
        told = {
            "signature": "github",
            "prompt": "{sender.login}",
            "deliver_only": True,
            "deliver": "local",
            "rate_limit": 10_000,
        }
        await subscribe(gateway, "all", **told)
        async with receiving(gateway) as sender:
            for number, (name, payload) in enumerate(examples):
                status, answer = await sender.github("all", payload, delivery=f"d-{number}", event=name)
                assert (status, answer.get("status")) == (202, "accepted"), (name, answer)
                assert (await sender.github("all", payload, delivery=f"d-{number}", event=name))[0] == 200, name
