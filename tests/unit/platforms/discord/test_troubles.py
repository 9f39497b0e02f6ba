"""Every failure of the gateway that the protocol sheet tells of, played by the fake: who acts, and nothing is lost."""

from __future__ import annotations

import asyncio
import importlib
import random
import threading
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from hermes.core.errors import CredentialsError, PlatformError, RateLimitedError, UnreachableError
from hermes.core.messages import Button, Cursor, InboundEvent, InboundMessage, OutboundMessage, Unreadable
from hermes.core.ports import Adapter, AnswersPresses, Describes
from hermes.platforms.discord import adapter as adapters
from hermes.platforms.discord import connection, interaction_replies
from hermes.platforms.discord.cursors import MAX_SESSION_STARTS, Places
from hermes.services.http import ProxyRules, make_session
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.fakes.discord import BOT, GROUP, ROLE, SERVER, FakeDiscord, Socket
from tests.fakes.proxy import FakeHttpProxy, FakeSocksProxy
from tests.unit.platforms.discord.test_parse import SAMPLES, STRANGE
from tests.unit.platforms.mutations import mutated

SECONDS = 30


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "PAUSE_SECONDS", (0.0, 0.01))


@asynccontextmanager
async def connected(
    inbox: Inbox, *, is_known: bool = True
) -> AsyncIterator[tuple[FakeDiscord, Adapter, asyncio.Task[None]]]:
    async with (
        asyncio.timeout(SECONDS),
        FakeDiscord(is_known=is_known) as discord,
        discord.adapter() as adapter,
        receiving(adapter, inbox) as running,
    ):
        await discord.wait_for(lambda: discord.sockets == 1 and "session" in discord.cursor)
        yield discord, adapter, running


async def ends(running: asyncio.Task[None]) -> BaseException | None:
    await asyncio.wait({running})
    return running.exception()


def stored(discord: FakeDiscord) -> int:
    session = Places.of(discord.cursor).session
    return session.seq if session is not None else 0


# Beginning


async def test_a_new_session_asks_for_what_is_needed_and_for_nobodys_names(inbox: Inbox) -> None:
    async with connected(inbox, is_known=False) as (discord, _, _):
        discord.user_says("hello")
        await inbox.until(1)
    [asked] = discord.identified
    assert asked["intents"] == 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
    assert discord.frames[0] == {"op": 1, "d": None}, "a heartbeat comes first"


def packed(frame: bytes, compression: str) -> tuple[bytes, ...]:
    """As Discord sends it: zlib in pieces, zstd (asked for from Python 3.14 on) in one."""
    if compression == "zlib-stream":
        packer = zlib.compressobj()
        whole = packer.compress(frame) + packer.flush(zlib.Z_SYNC_FLUSH)
        return whole[:20], whole[20:]
    assert compression == "zstd-stream"
    packer = importlib.import_module("compression.zstd").ZstdCompressor()
    return (packer.compress(frame) + packer.flush(packer.FLUSH_BLOCK),)


async def test_frame_that_cannot_be_unpacked_ends_the_connection_and_not_the_adapter(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        discord.deliver_raw(b"no compression at all" + b"\x00\x00\xff\xff")
        with pytest.raises(UnreachableError):
            await inbox.until(1)


async def test_what_is_heard_through_compression_is_the_same(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        message = discord._live(discord._message("900000007", {"id": "7", "username": "ana"}, "squeezed"))
        frame = orjson.dumps({"op": 0, "t": "MESSAGE_CREATE", "s": 99, "d": message})
        for piece in packed(frame, discord.compression):
            discord.deliver_raw(piece)
        assert (await inbox.message()).text == "squeezed"


async def test_the_session_is_stored_with_the_events_that_it_counts(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        discord.user_says("hello")
        await inbox.until(1)
        await discord.wait_for(lambda: stored(discord) == len(discord.sessions["s0"].dispatches))
    assert inbox.cursor["session"] == discord.cursor["session"]


@pytest.mark.parametrize("kind", [FakeHttpProxy, FakeSocksProxy])
async def test_gateway_and_calls_go_through_the_proxy_that_it_is_handed(
    inbox: Inbox, kind: type[FakeHttpProxy | FakeSocksProxy]
) -> None:
    async with (
        asyncio.timeout(SECONDS),
        FakeDiscord() as discord,
        kind(hosts={"discord.test": "127.0.0.1"}) as proxy,
        make_session(ProxyRules(own=proxy.url)) as http,
    ):
        where: dict[str, Any] = {"base_url": f"http://discord.test:{discord.port}/api/v10"}
        where["gateway_url"] = f"ws://discord.test:{discord.port}/gateway"
        async with discord.adapter(http=http, **where) as adapter, receiving(adapter, inbox):
            await discord.wait_for(lambda: discord.sockets == 1)
            discord.user_says("hello")
            await inbox.until(1)
            await adapter.send(saying(discord, "hi"))
    assert len(proxy.asked) >= 2
    assert set(proxy.asked) == {f"discord.test:{discord.port}"}


# Resuming


@pytest.mark.parametrize("code", [1000, 1001, 4000, 4001, 4002, 4005, 4008])
async def test_a_close_that_can_be_resumed_is_resumed_at_once_and_nothing_is_lost(inbox: Inbox, code: int) -> None:
    async with connected(inbox) as (discord, _, running):
        discord.user_says("before")
        await inbox.until(1)
        await discord.close_sockets(code, "so it is")
        discord.sessions["s0"].is_alive = True  # Discord keeps it when it is Discord who leaves
        discord.user_says("meanwhile")
        await inbox.until(2)
        assert not running.done()
    assert [event.text for event in inbox.events if isinstance(event, InboundMessage)] == ["before", "meanwhile"]
    assert (len(discord.resumed), discord.identified) == (2, [])


@pytest.mark.parametrize("code", [4003, 4007, 4009])
async def test_a_close_that_ends_the_session_is_followed_by_a_new_one_and_by_what_was_missed(
    inbox: Inbox, code: int
) -> None:
    async with connected(inbox) as (discord, _, running):
        discord.user_says("before")
        await inbox.until(1)
        await discord.close_sockets(code)
        discord.user_says("meanwhile")
        assert discord.nowhere == 1
        await inbox.until(2)
        assert not running.done()
    assert [event.text for event in inbox.events if isinstance(event, InboundMessage)] == ["before", "meanwhile"]
    assert (len(discord.resumed), len(discord.identified)) == (2, 1), "it is tried first, as Discord may let us"


async def test_asked_to_reconnect_it_leaves_so_that_its_session_lives(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, running):
        discord.ask_to_reconnect()
        said = discord.user_says("while it moves")
        await discord.wait_for(lambda: len(discord.resumed) == 2 and discord.sockets == 1)
        await inbox.until(1)
        assert not running.done()
    assert said.key in inbox.keys
    assert discord.closed_with[0] == 4000
    assert discord.identified == []


async def test_an_invalid_session_that_can_be_resumed_is(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        discord.invalidate_session(is_resumable=True)
        await discord.wait_for(lambda: len(discord.resumed) == 2 and discord.sockets == 1)
        discord.user_says("hello")
        await inbox.until(1)
    assert discord.identified == []


async def test_an_invalid_session_begins_anew_and_what_was_missed_is_caught_up(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, running):
        discord.user_says("before")
        await inbox.until(1)
        discord.invalidate_session(is_resumable=False)
        said = discord.user_says("meanwhile")
        await inbox.until(2)
        await discord.wait_for(lambda: discord.sockets == 1)
        later = discord.user_says("after")
        await inbox.until(3)
        assert not running.done()
    assert inbox.keys[1:] == [said.key, later.key]
    assert len(discord.identified) == 1


async def test_a_session_that_discord_forgot_is_told_as_lost_and_a_new_one_begins(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.forget_sessions()
        async with receiving(adapter, inbox):
            await discord.wait_for(lambda: len(discord.identified) == 1 and discord.sockets == 1)
            discord.user_says("hello")
            await inbox.until(1)
            await discord.wait_for(lambda: stored(discord) > 1)
    assert Places.of(discord.cursor).session is not None
    assert len(discord.resumed) == 1


async def test_a_number_that_discord_never_gave_costs_the_session_and_nothing_else(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.cursor["session"] = '{"id": "s0", "seq": 999, "url": ""}'
        async with discord.adapter() as adapter, receiving(adapter, inbox):
            await discord.wait_for(lambda: len(discord.identified) == 1 and discord.sockets == 1)
            assert len(discord.resumed) == 1  # refused, and not tried again


async def test_a_session_whose_own_address_is_gone_is_resumed_at_the_common_one(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord:
        discord.cursor["session"] = '{"id": "s0", "seq": 1, "url": "ws://127.0.0.1:1/"}'
        said = discord.user_says("meanwhile")
        async with discord.adapter() as adapter, receiving(adapter, inbox):
            await inbox.until(1)
    assert inbox.keys == [said.key]
    assert (len(discord.resumed), discord.identified) == (1, [])


@pytest.mark.parametrize("code", [1000, 4000, 4009])
async def test_a_resume_that_is_answered_by_a_close_is_followed_by_a_new_session(inbox: Inbox, code: int) -> None:
    class Closing(FakeDiscord):
        async def _resume(self, socket: Socket, data: dict[str, Any]) -> int:
            self.resumed.append(data)
            self.forget_sessions()
            return code

    async with asyncio.timeout(SECONDS), Closing() as discord, discord.adapter() as adapter, receiving(adapter, inbox):
        await discord.wait_for(lambda: discord.sockets == 1)
        discord.user_says("hello")
        await inbox.until(1)
    assert (len(discord.resumed), len(discord.identified)) == (1, 1)


async def test_a_connection_that_breaks_is_told_and_the_next_one_resumes(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, running):
        discord.user_says("before")
        await inbox.until(1)
        discord.drop_connection()
        assert isinstance(await ends(running), UnreachableError)
        said = discord.user_says("meanwhile")
        async with discord.adapter() as again, receiving(again, inbox):
            await inbox.until(2)
    assert inbox.keys[1:] == [said.key]
    assert discord.identified == []


async def test_a_heartbeat_that_is_never_answered_makes_it_connect_anew(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox
) -> None:
    monkeypatch.setattr(connection, "HEARTBEAT_SECONDS", 0.4)
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord:
        discord.heartbeat_ms, discord.answers_heartbeats = 150, False
        async with discord.adapter() as adapter, receiving(adapter, inbox) as running:
            await discord.wait_for(lambda: len(discord.resumed) >= 2)
            discord.answers_heartbeats = True
            discord.user_says("hello")
            await inbox.until(1)
            assert not running.done()


async def test_heartbeats_that_are_answered_are_signs_of_life(inbox: Inbox) -> None:
    signs: list[int] = []
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord:
        discord.heartbeat_ms = 20
        async with discord.adapter(alive=lambda: signs.append(1)) as adapter, receiving(adapter, inbox):
            await discord.wait_for(lambda: len(signs) > 5)
    assert sum(frame["op"] == 1 for frame in discord.frames) >= 3


async def test_whoever_is_greeted_and_then_refused_was_never_connected(inbox: Inbox) -> None:
    signs: list[int] = []
    async with asyncio.timeout(SECONDS), FakeDiscord(is_known=False) as discord:
        discord.flags = 0
        async with discord.adapter(alive=lambda: signs.append(1)) as adapter:
            with pytest.raises(CredentialsError):
                await adapter.run(inbox)
    assert signs == []


async def test_a_gateway_that_ends_every_connection_is_not_resumed_in_a_tight_loop(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox
) -> None:
    async with connected(inbox) as (discord, _, running):
        for number in range(connection.MAX_RESUMES + 1):
            await discord.wait_for(lambda number=number: len(discord.resumed) > number and discord.sockets == 1)  # type: ignore[misc]
            discord.ask_to_reconnect()
        assert isinstance(await ends(running), UnreachableError)
    assert len(discord.resumed) == connection.MAX_RESUMES + 1


# Ends that somebody has to do something about


@pytest.mark.parametrize("is_known", [True, False], ids=["resuming", "beginning"])
@pytest.mark.parametrize(
    "code, words",
    [
        (4004, "DISCORD_BOT_TOKEN"),
        (4010, "shard"),
        (4011, "shards"),
        (4012, "update hermes-gateway"),
        (4013, "intents"),
        (4014, "Message Content Intent"),
    ],
)
async def test_a_fatal_close_ends_it_and_says_what_to_change(
    inbox: Inbox, code: int, words: str, is_known: bool
) -> None:
    async with connected(inbox, is_known=is_known) as (discord, _, running):
        await discord.close_sockets(code)
        error = await ends(running)
    assert isinstance(error, CredentialsError)
    assert words in f"{error} {error.cure}"
    assert bool(error.cure) == (code != 4004), "another token helps only where the token is what is wrong"
    assert discord.token not in str(error)


async def test_an_intent_that_is_off_ends_it_with_the_switch_to_turn(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord(is_known=False) as discord, discord.adapter() as adapter:
        discord.flags = 0
        with pytest.raises(CredentialsError, match="Message Content Intent is off") as refused:
            await adapter.run(inbox)
        assert "switch on Message Content Intent (discord.com/developers" in refused.value.cure
        assert isinstance(adapter, Describes)
        with pytest.raises(CredentialsError, match="Message Content Intent is off") as told:
            await adapter.describe()
        assert told.value.cure == refused.value.cure
    assert len(discord.identified) == 1, "and it is not tried again and again"


async def test_a_token_that_is_refused_is_told_with_its_setting(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.refuse_next("GET me", 401, 0, "401: Unauthorized")
        with pytest.raises(CredentialsError, match="DISCORD_BOT_TOKEN"):
            await adapter.run(inbox)
        assert discord.counts["GET me"] == 1
        discord.refuse_credentials()
        assert isinstance(adapter, Describes)
        with pytest.raises(CredentialsError, match="DISCORD_BOT_TOKEN") as refused:
            await adapter.describe()
    assert discord.token not in str(refused.value)


async def test_a_bot_in_no_server_is_told_with_its_invitation() -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        assert isinstance(adapter, Describes)
        assert await adapter.describe() == "@hermes"
        discord.servers = []
        told = await adapter.describe()
    [address] = [word.lstrip("(") for word in told.split() if "https:" in word]
    assert address.startswith("https://discord.com/oauth2/authorize?client_id=902&scope=bot")
    assert address.rpartition("=")[2].isdecimal(), "it can be clicked as it stands"


# Ends that pass


async def test_a_session_that_may_not_begin_yet_waits(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord(is_known=False) as discord, discord.adapter() as adapter:
        discord.begins_sessions = False
        with pytest.raises(RateLimitedError) as told:
            await adapter.run(inbox)
    assert told.value.retry_after == 5


async def test_too_many_new_sessions_wait_although_discord_would_begin_them(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord(is_known=False) as discord:
        for _ in range(3):
            async with discord.adapter() as adapter, receiving(adapter, inbox):
                await discord.wait_for(lambda: discord.sockets == 1)
            discord.cursor["session"] = "{}"
        start, _, count = discord.cursor["begun"].partition("/")
        assert count == "3"
        discord.cursor["begun"] = f"{start}/{MAX_SESSION_STARTS}"
        async with discord.adapter() as adapter:
            with pytest.raises(RateLimitedError, match="token"):
                await adapter.run(inbox)
    assert len(discord.identified) == 3


@pytest.mark.parametrize("code", [1000, 4000, 4008, 4009])
async def test_a_connection_that_ends_before_it_began_is_left_to_the_backoff(inbox: Inbox, code: int) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord(is_known=False) as discord, discord.adapter() as adapter:
        discord.says_hello = False
        running = asyncio.create_task(adapter.run(inbox))
        await discord.wait_for(lambda: bool(discord._sockets))
        await discord.close_sockets(code)
        error = await ends(running)
    assert isinstance(error, (UnreachableError, RateLimitedError))
    assert str(code) in str(error)


async def test_a_socket_without_hello_is_given_up(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.05)
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.says_hello = False
        with pytest.raises(UnreachableError, match="no answer in time"):
            await adapter.run(inbox)
        await discord.wait_for(lambda: not discord._sockets)


def heartbeats() -> int:
    return sum(thread.name.startswith("keep-alive-handler") for thread in threading.enumerate())


async def test_no_thread_of_the_sdk_outlives_its_connection(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        await discord.wait_for(lambda: heartbeats() == 1)
        discord.ask_to_reconnect()
        await discord.wait_for(lambda: len(discord.resumed) == 2 and discord.sockets == 1)
        await discord.wait_for(lambda: heartbeats() == 1)
    await discord.wait_for(lambda: heartbeats() == 0)
    assert heartbeats() == 0


@pytest.mark.parametrize("status", [500, 503])
async def test_discords_own_trouble_at_the_start_is_left_to_the_backoff(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox, status: int
) -> None:
    from hermes.platforms.discord import api

    monkeypatch.setattr(api, "CALL_SECONDS", 0.2)
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.refuse_next("GET me", status)
        with pytest.raises(UnreachableError):
            await adapter.run(inbox)


async def test_a_limit_at_the_start_says_how_long_to_wait(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.limit_next("GET me", 9)
        with pytest.raises(RateLimitedError) as limited:
            await adapter.run(inbox)
    assert limited.value.retry_after == 9


async def test_somebody_else_at_the_address_is_told_as_such(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        discord.answer_next("GET me", b"<html>Welcome to your router</html>")
        with pytest.raises(UnreachableError, match="DISCORD_BASE_URL"):
            await adapter.run(inbox)


# Broken frames and events


async def test_a_broken_frame_is_kept_and_the_next_one_arrives(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, running):
        for frame in ("{", "[]", "5", '"x"', '{"op": 0}', '{"op": "0", "t": "READY"}', '{"op": 0, "t": "X", "d": {}}'):
            discord.deliver_raw(frame)
        discord.deliver_raw('{"op": 42, "d": null}')
        said = discord.user_says("hello")
        await inbox.until(8)
        assert not running.done()
    assert inbox.keys[-1] == said.key
    assert all(isinstance(event, Unreadable) for event in inbox.events[:-1])


@pytest.mark.parametrize(
    "frame", ['{"op": 10, "d": {}}', '{"op": 10, "d": null}', '{"op": 0, "t": "READY", "s": 1, "d": 5}']
)
async def test_a_greeting_that_cannot_be_read_is_left_to_the_backoff(inbox: Inbox, frame: str) -> None:
    async with connected(inbox) as (discord, _, running):
        discord.deliver_raw(frame)
        assert isinstance(await ends(running), UnreachableError)


@pytest.mark.parametrize("depth", [300, 900, 1500, 100_000])
async def test_an_event_nested_beyond_all_reason_is_kept(inbox: Inbox, depth: int) -> None:
    async with connected(inbox) as (discord, _, running):
        deep = "[" * depth + "]" * depth
        event = f'{{"id": "5", "channel_id": "900000007", "author": {deep}}}'
        discord.deliver_raw(f'{{"op": 0, "t": "MESSAGE_CREATE", "s": 50, "d": {event}}}')
        said = discord.user_says("hello")
        await inbox.until(2)
        assert not running.done()
    assert inbox.keys[1] == said.key


async def test_half_a_character_spoils_no_message(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        author = '{"id": "7", "username": "ana"}'
        event = f'{{"id": "50", "channel_id": "900000007", "author": {author}, "content": "half \\ud83d"}}'
        discord.deliver_raw(f'{{"op": 0, "t": "MESSAGE_CREATE", "s": 50, "d": {event}}}')
        assert (await inbox.message()).text.startswith("half ")


OTHERS: tuple[tuple[str, Any], ...] = (
    ("GUILD_CREATE", FakeDiscord().server()),
    ("GUILD_DELETE", {"id": SERVER, "unavailable": True}),
    ("CHANNEL_UPDATE", {"id": GROUP, "type": 0}),
    ("THREAD_LIST_SYNC", {"guild_id": SERVER, "threads": [{"id": "400", "type": 11, "parent_id": GROUP}]}),
    ("CHANNEL_DELETE", {"id": "399", "type": 0}),
)


async def test_five_hundred_broken_events_harm_no_neighbour(inbox: Inbox) -> None:
    chance = random.Random(3)
    samples = (*SAMPLES, *OTHERS)
    async with connected(inbox) as (discord, _, running):
        said = []
        for number in range(500):
            event, data = samples[number % len(samples)]
            discord.dispatch(event, _sendable(mutated(chance, data, STRANGE)))
            if number % 10 == 0:
                said.append(discord.user_says(f"number {number}"))
        last = said[-1].key
        await discord.wait_for(lambda: last in inbox.keys, 8)
        assert not running.done()
        assert (len(discord.resumed), discord.identified) == (1, [])
    assert [key for key in inbox.keys if key in {each.key for each in said}] == [each.key for each in said]


def _sendable(payload: Any) -> Any:
    """JSON holds no half of a surrogate pair."""
    if isinstance(payload, dict):
        return {str(_sendable(key)): _sendable(value) for key, value in payload.items()}
    if isinstance(payload, list):
        return [_sendable(value) for value in payload]
    return payload.replace("\ud800", "?") if isinstance(payload, str) else payload


# Presses and slash commands


async def test_a_press_is_acknowledged_only_when_the_inbox_has_taken_it_and_answered_after_that() -> None:
    taking, taken = asyncio.Event(), asyncio.Event()
    presses: list[InboundEvent] = []

    async def slow(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        if events:
            presses.extend(events)
            taking.set()
            await taken.wait()

    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, discord.adapter() as adapter:
        await adapter.send(OutboundMessage(discord.target(), "May I?", buttons=((Button("Yes", "yes"),),)))
        discord.user_presses(discord.sent[0], "yes")
        running = asyncio.create_task(adapter.run(slow))
        await taking.wait()
        assert discord.counts["POST callback"] == 0
        press = next(event for event in presses if event.keys and event.keys[0].startswith("press:"))
        assert isinstance(adapter, AnswersPresses)
        telling = asyncio.create_task(adapter.answer_press(press.press_id, "Done."))  # type: ignore[union-attr]
        await asyncio.sleep(0)
        assert discord.followups == [], "Discord would not know whom it is for"
        taken.set()
        await telling
        running.cancel()
        await asyncio.wait({running})
    assert [(told["content"], told["flags"]) for told in discord.followups] == [("Done.", 64)]
    assert (discord.unacked, discord.late_acks) == (0, [])


async def test_a_press_whose_acknowledgement_takes_long_keeps_nobody_waiting(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interaction_replies, "ACK_SECONDS", 60.0)
    async with connected(inbox) as (discord, adapter, _):
        question = OutboundMessage(discord.target(), "May I?", buttons=((Button("Yes", "yes"), Button("No", "no")),))
        await adapter.send(question)
        hold = discord.hold("POST callback")
        discord.user_presses(discord.sent[0], "yes")
        await hold.reached()
        discord.user_presses(discord.sent[0], "no", user=8)
        discord.user_says("and another thing")
        await inbox.until(3)
        await discord.wait_for(lambda: hold.waiting == 2)
        discord.release_all()
    assert discord.late_acks == []


async def test_a_press_is_acknowledged_although_the_connection_ends_meanwhile(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interaction_replies, "CLOSE_SECONDS", 20.0)
    async with connected(inbox) as (discord, adapter, running):
        await adapter.send(OutboundMessage(discord.target(), "May I?", buttons=((Button("Yes", "yes"),),)))
        hold = discord.hold("POST callback")
        discord.user_presses(discord.sent[0], "yes")
        await hold.reached()
        await discord.close_sockets(4004)
        await asyncio.wait({running}, timeout=0.2)
        assert not running.done(), "it is still being told to Discord"
        discord.release_all()
        assert isinstance(await ends(running), CredentialsError)


@pytest.mark.parametrize("status, code", [(404, 10062), (400, 40060), (503, 0)])
async def test_a_press_that_cannot_be_acknowledged_counts_all_the_same(inbox: Inbox, status: int, code: int) -> None:
    async with connected(inbox) as (discord, adapter, running):
        await adapter.send(OutboundMessage(discord.target(), "May I?", buttons=((Button("Yes", "yes"),),)))
        discord.refuse_next("POST callback", status, code)
        discord.user_presses(discord.sent[0], "yes")
        press = await inbox.press()
        assert isinstance(adapter, AnswersPresses)
        await adapter.answer_press(press.press_id, "Done.")  # Discord does not know it: nobody is told
        assert not running.done()
    assert discord.followups == []


async def test_a_press_is_read_by_what_it_carries_whoever_made_the_button(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, adapter, _):
        await adapter.send(OutboundMessage(discord.target(), "May I?", buttons=((Button("Yes", "ap_1:yes"),),)))
    async with asyncio.timeout(SECONDS), discord, discord.adapter() as another, receiving(another, inbox):
        discord.user_presses(discord.sent[0], "ap_1:yes")
        assert (await inbox.press()).data == "ap_1:yes"
        await discord.wait_for(lambda: discord.unacked == 0)


async def test_a_slash_command_arrives_and_is_shown_to_whoever_typed_it(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        said = discord.user_types("model", "gpt-5")
        message = await inbox.message()
        await discord.wait_for(lambda: discord.unacked == 0)
    assert (message.text, message.keys) == ("/model gpt-5", (said.key,))
    assert [(echo["content"], echo["flags"]) for echo in discord.echoes] == [("`/model gpt-5`", 64)]


# Servers


async def test_the_bots_own_role_is_its_name_too_also_after_a_restart(inbox: Inbox) -> None:
    async with connected(inbox, is_known=False) as (discord, _, _):
        await discord.wait_for(lambda: "roles" in discord.cursor)
    async with asyncio.timeout(SECONDS), discord, discord.adapter() as adapter, receiving(adapter, inbox):
        discord.user_says(f"<@&{ROLE}> hello", chat=GROUP, mention_roles=[ROLE])
        message = await inbox.message()
    assert (message.is_addressed, message.text) == (True, "hello")
    assert adapter.identity == BOT


async def test_a_channel_that_nobody_told_of_is_asked_for_once(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        thread = discord.user_opens_thread()
        discord.channels["310"] = {"id": "310", "type": 0, "guild_id": SERVER}
        for number in range(3):
            discord.user_says(f"c{number}", chat="310")
            discord.user_says(f"t{number}", chat=thread)
        await inbox.until(6)
    threads = {event.session_key.thread for event in inbox.events if isinstance(event, InboundMessage)}
    assert threads == {"", thread}
    assert discord.counts["GET channel"] == 1, "the thread told of itself when it was opened"


async def test_a_channel_of_which_discord_does_not_tell_is_heard_all_the_same(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, _, _):
        discord.hidden.add(GROUP)
        said = discord.user_says_in_group("hello", to_us=True)
        await inbox.until(1)
    assert inbox.keys == [said.key]


async def test_errors_of_the_platform_are_no_bugs_of_ours(inbox: Inbox) -> None:
    async with connected(inbox) as (discord, adapter, _):
        discord.silent.add(GROUP)
        with pytest.raises(PlatformError, match="permission"):
            await adapter.send(OutboundMessage(saying(discord, "x").target.__class__("discord", GROUP), "hello"))
