"""Whatever happens to an adapter, nothing of it is left open."""

from __future__ import annotations

import asyncio
import os

import pytest

from hermes.core.errors import PlatformError
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.fakes.holding import lasting_threads
from tests.fakes.server import FakeServer


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.plays("hold")
async def test_a_send_cancelled_half_way_leaves_nothing_open_and_the_next_one_works(server: FakeServer) -> None:
    hold = server.hold_sends()
    tasks = asyncio.all_tasks()
    async with server.adapter() as adapter:
        sending = asyncio.create_task(adapter.send(saying(server, "hello")))
        await hold.reached()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        hold.release()
        await adapter.send(saying(server, "again"))
    await server.wait_for(lambda: server.open_connections == 0)
    assert asyncio.all_tasks() <= tasks
    assert [sent.text for sent in server.sent] == ["hello", "again"]


async def test_receiving_that_is_cancelled_leaves_no_task_behind(server: FakeServer, inbox: Inbox) -> None:
    server.user_says("hello")
    async with server.adapter() as adapter:
        tasks = asyncio.all_tasks()
        async with receiving(adapter, inbox):
            await inbox.until(1)
        assert {task for task in asyncio.all_tasks() - tasks if "web_protocol" not in repr(task)} == set()


async def test_being_built_opens_nothing(server: FakeServer) -> None:
    async with server.adapter():
        pass
    files, tasks = open_files(), asyncio.all_tasks()
    async with server.adapter():
        assert open_files() == files
        assert asyncio.all_tasks() == tasks
    assert server.open_connections == 0


@pytest.mark.plays("outage")
async def test_fifty_failed_starts_leave_no_file_task_or_thread(server: FakeServer, inbox: Inbox) -> None:
    await server.stop()

    async def fail_to_start() -> None:
        async with server.adapter() as adapter:
            with pytest.raises(PlatformError):
                await adapter.run(inbox)

    await fail_to_start()
    before = open_files(), len(asyncio.all_tasks()), lasting_threads()
    for _ in range(50):
        await fail_to_start()
    assert (open_files(), len(asyncio.all_tasks()), lasting_threads()) == before
