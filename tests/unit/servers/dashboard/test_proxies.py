"""Which proxies count, and which path a request means below a base path."""

from __future__ import annotations

import pytest

from hermes.servers.dashboard.proxies import is_trusted, without_base


@pytest.mark.parametrize(
    "remote, trusted, expected",
    [
        ("127.0.0.1", ("127.0.0.1",), True),
        ("10.1.2.3", ("10.0.0.0/8",), True),
        ("::ffff:10.1.2.3", ("10.0.0.0/8",), True),
        ("fd7a:115c::1", ("fd7a:115c::/32",), True),
        ("10.1.2.3", (), False),
        ("10.1.2.3", ("nonsense", "192.168.0.0/16"), False),
        ("", ("10.0.0.0/8",), False),
        ("unix:", ("0.0.0.0/0",), False),
    ],
)
def test_a_proxy_counts_by_its_address(remote: str, trusted: tuple[str, ...], expected: bool) -> None:
    assert is_trusted(remote, trusted) is expected


@pytest.mark.parametrize(
    "path, base, meant",
    [
        ("/hermes/api/sessions", "/hermes", "/api/sessions"),
        ("/hermes", "hermes/", "/"),
        ("/a/b/dashboard/", "/a/b", "/dashboard/"),
        ("/hermesx/api", "/hermes", ""),
        ("/api/sessions", "/hermes", ""),
        ("/api/sessions", "", ""),
    ],
)
def test_a_path_is_meant_below_the_base_path(path: str, base: str, meant: str) -> None:
    assert without_base(path, base) == meant
