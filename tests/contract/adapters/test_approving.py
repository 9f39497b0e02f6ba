"""On every platform with buttons: who was asked clicks and it counts; somebody else clicks and it does not.

The click goes the whole way: the platform's fake, its adapter, the stored approval. Nothing on it is parsed again:
neither the kind of the chat nor a session key decides, only who pressed and which approval is meant.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.approval import button_data, read_button
from hermes.core.messages import Button, OutboundMessage, Press
from hermes.core.roles import PersonRole
from hermes.services.approvals import Answered, AnswerOutcome, Approvals
from hermes.services.clock import SystemClock
from hermes.store import approvals, people
from hermes.store.approvals import Question
from hermes.store.db import Database
from hermes.store.open import open_database
from tests.contract.adapters.conftest import Inbox, receiving
from tests.fakes.server import FakeServer

FAR = 4e9


async def asked_of(db: Database, inbox: Inbox, server: FakeServer) -> Question:
    """The person who wrote is known, and something was asked of them."""
    asker = await inbox.message()
    await db.write(
        people.ensure,
        "p_asker",
        platform=server.platform,
        user_id=asker.sender_id,
        name="Ana",
        role=PersonRole.USER.value,
        now=1.0,
    )
    question = Question("ap_1", "K7QP2M", "p_asker", False, "May I?", FAR)
    await db.write(approvals.ask, question, lane=str(asker.session_key), turn_id="t_1", tool_call_id="c_1", now=1.0)
    return question


async def answer(db: Database, press: Press, server: FakeServer) -> Answered:
    pressed = read_button(press.data)
    assert pressed is not None
    return await Approvals(db, SystemClock()).answer(
        pressed.approval_id, allow=pressed.allow, platform=server.platform, sender_id=press.sender_id
    )


@pytest.mark.plays("drop")
@pytest.mark.parametrize("reconnects", [False, True], ids=["at once", "after a reconnect"])
async def test_the_asked_person_clicks_and_it_is_resolved_another_clicks_and_is_refused(
    server: FakeServer, inbox: Inbox, tmp_path: Path, reconnects: bool
) -> None:
    if not server.capabilities.buttons:
        pytest.skip(f"{server.platform} has no buttons")
    db = await open_database(tmp_path / "state.db")
    try:
        async with server.adapter() as adapter, receiving(adapter, inbox):
            server.user_says("do it")
            question = await asked_of(db, inbox, server)
            yes = Button("Approve", button_data(question.id, allow=True))
            await adapter.send(OutboundMessage(server.target(), "May I?", buttons=((yes,),)))
            if reconnects:
                server.drop_connection()
        async with server.adapter() as adapter, receiving(adapter, inbox):
            server.user_presses(server.sent[-1], "Approve", user=8, name="Bo")
            others = await inbox.press()
            assert (await answer(db, others, server)).answer is AnswerOutcome.NOT_YOURS
            server.user_presses(server.sent[-1], "Approve")
            own = await inbox.press()
            assert (await answer(db, own, server)).answer is AnswerOutcome.TAKEN
            assert own.sender_id != others.sender_id
    finally:
        await db.close()
