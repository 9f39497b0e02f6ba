"""The bridge's contract: every call, against the real process with a scripted socket inside.

One process serves all of these; each test begins with nothing waiting and nothing sent.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import io
import json
import os
import random
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.fakes.files import OPUS, png
from tests.fakes.whatsapp import ANA, ANA_LID, BO, GROUP, ME, MY_LID, FakeWhatsApp
from tests.fakes.whatsapp_bridge import SOURCES, TOKEN, RunningBridge

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.one_python]

Json = dict[str, Any]

ID = "3EB0" + "A1" * 9


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(
    program: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[RunningBridge, FakeWhatsApp]]:
    async with FakeWhatsApp() as whatsapp:
        bridge = RunningBridge(program, tmp_path_factory.mktemp("home"), whatsapp.bridge_environ)
        whatsapp.link_session(bridge.session)
        async with bridge:
            await bridge.becomes("connected")
            yield bridge, whatsapp


@pytest_asyncio.fixture(loop_scope="module")
async def whatsapp(shared: tuple[RunningBridge, FakeWhatsApp]) -> FakeWhatsApp:
    bridge, whatsapp = shared
    await bridge.becomes("connected")
    while items := (await bridge.get("/messages"))["items"]:
        await bridge.post("/ack", cursor=items[-1]["cursor"])
    whatsapp.sent.clear()
    whatsapp.presences.clear()
    return whatsapp


@pytest.fixture
def bridge(shared: tuple[RunningBridge, FakeWhatsApp], whatsapp: FakeWhatsApp) -> RunningBridge:
    return shared[0]


def content(answer: Json) -> bytes:
    return Path(answer["path"]).read_bytes()


# ---- health ----------------------------------------------------------------------------------------------------


async def test_health_is_the_sockets_and_says_who_we_are(bridge: RunningBridge) -> None:
    health = await bridge.get("/health")
    assert (health["status"], health["code"], health["waiting"]) == ("connected", None, 0)
    assert health["me"] == {"id": ME, "lid": MY_LID, "name": "Hermes"}
    assert health["baileys"] == "7.0.0-rc14"
    assert health["since"] > 0


async def test_the_hash_tells_which_sources_run(bridge: RunningBridge) -> None:
    digest = hashlib.sha256()
    names = [*SOURCES.glob("*.mjs"), SOURCES / "package.json", SOURCES / "package-lock.json"]
    for path in sorted(names, key=lambda path: path.name):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    assert (await bridge.get("/health"))["scriptHash"] == digest.hexdigest()


async def test_no_qr_is_shown_to_whoever_is_linked(bridge: RunningBridge) -> None:
    assert (await bridge.get("/qr"))["qr"] is None
    assert (await bridge.ask("POST /pair", {"phone": "4915550000001"})).code == "not_waiting"


# ---- what comes in ---------------------------------------------------------------------------------------------


async def test_a_message_is_handed_out_until_it_is_acked(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    said = whatsapp.user_says("hello")
    for _ in range(2):
        [item] = await bridge.items(1)
    assert {name: item[name] for name in ("kind", "messageId", "chatId", "senderId", "senderPhone", "body")} == {
        "kind": "message",
        "messageId": said.message_id,
        "chatId": ANA,
        "senderId": ANA,
        "senderPhone": "4915550000007",
        "body": "hello",
    }
    assert (item["senderName"], item["isGroup"], item["fromMe"], item["isSelfChat"]) == ("Ana", False, False, False)
    assert (await bridge.get("/health"))["waiting"] == 1
    assert await bridge.post("/ack", cursor=item["cursor"]) == {"success": True, "taken": 1}
    assert await bridge.post("/ack", cursor=item["cursor"]) == {"success": True, "taken": 0}
    await bridge.nothing_after(0)


async def test_whoever_waits_is_answered_when_something_comes(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    waiting = asyncio.create_task(bridge.get("/messages?after=0&wait=20"))
    assert (await bridge.get("/health"))["waiting"] == 0  # the wait has reached the bridge before this
    whatsapp.user_says("hello")
    assert [item["body"] for item in (await waiting)["items"]] == ["hello"]


async def test_the_items_come_in_order_a_hundred_at_once(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    for number in range(1000):
        whatsapp.user_says(f"message {number}")
    items = await bridge.items(1000)
    assert [item["body"] for item in items] == [f"message {number}" for number in range(1000)]
    cursors = [item["cursor"] for item in items]
    assert cursors == list(range(cursors[0], cursors[0] + 1000))
    assert len((await bridge.get(f"/messages?after={cursors[0]}"))["items"]) == 100
    assert (await bridge.post("/ack", cursor=cursors[-2]))["taken"] == 999
    assert [item["body"] for item in await bridge.items(1)] == ["message 999"]


async def test_a_group_message_names_the_group_the_person_and_who_is_meant(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    whatsapp.user_says_in_group("lunch?", to_us=True)
    [first] = await bridge.items(1)
    assert (first["chatId"], first["senderId"], first["mentions"]) == (GROUP, ANA, [ME])
    assert (first["isGroup"], first["body"]) == (True, "@4915550000001 lunch?")
    chat = await bridge.get(f"/chat/{GROUP}")
    assert chat == {"name": "Lunch", "isGroup": True, "participants": [ME, ANA, BO]}
    whatsapp.user_says_in_group("soup", to_us=False)
    assert (await bridge.items(2))[1]["chatName"] == "Lunch"


async def test_who_hides_the_number_is_known_by_it_once_it_was_told(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    lid, phone = "200000000000042@lid", "4915550000042@s.whatsapp.net"
    whatsapp.user_says("who am I?", user=lid)
    whatsapp.user_says("this is me", user=lid, key={"remoteJidAlt": phone, "addressingMode": "lid"})
    whatsapp.user_says("and now?", user=lid)
    items = await bridge.items(3)
    assert [item["senderPhone"] for item in items] == ["", "4915550000042", "4915550000042"]
    assert [item["chatPhone"] for item in items] == ["", "4915550000042", "4915550000042"]
    assert {item["chatId"] for item in items} == {lid}


async def test_notes_to_oneself_and_what_is_typed_on_the_phone_are_told_as_such(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    whatsapp.user_says("note", user=ME, key={"fromMe": True})
    whatsapp.user_says("by lid", user=MY_LID, key={"fromMe": True})
    whatsapp.user_says("to Ana", key={"fromMe": True})
    items = await bridge.items(3)
    assert [item["isSelfChat"] for item in items] == [True, True, False]
    assert [(item["fromMe"], item["fromOwner"], item["senderId"]) for item in items] == [(True, True, ME)] * 3


async def test_a_quote_shows_whose_words_it_answers(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    await bridge.post("/send", chatId=ANA, message="the answer is 42")
    whatsapp.user_answers(whatsapp.sent[0], "why?")
    [item] = await bridge.items(1)
    assert (item["body"], item["quotedText"], item["quotedFromMe"]) == ("why?", "the answer is 42", True)
    assert item["quotedMessageId"] == whatsapp.sent[0].message_id


async def test_edits_and_deletions_name_the_message_they_change(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    said = whatsapp.user_says("helo")
    edited = whatsapp.user_edits(said, "hello")
    whatsapp.user_deletes(said)
    first, edit, deletion = await bridge.items(3)
    assert first["kind"] == "message"
    assert (edit["kind"], edit["body"], edit["targetId"]) == ("edit", "hello", said.message_id)
    assert edit["messageId"] == edited.message_id
    assert (deletion["kind"], deletion["targetId"]) == ("delete", said.message_id)


async def test_an_edit_that_is_sealed_with_the_secret_of_its_message_is_opened(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    said = whatsapp.user_says("helo")
    whatsapp.user_edits_sealed(said, "hello")
    whatsapp.tell_event("lid-mapping.update", {"lid": ANA_LID, "pn": ANA})
    whatsapp.user_edits_sealed(said, "hello!", sender=ANA_LID)
    whatsapp.user_edits_sealed(said, "forged", secret=bytes(32))
    grouped = whatsapp.user_says_in_group("sup", to_us=False)
    whatsapp.user_edits_sealed(grouped, "soup")
    _, *edits, forged, _, last = await bridge.items(6)
    assert [(edit["kind"], edit["targetId"], edit["body"]) for edit in [*edits, last]] == [
        ("edit", said.message_id, "hello"),
        ("edit", said.message_id, "hello!"),
        ("edit", grouped.message_id, "soup"),
    ]
    assert (forged["kind"], forged["body"], forged["nativeType"]) == ("message", "", "secretEncryptedMessage")


async def test_forwards_albums_places_and_contacts_are_told_as_what_they_are(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    whatsapp.user_forwards(["one"])
    whatsapp.user_sends_album([b"\xff\xd8one", b"\xff\xd8two"], "look")
    whatsapp.says({"locationMessage": {"degreesLatitude": 52.5, "degreesLongitude": 13.4, "name": "Berlin"}})
    whatsapp.says({"contactMessage": {"displayName": "Bo", "vcard": "BEGIN:VCARD"}})
    whatsapp.says({"ephemeralMessage": {"message": {"viewOnceMessage": {"message": {"conversation": "gone soon"}}}}})
    forward, one, two, place, contact, wrapped = await bridge.items(6)
    assert forward["isForwarded"]
    assert (one["body"], two["body"]) == ("look", "")
    assert one["albumId"] == two["albumId"] != ""
    assert place["nativeMetadata"] == {"latitude": 52.5, "longitude": 13.4, "name": "Berlin", "address": ""}
    assert (place["nativeType"], place["body"]) == ("locationMessage", "Berlin")
    assert contact["nativeMetadata"]["contacts"] == [{"name": "Bo", "vcard": "BEGIN:VCARD"}]
    assert wrapped["body"] == "gone soon"


async def test_what_is_for_nobody_is_left_out_and_what_is_not_known_is_not(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    whatsapp.something_unknown_happens()
    whatsapp.says({"conversation": "my holiday"}, user=ANA, key={"remoteJid": "status@broadcast", "participant": ANA})
    whatsapp.says({"conversation": "news"}, key={"remoteJid": "120363@newsletter"})
    whatsapp.says({"requestPhoneNumberMessage": {}})
    [item] = await bridge.items(1)
    assert (item["kind"], item["body"], item["nativeType"]) == ("message", "", "requestPhoneNumberMessage")


async def test_what_cannot_be_read_is_handed_on_and_the_next_one_arrives(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    whatsapp.something_broken_arrives()
    whatsapp.user_says("hello")
    broken, item = await bridge.items(2)
    assert (broken["kind"], broken["chatId"]) == ("unreadable", ANA)
    assert ANA in broken["raw"]
    assert item["body"] == "hello"


async def test_a_spool_that_is_emptied_again_and_again_stays_small(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    for _ in range(5):
        for _ in range(60):
            whatsapp.user_says("x" * 100)
        items = await bridge.items(60)
        await bridge.post("/ack", cursor=items[-1]["cursor"])
    assert len((bridge.spool / "items.jsonl").read_text().splitlines()) < 250


async def test_what_a_full_disk_does_not_take_is_kept_and_handed_out_later(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    whatsapp.user_says("first")
    await bridge.items(1)
    with full_disk(bridge, "items.jsonl"):
        whatsapp.user_says("second")
        whatsapp.user_says("third")
        await bridge.has_waiting(3)
        assert [item["body"] for item in (await bridge.get("/messages"))["items"]] == ["first"]
    assert [item["body"] for item in await bridge.items(3)] == ["first", "second", "third"]


async def test_nothing_is_sent_that_could_not_be_remembered(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    await bridge.post("/send", chatId=ANA, message="one")
    body = {"chatId": ANA, "message": "two", "messageId": "3EB0TWO"}
    with full_disk(bridge, "sent.jsonl"):
        refused = await bridge.ask("POST /send", body)
    assert (refused.status, refused.code) == (502, "not_sent")
    assert (await bridge.ask("POST /send", body)).status == 200
    assert [sent.text for sent in whatsapp.sent] == ["one", "two"]


@contextmanager
def full_disk(bridge: RunningBridge, name: str) -> Iterator[None]:
    """No file of the bridge may grow beyond the size of this one."""
    assert bridge.process is not None
    size, endless = (bridge.spool / name).stat().st_size, resource.RLIM_INFINITY
    resource.prlimit(bridge.process.pid, resource.RLIMIT_FSIZE, (size, endless))
    try:
        yield
    finally:
        resource.prlimit(bridge.process.pid, resource.RLIMIT_FSIZE, (endless, endless))


# ---- lost connections ------------------------------------------------------------------------------------------


async def test_every_mishap_of_a_connection_is_mended(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    for code in (408, 428, 500, 503, 515, 599):
        said, hellos = f"after {code}", whatsapp.hellos
        whatsapp.close_next_with(code)  # and once more before it is open
        whatsapp.close_with(code)
        whatsapp.user_says(said)
        await whatsapp.wait_for(lambda hellos=hellos: whatsapp.hellos == hellos + 2)  # type: ignore[misc]
        assert (await bridge.becomes("connected"))["code"] is None
        [item] = await bridge.items(1)
        assert item["body"] == said
        await bridge.post("/ack", cursor=item["cursor"])


async def test_during_an_outage_sends_are_refused_and_items_can_be_read(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    whatsapp.user_says("before")
    await bridge.items(1)
    await whatsapp.stop()
    assert (await bridge.becomes("disconnected"))["code"] in (408, 428)
    for call, body in {
        "POST /send": {"chatId": ANA, "message": "hi"},
        "POST /send-poll": {"chatId": ANA, "question": "?", "options": ["a", "b"]},
        "POST /typing": {"chatId": ANA},
        "POST /read": {"chatId": ANA, "messageIds": ["X"]},
        "POST /delete": {"chatId": ANA, "messageId": "X"},
        "POST /logout": {},
    }.items():
        answer = await bridge.ask(call, body)
        assert (answer.status, answer.code) == (503, "not_connected"), call
    assert [item["body"] for item in await bridge.items(1)] == ["before"]
    whatsapp.user_says("meanwhile")
    await whatsapp.start()
    await bridge.becomes("connected")
    assert [item["body"] for item in await bridge.items(2)] == ["before", "meanwhile"]


async def test_what_the_library_had_only_collected_when_the_connection_broke_is_not_lost(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    whatsapp.is_syncing = True
    whatsapp.close_with(428)
    for number in range(3):
        whatsapp.user_says(f"offline {number}")
    await whatsapp.wait_for(lambda: whatsapp.kept == 0)  # WhatsApp believes that we have them
    whatsapp.is_syncing = False
    whatsapp.drop_connection()
    assert [item["body"] for item in await bridge.items(3)] == ["offline 0", "offline 1", "offline 2"]


async def test_a_message_whose_fate_is_unknown_goes_out_again_under_its_id_and_is_shown_once(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    hold = whatsapp.hold_sends()
    body = {"chatId": ANA, "message": "hello", "messageId": "3EB0FATE"}
    sending = asyncio.create_task(bridge.ask("POST /send", body))
    await hold.reached()
    whatsapp.drop_connection()
    lost = await sending
    assert (lost.status, lost.code) == (504, "outcome_unknown")
    whatsapp.release_sends()
    await bridge.becomes("connected")
    for _ in range(2):
        assert (await bridge.ask("POST /send", body)).body == {"success": True, "messageId": "3EB0FATE"}
    assert (len(whatsapp.sent), whatsapp.taken["3EB0FATE"]) == (1, 2)


# ---- files -----------------------------------------------------------------------------------------------------


async def test_a_file_is_fetched_when_it_is_asked_for_even_after_the_ack(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    data = os.urandom(300_000)
    whatsapp.user_sends(data, "holiday.txt", "look")
    [item] = await bridge.items(1)
    assert (item["hasMedia"], item["mediaType"], item["fileName"]) == (True, "document", "holiday.txt")
    assert (item["body"], item["size"], item["mime"]) == ("look", 300_000, "text/plain")
    await bridge.post("/ack", cursor=item["cursor"])
    wanted = {"chatId": item["chatId"], "messageId": item["messageId"]}
    answers = [await bridge.post("/media", **wanted) for _ in range(2)]
    assert [content(answer) == data for answer in answers] == [True, True]
    assert answers[0]["path"] != answers[1]["path"]
    assert (answers[0]["size"], answers[0]["mime"]) == (300_000, "text/plain")
    assert Path(answers[0]["path"]).parent == bridge.home / "media"


async def test_a_voice_message_and_a_picture_are_what_they_are(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    whatsapp.user_speaks(OPUS)
    whatsapp.user_shows(png())
    voice, picture = await bridge.items(2)
    assert (voice["mediaType"], voice["voice"], voice["seconds"]) == ("audio", True, 2)
    assert (picture["mediaType"], picture["voice"]) == ("image", False)
    for item, data in ((voice, OPUS), (picture, png())):
        answer = await bridge.post("/media", chatId=item["chatId"], messageId=item["messageId"])
        assert content(answer) == data


async def test_a_file_that_whatsapp_deleted_is_asked_for_again_or_told_as_gone(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    lost, found = whatsapp.user_shows(png(1)), whatsapp.user_shows(png(2))
    paths = [whatsapp.path_of(said) for said in (lost, found)]
    whatsapp.gone_files.update(paths)
    whatsapp.reuploads[found.message_id] = whatsapp.copy_file(paths[1])
    await bridge.items(2)
    gone = await bridge.ask("POST /media", {"chatId": ANA, "messageId": lost.message_id})
    assert (gone.status, gone.code) == (410, "media_gone")
    answer = await bridge.post("/media", chatId=ANA, messageId=found.message_id)
    assert content(answer) == png(2)


async def test_a_file_that_is_none_or_too_large_is_refused(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    text = whatsapp.user_says("only words")
    film = whatsapp.says({"videoMessage": {**whatsapp.keep_file(b"x", "video"), "fileLength": 3 * 2**30}})
    await bridge.items(2)
    for message_id, code in ((text.message_id, "no_media"), (film.message_id, "too_large"), ("NEVER", "media_gone")):
        assert (await bridge.ask("POST /media", {"chatId": ANA, "messageId": message_id})).code == code


# ---- what goes out ---------------------------------------------------------------------------------------------


async def test_a_text_reaches_the_chat_once_however_often_it_is_asked_for(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    body = {"chatId": ANA, "message": "hi *there*", "messageId": ID}
    answers = await asyncio.gather(*[bridge.ask("POST /send", body) for _ in range(3)])
    answers.append(await bridge.ask("POST /send", body))
    assert [(answer.status, answer.body) for answer in answers] == [(200, {"success": True, "messageId": ID})] * 4
    assert [(sent.chat, sent.text, sent.message_id) for sent in whatsapp.sent] == [(ANA, "hi *there*", ID)]
    assert whatsapp.taken[ID] == 1


async def test_without_an_id_each_send_is_a_new_message(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    answers = [await bridge.post("/send", chatId="+4915550000007", message="hi") for _ in range(2)]
    assert len({answer["messageId"] for answer in answers}) == 2
    assert [(sent.chat, sent.text) for sent in whatsapp.sent] == [(ANA, "hi")] * 2


async def test_a_reply_quotes_what_it_answers_and_mentions_whom_it_means(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    said = whatsapp.user_says_in_group("soup or salad?", to_us=True)
    await bridge.items(1)
    await bridge.post("/send", chatId=GROUP, message="@4915550000007 soup", replyTo=said.message_id, mentions=[ANA])
    own = (await bridge.post("/send", chatId=GROUP, message="or both", replyTo=whatsapp.sent[0].message_id))[
        "messageId"
    ]
    assert [sent.reply_to for sent in whatsapp.sent] == [said.message_id, whatsapp.sent[0].message_id]
    assert whatsapp.sent[1].message_id == own
    assert whatsapp.contexts[whatsapp.sent[0].message_id]["mentionedJid"] == [ANA]
    assert whatsapp.contexts[whatsapp.sent[0].message_id]["participant"] == ANA


async def test_a_reply_to_what_is_no_longer_known_is_said_without_a_quote(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    await bridge.post("/send", chatId=ANA, message="still here", replyTo="3A00LONGAGO")
    assert [(sent.text, sent.reply_to) for sent in whatsapp.sent] == [("still here", "")]


async def test_a_message_of_ours_is_edited_and_deleted_in_place(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    message_id = (await bridge.post("/send", chatId=ANA, message="thinking"))["messageId"]
    assert await bridge.post("/edit", chatId=ANA, messageId=message_id, message="done") == {
        "success": True,
        "messageId": message_id,
    }
    assert [(sent.text, sent.edits) for sent in whatsapp.sent] == [("done", ["thinking"])]
    await bridge.post("/delete", chatId=ANA, messageId=message_id)
    assert whatsapp.sent == []


async def test_a_message_that_is_not_remembered_cannot_be_edited(bridge: RunningBridge) -> None:
    late = await bridge.ask("POST /edit", {"chatId": ANA, "messageId": "3EB0LONGAGO", "message": "done"})
    assert (late.status, late.code) == (409, "too_old")


async def test_files_go_out_as_they_are(bridge: RunningBridge, whatsapp: FakeWhatsApp, tmp_path: Path) -> None:
    report = tmp_path / "report é.pdf"
    report.write_bytes(os.urandom(100_000))
    (tmp_path / "memo.ogg").write_bytes(OPUS)
    (tmp_path / "photo.png").write_bytes(png())
    media: list[Json] = [
        {"filePath": str(report), "mediaType": "document", "caption": "the report", "mime": "application/pdf"},
        {"filePath": str(tmp_path / "memo.ogg"), "mediaType": "audio", "voice": True},
        {"filePath": str(tmp_path / "photo.png"), "mediaType": "image", "caption": "me", "mime": "image/png"},
    ]
    for number, file in enumerate(media):
        for _ in range(2):  # the second sends nothing
            await bridge.post("/send-media", chatId=ANA, messageId=f"{ID[:-1]}{number + 5}", **file)
    document, voice, picture = whatsapp.sent
    assert (document.file, document.file_name, document.text) == (report.read_bytes(), "report é.pdf", "the report")
    assert (voice.file, voice.is_voice) == (OPUS, True)
    assert (picture.file, picture.text, picture.is_voice) == (png(), "me", False)


async def test_a_file_that_cannot_go_out_is_refused_before_anything_is_sent(
    bridge: RunningBridge, whatsapp: FakeWhatsApp, tmp_path: Path
) -> None:
    film = tmp_path / "film.mp4"
    with film.open("wb") as file:
        file.truncate(17 * 2**20)
    asked = [
        (str(tmp_path / "gone.pdf"), "document", 422, "no_such_file"),
        (str(tmp_path), "document", 422, "no_such_file"),
        (str(film), "video", 413, "too_large"),
        ("gone.pdf", "document", 400, "bad_request"),
        ("http://127.0.0.1/x", "document", 400, "bad_request"),
        (str(film), "hologram", 400, "bad_request"),
    ]
    for path, kind, status, code in asked:
        answer = await bridge.ask("POST /send-media", {"chatId": ANA, "filePath": path, "mediaType": kind})
        assert (answer.status, answer.code) == (status, code), (path, kind)
    assert whatsapp.sent == []


async def test_votes_in_a_poll_of_ours_are_opened_by_number_and_by_hidden_id(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    options = ["Approve", "Refuse"]
    await bridge.post("/send-poll", chatId=ANA, question="May I?", options=options, messageId=f"{ID[:-1]}9")
    [poll] = whatsapp.sent
    assert (poll.text, [row[0].label for row in poll.buttons]) == ("May I?", options)
    whatsapp.votes(poll, ["Approve"])
    whatsapp.votes(poll, [])
    whatsapp.votes(poll, ["Refuse"], creator=MY_LID)
    whatsapp.tell_event("lid-mapping.update", {"lid": ANA_LID, "pn": ANA})
    whatsapp.votes(poll, ["Refuse"], voter=ANA_LID, creator=MY_LID)
    items = await bridge.items(4)
    assert [(item["kind"], item["pollId"], item["options"]) for item in items] == [
        ("vote", poll.message_id, ["Approve"]),
        ("vote", poll.message_id, []),
        ("vote", poll.message_id, ["Refuse"]),
        ("vote", poll.message_id, ["Refuse"]),
    ]
    assert {item["senderId"] for item in items} == {ANA}


async def test_votes_in_polls_of_others_and_forged_ones_are_nobodys_business(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    await bridge.post("/send-poll", chatId=ANA, question="May I?", options=["Yes", "No"], selectableCount=0)
    [poll] = whatsapp.sent
    whatsapp.votes(poll, ["Yes"], voter=BO)  # sealed by Bo, sent by Ana
    whatsapp.other_poll("3A00ANOTHER", ["Yes", "No"])
    whatsapp.votes(poll, ["Yes"], poll_id="3A00ANOTHER")
    whatsapp.user_says("hello")
    assert [item["body"] for item in await bridge.items(1)] == ["hello"]


async def test_a_place_goes_out(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    await bridge.post("/send-location", chatId=ANA, latitude=52.5, longitude=13.4, name="Berlin")
    assert [sent.text for sent in whatsapp.sent] == ["Berlin"]


async def test_typing_is_shown_and_ends(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    await bridge.post("/typing", chatId=ANA, on=True)
    await bridge.post("/typing", chatId=ANA, on=False)
    await bridge.post("/typing", chatId=ANA)
    assert whatsapp.presences == [("composing", ANA), ("paused", ANA), ("composing", ANA)]


async def test_messages_are_marked_as_read(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    said = whatsapp.user_says_in_group("hello", to_us=False)
    await bridge.items(1)
    await bridge.post("/read", chatId=GROUP, messageIds=[said.message_id])
    assert whatsapp.read_keys[-1] == {"remoteJid": GROUP, "fromMe": False, "id": said.message_id, "participant": ANA}


async def test_a_phone_that_could_not_read_a_message_is_sent_the_same_again(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    message_id = (await bridge.post("/send", chatId=ANA, message="secret plan"))["messageId"]
    again = await whatsapp.retry(message_id)
    assert again is not None
    assert again["extendedTextMessage"]["text"] == "secret plan"
    assert await whatsapp.retry("3EB0NEVER") is None


async def test_somebody_who_is_not_on_whatsapp_is_told_as_such_and_nobody_is_asked_about_twice(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    stranger, friend = "4915559999999@s.whatsapp.net", "4915558888888@s.whatsapp.net"
    whatsapp.strangers.add(stranger)
    refused = await bridge.ask("POST /send", {"chatId": stranger, "message": "hi"})
    assert (refused.status, refused.code) == (404, "no_such_chat")
    writer = "4915557777777@s.whatsapp.net"
    whatsapp.user_says("hello", user=writer)
    await bridge.items(1)
    for chat in (friend, friend, writer):
        await bridge.post("/send", chatId=chat, message="hi")
    assert (whatsapp.asked_for.count(friend), whatsapp.asked_for.count(writer)) == (1, 0)
    assert (await bridge.ask("GET /chat/120363000000000404@g.us")).code == "no_such_chat"


@pytest.mark.parametrize(
    "ack, status, code",
    [(429, 429, "slow_down"), (463, 403, "restricted"), (403, 403, "not_allowed"), (479, 502, "not_sent")],
)
async def test_a_message_that_whatsapp_refuses_is_refused_and_may_be_tried_again(
    bridge: RunningBridge, whatsapp: FakeWhatsApp, ack: int, status: int, code: str
) -> None:
    whatsapp.refuse_next_send(ack)
    body = {"chatId": ANA, "message": "hello", "messageId": f"3EB0REFUSED{ack}"}
    refused = await bridge.ask("POST /send", body)
    assert (refused.status, refused.code) == (status, code)
    if code == "slow_down":
        assert refused.body["retryAfter"] == 60
    assert (await bridge.ask("POST /send", body)).status == 200
    assert len(whatsapp.sent) == 1


async def test_too_many_questions_are_slowed_down(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    whatsapp.refuse_next_call("presence", "rate-overlimit", 429)
    refused = await bridge.ask("POST /typing", {"chatId": ANA})
    assert (refused.status, refused.code) == (429, "slow_down")


# ---- bad callers -----------------------------------------------------------------------------------------------


async def test_without_the_token_nothing_is_told(bridge: RunningBridge) -> None:
    for token in ("", "Bearer", f"Bearer {TOKEN}x", TOKEN, f"Basic {TOKEN}"):
        async with (
            aiohttp.ClientSession(headers={"Authorization": token} if token else {}) as http,
            http.get(f"http://127.0.0.1:{bridge.port}/health") as response,
        ):
            assert (response.status, (await response.json())["code"]) == (401, "wrong_token")


async def test_calls_that_do_not_exist_are_refused(bridge: RunningBridge) -> None:
    for call in ("GET /", "GET /send", "POST /health", "DELETE /messages", "GET /chat", "POST /send/more"):
        assert (await bridge.ask(call)).status == 404
    assert (await bridge.ask("GET /chat/%E0%A4%A")).status == 400


async def test_five_hundred_malformed_bodies_are_refused_and_the_next_one_is_taken(
    bridge: RunningBridge, whatsapp: FakeWhatsApp
) -> None:
    chance = random.Random(7)
    paths = [
        "send",
        "send-media",
        "send-poll",
        "send-location",
        "edit",
        "delete",
        "typing",
        "read",
        "media",
        "ack",
        "pair",
    ]
    for _ in range(50):
        asked = [(f"POST /{chance.choice(paths)}", malformed(chance)) for _ in range(10)]
        answers = await asyncio.gather(*[bridge.ask(call, data=body) for call, body in asked])
        for answer, question in zip(answers, asked, strict=True):
            assert (answer.status, answer.code) == (400, "bad_request"), question
    assert whatsapp.sent == []
    await bridge.post("/send", chatId=ANA, message="well formed")


def malformed(chance: random.Random) -> bytes:
    """A body in which no call finds what it needs: broken JSON, or every field of a wrong kind."""
    wrong: list[Any] = [None, [], {}, -1, 1.5, "", " ", "x" * 70_000, [1], [None], {"a": 1}, "\u0000", "ß@g.us"]
    names = ["chatId", "message", "messageId", "messageIds", "question", "options", "cursor", "phone", "filePath", "on"]
    match chance.randrange(4):
        case 0:
            return os.urandom(chance.randrange(1, 200))
        case 1:
            return chance.choice([b"[]", b"null", b'"text"', b"7", b"{", b'{"chatId":', b"\xff\xfe", b"true"])
        case _:
            return json.dumps({name: chance.choice(wrong) for name in names}).encode()


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


async def test_a_body_that_is_far_too_large_is_refused(bridge: RunningBridge) -> None:
    answer = await bridge.ask("POST /send", data=io.BytesIO(b"x" * (2 * 1024 * 1024)))
    assert (answer.status, answer.code) == (400, "bad_request")


# ---- the end ---------------------------------------------------------------------------------------------------


async def test_a_client_that_took_over_is_not_fought(bridge: RunningBridge, whatsapp: FakeWhatsApp) -> None:
    whatsapp.close_with(440)
    assert (await bridge.becomes("replaced"))["code"] == 440
    hellos = whatsapp.hellos
    assert (await bridge.get("/health?not=replaced&wait=1"))["status"] == "replaced"
    assert whatsapp.hellos == hellos
    assert (bridge.session / "creds.json").exists()
