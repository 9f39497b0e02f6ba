"""Every failure that the protocol sheet tells of, played by the fake: who acts, and that nothing is made worse."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from hermes.core.errors import (
    ConflictError,
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import (
    Attachment,
    AttachmentKind,
    Button,
    Cursor,
    InboundEvent,
    InboundMessage,
    OutboundMessage,
    Press,
)
from hermes.core.ports import Adapter, AnswersPresses, Describes, EndsTyping, FetchesFiles, ShowsTyping
from hermes.platforms.slack import connection
from hermes.platforms.slack.api import Api
from hermes.platforms.slack.catchup import CatchUp
from hermes.platforms.slack.config import SlackConfig
from hermes.platforms.slack.cursors import Places
from hermes.platforms.slack.parse import Me
from hermes.platforms.slack.receiving import Item, Receiver
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.fakes.slack import GROUP, FakeSlack
from tests.unit.platforms.mutations import mutated
from tests.unit.platforms.slack.test_parse import SAMPLES, STRANGE

SECONDS = 30


@asynccontextmanager
async def connected(inbox: Inbox) -> AsyncIterator[tuple[FakeSlack, Adapter, asyncio.Task[None]]]:
    async with (
        asyncio.timeout(SECONDS),
        FakeSlack() as slack,
        slack.adapter() as adapter,
        receiving(adapter, inbox) as running,
    ):
        await slack.wait_for(lambda: slack.sockets == 1 and "since" in slack.cursor)
        yield slack, adapter, running


async def ends(running: asyncio.Task[None]) -> BaseException | None:
    await asyncio.wait({running})
    return running.exception()


# The socket


async def test_an_envelope_is_acknowledged_only_when_the_inbox_has_taken_it() -> None:
    taking, taken = asyncio.Event(), asyncio.Event()

    async def slow(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        if events:
            taking.set()
            await taken.wait()

    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.user_says("hello")
        running = asyncio.create_task(adapter.run(slow))
        await taking.wait()
        assert (slack.acked, slack.unacked) == ([], 1)
        taken.set()
        await slack.wait_for(lambda: slack.unacked == 0)
        running.cancel()
        await asyncio.wait({running})
    assert slack.late_acks == []


async def test_events_of_kinds_nobody_knows_are_acknowledged_too(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, _, _):
        slack.something_unknown_happens()
        slack.deliver("workflow_step", {"x": 1})
        slack.deliver("interactive", {"type": "view_submission"})
        await slack.wait_for(lambda: len(slack.acked) >= 3)
    assert inbox.events == []


async def test_a_mention_told_twice_carries_one_key(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, _, _):
        said = slack.user_mentions("hello")
        await inbox.until(2)
    assert inbox.keys == [said.key, said.key]


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_socket_that_is_to_be_replaced_is_replaced_before_it_closes_and_nothing_is_lost(
    inbox: Inbox, reason: str
) -> None:
    async with connected(inbox) as (slack, _, running):
        slack.user_says("before")
        slack.disconnect(reason)
        slack.user_says("while it moves")
        await slack.wait_for(lambda: slack.connections == 2 and slack.sockets == 1)
        slack.user_says("after")
        await inbox.until(3)
        assert not running.done()
    assert slack.counts["conversations.history"] == 0, "there was no gap to catch up with"


async def test_nobody_waits_while_a_socket_is_replaced_and_being_told_twice_changes_nothing(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, _, running):
        hold = slack.hold("apps.connections.open")
        slack.disconnect("warning")
        await hold.reached()
        slack.disconnect("refresh_requested")
        slack.user_says("while it moves")
        await slack.wait_for(lambda: len(slack.acked) >= 1)
        slack.release_all()
        await slack.wait_for(lambda: slack.connections == 2 and slack.sockets == 1)
        slack.user_says("after")
        await slack.wait_for(lambda: len(slack.acked) >= 2)
        assert not running.done()
    assert slack.connections == 2
    assert slack.late_acks == []


@pytest.mark.parametrize("error, kind", [("internal_error", UnreachableError), ("invalid_auth", CredentialsError)])
async def test_where_there_is_no_next_socket_it_ends_with_the_reason(
    inbox: Inbox, error: str, kind: type[PlatformError]
) -> None:
    async with connected(inbox) as (slack, _, running):
        slack.refuse_next("apps.connections.open", error)
        slack.disconnect("warning")
        assert isinstance(await ends(running), kind)


async def test_what_is_said_between_two_sockets_is_caught_up_with(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, _, running):
        slack.user_says("before")
        await slack.wait_for(lambda: len(slack.acked) >= 1)
        hold = slack.hold("apps.connections.open")
        slack.disconnect("refresh_requested")
        await hold.reached()
        await slack.close_sockets()  # sooner than the next one could be opened
        assert isinstance(await ends(running), UnreachableError)
        slack.release_all()
        said = slack.user_says("meanwhile")
        async with slack.adapter() as again, receiving(again, inbox):
            await inbox.until(2)
    assert (slack.nowhere, inbox.keys[1]) == (1, said.key)


async def test_ended_while_a_socket_is_replaced_it_leaves_nothing_behind(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, adapter, _):
        before = asyncio.all_tasks()
        async with receiving(adapter, Inbox()):
            await slack.wait_for(lambda: slack.sockets == 2)
            hold = slack.hold("apps.connections.open")
            slack.disconnect("warning")
            await hold.reached()
        left = {task for task in asyncio.all_tasks() - before if "Links._move" in repr(task)}
        slack.release_all()
    assert left == set()


@pytest.mark.parametrize("has_moved", [True, False])
async def test_the_end_of_an_old_socket_is_the_end_of_all_only_where_there_is_no_other(has_moved: bool) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, aiohttp.ClientSession() as http:
        put: list[Item] = []
        config = SlackConfig.of(AdapterParts("main", slack.settings(), http, lambda: None, {}))
        api, places = Api(config, http), Places.of({})
        links = connection.Links(api, http, lambda: None, put.append)
        try:
            await links.open()
            [old] = links._open
            links.replace(old)
            if has_moved:
                await slack.wait_for(lambda: bool(put))
            ended = connection.Frame(old, None, "closed by Slack")
            me = Me("main", "T0TEAM", "U0BOT")
            batch = Receiver(me, places, CatchUp(api, places, put.append), lambda _: None).gather([ended])
        finally:
            await links.close()
    assert (batch.ended is None) is has_moved


async def test_what_waits_for_its_history_outlives_the_socket_it_came_over(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack:
        async with slack.adapter() as adapter, receiving(adapter, inbox):
            slack.user_says("before")
            await slack.wait_for(lambda: len(slack.acked) >= 1)
        await slack.wait_for(lambda: slack.sockets == 0)
        hold = slack.hold("conversations.history")
        async with slack.adapter() as adapter, receiving(adapter, inbox) as running:
            await hold.reached()
            slack.user_says("live")
            slack.disconnect("warning")
            await slack.wait_for(lambda: slack.connections == 3 and slack.sockets == 1)
            slack.release_all()
            await slack.wait_for(lambda: slack.unacked == 0 and len(inbox.events) >= 2)
            assert not running.done()
    assert {event.text for event in inbox.events if isinstance(event, InboundMessage)} == {"before", "live"}


async def test_pings_are_answered_and_each_is_a_sign_of_life(inbox: Inbox) -> None:
    seen: list[None] = []
    async with asyncio.timeout(SECONDS), FakeSlack() as slack:
        slack.ping_seconds = 0.4  # half of that is how long it waits for an answer
        async with slack.adapter(alive=lambda: seen.append(None)) as adapter, receiving(adapter, inbox) as running:
            await slack.wait_for(lambda: len(seen) >= 3)
            assert not running.done()
    assert slack.connections == 1


async def test_our_own_pings_are_answered_and_each_answer_is_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox
) -> None:
    monkeypatch.setattr(connection, "HEARTBEAT_SECONDS", 0.4)
    seen: list[None] = []
    async with (
        asyncio.timeout(SECONDS),
        FakeSlack() as slack,
        slack.adapter(alive=lambda: seen.append(None)) as adapter,
        receiving(adapter, inbox) as running,
    ):
        await slack.wait_for(lambda: len(seen) >= 3)
        assert not running.done()


@pytest.mark.parametrize(
    "reason, kind, words",
    [
        ("link_disabled", RateLimitedError, "Socket Mode is switched off"),  # tried again, slowly
        ("too_many_websockets", ConflictError, "Ten sockets"),
        ("something_new", UnreachableError, "something_new"),
    ],
)
async def test_a_farewell_ends_it_with_words(inbox: Inbox, reason: str, kind: type[PlatformError], words: str) -> None:
    async with connected(inbox) as (slack, _, running):
        slack.disconnect(reason)
        error = await ends(running)
    assert isinstance(error, kind)
    assert words in str(error)


@pytest.mark.parametrize("code", [1000, 1001, 1011])
async def test_a_close_frame_ends_it_and_what_is_said_meanwhile_is_caught_up(inbox: Inbox, code: int) -> None:
    async with connected(inbox) as (slack, _, running):
        slack.user_says("before")
        await slack.wait_for(lambda: len(slack.acked) >= 1)
        await slack.close_sockets(code)
        assert isinstance(await ends(running), UnreachableError)
        await slack.wait_for(lambda: slack.sockets == 0)
        said = slack.user_says("meanwhile")
        assert slack.nowhere == 1
        async with slack.adapter() as again, receiving(again, inbox):
            await inbox.until(2)
    assert inbox.keys[1:] == [said.key]


async def test_a_socket_without_hello_is_given_up(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    monkeypatch.setattr(connection, "HELLO_SECONDS", 0.05)
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.says_hello = False
        with pytest.raises(UnreachableError, match="hello"):
            await adapter.run(inbox)


async def test_a_silent_socket_is_noticed_by_its_heartbeat(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    monkeypatch.setattr(connection, "HEARTBEAT_SECONDS", 0.05)
    async with connected(inbox) as (slack, _, running):
        slack.fall_silent()
        assert isinstance(await ends(running), UnreachableError)


@pytest.mark.parametrize(
    "error",
    ["invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type"],
)
@pytest.mark.parametrize(
    "method, setting", [("auth.test", "SLACK_BOT_TOKEN"), ("apps.connections.open", "SLACK_APP_TOKEN")]
)
async def test_a_refused_token_ends_it_at_once_and_names_the_setting(
    inbox: Inbox, method: str, setting: str, error: str
) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.refuse_next(method, error)
        with pytest.raises(CredentialsError, match=setting):
            await adapter.run(inbox)
        assert slack.counts[method] == 1
        slack.refuse_next(method, error)
        assert isinstance(adapter, Describes)
        with pytest.raises(CredentialsError, match=setting):
            await adapter.describe()


async def test_an_app_token_without_its_scope_is_told_as_such(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.refuse_next("apps.connections.open", "missing_scope", needed="connections:write")
        with pytest.raises(CredentialsError, match="connections:write"):
            await adapter.run(inbox)


async def test_a_rate_limit_at_the_start_says_how_long_to_wait(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.limit_next("apps.connections.open", 9)
        with pytest.raises(RateLimitedError) as limited:
            await adapter.run(inbox)
    assert limited.value.retry_after == 9


async def test_a_broken_frame_is_kept_and_the_next_one_arrives(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, _, _):
        for frame in ("{", "[]", "5", '"x"', '{"type": "events_api", "envelope_id": 5}'):
            slack.deliver_raw(frame)
        said = slack.user_says("hello")
        await slack.wait_for(lambda: slack.unacked == 0 and said.key in inbox.keys)
        assert list(inbox.keys).count(said.key) == 1


@pytest.mark.parametrize("depth", [300, 900, 1500, 100_000])
async def test_an_event_nested_beyond_all_reason_is_kept_and_acknowledged(inbox: Inbox, depth: int) -> None:
    async with connected(inbox) as (slack, _, running):
        event = '{"type": "message", "ts": 5, "blocks": ' + "[" * depth + "]" * depth + "}"
        slack.deliver_raw(f'{{"envelope_id": "deep", "type": "events_api", "payload": {{"event": {event}}}}}')
        said = slack.user_says("hello")
        await inbox.until(2)
        await slack.wait_for(lambda: "deep" in slack.told)
        assert not running.done()
    assert inbox.keys[1] == said.key


async def test_half_a_character_spoils_no_message(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, _, _):
        event = '{"type": "message", "channel": "D1", "user": "U1", "text": "half \\ud83d", "ts": "1700000000.000100"}'
        slack.deliver_raw(f'{{"envelope_id": "half", "type": "events_api", "payload": {{"event": {event}}}}}')
        message = await inbox.message()
        await slack.wait_for(lambda: "half" in slack.told)
    assert message.text.startswith("half ")


async def test_five_hundred_broken_events_harm_no_neighbour(inbox: Inbox) -> None:
    chance = random.Random(3)
    async with connected(inbox) as (slack, _, running):
        said = []
        for number in range(500):
            envelope = mutated(chance, SAMPLES[number % len(SAMPLES)], STRANGE)
            slack.deliver(str(_sendable(envelope.get("type"))), _sendable(envelope.get("payload")))
            if number % 10 == 0:
                said.append(slack.user_says(f"number {number}"))
        await slack.wait_for(lambda: slack.unacked == 0, 8)
        assert not running.done()
    assert [key for key in inbox.keys if key in {each.key for each in said}] == [each.key for each in said]


def _sendable(payload: object) -> object:
    """JSON holds no half of a surrogate pair."""
    if isinstance(payload, dict):
        return {str(_sendable(key)): _sendable(value) for key, value in payload.items()}
    if isinstance(payload, list):
        return [_sendable(value) for value in payload]
    return payload.replace("\ud800", "?") if isinstance(payload, str) else payload


# Sending


@pytest.mark.parametrize(
    "error, words",
    [
        ("channel_not_found", "no such channel"),
        ("not_in_channel", "/invite"),
        ("msg_too_long", "msg_too_long"),
        ("no_text", "no_text"),
        ("invalid_blocks", "invalid_blocks"),
        ("missing_scope", "hermes slack manifest"),
        ("is_archived", "archived"),
    ],
)
async def test_what_slack_refuses_is_not_tried_again_and_says_why(error: str, words: str) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.refuse_next("chat.postMessage", error)
        with pytest.raises(RejectedError, match=words):
            await adapter.send(saying(slack, "hello"))
        assert slack.counts["chat.postMessage"] == 1


async def test_a_text_that_slack_finds_too_long_after_all_is_shown_in_blocks() -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.refuse_next("chat.postMessage", "msg_too_long")
        await adapter.send(saying(slack, "字" * 3900))
        slack.refuse_next("chat.postMessage", "msg_too_long", times=2)
        with pytest.raises(RejectedError, match="msg_too_long"):
            await adapter.send(saying(slack, "字" * 3900))
    [sent] = slack.sent
    assert "".join(sent.text.split()) == "字" * 3900


@pytest.mark.parametrize("error", ["message_not_found", "cant_update_message", "edit_window_closed"])
async def test_an_edit_that_is_refused_is_told(error: str) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        receipt = await adapter.send(saying(slack, "one"))
        slack.refuse_next("chat.update", error)
        with pytest.raises(RejectedError, match=error):
            await adapter.send(replace(saying(slack, "two"), replaces=receipt.message_id))


@pytest.mark.parametrize("error, status", [("internal_error", 200), ("fatal_error", 200), ("", 500), ("", 503)])
async def test_slacks_own_failure_leaves_a_send_unknown_and_an_edit_to_be_repeated(error: str, status: int) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        receipt = await adapter.send(saying(slack, "one"))
        slack.refuse_next("chat.postMessage", error, status=status)
        with pytest.raises(OutcomeUnknownError):
            await adapter.send(saying(slack, "two"))
        slack.refuse_next("chat.update", error, status=status)
        with pytest.raises(UnreachableError):
            await adapter.send(replace(saying(slack, "two"), replaces=receipt.message_id))
        assert slack.counts["chat.postMessage"] == 2, "the SDK repeats nothing by itself"


@pytest.mark.parametrize(
    "body, status, kind",
    [
        (b"<html>Sign in to the hotel</html>", 200, UnreachableError),
        (b"<html>no</html>", 403, UnreachableError),
        (b"<html>slow down</html>", 429, RateLimitedError),
        (b"<html>oops</html>", 502, OutcomeUnknownError),
        (b"[]", 200, OutcomeUnknownError),
        (b"5", 200, OutcomeUnknownError),
        (b"", 200, OutcomeUnknownError),
        (b'{"ok": tr', 200, OutcomeUnknownError),
        (b'{"ok": fa', 429, RateLimitedError),
    ],
)
async def test_something_else_than_slack_answering_is_not_mistaken_for_it(
    body: bytes, status: int, kind: type[PlatformError], inbox: Inbox
) -> None:
    content = "text/html" if body[:1] == b"<" else "application/json"
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.answer_next("chat.postMessage", body, status=status, kind=content)
        with pytest.raises(kind):
            await adapter.send(saying(slack, "hello"))
        slack.answer_next("auth.test", body, status=status, kind=content)
        with pytest.raises((UnreachableError, RateLimitedError)):
            await adapter.run(inbox)
    assert slack.sent == []


async def test_a_limit_without_a_time_waits_half_a_minute() -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.refuse_next("chat.postMessage", "ratelimited", status=429)
        with pytest.raises(RateLimitedError) as limited:
            await adapter.send(saying(slack, "hello"))
    assert limited.value.retry_after == 30


async def test_an_answer_in_a_channel_stands_in_the_thread_of_its_question(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, adapter, _):
        said = slack.user_says_in_group("what?", to_us=True)
        question = await inbox.message()
        await adapter.send(OutboundMessage(question.session_key.target, "this"))
        slack.user_answers(slack.sent[-1], "why?")
        reply = await inbox.message()
    assert slack.sent[-1].thread == said.message_id
    assert reply.session_key == question.session_key
    assert reply.is_addressed


async def test_buttons_with_a_long_text_fit_into_blocks_and_leave_with_the_answer() -> None:
    buttons = (tuple(Button(f"{number} " + "long " * 30, f"d{number}") for number in range(30)),)
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        text = "&" * 3000 + "\n" + "word " * 190
        receipt = await adapter.send(replace(saying(slack, text), buttons=buttons))
        assert sum(map(len, slack.sent[0].buttons)) == 30
        await adapter.send(replace(saying(slack, "Allowed."), replaces=receipt.message_id))
    assert (slack.sent[0].text, slack.sent[0].buttons) == ("Allowed.", ())


async def test_links_are_not_unfurled_and_nobody_is_called() -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        await adapter.send(saying(slack, "see https://example.com <!channel>"))
    [body] = slack.called("chat.postMessage")
    assert (body["unfurl_links"], body["text"]) == (False, "see https://example.com &lt;!channel&gt;")


async def test_whoever_pressed_is_told_alone(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, adapter, _):
        await adapter.send(replace(saying(slack, "May I?"), buttons=((Button("Yes", "yes"),),)))
        slack.user_presses(slack.sent[0], "yes")
        press = await inbox.press()
        assert isinstance(press, Press)
        assert isinstance(adapter, AnswersPresses)
        await adapter.answer_press(press.press_id, "Done.")
    assert [(each["text"], each["response_type"]) for each in slack.responses] == [("Done.", "ephemeral")]


async def test_who_pressed_too_long_ago_is_not_told_and_nothing_breaks(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, adapter, _):
        await adapter.send(replace(saying(slack, "May I?"), buttons=((Button("Yes", "yes"),),)))
        slack.user_presses(slack.sent[0], "yes")
        press = await inbox.press()
        assert isinstance(adapter, AnswersPresses)
        slack.responses_expired = True
        await adapter.answer_press(press.press_id, "Done.")
        await slack.stop()
        with pytest.raises(UnreachableError):
            await adapter.answer_press(press.press_id, "Done.")
    assert slack.responses == []


async def test_typing_is_shown_under_the_question_and_ends_when_nothing_is_answered(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, adapter, _):
        assert isinstance(adapter, ShowsTyping)
        assert isinstance(adapter, EndsTyping)
        said = slack.user_says_in_group("what?", to_us=True)
        target = (await inbox.message()).session_key.target
        await adapter.typing(target)
        await adapter.typing_ended(target)
        await adapter.typing_ended(target)
        await adapter.typing(Target("slack", "D9"))  # nobody wrote there: there is nothing under which to show it
    shown = [(each["thread_ts"], bool(each["status"])) for each in slack.statuses]
    assert shown == [(said.message_id, True), (said.message_id, False)]


async def test_a_chat_without_typing_is_silent(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, adapter, _):
        slack.user_says("hello")
        await inbox.message()
        slack.refuse_next("assistant.threads.setStatus", "missing_scope")
        assert isinstance(adapter, ShowsTyping)
        await adapter.typing(slack.target())
    assert slack.typings == 0


# Files


async def test_a_login_page_instead_of_a_file_is_refused_in_words(inbox: Inbox, tmp_path: Path) -> None:
    async with connected(inbox) as (slack, adapter, _):
        slack.user_sends(b"secret", "notes.txt")
        [attachment] = (await inbox.message()).attachments
        slack.shows_login_page = True
        assert isinstance(adapter, FetchesFiles)
        with pytest.raises(RejectedError, match="files:read"):
            await adapter.fetch(attachment, tmp_path / "in")
        away = replace(attachment, file_id="https://evil.example/x")
        with pytest.raises(RejectedError, match="outside of Slack"):
            await adapter.fetch(away, tmp_path / "in")


async def test_a_file_known_by_its_id_is_asked_for(inbox: Inbox, tmp_path: Path) -> None:
    async with connected(inbox) as (slack, adapter, _):
        slack.user_sends(b"words", "notes.txt")
        [attachment] = (await inbox.message()).attachments
        by_id = replace(attachment, file_id=f"id:{attachment.file_id.rpartition('/')[2]}")
        assert isinstance(adapter, FetchesFiles)
        assert (await adapter.fetch(by_id, tmp_path)).read_bytes() == b"words"


@pytest.mark.parametrize(
    "method, kind",
    [("files.getUploadURLExternal", UnreachableError), ("files.completeUploadExternal", OutcomeUnknownError)],
)
async def test_only_the_last_step_of_an_upload_can_be_seen(
    tmp_path: Path, method: str, kind: type[PlatformError]
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"words")
    file = Attachment(AttachmentKind.DOCUMENT, path=str(path), name="a.txt")
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        slack.refuse_next(method, "internal_error")
        with pytest.raises(kind):
            await adapter.send(replace(saying(slack, ""), attachment=file))
        assert slack.sent == []
        receipt = await adapter.send(OutboundMessage(Target("slack", GROUP, "1700000000.000001"), "", attachment=file))
    assert (slack.sent[0].thread, slack.sent[0].message_id) == ("1700000000.000001", receipt.message_id)


async def test_a_file_that_is_sent_again_carries_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"words")
    file = Attachment(AttachmentKind.DOCUMENT, path=str(path), name="a.txt")
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, slack.adapter() as adapter:
        for text in ("", "look"):
            await adapter.send(replace(saying(slack, text), attachment=file, is_repeat=True))
    assert [sent.text for sent in slack.sent] == ["↻", "↻ look"]


async def test_a_slash_command_arrives(inbox: Inbox) -> None:
    async with connected(inbox) as (slack, _, _):
        said = slack.user_types("stop")
        message = await inbox.message()
    assert isinstance(message, InboundMessage)
    assert (message.text, message.keys) == ("/stop", (said.key,))
