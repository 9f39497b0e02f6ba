"""Whatever WhatsApp delivers, the bridge goes on and the neighbours arrive."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from pathlib import Path
from typing import Any

from tests.fakes.whatsapp import ANA, GROUP, ME, FakeWhatsApp
from tests.fakes.whatsapp_bridge import RunningBridge

FUZZ = Path(__file__).with_name("fuzz_items.mjs")
Json = dict[str, Any]


async def test_ten_thousand_mutated_messages_become_items_or_are_told_as_unreadable(program: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        "node", str(FUZZ), str(program), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(20):
        printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    outcome = json.loads(printed)
    assert outcome["wrong"] == []
    assert sum(outcome[name] for name in ("items", "nothing", "unreadable")) == 10_000
    assert min(outcome[name] for name in ("items", "nothing", "unreadable")) > 500
    assert outcome["codes"] == {
        "401": "logged_out",
        "403": "logged_out",
        "408": "later",
        "411": "logged_out",
        "428": "later",
        "440": "replaced",
        "500": "later",
        "503": "later",
        "515": "at_once",
    }
    assert outcome["pauses"] == [
        [1000, 2000],
        [2000, 4000],
        [4000, 8000],
        [30000, 60000],
        [30000, 60000],
        [30000, 60000],
    ]
    for told in outcome["noProxies"]:
        assert told.startswith("HERMES_BRIDGE_PROXY")
        assert "secret" not in told
    # The library as it is: its events pass where we listen before it collects them.
    assert outcome["library"] == {"seen": ["3A01"], "handed": [], "canHearAcks": True}


async def test_five_hundred_mutated_events_cost_no_neighbour(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    chance = random.Random(11)
    expected = []
    for number in range(500):
        message = mutated(chance.choice(SEEDS), chance)
        whatsapp.delivers_raw({"key": {"remoteJid": ANA, "fromMe": False, "id": f"FUZZ{number}"}, **message})
        if number % 10 == 0:
            expected.append(whatsapp.user_says(f"neighbour {number}").message_id)
    whatsapp.user_says("the last")
    found: list[Json] = []
    while not found or found[-1].get("body") != "the last":
        found += await bridge.items(1, after=found[-1]["cursor"] if found else 0)
    assert [item["messageId"] for item in found if str(item.get("body")).startswith("neighbour")] == expected
    assert {item["kind"] for item in found} >= {"message", "unreadable"}
    assert (await bridge.get("/health"))["status"] == "connected"


SEEDS: list[Json] = [
    {"message": {"conversation": "hello"}, "pushName": "Ana", "messageTimestamp": 1760000000},
    {"message": {"extendedTextMessage": {"text": "hi", "contextInfo": {"mentionedJid": [ME], "stanzaId": "X"}}}},
    {"message": {"imageMessage": {"mimetype": "image/png", "caption": "look", "fileLength": 5}}},
    {"message": {"protocolMessage": {"type": 14, "key": {"id": "X"}, "editedMessage": {"conversation": "hey"}}}},
    {"message": {"pollUpdateMessage": {"pollCreationMessageKey": {"id": "X"}, "vote": {"encPayload": "AA=="}}}},
    {"key": {"remoteJid": GROUP, "participant": ANA, "id": "Y"}, "message": {"documentMessage": {"fileName": "a"}}},
]
JUNK: list[Any] = [None, 0, -1, "", "x" * 3000, True, [], {}, [None], {"low": 1}, "@lid", 1e300, "\u0000"]


def mutated(seed: Json, chance: random.Random) -> Json:
    changed = copy.deepcopy(seed)
    for _ in range(chance.randrange(1, 4)):
        place = changed
        while True:
            name = chance.choice(list(place)) if place else "message"
            inner = place.get(name)
            if not isinstance(inner, dict) or not inner or (name != "message" and chance.random() < 0.3):
                break
            place = inner
        if place is not changed or name != "key":
            place[name] = chance.choice(JUNK)
    return changed
