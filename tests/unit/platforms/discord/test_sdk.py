"""Names of discord.py that it does not promise to keep: a version that lacks one is told by that name, before anything
else breaks."""

from __future__ import annotations

import inspect
import re

import discord
import pytest
from discord.gateway import DiscordWebSocket, KeepAliveHandler
from discord.http import HTTPClient, Ratelimit, Route

from hermes.platforms.discord.api import BorrowingClient
from hermes.platforms.discord.buckets import Bucket
from hermes.platforms.discord.connection import Socket, _Owner, _State

VERSION = f"discord.py {discord.__version__}"


@pytest.mark.parametrize(
    "kind, names",
    [
        (DiscordWebSocket, "socket sequence session_id gateway _close_code _keep_alive _decompressor DISPATCH"),
        (DiscordWebSocket, "from_client received_message poll_event close"),
        (KeepAliveHandler, "tick ack stop"),
        (HTTPClient, "__session _global_over _buckets _try_clear_expired_ratelimits max_ratelimit_timeout token"),
        (HTTPClient, "request get_ratelimit ws_connect user_agent"),
        (Ratelimit, "remaining outgoing expires _loop _sleeping acquire reset _refresh _wake __aexit__"),
        (Route, "BASE"),
        (discord.File, "fp filename reset _closer"),
    ],
)
def test_the_sdk_still_has_the_names_that_are_used(kind: type, names: str) -> None:
    source = inspect.getsource(kind)
    missing = [
        name for name in names.split() if not re.search(rf"\b(?:self|ws)\.{name}\b|def {name}\b|\b{name} ?[:=]", source)
    ]
    assert not missing, f"{kind.__name__} of {VERSION} has no {', '.join(missing)} any more"


def test_all_that_the_sdks_socket_asks_of_its_client_is_there() -> None:
    source = inspect.getsource(DiscordWebSocket)
    asked = {
        _State: re.findall(r"(?:client|self)\._connection\.(\w+)|\bstate\.(\w+)", source),
        _Owner: re.findall(r"\bclient\.(\w+)()", source),
        BorrowingClient: re.findall(r"\bclient\.http\.(\w+)()", source),
    }
    for kind, found in asked.items():
        names = {one or other for one, other in found}
        assert names, f"the socket of {VERSION} is made in another way"
        missing = {name for name in names - set(dir(kind)) if f"self.{name} =" not in inspect.getsource(kind)}
        assert not missing, f"the socket of {VERSION} asks {kind.__name__} for {', '.join(sorted(missing))}"


@pytest.mark.parametrize(
    "ours, theirs, method",
    [
        (Socket, DiscordWebSocket, "poll_event"),
        (Socket, DiscordWebSocket, "received_message"),
        (BorrowingClient, HTTPClient, "get_ratelimit"),
        (BorrowingClient, HTTPClient, "ws_connect"),
        (Bucket, Ratelimit, "acquire"),
        (Bucket, Ratelimit, "update"),
        (Bucket, Ratelimit, "_refresh"),
    ],
)
def test_what_is_replaced_is_still_called_in_the_same_way(ours: type, theirs: type, method: str) -> None:
    mine, its = (list(inspect.signature(getattr(kind, method)).parameters) for kind in (ours, theirs))
    assert mine == its, f"{theirs.__name__}.{method} of {VERSION} takes {its}"


def test_a_session_is_begun_and_resumed_by_the_same_words() -> None:
    known = set(inspect.signature(DiscordWebSocket.from_client).parameters)
    assert {"gateway", "session", "sequence", "resume"} <= known, f"{VERSION} connects in another way"
