"""Which user of this machine is at the other end of a connection, and whose link is whose."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hermes.cli.dashboard import private_page
from hermes.servers.dashboard.peers import bound_to, may_redeem, peer_uid


class Transport:
    """The server's end of a socket, as aiohttp shows it."""

    def __init__(self, connection: socket.socket) -> None:
        self._names = {"peername": connection.getpeername(), "sockname": connection.getsockname()}

    def get_extra_info(self, name: str) -> object:
        return self._names[name]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize(
    "family, listens, calls",
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "127.0.0.1"),
    ],
)
def test_the_user_of_a_connection_is_known(family: socket.AddressFamily, listens: str, calls: str) -> None:
    try:
        listening = socket.create_server((listens, 0), family=family, dualstack_ipv6=listens == "::")
    except OSError:
        pytest.skip("no IPv6 here")
    with listening, socket.create_connection((calls, listening.getsockname()[1]), 10):
        connection, _ = listening.accept()
        with connection:
            transport = Transport(connection)
            assert peer_uid(transport) == os.getuid()
            assert may_redeem(bound_to(os.getuid(), "code"), transport)
            assert may_redeem(bound_to(12345, "code"), transport) == (os.getuid() == 0)  # root reads the home anyway
            assert may_redeem("any code", transport)
    assert peer_uid(transport) is None  # nobody is there any more
    assert not may_redeem(bound_to(os.getuid(), "code"), transport)
    assert not may_redeem(bound_to(os.getuid(), "code"), None)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_connection_that_its_user_has_closed_is_not_roots() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        socket.create_connection(listening.getsockname(), 10).close()
        connection, _ = listening.accept()
        with connection:
            assert peer_uid(Transport(connection)) is None
            assert not may_redeem(bound_to(12345, "code"), Transport(connection))


def test_a_page_that_leads_to_a_link_is_private_and_keeps_the_link_whole() -> None:
    address = private_page('http://127.0.0.1:8642/dashboard/#sign-in=a"b<c')
    page = Path(urlsplit(address).path)
    try:
        assert page.stat().st_mode & 0o077 == 0
        assert "url=http://127.0.0.1:8642/dashboard/#sign-in=a&quot;b&lt;c" in page.read_text("utf-8")
    finally:
        page.unlink()
