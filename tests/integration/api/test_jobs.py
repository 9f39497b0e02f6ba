"""Jobs over HTTP: made, changed, run, removed; each key sees its own."""

from __future__ import annotations

from functools import partial

import pytest

from hermes.core.roles import PersonRole
from hermes.servers.api.context import Caller
from hermes.servers.api.lazy_routes import lazy_routes
from tests.integration.api.conftest import Families, StartApi
from tests.integration.api.others import another
from tests.integration.watching import until

ADMIN = Caller("ann", PersonRole.ADMIN)
USER = Caller("bob", PersonRole.USER)
PATH = "/api/jobs"
JOB_ROUTES = partial(lazy_routes, "entries.jobs.JobRoutes")


@pytest.fixture
def families() -> Families:
    return (JOB_ROUTES,)


async def test_a_job_is_made_run_changed_paused_and_deleted(start_api: StartApi) -> None:
    async with start_api(caller=ADMIN) as api:
        made = await api.post(PATH, {"schedule": "weekdays at 8", "prompt": "hello", "deliver": "local"})
        assert (made.status, made.json["object"], made.json["schedule"]) == (201, "job", "0 8 * * 1-5")
        one = f"{PATH}/{made.json['id']}"
        assert (await api.get(one)).json["id"] == made.json["id"]
        assert [job["id"] for job in (await api.get(PATH)).json["data"]] == [made.json["id"]]
        ran = await api.post(f"{one}/run", {})
        assert (ran.status, bool(ran.json["event_id"])) == (202, True)

        async def has_run() -> bool:
            [slot] = (await api.get(f"{one}/history")).json["data"]
            return bool(slot["outcome"] == "done")

        await until(has_run)
        assert (await api.post(f"{one}/pause", {})).json["state"] == "paused"
        assert (await api.post(f"{one}/resume", {})).json["state"] == "active"
        assert (await api.call("PATCH", one, {"schedule": "every 2h"})).json["schedule"] == "every 2h"
        assert (await api.call("DELETE", one)).json["deleted"]
        assert (await api.get(one)).status == 404


@pytest.mark.parametrize(
    "body",
    [{"schedule": "soon", "prompt": "x"}, {"schedule": "1h"}, {"prompt": "x"}, {"schedule": 5}, {"schedule": ""},
     {"schedule": "1h", "prompt": "x", "deliver": "nowhere:1"}, {"schedule": "1h", "script": "x.sh"}],
)  # fmt: skip
async def test_a_wrong_job_is_400_in_words(start_api: StartApi, body: dict[str, object]) -> None:
    async with start_api(caller=ADMIN) as api:
        refused = await api.post(PATH, body)
        assert (refused.status, bool(refused.json["error"]["message"])) == (400, True)


async def test_a_key_does_not_see_the_jobs_of_another(start_api: StartApi) -> None:
    async with (
        start_api(caller=ADMIN) as api,
        another(api, USER, (JOB_ROUTES,)) as other,
    ):
        made = await api.post(PATH, {"schedule": "1h", "prompt": "mine"})
        one = f"{PATH}/{made.json['id']}"
        assert (await other.get(PATH)).json["data"] == []
        assert (await other.get(one)).status == 404
        assert (await other.call("DELETE", one)).status == 404
        theirs = await other.post(PATH, {"schedule": "1h", "prompt": "theirs"})
        assert {job["id"] for job in (await api.get(PATH)).json["data"]} == {made.json["id"], theirs.json["id"]}
