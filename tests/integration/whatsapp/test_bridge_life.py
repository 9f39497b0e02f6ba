"""The bridge's life: linked, killed and started again, with nothing lost and nothing said twice."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.whatsapp import ANA, ANA_LID, BO, ME, FakeWhatsApp
from tests.fakes.whatsapp_bridge import TOKEN, RunningBridge

pytestmark = pytest.mark.one_python

ID = "3EB0" + "B2" * 9

Json = dict[str, Any]


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def bodies(items: list[Json]) -> list[str]:
    return [item["body"] for item in items]


async def test_a_device_is_linked_hears_no_old_news_and_is_removed_again(
    program: Path, whatsapp: FakeWhatsApp, tmp_path: Path
) -> None:
    bridge = RunningBridge(program, tmp_path, whatsapp.bridge_environ)
    async with bridge:
        await links_after_a_first_try_that_was_given_up(bridge, whatsapp)
        whatsapp.history(["from last year", "from yesterday"])
        whatsapp.user_says("news")
        [news] = await bridge.items(1)
        assert (news["body"], news["chatName"]) == ("news", "Ana Lee")  # names are taken from history
        keys = keys_in(bridge.session / "creds.json")
    assert {path.stat().st_mode & 0o777 for path in bridge.session.iterdir()} == {0o600}
    assert bridge.session.stat().st_mode & 0o777 == 0o700
    whatsapp.user_says("while you were away")
    whatsapp.user_says("from my other number", user=ANA_LID)
    async with bridge:
        items = await bridge.items(3)
        assert bodies(items) == ["news", "while you were away", "from my other number"]
        assert items[2]["senderPhone"] == ANA.partition("@")[0]  # numbers are taken from history too
        await bridge.becomes("connected")
        await is_removed(bridge, whatsapp)
    async with bridge:
        await bridge.becomes("waiting_for_scan")
    await prints_nothing_secret(bridge, [*keys, *whatsapp.qr_codes, "news", "away", ANA.partition("@")[0]])


@pytest.mark.parametrize(
    "linked, said", [(86_400, 0), (-7200, -86_400)], ids=["it was mended since", "it is still wrong"]
)
async def test_a_clock_that_was_ahead_when_the_device_was_linked_costs_nothing_that_is_said_later(
    stopped: RunningBridge, whatsapp: FakeWhatsApp, linked: int, said: int
) -> None:
    """When it was linked and when something was said, in seconds from now."""
    now = int(time.time())
    (stopped.session / "linked.json").write_text(json.dumps({"at": now + linked}))
    whatsapp.user_says("while you were away", messageTimestamp=now + said)
    async with stopped as bridge:
        assert bodies(await bridge.items(1)) == ["while you were away"]


async def links_after_a_first_try_that_was_given_up(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    assert (await bridge.becomes("waiting_for_scan"))["me"] is None
    assert await bridge.get("/qr") == {"qr": whatsapp.qr_codes[-1], "n": 1}
    whatsapp.refuses_codes = True
    refused = await bridge.ask("POST /pair", {"phone": "4915550000002"})
    assert (refused.status, refused.code) == (403, "not_allowed")
    whatsapp.refuses_codes = False
    assert await bridge.post("/pair", phone="4915550000001") == {"code": "ABCD-EFGH"}
    whatsapp.close_with(408)  # nobody typed the code in time
    await whatsapp.wait_for(lambda: whatsapp.hellos == 2)
    await bridge.becomes("waiting_for_scan")
    assert await bridge.get("/qr") == {"qr": whatsapp.qr_codes[-1], "n": 2}
    assert (await bridge.ask("POST /send", {"chatId": ANA, "message": "hi"})).code == "not_connected"
    whatsapp.scan(await is_shown_a_code_with_a_new_secret(bridge, whatsapp))
    assert (await bridge.becomes("connected"))["me"]["id"] == ME
    assert (await bridge.get("/qr"))["qr"] is None
    assert whatsapp.hellos == 3  # 515 leads to a new connection at once


async def is_shown_a_code_with_a_new_secret(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> str:
    whatsapp.refresh_registration()
    await whatsapp.wait_for(lambda: bool(whatsapp.nodes))
    [ack] = whatsapp.nodes
    assert (ack["tag"], ack["attrs"]["id"], ack["attrs"]["class"]) == ("ack", "700", "notification")
    whatsapp.renew_qr()  # the library's own next code still has the old secret in it
    async with asyncio.timeout(20):
        while (shown := await bridge.get("/qr"))["n"] < 4:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
    old, new = whatsapp.qr_codes[-1].split(","), shown["qr"].split(",")
    assert new[:3] + new[4:] == old[:3] + old[4:]
    assert len(base64.b64decode(new[3])) == 32
    assert new[3] != old[3]
    return str(shown["qr"])


async def is_removed(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    devices = len(whatsapp.devices)
    await bridge.post("/logout")
    health = await bridge.becomes("logged_out")
    assert (health["code"], health["me"]) == (401, None)
    assert len(whatsapp.devices) == devices - 1
    [aside] = bridge.home.glob("session.old-*")
    assert json.loads((aside / "creds.json").read_text())["me"]["id"] == ME
    assert (await bridge.ask("POST /send", {"chatId": ANA, "message": "hi"})).code == "not_connected"


async def prints_nothing_secret(bridge: RunningBridge, secrets: list[str]) -> None:
    printed = (await bridge.printed()).decode()
    for line in printed.splitlines():
        assert {"level", "text"} <= json.loads(line).keys()
    assert "This device was linked" in printed
    assert len(secrets) > 10
    assert not [secret for secret in [*secrets, TOKEN, str(bridge.home)] if secret in printed]


def keys_in(creds: Path) -> list[str]:
    """Everything in the session that is made of bytes."""
    found: list[str] = []

    def look(value: Json) -> Json:
        if value.get("type") == "Buffer":
            found.append(value["data"])
        return value

    json.loads(creds.read_text(), object_hook=look)
    return found


async def test_items_sends_polls_and_files_are_known_to_the_next_bridge(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    await bridge.post("/send", chatId=ANA, message="hello", messageId=ID)
    poll_id = (await bridge.post("/send-poll", chatId=ANA, question="May I?", options=["Yes", "No"]))["messageId"]
    picture = whatsapp.user_shows(b"\xff\xd8picture")
    whatsapp.user_says("two")
    items = await bridge.items(2)
    await bridge.post("/ack", cursor=items[0]["cursor"])

    following = RunningBridge(bridge.program, bridge.home, bridge.environ)
    starting = asyncio.create_task(following.start())  # it waits until the folder is free
    await asyncio.sleep(0)
    await bridge.kill()
    await starting
    async with following.running():
        await following.becomes("connected")
        assert await following.items(1) == items[1:]
        await following.post("/send", chatId=ANA, message="hello", messageId=ID)
        assert whatsapp.taken[ID] == 1
        whatsapp.votes(whatsapp.sent[1], ["Yes"])
        vote = (await following.items(2))[1]
        assert (vote["pollId"], vote["options"], vote["cursor"]) == (poll_id, ["Yes"], items[1]["cursor"] + 1)
        assert (await whatsapp.retry(ID) or {})["extendedTextMessage"]["text"] == "hello"
        fetched = await following.post("/media", chatId=ANA, messageId=picture.message_id)
        assert fetched["size"] == len(b"\xff\xd8picture")


async def test_another_number_in_the_place_of_the_first_gets_nothing_that_was_said_to_it(
    stopped: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    async with stopped as bridge:
        whatsapp.user_says("to the first number")
        [item] = await bridge.items(1)
    whatsapp.link_session(stopped.session, me=BO)
    async with stopped as bridge:
        assert (await bridge.becomes("connected"))["waiting"] == 0
        await bridge.nothing_after(0)
        whatsapp.user_says("to the second number")
        [following] = await bridge.items(1)
        assert (following["body"], following["cursor"]) == ("to the second number", item["cursor"] + 1)
    [aside] = stopped.spool.glob("items.old-*.jsonl")
    assert bodies(lines(aside)) == ["to the first number"]
    async with stopped as bridge:
        assert bodies(await bridge.items(1)) == ["to the second number"]


async def test_lines_that_a_crash_cut_short_are_set_aside_and_the_rest_is_there(
    stopped: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    stopped.spool.mkdir()
    spool, sent = stopped.spool / "items.jsonl", stopped.spool / "sent.jsonl"
    spool.write_text('{"acked": 40}\n{"cursor": 39}\n{"cursor": 41, "body": "whole"}\ngarbage\n{"cursor": 42, "bo')
    an_hour_ago = '{"key": "3EB0OLD", "state": "sent", "chatId": "x", "at": 1700000000000}'
    sent.write_text(f'{an_hour_ago}\n{{"key": "X", "sta')
    (stopped.spool / "people.jsonl").write_text("[1]\nnull\n7\n")
    (stopped.session / "creds.json.new").write_text('{"half"')  # a write that was cut off leaves the old one alone
    async with stopped as bridge:
        await bridge.becomes("connected")
        assert await bridge.items(1) == [{"cursor": 41, "body": "whole"}]
        whatsapp.user_says("after")
        items = await bridge.items(2)
        assert (bodies(items), items[1]["cursor"]) == (["whole", "after"], 42)
        late = await bridge.ask("POST /edit", {"chatId": ANA, "messageId": "3EB0OLD", "message": "x"})
        assert (late.status, late.code) == (409, "too_old")
        assert (bridge.spool / "items.jsonl.damaged").read_text() == 'garbage\n{"cursor": 42, "bo\n'
        assert [line.get("cursor") for line in lines(spool)] == [None, None, 41, 42]
        await ends_on_a_signal(bridge)


async def ends_on_a_signal(bridge: RunningBridge) -> None:
    waiting = asyncio.create_task(bridge.ask("GET /health?not=connected&wait=30"))
    assert bridge.process is not None
    bridge.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        assert await bridge.process.wait() == 0
        with pytest.raises(aiohttp.ClientError):
            await waiting


async def test_killed_in_a_stream_of_messages_it_loses_at_most_the_one_in_its_hands(
    stopped: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    kills, cursor = 2, 0
    said: list[str] = []
    seen: set[str] = set()
    async with stopped as bridge:
        for _ in range(kills):
            said += [whatsapp.user_says("x" * 500).message_id for _ in range(80)]
            items = await bridge.items(10, after=cursor)
            await bridge.kill()  # while the rest comes in
            seen |= {item["messageId"] for item in items}
            cursor = items[-1]["cursor"]
            await bridge.start()
        await bridge.becomes("connected")
        await whatsapp.wait_for(lambda: whatsapp.kept == 0)
        whatsapp.user_says("the last")
        while True:
            batch = await bridge.items(1, after=cursor)
            seen |= {item["messageId"] for item in batch}
            cursor = batch[-1]["cursor"]
            if batch[-1]["body"] == "the last":
                break
    lost = set(said) - seen
    print(f"{len(lost)} of {len(said)} lost in {kills} kills")
    assert len(lost) <= kills


async def test_without_what_it_needs_it_says_so_and_ends(program: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HERMES_BRIDGE_SESSION": "/nonexistent/session"}
    process = await asyncio.create_subprocess_exec(
        "node", str(program / "main.mjs"), env=environ, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(10):
        _, printed = await process.communicate()
    assert process.returncode == 2
    assert json.loads(printed)["text"] == "The bridge cannot start: HERMES_BRIDGE_SPOOL is not set"
