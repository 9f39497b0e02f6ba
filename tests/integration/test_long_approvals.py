"""What did not fit into one message is approved by the last line of its text, through every door, and not else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.approval import button_data, effect_sha256
from hermes.core.errors import GatewayError
from hermes.core.messages import Button
from hermes.core.roles import PersonRole
from hermes.servers.api import approvals as api
from hermes.servers.api.bodies import DecisionBody, decode
from hermes.servers.api.context import Caller
from hermes.servers.api.errors import ApiError
from hermes.services.gateway import Gateway
from hermes.store import approvals
from hermes.store.approvals import Approval
from hermes.store.turns import tool_calls
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.server import Sent
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.test_approval_scopes import command_line
from tests.integration.watching import SECONDS, answered, dangers, make, question, turn_is, until

LONG = "x" * 10_000
ASKS = calls_tools(("danger", {"text": LONG}))


async def asked(gateway: Gateway, telegram: FakeTelegram, model: FakeModel) -> tuple[Approval, Sent, str]:
    """The owner is asked about ten thousand characters: the stored question, its card, the last line of its file."""
    await make(gateway, 7, PersonRole.OWNER)
    model.script([ASKS, "All done."])
    telegram.user_says("do it")
    card = await question(telegram)
    await turn_is(gateway, "waiting")
    [approval] = await gateway.db.read(approvals.pending)
    [file] = [sent for sent in telegram.sent if sent.file]
    return approval, card, file.file.decode().rstrip().splitlines()[-1]


async def test_the_last_line_of_the_file_approves_it(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        approval, card, last = await asked(gateway, telegram, model)
        assert [button.label for row in card.buttons for button in row] == ["Deny"]
        assert LONG in next(sent for sent in telegram.sent if sent.file).file.decode()
        telegram.user_says(last.removeprefix("To approve: ").lower())
        await answered(telegram, "All done.")
        assert (await gateway.db.read(approvals.get, approval.id)) is not None
    assert dangers(tmp_path) == [LONG]
    assert len([sent for sent in telegram.sent if sent.file]) == 1


@pytest.mark.parametrize("said", ["/approve", "/approve {code}", "/approve all", "/approve {code} always", "a button"])
async def test_a_bare_yes_is_refused_with_a_sentence(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, said: str
) -> None:
    async with start() as gateway:
        approval, card, _ = await asked(gateway, telegram, model)
        if said == "a button":  # of a card that was never sent
            card.buttons = ((Button("Approve", button_data(approval.id, allow=True)),),)
            telegram.user_presses(card, "Approve")
            await telegram.wait_for(lambda: bool(telegram.answered_presses), SECONDS)
            told = next(iter(telegram.answered_presses.values()))
        else:
            before = len(telegram.sent)
            telegram.user_says(said.format(code=approval.code))
            await telegram.wait_for(lambda: len(telegram.sent) > before, SECONDS)
            told = telegram.sent[-1].text
        assert "too long" in told
        stored = await gateway.db.read(approvals.get, approval.id)
        assert stored is not None
        assert stored.is_pending
    assert dangers(tmp_path) == []


async def test_no_needs_no_reading(start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path) -> None:
    async with start() as gateway:
        _, card, _ = await asked(gateway, telegram, model)
        telegram.user_presses(card, "Deny")
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == []


async def test_its_file_and_its_code_outlive_a_crash_and_the_file_is_sent_once(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        _, _, last = await asked(gateway, telegram, model)
        await crash(gateway)
    async with start():
        telegram.user_says(last.removeprefix("To approve: "))
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == [LONG]
    assert len([sent for sent in telegram.sent if sent.file]) == 1


async def test_the_command_line_shows_all_of_it_before_it_takes_a_yes(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        approval, _, _ = await asked(gateway, telegram, model)
        [listed] = await command_line(gateway, "approvals.list")
        assert listed["is_long"]
        assert approval.proof not in str(listed)
        for name in (approval.code, approval.id):
            with pytest.raises(GatewayError, match="too long"):
                await command_line(gateway, "approvals.answer", id=name, allow=True)
        told = await command_line(gateway, "approvals.answer", id="all", allow=True)
        assert told["answered"] == []
        assert approval.code in told["text"]
        shown = await command_line(gateway, "approvals.show", id=approval.code)
        assert LONG in shown["text"]
        code = shown["text"].split()[-1]
        assert (await command_line(gateway, "approvals.answer", id=code, allow=True))["answered"] == [approval.code]
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == [LONG]


async def test_the_api_takes_a_yes_only_with_the_name_of_the_effect_that_it_returned(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    key = Caller("admin", PersonRole.OWNER, "admin")
    async with start() as gateway:
        approval, _, _ = await asked(gateway, telegram, model)
        other = effect_sha256("danger", "{}")
        for proof in (None, other, approval.code):
            body = {"decision": "approve", "effect_sha256": proof}
            decision = api.read_decision(decode(body, DecisionBody))
            with pytest.raises(ApiError) as refused:
                await api.answer(gateway, key, approval, decision)
            assert (refused.value.status, refused.value.code) == (409, "approval_not_read")
        call = await gateway.db.read(tool_calls.get, approval.tool_call_id)
        assert call is not None
        seen = await gateway.db.read(api.look, approval.id, key)
        assert seen is not None
        in_list, alone = api.approval_to_dict(seen, key), api.approval_to_dict(seen, key, is_whole=True)
        assert in_list["effect_sha256"] is None or in_list["arguments"] == call.arguments
        assert alone["arguments"] == call.arguments
        yes = decode({"approve": True, "effect_sha256": alone["effect_sha256"]}, DecisionBody)
        await api.answer(gateway, key, approval, api.read_decision(yes))
        await answered(telegram, "All done.")
    assert dangers(tmp_path) == [LONG]


async def test_an_answer_before_the_file_left_takes_the_file_back(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    hold = telegram.hold("sendDocument")
    async with start() as gateway:
        await make(gateway, 7, PersonRole.OWNER)
        model.script([ASKS, "All done."])
        telegram.user_says("do it")
        await hold.reached()
        [approval] = await gateway.db.read(approvals.pending)
        telegram.user_says(f"/deny {approval.code}")

        async def is_denied() -> bool:
            stored = await gateway.db.read(approvals.get, approval.id)
            return stored is not None and not stored.is_pending

        await until(is_denied)
        telegram.release_all()
        await answered(telegram, "All done.")
    assert not [sent for sent in telegram.sent if sent.buttons], "nobody is asked what is answered"
