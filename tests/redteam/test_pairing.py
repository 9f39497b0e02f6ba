"""Strangers at the door: none gets in by a name, a crowd or somebody else's code, and none fills the store."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.cli.people import pairing as command
from hermes.cli.wizard import start as wizard
from hermes.cli.wizard.page import PlatformPage
from hermes.core.errors import GatewayError
from hermes.core.people import pairing as rules
from hermes.core.people.access import DmPolicy
from hermes.core.roles import PersonRole
from hermes.hosting.control.handlers.people import PairingVerbs
from hermes.hosting.control.server import ControlServer
from hermes.platforms.telegram import MANIFEST
from hermes.services.deletion import SessionDeletion
from hermes.services.gateway import Gateway
from hermes.services.inbound import judge, notices
from hermes.services.retention import DAY, Retention
from hermes.store import people
from tests.fakes.clock import FakeClock
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.test_about_commands import configure
from tests.integration.watching import SECONDS, make, until
from tests.unit.cli.support.test_prompts import Typing

ANA, EVE = 5550142, 666
HOME = {"TELEGRAM_HOME_CHANNEL": str(USER)}


async def counted(gateway: Gateway, table: str) -> int:
    return int(await gateway.db.read(lambda tx: tx.value(f"SELECT COUNT(*) FROM {table}")))


async def code_shown(telegram: FakeTelegram, user: int, name: str = "Ana") -> str:
    """They write to the bot, and are shown a code."""
    before = len(telegram.texts(user))
    telegram.user_says("hi", chat=user, name=name)
    await telegram.wait_for(lambda: len(telegram.texts(user)) > before, SECONDS)
    found = re.search(r"pairing code: `?(\w{8})`?", telegram.texts(user)[-1])
    assert found is not None, telegram.texts(user)
    return found[1]


async def all_taken(telegram: FakeTelegram) -> None:
    await telegram.wait_for(lambda: telegram.unconfirmed == 0, SECONDS)


async def role_of(gateway: Gateway, user: int) -> str:
    person = await gateway.db.read(people.find, "telegram", str(user))
    return person.role if person is not None else ""


# Keeping others out


@pytest.mark.parametrize("crowd", [3, rules.MAX_WAITING, rules.MAX_WAITING + 5])
async def test_strangers_who_came_first_keep_nobody_out(start: Start, telegram: FakeTelegram, crowd: int) -> None:
    async with start(**HOME) as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        for number in range(crowd):
            await code_shown(telegram, 100 + number, f"N{number}")
        code = await code_shown(telegram, ANA)
        assert await counted(gateway, "pairings") <= rules.MAX_WAITING
        approval = await gateway.pairings.approve("telegram", code, by="cli", is_at_machine=True)
        assert approval.pairing.user_id == str(ANA)


async def test_a_crowd_at_one_account_leaves_the_other_alone(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with FakeTelegram(token="43:WORK-token", username="work_bot") as work:
        accounts = f'      work: {{token: "{work.token}", base_url: "{work.url}"}}\n'
        configure(tmp_path, f"platforms:\n  telegram:\n    accounts:\n{accounts}")
        async with start(**HOME) as gateway:
            await make(gateway, USER, PersonRole.OWNER)
            first = await code_shown(work, ANA)
            for number in range(rules.MAX_WAITING + 2):
                await code_shown(telegram, 100 + number, f"N{number}")
            approval = await gateway.pairings.approve("telegram", first, by="cli", is_at_machine=True)
            assert approval.pairing.user_id == str(ANA)
            await code_shown(work, EVE, "Eve")
            about = f"Eve (telegram {EVE}) would like to talk to me."
            await telegram.wait_for(lambda: any(about in text for text in telegram.texts(USER)), SECONDS)


async def test_the_owner_is_not_flooded_with_cards_by_a_crowd(start: Start, telegram: FakeTelegram) -> None:
    async with start(**HOME) as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        for number in range(rules.MAX_CARDS + 10):
            await code_shown(telegram, 100 + number, f"N{number}")
        assert len([sent for sent in telegram.sent if sent.chat == str(USER)]) == rules.MAX_CARDS + 1


async def test_a_code_that_gave_way_is_worth_nothing(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        lost = await code_shown(telegram, EVE, "Eve")
        for number in range(rules.MAX_WAITING):
            await code_shown(telegram, 100 + number, f"N{number}")
        with pytest.raises(GatewayError, match="No such code"):
            await gateway.pairings.approve("telegram", lost, by="cli", is_at_machine=True)
        assert not gateway.pairings.is_paired("telegram", str(EVE))


async def test_whoever_was_lost_in_a_crowd_is_let_in_by_id(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        await code_shown(telegram, ANA)
        for number in range(rules.MAX_WAITING):
            await code_shown(telegram, 100 + number, f"N{number}")
        approval = await gateway.pairings.approve_user("telegram", str(ANA), by="cli")
        assert (approval.pairing.user_id, approval.role) == (str(ANA), PersonRole.USER)
        telegram.user_says("hello", chat=ANA)
        await telegram.wait_for(lambda: "echo: hello" in telegram.texts(ANA), SECONDS)


async def test_an_id_that_never_wrote_does_not_become_the_owner(start: Start) -> None:
    async with start() as gateway:
        approval = await gateway.pairings.approve_user("telegram", "4711", by="cli")
        assert (approval.role, approval.is_first_owner) == (PersonRole.USER, False)
        assert await role_of(gateway, 4711) == "user"


async def test_who_was_sent_away_does_not_come_back_within_the_hour_by_another_account(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with FakeTelegram(token="43:WORK-token", username="work_bot") as work:
        accounts = f'      work: {{token: "{work.token}", base_url: "{work.url}"}}\n'
        configure(tmp_path, f"platforms:\n  telegram:\n    accounts:\n{accounts}")
        clock = FakeClock()
        async with start(clock=clock) as gateway:
            code = await code_shown(telegram, EVE, "Eve")
            await gateway.pairings.refuse("telegram", code, by="cli", is_at_machine=True)
            clock.advance(60)
            work.user_says("let me in", chat=EVE, name="Eve")
            await all_taken(work)
            await gateway.actions.close()
            assert await gateway.pairings.waiting() == []
            assert work.sent == []


# Filling the store


async def test_one_stranger_who_never_stops_writing_leaves_a_few_rows(start: Start, telegram: FakeTelegram) -> None:
    clock = FakeClock()
    async with start(clock=clock) as gateway:
        for number in range(150):
            telegram.user_says(f"message {number}", chat=EVE, name="Eve")
            if number % 10 == 9:
                await all_taken(telegram)
                clock.advance(notices.CODE_NOTICE_SECONDS + 1)
        assert await counted(gateway, "inbox") == await counted(gateway, "dedupe") == judge.MAX_REFUSED_OF_ONE
        await gateway.actions.close()
        assert await counted(gateway, "outbox") <= notices.MAX_NOTICES_TO_ONE
        assert await counted(gateway, "people") == 0


async def test_a_crowd_of_strangers_leaves_a_bounded_number_of_rows(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        for number in range(judge.MAX_REFUSED + 100):
            telegram.user_says("let me in", chat=10_000 + number, name=f"N{number}")
        await all_taken(telegram)
        await gateway.actions.close()
        assert await counted(gateway, "inbox") == judge.MAX_REFUSED
        assert await counted(gateway, "pairings") <= rules.MAX_WAITING
        assert await counted(gateway, "outbox") <= notices.MAX_NOTICES_TO_STRANGERS
        assert await counted(gateway, "people") == 0
        telegram.user_says("hello", chat=USER)
        await telegram.wait_for(lambda: "echo: hello" in telegram.texts(USER), SECONDS)


async def test_what_strangers_left_is_forgotten_after_a_day(start: Start, telegram: FakeTelegram) -> None:
    clock = FakeClock()
    async with start(clock=clock) as gateway:
        for user in (ANA, EVE):
            await code_shown(telegram, user)
        telegram.user_says("hello", chat=USER)
        await telegram.wait_for(lambda: "echo: hello" in telegram.texts(USER), SECONDS)

        async def is_told() -> bool:
            sent = "SELECT COUNT(*) FROM outbox WHERE state = 'sent'"
            return int(await gateway.db.read(lambda tx: tx.value(sent))) == 3

        await until(is_told)
        clock.advance(DAY + 1)
        sessions = SessionDeletion(gateway.db, gateway.home, gateway.clock)
        await Retention(gateway.db, gateway.home, gateway.clock, lambda: gateway.config, sessions).look()
        assert await counted(gateway, "inbox") == await counted(gateway, "outbox") == 1
        assert await counted(gateway, "targets") == 1
        assert await code_shown(telegram, EVE), "and whoever writes again is answered as at first"


async def test_presses_of_a_stranger_leave_a_few_rows(start: Start, telegram: FakeTelegram) -> None:
    async with start(**HOME) as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        await code_shown(telegram, EVE)
        await telegram.wait_for(lambda: any(sent.buttons for sent in telegram.sent), SECONDS)
        card = next(sent for sent in telegram.sent if sent.buttons)
        for _ in range(50):
            telegram.user_presses(card, "Approve", user=EVE)
        await all_taken(telegram)
        assert await counted(gateway, "inbox") == judge.MAX_REFUSED_OF_ONE
        assert not gateway.pairings.is_paired("telegram", str(EVE))


# Setting up


PAGE = PlatformPage(MANIFEST, "main", {}, "@ana_home_bot", DmPolicy.PAIRING)


@asynccontextmanager
async def setting_up(start: Start, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with (
        start(TELEGRAM_ALLOWED_USERS="") as gateway,
        ControlServer(tmp_path / "home", PairingVerbs(gateway.pairings).mapping()).listening(),
    ):
        yield gateway


async def types(tmp_path: Path, *lines: str) -> str:
    """Go through the last step of the setup, typing these lines; what the screen shows."""
    person = Typing(*lines)
    await asyncio.to_thread(wizard.let_in_first_person, tmp_path / "home", PAGE, person.ask)
    return person.shown


async def test_a_stranger_with_the_owners_name_who_writes_first_does_not_become_the_owner(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with setting_up(start, tmp_path) as gateway:
        hers = await code_shown(telegram, EVE, "Ana")
        own = await code_shown(telegram, ANA, "Ana")
        shown = await types(tmp_path, own.lower())
        assert (await role_of(gateway, ANA), await role_of(gateway, EVE)) == ("owner", "")
        assert hers not in shown, "no code stands on the screen for somebody to copy"
        assert f"telegram {ANA}) may talk now, and is the owner here." in shown


@pytest.mark.parametrize(
    "lines",
    [("",), ("y", ""), ("yes", ""), ("Ana", ""), (str(EVE), ""), ("AAAAAAAA",) * wizard.CODE_TRIES],
    ids=["enter", "y", "yes", "the name", "the id", "wrong codes"],
)
async def test_setup_lets_nobody_in_by_anything_but_the_code(
    start: Start, telegram: FakeTelegram, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    async with setting_up(start, tmp_path) as gateway:
        await code_shown(telegram, EVE, "Ana")
        shown = await types(tmp_path, *lines)
        assert "Nobody was approved." in shown
        assert await role_of(gateway, EVE) == ""
        assert not gateway.pairings.has_let_in_somebody


@pytest.mark.parametrize("words", [["telegram"], ["telegram", "ABCDEFGH", "--user", "5"]], ids=["neither", "both"])
def test_approving_takes_a_code_or_an_id_and_never_both(words: list[str]) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(GatewayError, match="the code or the id"):
        command.run(parser.parse_args(["approve", *words]))
