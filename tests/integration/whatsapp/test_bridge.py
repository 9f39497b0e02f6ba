"""The bridge's contract: every call, against the real process with a scripted socket inside."""

from __future__ import annotations

import asyncio

from tests.fakes.whatsapp import ANA, ME, MY_LID, FakeWhatsApp
from tests.fakes.whatsapp_bridge import RunningBridge


async def test_health_is_the_sockets_and_says_who_we_are(bridge: RunningBridge) -> None:
    health = await bridge.get("/health")
    assert (health["status"], health["code"], health["waiting"]) == ("connected", None, 0)
    assert health["me"] == {"id": ME, "lid": MY_LID, "name": "Hermes"}
    assert health["baileys"] == "7.0.0-rc14"
    assert len(health["scriptHash"]) == 64


async def test_a_message_is_handed_out_until_it_is_acked(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    said = whatsapp.user_says("hello")
    for _ in range(2):
        [item] = await bridge.items(1)
        assert (item["messageId"], item["chatId"], item["body"]) == (said.message_id, ANA, "hello")
    assert await bridge.post("/ack", cursor=item["cursor"]) == {"success": True, "taken": 1}
    await bridge.nothing_after(0)


async def test_whoever_waits_is_answered_when_something_comes(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    waiting = asyncio.create_task(bridge.get("/messages?after=0&wait=20"))
    await asyncio.sleep(0.05)
    whatsapp.user_says("hello")
    assert [item["body"] for item in (await waiting)["items"]] == ["hello"]


async def test_a_text_reaches_the_chat(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    answer = await bridge.post("/send", chatId=ANA, message="hi *there*", messageId="3EB0" + "A" * 18)
    assert answer == {"success": True, "messageId": "3EB0" + "A" * 18}
    assert [(sent.chat, sent.text, sent.message_id) for sent in whatsapp.sent] == [
        (ANA, "hi *there*", "3EB0" + "A" * 18)
    ]
