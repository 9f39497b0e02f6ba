"""Where the port may open, by which names it is called and by which pages."""

from __future__ import annotations

import socket

import pytest

from hermes.config import ApiConfig
from hermes.core.secret import Secret
from hermes.servers.api.security import is_allowed_origin, is_network_accessible, is_our_host, why_closed


def names(host: str) -> list[str]:
    """A resolver with a memory of its own."""
    known = {
        "localhost": ["127.0.0.1", "::1"],
        "box": ["192.168.1.5"],
        "both": ["127.0.0.1", "192.168.1.5"],
        "silent": [],
    }
    if host not in known:
        raise socket.gaierror(f"{host} is not known")
    return known[host]


@pytest.mark.parametrize(
    "host, is_reached",
    [
        ("127.0.0.1", False),
        ("127.8.9.1", False),
        ("::1", False),
        ("[::1]", False),
        ("::ffff:127.0.0.1", False),
        ("localhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("::ffff:0.0.0.0", True),
        ("::ffff:192.168.1.5", True),
        ("192.168.1.5", True),
        ("8.8.8.8", True),
        ("fe80::1%eth0", True),
        ("box", True),
        ("both", True),
        ("silent", True),
        ("does-not-resolve", True),
        ("", True),
    ],
)
def test_what_others_can_reach(host: str, is_reached: bool) -> None:
    assert is_network_accessible(host, names) is is_reached


@pytest.mark.parametrize(
    "host, key, is_closed",
    [
        ("127.0.0.1", None, False),
        ("0.0.0.0", None, True),
        ("0.0.0.0", Secret("a real one, long enough"), False),
        ("0.0.0.0", Secret("short"), True),
        ("0.0.0.0", Secret("x" * 40), True),
        ("0.0.0.0", Secret("0123456789abcde"), True),
        ("does-not-resolve", Secret("short"), True),
        ("127.0.0.1", Secret("short"), False),
        ("localhost", Secret("short"), False),
        ("does-not-resolve", None, True),
        ("localhost", None, False),
    ],
)
async def test_a_port_others_can_reach_needs_a_key(host: str, key: Secret | None, is_closed: bool) -> None:
    reason = await why_closed(ApiConfig(host=host, key=key), names)
    assert bool(reason) is is_closed
    if reason:
        assert host in reason
        assert "API_SERVER_KEY" in reason


LOOPBACK = ApiConfig(host="127.0.0.1", allowed_hosts=("hermes.example.org", "*.ts.net", ".lan"))
EVERYWHERE = ApiConfig(host="0.0.0.0")


@pytest.mark.parametrize(
    "host, is_ours, is_ours_everywhere",
    [
        ("127.0.0.1:8642", True, True),
        ("127.0.0.1", True, True),
        ("localhost", True, True),
        ("LOCALHOST:8642", True, True),
        ("localhost.", True, True),
        ("app.localhost", True, True),
        ("[::1]:8642", True, True),
        ("hermes.example.org", True, False),
        ("box.tail.ts.net", True, False),
        ("ts.net", False, False),
        ("nas.lan:80", True, False),
        ("evil.example.com", False, False),
        ("evil-hermes.example.org", False, False),
        ("127.0.0.1.evil.com", False, False),
        ("localhost.evil.com", False, False),
        ("localhost@evil.com", False, False),
        ("evil.com/localhost", False, False),
        ("localhost:x", False, False),
        ("localhost:99999", False, False),
        ("192.168.1.5:8642", False, True),
        ("hermes:8642", False, True),
        ("[::1", False, False),
        ("", False, False),
        (":8642", False, False),
    ],
)
def test_which_names_are_ours(host: str, is_ours: bool, is_ours_everywhere: bool) -> None:
    assert is_our_host(host, LOOPBACK) is is_ours
    assert is_our_host(host, EVERYWHERE) is is_ours_everywhere


@pytest.mark.parametrize(
    "origin, listed, is_allowed",
    [
        ("http://localhost:8642", (), True),  # our own
        ("http://localhost:3000", (), False),
        ("https://localhost:8642", (), True),  # a proxy that speaks TLS in front of us
        ("https://chat.example.org", ("https://chat.example.org/",), True),
        ("https://CHAT.example.org", ("https://chat.example.org",), True),
        ("http://chat.example.org", ("https://chat.example.org",), False),
        ("https://chat.example.org:444", ("https://chat.example.org",), False),
        ("https://evil.org", ("*",), True),
        ("null", (), False),
        ("", (), False),
        ("app://obsidian.md", ("app://obsidian.md",), True),
        ("chrome-extension://localhost:8642", (), False),
    ],
)
def test_which_pages_may_call(origin: str, listed: tuple[str, ...], is_allowed: bool) -> None:
    assert is_allowed_origin(origin, "localhost:8642", ApiConfig(cors_origins=listed)) is is_allowed
