"""Which addresses a model may ask for. Every form here is one that somebody has used to get past such a check."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hermes.core.errors import ToolError
from hermes.core.url_policy import AllowedHosts, WebAddress, check_answers, is_never_allowed, nearness, read_url

REFUSED = [
    # this machine
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://api.localhost/",
    "http://localhost.localdomain/",
    "http://127.0.0.1/",
    "http://127.0.0.1:8642/v1/models",
    "http://127.255.255.254/",
    "http://0.0.0.0/",
    "http://0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://ip6-localhost/",
    # the same in other figures
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0x7F.1/",
    "http://127.0.0.1./",
    "http://127.0.0.01/",
    "http://4294967297/",
    "http://1.2.3.4.5/",
    "http://256.1.1.1/",
    "http://8.8.8.0x8/",
    # inside IPv6
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::808:808]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:1234::1]/",
    "http://[2001:db8::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://[fec0::1]/",
    "http://[::ffff:169.254.169.254]/",
    # this network, and what is no network at all
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://192.0.2.1/",
    "http://203.0.113.7/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://metadata.google.internal/",
    "http://metadata/",
    "http://router/",
    "http://nas.local/",
    "http://printer.lan/",
    "http://box.home.arpa/",
    "http://1.0.0.127.in-addr.arpa/",
    # written so that two readers see two hosts
    "http://example.org@127.0.0.1/",
    "http://127.0.0.1@example.org/",
    "http://user:secret@example.org/",
    "http://example.org:80@127.0.0.1/",
    "http://example.org\\@127.0.0.1/",
    "http:\\\\127.0.0.1/",
    "http://example.org\t.evil/",
    "http://exam\nple.org/",
    "http://example.org /",
    "http://example%2eorg/",
    "http://127%2e0.0.1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://１２７.0.0.1/",
    "http://127。0。0。1/",
    "http://ⓛocalhost/",
    "http://ｌocalhost/",
    "http://ｅxample.org/",
    "http://loc\u00adalhost/",
    "http://local\u200bhost/",
    "http://faß.example/",
    "http://example..org/",
    "http://.example.org/",
    "http://example.org./",
    "http://-example.org/",
    "http://" + "a" * 64 + ".org/",
    "http://" + "a." * 130 + "org/",
    "http://exa$mple.org/",
    "http://[::1/",
    "http://[::1]x/",
    "http://[127.0.0.1]/",
    "http://[example.org]/",
    "http://::1/",
    # no host, no port, another scheme
    "http://",
    "http:///etc/passwd",
    "http:/127.0.0.1/",
    "http:127.0.0.1",
    "//127.0.0.1/",
    "example.org",
    "",
    "http://example.org:/",
    "http://example.org:0/",
    "http://example.org:65536/",
    "http://example.org:-1/",
    "http://example.org:80:80/",
    "http://example.org:８０/",
    "http://example.org:+80/",
    "http://example.org:22/",
    "http://example.org:25/",
    "http://example.org:6379/",
    "http://example.org:5432/",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "ftp://example.org/",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/stat",
    "ldap://127.0.0.1/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "jar:http://127.0.0.1!/",
    "unix:///run/gateway.sock",
    "ws://example.org/",
    "view-source:http://127.0.0.1/",
    "http://example.org/" + "a" * 5000,
]

ALLOWED = {
    "http://example.org": ("example.org", 80, "http://example.org/"),
    "https://example.org/": ("example.org", 443, "https://example.org/"),
    "HTTPS://Example.ORG/Path?Q=1#part": ("example.org", 443, "https://example.org/Path?Q=1"),
    "https://example.org?q=1": ("example.org", 443, "https://example.org/?q=1"),
    "  https://example.org/  ": ("example.org", 443, "https://example.org/"),
    "http://example.org:8080/x": ("example.org", 8080, "http://example.org:8080/x"),
    "https://example.org:443/x": ("example.org", 443, "https://example.org/x"),
    "https://sub_domain.example.org/": ("sub_domain.example.org", 443, "https://sub_domain.example.org/"),
    "https://8.8.8.8/": ("8.8.8.8", 443, "https://8.8.8.8/"),
    "https://172.32.0.1/": ("172.32.0.1", 443, "https://172.32.0.1/"),
    "https://100.128.0.1/": ("100.128.0.1", 443, "https://100.128.0.1/"),
    "https://[2606:2800:21f:cb07::1]:8443/": (
        "2606:2800:21f:cb07::1",
        8443,
        "https://[2606:2800:21f:cb07::1]:8443/",
    ),
    "https://bücher.example/": ("xn--bcher-kva.example", 443, "https://xn--bcher-kva.example/"),
    "https://例え.jp/": ("xn--r8jz45g.jp", 443, "https://xn--r8jz45g.jp/"),
    "https://1.example.org/": ("1.example.org", 443, "https://1.example.org/"),
    "https://localhost.example.org/": ("localhost.example.org", 443, "https://localhost.example.org/"),
    "https://example.org/a@b:c": ("example.org", 443, "https://example.org/a@b:c"),
    "https://example.org/?to=http://127.0.0.1/": (
        "example.org",
        443,
        "https://example.org/?to=http://127.0.0.1/",
    ),
}


def test_there_are_more_than_sixty_forms() -> None:
    assert len(set(REFUSED)) >= 100


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_is_not_for_a_model_is_refused_in_a_sentence(url: str) -> None:
    with pytest.raises(ToolError) as caught:
        read_url(url)
    assert str(caught.value).endswith(".")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ALLOWED)
def test_an_honest_address_is_read_as_it_was_meant(url: str) -> None:
    address = read_url(url)
    assert (address.host, address.port, address.url) == ALLOWED[url]


@given(some.ip_addresses(v=4))
def test_no_form_of_a_near_ipv4_address_passes(ip: IPv4Address) -> None:
    number = int(ip)
    parts = str(ip).split(".")
    odd = [
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(f"0{int(part):o}" for part in parts),
        ".".join(map(hex, map(int, parts))),
        f"[::ffff:{ip}]",
        f"[64:ff9b::{ip}]",
        f"{ip}.",
    ]
    for host in odd:
        with pytest.raises(ToolError):
            read_url(f"http://{host}/")
    if nearness(ip):
        with pytest.raises(ToolError):
            read_url(f"http://{ip}/")
    else:
        assert read_url(f"http://{ip}/").ip == ip


@given(some.ip_addresses())
def test_what_the_library_calls_private_is_never_public_here(ip: IPv4Address | IPv6Address) -> None:
    if ip.is_private or ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        inner = int(ip) & 0xFFFF_FFFF
        is_nat64 = ip.version == 6 and int(ip) >> 32 == int(IPv6Address("64:ff9b::")) >> 32
        assert nearness(ip) or (is_nat64 and not nearness(IPv4Address(inner)))


@given(some.text(max_size=60))
def test_any_text_is_an_address_or_a_sentence(text: str) -> None:
    for url in (text, f"http://{text}", f"https://{text}/"):
        try:
            address = read_url(url)
        except ToolError:
            continue
        assert address.host.isascii()
        assert read_url(address.url) == address
        if address.ip is None:
            with pytest.raises(OSError, match="illegal IP address"):  # no name that passes is an address in disguise
                socket.inet_aton(address.host)


class TestAnswers:
    ADDRESS = WebAddress("https", "example.org", 443)

    def check(self, *answers: str, is_allowed: bool = False) -> tuple[IPv4Address | IPv6Address, ...]:
        return check_answers(self.ADDRESS, answers, is_allowed=is_allowed)

    def test_public_answers_pass(self) -> None:
        assert self.check("93.184.215.14", "2606:2800:21f::1", "93.184.215.14") == (
            ip_address("93.184.215.14"),
            ip_address("2606:2800:21f::1"),
        )

    @pytest.mark.parametrize("near", ["10.0.0.1", "127.0.0.1", "::1", "fe80::1%2", "::ffff:10.0.0.1", "0.0.0.0"])
    def test_one_near_answer_spoils_the_others(self, near: str) -> None:
        with pytest.raises(ToolError, match="leads to"):
            self.check("93.184.215.14", near)

    def test_no_answer_is_said(self) -> None:
        with pytest.raises(ToolError, match="has no address"):
            self.check()

    def test_an_answer_that_is_no_address_is_refused(self) -> None:
        with pytest.raises(ToolError, match="no address"):
            self.check("not-an-address")

    def test_a_public_host_behind_a_nat64_router_is_reached_and_a_private_one_is_not(self) -> None:
        assert self.check("64:ff9b::5db8:d70e")
        with pytest.raises(ToolError):
            self.check("64:ff9b::a00:1")


class TestAllowedHosts:
    PORTS = (80, 443)

    def read(self, url: str, *entries: str) -> WebAddress:
        return read_url(url, ports=self.PORTS, allowed=AllowedHosts(entries))

    @pytest.mark.parametrize(
        "url,entry",
        [
            ("http://nas.lan/x", "nas.lan"),
            ("http://NAS.lan/x", "Nas.Lan"),
            ("http://192.168.1.5/", "192.168.1.5"),
            ("http://nas.lan:5000/", "nas.lan:5000"),
            ("http://[fd00::5]/", "fd00::5"),
            ("http://[fd00::5]:5000/", "[fd00::5]:5000"),
            ("http://localhost:8888/", "localhost:8888"),
        ],
    )
    def test_the_owner_opens_a_host_by_name(self, url: str, entry: str) -> None:
        assert self.read(url, entry)
        with pytest.raises(ToolError):
            self.read(url, "other.lan")

    @pytest.mark.parametrize(
        "url,entry",
        [
            ("http://nas.lan:5000/", "nas.lan"),
            ("http://nas.lan:5001/", "nas.lan:5000"),
            ("http://sub.nas.lan/", "nas.lan"),
            ("http://xnas.lan/", "nas.lan"),
            ("http://192.168.1.50/", "192.168.1.5"),
            ("http://0xc0a80105/", "192.168.1.5"),
        ],
    )
    def test_nothing_else_opens_with_it(self, url: str, entry: str) -> None:
        with pytest.raises(ToolError):
            self.read(url, entry)

    @pytest.mark.parametrize("host", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "[fe80::1]", "[fd00:ec2::254]"])
    def test_no_setting_opens_the_addresses_where_clouds_keep_keys(self, host: str) -> None:
        with pytest.raises(ToolError):
            self.read(f"http://{host}/", host)
        assert is_never_allowed(ip_address(host.strip("[]")))

    def test_a_host_that_was_opened_may_have_a_private_address_but_not_that_one(self) -> None:
        address = WebAddress("http", "nas.lan", 80)
        assert check_answers(address, ["192.168.1.5"], is_allowed=True)
        for answer in ("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"):
            with pytest.raises(ToolError):
                check_answers(address, [answer], is_allowed=True)
