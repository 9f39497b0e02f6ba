"""Jobs: made in a chat, by the model or by hand; fired once at their due times; delivered, failed, paused, told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.roles import PersonRole
from hermes.services.cron.jobs import JobError, Maker
from hermes.services.cron.scripts import NoSuchScriptError
from hermes.services.cron.timer import CronTimer
from hermes.services.gateway import Gateway
from hermes.store import people
from hermes.store.entries import jobs as store
from hermes.store.entries.job_slots import JobSlot
from hermes.store.entries.jobs import JobRow
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.watching import answered, until

OWNER = Maker("p_local_local", PersonRole.OWNER)
HOME = {"TELEGRAM_HOME_CHANNEL": "7"}
WAIT_SECONDS = 30


async def as_owner(gateway: Gateway) -> Maker:
    await gateway.db.write(
        people.ensure, "p_local_local", platform="local", user_id="local", name="", role="owner", now=0.0
    )
    return OWNER


async def make(gateway: Gateway, schedule: str = "every 1h", prompt: str = "check", **more: Any) -> JobRow:
    told = {"schedule": schedule, "prompt": prompt, "deliver": "telegram:7", **more}
    return await gateway.jobs().create(told, await as_owner(gateway))


async def pass_time(gateway: Gateway, clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
    gateway.cron().changed()


async def settled(gateway: Gateway, job: JobRow, count: int = 1) -> list[JobSlot]:
    """Wait until so many runs of a job have ended and were entered."""
    found: list[JobSlot] = []

    async def are_settled() -> bool:
        found[:] = await gateway.jobs().history(job)
        return len([slot for slot in found if slot.outcome not in ("", "open")]) >= count

    await until(are_settled)
    return found


async def test_a_reminder_that_the_model_schedules_arrives_in_the_same_chat(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    model.when("^remind me", calls_tools(("schedule_cronjob", {"prompt": "tell them: tea", "schedule": "30m"})))
    model.when_told("Scheduled", "I will.")
    model.when("^tell them: tea", "Your tea is ready.")
    async with start(clock=clock) as gateway:
        telegram.user_says("remind me in 30 minutes of my tea")
        await answered(telegram, "I will.")
        await pass_time(gateway, clock, 29 * 60)
        await gateway.cron().fire()
        assert len(telegram.sent) == 1
        await pass_time(gateway, clock, 61)
        await answered(telegram, "⏰ tell them: tea\n\nYour tea is ready.")
        [job] = await gateway.db.read(store.listed)
        [slot] = await settled(gateway, job)
    assert telegram.texts(7)[-1].endswith("Your tea is ready.")
    assert (job.person_id, job.role, job.deliver) == ("p_telegram_7", "user", "origin")
    assert (slot.state, slot.outcome) == ("ran", "done")


async def test_cron_in_a_chat_makes_lists_and_removes_a_plain_message(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start():
        telegram.user_says("/cron add 1s tea is ready --no-agent")
        await answered(telegram, "tea is ready")
        telegram.user_says("/cron add weekdays at 8 read the news")
        await telegram.wait_for(lambda: len(telegram.sent) >= 3, WAIT_SECONDS)
        telegram.user_says("/cron")
        await telegram.wait_for(lambda: len(telegram.sent) >= 4, WAIT_SECONDS)
        listed = telegram.sent[-1].text
        telegram.user_says("/cron remove read the news")
        await answered(telegram, ENGLISH.CRON_REMOVED.format(name="read the news"))
        telegram.user_says("/cron evry 5 mins news")
        await telegram.wait_for(lambda: len(telegram.sent) >= 6, WAIT_SECONDS)
        telegram.user_says("/cron add evry 5 mins news")
        await telegram.wait_for(lambda: len(telegram.sent) >= 7, WAIT_SECONDS)
    assert "0 8 * * 1-5" in listed
    assert ENGLISH.job_state("done") in listed
    assert telegram.sent[-2].text == ENGLISH.CRON_USAGE
    assert "every 5m" in telegram.sent[-1].text
    assert not model.requests, "no model was asked"


async def test_a_slot_runs_once_though_the_gateway_dies_in_the_middle_of_its_run(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    model.when("^check", "All is well.")
    async with start(clock=clock) as gateway:
        job = await make(gateway)
        model.hold()
        await pass_time(gateway, clock, 3600)
        await model.is_holding(WAIT_SECONDS)
        await crash(gateway)
    model.release()
    async with start(clock=clock) as gateway:
        await answered(telegram, "⏰ check\n\nAll is well.")
        slots = await settled(gateway, job)
    assert [(slot.state, slot.outcome) for slot in slots] == [("ran", "done")]
    assert len(telegram.sent) == 1


async def test_due_times_during_downtime_are_caught_up_as_each_job_says(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with start(clock=clock) as gateway:
        made = {
            policy: await make(gateway, prompt=policy, catch_up=policy) for policy in ("run_once", "run_all", "skip")
        }
    clock.advance(3 * 3600 + 600)
    async with start(clock=clock) as gateway:
        found = {
            policy: await settled(gateway, job, {"skip": 0, "run_all": 3}.get(policy, 1))
            for policy, job in made.items()
        }
        await gateway.cron().fire()
    states = {policy: [(slot.state, slot.slots) for slot in slots] for policy, slots in found.items()}
    assert states == {
        "run_once": [("late", 1), ("missed", 2)],
        "run_all": [("late", 1), ("late", 1), ("late", 1)],
        "skip": [("skipped", 3)],
    }
    texts = sorted(text.split()[1] for text in telegram.texts(7))
    assert texts == ["run_all", "run_all", "run_all", "run_once"]


async def test_a_clock_that_is_set_back_runs_no_slot_twice_and_stops_none(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with start(clock=clock) as gateway:
        hourly = await make(gateway, "0 * * * *", "by the calendar")
        relative = await make(gateway, "2h", "from now", no_agent=True)
        await pass_time(gateway, clock, 3600)
        await settled(gateway, hourly)
        clock.jump(-3600)
        await mind_the_clock(gateway)
        for _ in range(2):  # the hour that comes again, and the next one
            await pass_time(gateway, clock, 3600)
            await gateway.cron().fire()
        slots = await settled(gateway, hourly, 2)
        await answered(telegram, "from now")
        [once] = await settled(gateway, relative)
    assert [slot.state for slot in slots] == ["ran", "ran"]
    assert slots[0].slot - slots[1].slot == 3600
    assert once.state == "ran"


async def mind_the_clock(gateway: Gateway) -> None:
    """Look at the clock as the janitor does every few seconds."""
    from hermes.services.janitor import Janitor

    timer: CronTimer = gateway.cron()
    await Janitor(gateway.db, gateway.clock, on_clock_set=timer.clock_set).mind_the_clock()


async def test_two_nodes_fire_each_slot_once(start: Start, telegram: FakeTelegram, clock: FakeClock) -> None:
    async with start(clock=clock, HERMES_CRON_ENABLED="false") as gateway:
        made = [await make(gateway, prompt=f"job {number}", no_agent=True) for number in range(20)]
        nodes = [
            CronTimer(
                gateway.db,
                gateway.clock,
                lambda: gateway.config,
                gateway.bus,
                gateway.lanes,
                gateway.outbox_writer,
                gateway.home,
            )
            for _ in range(2)
        ]
        clock.advance(3600)
        woken = await asyncio.gather(*(node.fire() for node in nodes * 5))
        assert sum(woken) == 20
        await nodes[0].settle()
        await telegram.wait_for(lambda: len(telegram.sent) >= 20, WAIT_SECONDS)
        for job in made:
            assert len(await gateway.jobs().history(job)) == 1
    assert sorted(telegram.texts(7)) == sorted(f"job {number}" for number in range(20))


async def test_a_failure_is_told_once_and_the_third_in_a_row_pauses_the_job(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with start(clock=clock, **HOME) as gateway:
        job = await make(gateway, deliver="local")
        for number in range(1, 4):
            model.fails_next(401, "bad key")
            await pass_time(gateway, clock, 3600)
            await settled(gateway, job, number)
        await telegram.wait_for(lambda: len(telegram.sent) >= 2, WAIT_SECONDS)
        paused = await gateway.db.read(store.get, job.id)
        assert paused is not None
        resumed = await gateway.jobs().resume(job.id, OWNER)
    assert (paused.state, paused.next_slot) == ("paused", None)
    failed, stopped = telegram.texts(7)
    assert failed.startswith("⚠️ The job “check” failed")
    assert "Failures in a row: 3" in stopped
    assert (resumed.state, resumed.failures) == ("active", 0)


async def test_an_unreachable_target_is_told_once_and_the_run_counts_as_done(
    start: Start, telegram: FakeTelegram, clock: FakeClock
) -> None:
    telegram.block(99)
    async with start(clock=clock, **HOME) as gateway:
        job = await make(gateway, prompt="hello", no_agent=True, deliver="telegram:99")
        for number in (1, 2):
            await pass_time(gateway, clock, 3600)
            await settled(gateway, job, number)

            async def is_given_up(expected: int = number) -> bool:
                slots = await gateway.jobs().history(job)
                return [slot.delivery for slot in slots].count("failed") == expected

            await until(is_given_up)
            await gateway.cron().sweep()
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 1, WAIT_SECONDS)
        slots = await gateway.jobs().history(job)
    assert [(slot.outcome, slot.delivery) for slot in slots] == [("done", "failed")] * 2
    [alert] = telegram.texts(7)
    assert "could not be delivered" in alert


async def test_a_silent_answer_is_kept_and_not_sent(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock, tmp_path: Path
) -> None:
    model.when("^check", "[SILENT] nothing new")
    async with start(clock=clock) as gateway:
        job = await make(gateway)
        await pass_time(gateway, clock, 3600)
        [slot] = await settled(gateway, job)
    assert (slot.state, slot.outcome, slot.delivery) == ("ran", "silent", "none")
    assert telegram.sent == []
    [output] = (tmp_path / "home" / "cron" / "output" / job.id).glob("*.md")
    assert "nothing new" in output.read_text("utf-8")
    assert output.stat().st_mode & 0o777 == 0o600


async def test_a_script_runs_first_and_a_missing_one_is_refused_with_those_that_exist(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock, tmp_path: Path
) -> None:
    model.when("93 percent", "The disk is nearly full.")
    async with start(clock=clock) as gateway:
        scripts = tmp_path / "home" / "scripts"
        scripts.mkdir()
        (scripts / "disk.sh").write_text("echo 93 percent\n")
        (scripts / "bad.sh").write_text("echo nothing works >&2\nexit 3\n")
        with pytest.raises(NoSuchScriptError, match=r"Script not found: check_and_send\.sh.*bad\.sh, disk\.sh"):
            await make(gateway, script="check_and_send.sh")
        for outside in ("../config.yaml", "/etc/passwd"):
            with pytest.raises(NoSuchScriptError, match="Script not found"):
                await make(gateway, script=outside)
        with_model = await make(gateway, prompt="is it full?", script="disk.sh")
        plain = await make(gateway, prompt="", script="disk.sh", no_agent=True)
        bad = await make(gateway, prompt="", script="bad.sh", no_agent=True)
        await pass_time(gateway, clock, 3600)
        for job in (with_model, plain, bad):
            await settled(gateway, job)
        [broken] = await gateway.jobs().history(bad)
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 3, WAIT_SECONDS)
    assert (broken.outcome, "nothing works" in broken.error) == ("failed", True)
    assert "93 percent" in telegram.texts(7)
    assert "⏰ is it full?\n\nThe disk is nearly full." in telegram.texts(7)


async def test_a_job_runs_with_no_more_rights_than_its_maker_has_then(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with start(clock=clock, TELEGRAM_ALLOWED_USERS="7") as gateway:
        telegram.user_says("/cron add every 1h look --name look")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, WAIT_SECONDS)
        [job] = await gateway.db.read(store.listed)
        await gateway.db.write(people.set_role, "p_telegram_7", "owner")  # a later promotion lends it nothing
        await pass_time(gateway, clock, 3600)
        await settled(gateway, job)
        [role] = await gateway.db.read(roles_of_turns)
        await gateway.db.write(people.set_role, "p_telegram_7", "guest")
        await pass_time(gateway, clock, 3600)

        async def is_paused() -> bool:
            found = await gateway.db.read(store.get, job.id)
            return found is not None and found.state == "paused"

        await until(is_paused)
    assert role == "user"


def roles_of_turns(tx: Any) -> list[str]:
    found: list[str] = tx.all("SELECT role FROM turns WHERE lane LIKE '%:cron:%'", str)
    return found


async def test_an_approval_of_a_job_is_question_chat_its_delivery_chat_and_a_grant_is_carried(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    model.when("^clean", calls_tools(("terminal", {"command": "rm -rf /tmp/hermes-nothing-here"})))
    model.when_told("exit code|Exit code|ended|done|finished", "Cleaned.")
    async with start(clock=clock, TELEGRAM_ALLOWED_USERS="7") as gateway:
        await gateway.db.write(
            people.ensure, "p_telegram_7", platform="telegram", user_id="7", name="Ana", role="owner", now=0.0
        )
        job = await make(gateway, prompt="clean", name="clean")
        await pass_time(gateway, clock, 3600)
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, WAIT_SECONDS)
        question = telegram.sent[-1].text
        [slot] = await gateway.jobs().history(job)
        assert slot.outcome == "open", "it sleeps as any turn"
        telegram.user_says("/approve session")
        await settled(gateway, job)
        await pass_time(gateway, clock, 3600)
        await settled(gateway, job, 2)
        asked = [sent.text for sent in telegram.sent if "rm -rf" in sent.text]
    assert "rm -rf" in question
    assert len(asked) == 1, "the grant holds for the runs that follow"


async def test_quiet_hours_are_checked_before_the_model_is_asked(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with start(clock=clock, TZ="UTC") as gateway:
        job = await make(gateway, quiet="12:30-14:00")
        await pass_time(gateway, clock, 3600)  # 13:00

        async def is_decided() -> bool:
            return bool(await gateway.jobs().history(job))

        await until(is_decided)
        [slot] = await gateway.jobs().history(job)
    assert (slot.state, slot.reason) == ("skipped", "quiet hours")
    assert not model.requests


@pytest.mark.parametrize(
    "told, reason",
    [
        ({"deliver": "telegram:8"}, "nowhere else"),
        ({"script": "x.sh"}, "only an admin"),
        ({"schedule": "soon"}, "every"),
        ({"prompt": ""}, "needs a text"),
        ({"timezone": "Mars/Base"}, "no time zone"),
        ({"catch_up": "never"}, "run_once"),
        ({"repeat": -1}, "whole number"),
        ({"skills": ["no-such-skill"]}, "no skill"),
        ({"nonsense": "x"}, "has no"),
    ],
)
async def test_what_a_user_may_not_or_cannot_schedule_is_refused(
    start: Start, told: dict[str, Any], reason: str
) -> None:
    async with start() as gateway:
        maker = Maker("p_telegram_7", PersonRole.USER, "agent:main:telegram:dm:7")
        with pytest.raises(JobError, match=reason):
            await gateway.jobs().create({"schedule": "1h", "prompt": "x", **told}, maker)


async def until_told(telegram: FakeTelegram, count: int) -> None:
    await telegram.wait_for(lambda: len(telegram.texts(8)) >= count, WAIT_SECONDS)


async def test_nobody_sees_or_changes_the_jobs_of_another(start: Start, telegram: FakeTelegram) -> None:
    async with start(TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        telegram.user_says("/cron add 1h mine --name mine")
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 1, WAIT_SECONDS)
        [job] = await gateway.db.read(store.listed)
        for number, command in enumerate(
            ("/cron", f"/cron show {job.id}", f"/cron remove {job.id}", "/cron run mine"), 1
        ):
            telegram.user_says(command, chat=8)
            await until_told(telegram, number)
        assert await gateway.db.read(store.get, job.id) is not None
    assert telegram.texts(8)[0] == ENGLISH.CRON_NONE
    assert all("There is no job" in text for text in telegram.texts(8)[1:])
