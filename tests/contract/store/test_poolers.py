"""Behind a transaction pooler notifications do not arrive: the node says so, and lives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from hermes.store.cluster import node_connection
from hermes.store.cluster.node_connection import NodeConnection
from hermes.store.cluster.nodes import ClusterView, NewNode
from hermes.store.db import Trouble
from hermes.store.open import open_database
from hermes.store.postgres import PostgresDatabase
from tests.contract.store.servers import PostgresForTests


@pytest.fixture
def url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as found:
        yield found


@pytest.mark.parametrize("is_pooled", [True, False])
async def test_a_node_that_does_not_hear_its_own_echo_says_what_degrades(
    url: str, is_pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_connection, "ECHO_SECONDS", 0.1)
    if is_pooled:  # a pooler answers LISTEN, and another connection listens then
        monkeypatch.setattr(node_connection, "LISTEN", "UNLISTEN {}")
    troubles: list[Trouble] = []
    views: asyncio.Queue[ClusterView] = asyncio.Queue()
    store = await open_database(url, on_trouble=troubles.append)
    assert isinstance(store, PostgresDatabase)
    node = NodeConnection(
        store,
        NewNode("inc_a", "a", "host", 1, "1.0", 6),
        monotonic=time.monotonic,
        system_time=time.time,
        on_view=lambda view, _: views.put_nowait(view),
        on_news=lambda *_: None,
        on_gone=lambda: None,
    )
    try:
        await node.join(0)
        async with asyncio.timeout(30):
            for _ in range(3):
                assert [each.name for each in (await views.get()).nodes] == ["a"]
    finally:
        await node.close(10)
        await store.close()
    assert [trouble.kind for trouble in troubles] == (["notifications"] if is_pooled else [])
