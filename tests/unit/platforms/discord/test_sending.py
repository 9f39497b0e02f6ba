"""What goes out to Discord, and every refusal that the protocol sheet tells of: who acts, and nothing is made worse."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.core.errors import CredentialsError, OutcomeUnknownError, RateLimitedError, RejectedError, UnreachableError
from hermes.core.keys import Target
from hermes.core.messages import Attachment, AttachmentKind, Button, OutboundMessage
from hermes.core.ports import Adapter, AnswersPresses, CommandHint, FetchesFiles, SetsCommands, ShowsTyping
from hermes.platforms.discord import api
from hermes.platforms.discord.adapter import DiscordAdapter
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.fakes.discord import GROUP, FakeDiscord
from tests.fakes.files import OPUS

SECONDS = 30
IN_GROUP = Target("discord", GROUP)


@pytest.mark.parametrize(
    "status, code, words",
    [
        (400, 50035, "50035"),
        (400, 50006, "50006"),
        (403, 50013, "permission"),
        (403, 50001, "View Channels"),
        (403, 50007, "direct messages"),
        (404, 10003, "no such channel"),
        (404, 10008, "no such message"),
        (413, 40005, "too large"),
    ],
)
async def test_what_discord_refuses_is_not_tried_again_and_says_why(status: int, code: int, words: str) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.refuse_next("POST messages", status, code, "No")
        with pytest.raises(RejectedError, match=words):
            await adapter.send(saying(discord, "hello"))
        assert discord.counts["POST messages"] == 1


async def test_the_words_of_a_refusal_name_what_is_wrong() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        with pytest.raises(RejectedError, match="2000 or fewer"):
            await adapter.send(saying(discord, "x" * 2001))
        with pytest.raises(RejectedError, match="empty message"):
            await adapter.send(saying(discord, ""))


async def test_a_message_of_somebody_else_and_one_that_is_gone_cannot_be_changed() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        theirs = discord.user_says("mine")
        for id_, words in ((theirs.message_id, "another user"), ("5", "no such message")):
            with pytest.raises(RejectedError, match=words):
                await adapter.send(replace(saying(discord, "two"), replaces=id_))


async def test_a_short_limit_is_waited_for_by_the_sdk_and_a_long_one_is_told() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.limit_next_send(0.1)
        await adapter.send(saying(discord, "hello"))
        assert (len(discord.sent), discord.counts["POST messages"]) == (1, 2)
        discord.limit_next_send(1.5)
        with pytest.raises(RateLimitedError) as limited:
            await adapter.send(saying(discord, "again"))
        assert limited.value.retry_after == 1.5
        assert discord.counts["POST messages"] == 3


async def test_a_bucket_that_is_empty_is_waited_for_before_the_next_call_and_not_after_the_last_one() -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.rates["POST messages"] = (5, 0, 0.8)
        begun = loop.time()
        await adapter.send(saying(discord, "one"))
        shown = loop.time()
        await adapter.send(saying(discord, "two"))
        assert loop.time() - begun > 0.75
        assert loop.time() - shown > 0.1, "the first was shown, so it was told; the second waited"
        assert discord.counts["POST messages"] == 2


async def test_a_bucket_that_stays_empty_is_told_without_asking_discord_once_more() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.rates["POST messages"] = (5, 0, 40.0)
        await adapter.send(saying(discord, "one"))
        with pytest.raises(RateLimitedError) as limited:
            await adapter.send(saying(discord, "two"))
        assert 35 < limited.value.retry_after <= 40
        await adapter.send(OutboundMessage(IN_GROUP, "elsewhere"))
    assert discord.texts() == ["one", "elsewhere"]


async def test_a_long_window_with_places_left_keeps_nobody_waiting() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.rates["POST messages"] = (50, 10, 300.0)
        await asyncio.gather(*(adapter.send(saying(discord, f"{number}")) for number in range(8)))
    assert len(discord.sent) == 8


async def test_a_ban_by_the_proxy_in_front_of_discord_is_a_limit_too() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.refuse_next("POST messages", 429, 0, "banned", headers={"Retry-After": "40"})
        with pytest.raises(RateLimitedError) as limited:
            await adapter.send(saying(discord, "hello"))
    assert limited.value.retry_after == 40


async def test_a_call_given_up_during_a_limit_on_all_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "CALL_SECONDS", 0.2)
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.limit_next("POST messages", 0.9, is_global=True)
        sending = asyncio.create_task(adapter.send(saying(discord, "hello")))
        await discord.wait_for(lambda: discord.counts["POST messages"] == 1)
        sending.cancel()
        await asyncio.wait({sending})
        await adapter.send(saying(discord, "again"))
    assert discord.texts() == ["again"]


@pytest.mark.parametrize("status", [500, 502, 504, 524])
async def test_a_bad_gateway_is_tried_again_by_the_sdk(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: sleep(min(seconds, 0.01)))
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.refuse_next("POST messages", status)
        await adapter.send(replace(saying(discord, "hello"), idempotency_key="ob_1"))
    assert discord.texts() == ["hello"]
    assert discord.counts["POST messages"] == 2


async def test_discords_own_failure_leaves_a_send_unknown_and_an_edit_to_be_repeated() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        receipt = await adapter.send(saying(discord, "one"))
        discord.refuse_next("POST messages", 503)
        with pytest.raises(OutcomeUnknownError):
            await adapter.send(saying(discord, "two"))
        discord.refuse_next("PATCH message", 503)
        with pytest.raises(UnreachableError):
            await adapter.send(replace(saying(discord, "two"), replaces=receipt.message_id))


async def test_a_send_that_takes_too_long_is_unknown_and_its_repeat_shows_it_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = OutboundMessage(Target("discord", "900000007"), "hello", idempotency_key="ob_" + "1" * 40)
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        hold = discord.hold_sends()
        sending = asyncio.create_task(adapter.send(message))
        await hold.reached()
        discord.drop_connection()
        with pytest.raises(OutcomeUnknownError):
            await sending
        discord.release_all()
        receipt = await adapter.send(replace(message, is_repeat=True))
    assert [(sent.text, sent.message_id) for sent in discord.sent] == [("hello", receipt.message_id)]
    nonces = {body["nonce"] for body in discord.called("POST messages")}
    assert len(nonces) == 1
    assert len(nonces.pop()) <= 25


async def test_a_repeat_that_comes_too_late_for_its_nonce_is_marked() -> None:
    message = OutboundMessage(Target("discord", "900000007"), "hello", idempotency_key="ob_1")
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        await adapter.send(message)
        discord._nonces.clear()
        await adapter.send(replace(message, is_repeat=True))
    assert discord.texts() == ["hello", "↻ hello"]


async def test_nobody_is_called_by_everyone_or_by_a_role() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        await adapter.send(saying(discord, "@everyone <@&950> <@7>"))
    assert discord.called("POST messages")[0]["allowed_mentions"] == {"parse": ["users"], "replied_user": True}


async def test_buttons_fit_and_leave_with_the_answer() -> None:
    buttons = (tuple(Button(f"{number} " + "long " * 30, f"d{number}") for number in range(30)),)
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        receipt = await adapter.send(replace(saying(discord, "May I?"), buttons=buttons))
        assert [len(row) for row in discord.sent[0].buttons] == [5] * 5
        await adapter.send(replace(saying(discord, "Allowed."), replaces=receipt.message_id))
    assert (discord.sent[0].text, discord.sent[0].buttons) == ("Allowed.", ())


async def test_an_answer_to_what_is_gone_is_said_without_pointing_at_it() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        await adapter.send(replace(saying(discord, "hello"), reply_to="12345"))
    assert (discord.sent[0].text, discord.sent[0].reply_to) == ("hello", "")


# Threads


async def asked(discord: FakeDiscord, adapter: Adapter, inbox: Inbox) -> Target:
    discord.user_says_in_group("what is\nthis?", to_us=True)
    async with receiving(adapter, inbox):
        return (await inbox.message()).session_key.target


async def test_an_answer_in_a_channel_opens_a_thread_named_after_its_question(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        target = await asked(discord, adapter, inbox)
        assert isinstance(adapter, ShowsTyping)
        await adapter.typing(target)
        await adapter.send(OutboundMessage(target, "this", reply_to=target.thread))
        await adapter.send(OutboundMessage(target, "that"))
    assert discord.channels[target.thread]["name"] == "what is this?"
    assert [(sent.thread, sent.reply_to) for sent in discord.sent] == [(target.thread, "")] * 2
    assert (discord.counts["POST threads"], discord.typings) == (1, 1)


async def test_whatever_is_shown_at_once_opens_one_thread(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        target = await asked(discord, adapter, inbox)
        assert isinstance(adapter, ShowsTyping)
        await asyncio.gather(adapter.typing(target), adapter.send(OutboundMessage(target, "this")))
    assert (discord.counts["POST threads"], discord.sent[0].thread) == (1, target.thread)


async def test_after_a_restart_the_thread_of_a_question_is_opened_all_the_same(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord:
        async with discord.adapter() as adapter:
            target = await asked(discord, adapter, inbox)
        async with discord.adapter() as another:
            await another.send(OutboundMessage(target, "this"))
    assert discord.sent[0].thread == target.thread


async def test_two_who_open_the_same_thread_both_write_there(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        target = await asked(discord, adapter, inbox)
        async with discord.adapter() as another:
            await another.send(OutboundMessage(target, "first"))
        await adapter.send(OutboundMessage(target, "second"))
    assert {sent.thread for sent in discord.sent} == {target.thread}


async def test_where_no_thread_may_be_opened_it_is_said_in_the_channel(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        target = await asked(discord, adapter, inbox)
        discord.may_open_threads = False
        receipt = await adapter.send(OutboundMessage(target, "this"))
        await adapter.send(OutboundMessage(target, "that", replaces=receipt.message_id))
    assert [(sent.chat, sent.thread, sent.text) for sent in discord.sent] == [(GROUP, "", "that")]
    assert discord.counts["POST threads"] == 1


async def test_after_a_restart_too_it_is_said_in_the_channel_where_no_thread_may_be_opened(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord:
        async with discord.adapter() as adapter:
            target = await asked(discord, adapter, inbox)
        discord.may_open_threads = False
        async with discord.adapter() as another:
            await another.send(OutboundMessage(target, "this"))
    assert [(sent.chat, sent.thread) for sent in discord.sent] == [(GROUP, "")]


@pytest.mark.parametrize("may_open", [True, False])
async def test_what_was_to_be_said_in_a_thread_that_is_gone_is_not_said_to_everybody(may_open: bool) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        thread = discord.user_opens_thread("between us")
        target = Target("discord", GROUP, thread)
        await adapter.send(OutboundMessage(target, "a secret"))
        discord.admin_deletes(thread)
        discord.may_open_threads = may_open
        with pytest.raises(RejectedError, match="10003"):
            await adapter.send(OutboundMessage(target, "another secret"))
        assert isinstance(adapter, ShowsTyping)
        await adapter.typing(target)
    assert [(sent.thread, sent.text) for sent in discord.sent] == [(thread, "a secret")]
    assert (discord.typings, discord.counts["POST threads"]) == (0, 0)


async def test_a_thread_that_opens_slowly_keeps_no_other_thread_waiting(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        other = discord.user_opens_thread("another")
        target = await asked(discord, adapter, inbox)
        hold = discord.hold("POST threads")
        slow = asyncio.create_task(adapter.send(OutboundMessage(target, "slow")))
        await hold.reached()
        await adapter.send(OutboundMessage(Target("discord", GROUP, other), "quick"))
        hold.release()
        await slow
    assert [sent.text for sent in discord.sent] == ["quick", "slow"]


@pytest.mark.parametrize("chat", ["nonsense", "", "7/messages", "1" * 30])
async def test_what_is_no_id_is_no_place_and_discord_is_not_asked(chat: str) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        with pytest.raises(RejectedError, match="no id of a channel"):
            await adapter.send(OutboundMessage(Target("discord", chat), "hello"))
    assert not discord.calls


async def test_a_press_that_became_too_old_is_no_sign_of_a_wrong_token() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.refuse_next("POST followup", 401, 50027, "Invalid Webhook Token")
        assert isinstance(adapter, AnswersPresses)
        await adapter.answer_press("902/old-token", "Done.")
    assert discord.counts["POST followup"] == 1


async def test_where_it_may_not_write_it_cannot_be_seen_typing() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.silent.add(GROUP)
        assert isinstance(adapter, ShowsTyping)
        await adapter.typing(IN_GROUP)
    assert discord.typings == 0


# Files


def sound(folder: Path, data: bytes) -> Attachment:
    path = folder / "memo.ogg"
    path.write_bytes(data)
    return Attachment(AttachmentKind.VOICE, path=str(path), name=path.name, mime="audio/ogg")


async def test_where_it_may_not_speak_a_voice_message_is_a_file(tmp_path: Path) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.is_shy = True
        await adapter.send(replace(saying(discord, ""), attachment=sound(tmp_path, OPUS)))
    assert [(sent.file, sent.is_voice, sent.file_name) for sent in discord.sent] == [(OPUS, False, "memo.ogg")]


async def test_speech_with_words_or_in_another_format_is_a_file(tmp_path: Path) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        await adapter.send(replace(saying(discord, "listen"), attachment=sound(tmp_path, OPUS)))
        await adapter.send(replace(saying(discord, ""), attachment=sound(tmp_path, b"ID3 an mp3")))
    assert [sent.is_voice for sent in discord.sent] == [False, False]


async def test_a_file_is_sent_whole_after_a_bad_gateway_and_its_repeat_shows_it_once(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"words" * 1000)
    file = Attachment(AttachmentKind.DOCUMENT, path=str(path), name="a.txt")
    message = OutboundMessage(IN_GROUP, "look", attachment=file, idempotency_key="ob_1")
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.refuse_next("POST messages", 502)
        first = await adapter.send(message)
        assert await adapter.send(replace(message, is_repeat=True)) == first
        with pytest.raises(RejectedError, match="in place"):
            await adapter.send(replace(message, replaces=first.message_id))
    assert [(sent.file, sent.text) for sent in discord.sent] == [(b"words" * 1000, "look")]


async def test_an_address_that_became_too_old_is_renewed(inbox: Inbox, tmp_path: Path) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.user_sends(b"words", "notes.txt")
        async with receiving(adapter, inbox):
            [attachment] = (await inbox.message()).attachments
        discord.stale_files = True
        assert isinstance(adapter, FetchesFiles)
        assert (await adapter.fetch(attachment, tmp_path)).read_bytes() == b"words"
        discord.refuse_next("POST refresh-urls", 400, 50035)
        with pytest.raises(RejectedError):
            await adapter.fetch(attachment, tmp_path)
        away = replace(attachment, file_id="https://evil.example/x")
        with pytest.raises(RejectedError, match="outside of Discord"):
            await adapter.fetch(away, tmp_path)


# The menu


async def test_a_menu_is_written_only_when_it_differs() -> None:
    hints = [CommandHint("new", "Start afresh"), CommandHint("stop", "Stop")]
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        assert isinstance(adapter, SetsCommands)
        for _ in range(3):
            await adapter.set_commands(hints)
        await adapter.set_commands(hints[::-1])
        assert (discord.counts["GET commands"], discord.counts["PUT commands"]) == (4, 1)
        await adapter.set_commands(hints[:1])
        await adapter.set_commands(hints, chat="900000007")
        assert (discord.counts["PUT commands"], discord.menus) == (2, {"": {"new": "Start afresh"}})
        discord.refuse_next("PUT commands", 429, 0, headers={"Via": "x"}, retry_after=60.0)
        with pytest.raises(RateLimitedError):
            await adapter.set_commands(hints)


async def test_two_accounts_may_have_different_addresses() -> None:
    async with (
        asyncio.timeout(SECONDS),
        FakeDiscord() as one,
        FakeDiscord() as other,
        one.adapter() as first,
        other.adapter() as second,
    ):
        await second.send(saying(other, "there"))
        await first.send(saying(one, "here"))
    assert (one.texts(), other.texts()) == (["here"], ["there"])


async def test_a_signed_out_bot_is_told_so_when_it_sends() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        assert isinstance(adapter, DiscordAdapter)
        discord.refuse_credentials()
        with pytest.raises(CredentialsError, match="DISCORD_BOT_TOKEN"):
            await adapter.send(saying(discord, "hello"))
