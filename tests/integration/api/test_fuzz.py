"""Whatever a fuzzer makes of /openapi.json: no 500, no status that is not documented, every answer of its shape.

The long form is a part of ./scripts/chaos.
"""

from __future__ import annotations

import asyncio

import pytest

from hermes.store.db import Tx
from tests.fakes.model import FakeModel, Refusal
from tests.integration.api.fuzzing import fuzz
from tests.integration.api.serving import Served, default_key, served
from tests.integration.conftest import Start

pytestmark = pytest.mark.one_python

WORK = "^/v1/(chat/completions|responses|runs)$"


def open_requests(tx: Tx) -> int:
    return int(tx.value("SELECT count(*) FROM inbox WHERE platform = 'api' AND state IN ('queued', 'taken')") or 0)


async def all_ended(api: Served) -> None:
    async with asyncio.timeout(10):
        while await api.gateway.db.read(open_requests):  # noqa: ASYNC110 - a table tells nobody
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_fuzzer_finds_no_answer_that_is_not_in_the_contract(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.servers.api.limits.WRONG_KEYS_PER_MINUTE", 1_000_000)  # it tries many, from one address
    async with served(start) as api:
        key = default_key(api.gateway).reveal()
        met = await fuzz(api.url, key, examples=4, seed=1, phases="examples,fuzzing,stateful")
        assert met.failures == 0, met.words
        assert met.operations > 25
        assert met.cases > 100
        await all_ended(api)
        assert (await api.post("/v1/responses", {"input": "still there?"})).status == 200


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_with_a_broken_model_only_what_may_fail_so_answers_502(start: Start, model: FakeModel) -> None:
    model.default = Refusal(401, "wrong key")
    async with served(start) as api:
        key = default_key(api.gateway).reveal()
        met = await fuzz(api.url, key, examples=4, seed=2, phases="examples,fuzzing", paths=WORK, may_fail=True)
        assert met.failures == 0, met.words
        assert model.requests  # it was asked, and each time it failed
        await all_ended(api)
