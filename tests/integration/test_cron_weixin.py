"""Jobs and Weixin: made on the command line for a chat there, and by /cron in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes.hosting.control.handlers.cron import CronVerbs
from tests.fakes.weixin import ANA, FakeWeixin
from tests.integration.conftest import Start
from tests.integration.test_weixin import environ
from tests.integration.watching import SECONDS


@pytest.fixture
async def weixin() -> AsyncIterator[FakeWeixin]:
    async with FakeWeixin() as fake:
        yield fake


class _NoReply:
    async def event(self, told: object) -> None:
        raise AssertionError(told)


async def test_a_job_of_the_command_line_arrives_in_weixin_and_cron_works_there(
    start: Start, weixin: FakeWeixin
) -> None:
    async with start(**environ(weixin, HERMES_LANGUAGE="zh")) as gateway:
        weixin.user_says("你好")  # Weixin lets a bot answer who has written
        await weixin.wait_for(lambda: len(weixin.sent) >= 1, SECONDS)
        told = {"schedule": "1s", "prompt": "该喝茶了", "no_agent": True, "deliver": f"weixin:{ANA}"}
        made = await CronVerbs(gateway).create({"job": told, "key": "k1"}, _NoReply())
        again = await CronVerbs(gateway).create({"job": told, "key": "k1"}, _NoReply())
        await weixin.wait_for(lambda: weixin.texts()[-1] == "该喝茶了", SECONDS)
        weixin.user_says("/cron add 工作日8点 看新闻")
        await weixin.wait_for(lambda: len(weixin.sent) >= 3, SECONDS)
        weixin.user_says("/cron")
        await weixin.wait_for(lambda: len(weixin.sent) >= 4, SECONDS)
    assert made["id"] == again["id"], "a request that is repeated makes one job"
    assert made["deliver_to"] == [f"weixin:{ANA}"]
    assert weixin.texts()[2].startswith("⏰ 已安排：“看新闻”")
    assert "0 8 * * 1-5" in weixin.texts()[3]
