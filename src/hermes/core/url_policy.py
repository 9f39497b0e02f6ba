"""Decide which URLs may be fetched for a model (SSRF rules).

A model reads pages that strangers wrote, so an address it asks for may be theirs. What answers only inside this
machine or this network is not theirs to read. There is one way to write an address here, the plain one: whatever could
be read differently by us and by the library that connects is refused, so that both always mean the same host.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NoReturn

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError

IpAddress = IPv4Address | IPv6Address

MAX_URL_CHARS = 4000
DEFAULT_PORTS = frozenset({80, 443, 8080, 8443})
USUAL_PORT = {"http": 80, "https": 443}

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Written otherwise in the two versions of IDNA, so two libraries may go to two hosts.
_DEVIATING = frozenset("ßẞς\u200c\u200d")

# Names that mean this machine or this network wherever they are asked.
_NEAR_NAMES = frozenset({"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private"})
_NEAR_ENDINGS = (".home.arpa", ".in-addr.arpa", ".ip6.arpa")

# The special-purpose registries of IANA, with the word a person reads for each.
_SPECIAL_V4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "private (shared by a provider)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved"),
        ("192.31.196.0/24", "reserved"),
        ("192.52.193.0/24", "reserved"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("192.175.48.0/24", "reserved"),
        ("198.18.0.0/15", "reserved"),
        ("198.51.100.0/24", "reserved"),
        ("203.0.113.0/24", "reserved"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_SPECIAL_V6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "an IPv4 address inside an IPv6 one"),
        ("::ffff:0:0/96", "an IPv4 address inside an IPv6 one"),
        ("::ffff:0:0:0/96", "an IPv4 address inside an IPv6 one"),
        ("64:ff9b:1::/48", "private"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved"),
        ("2002::/16", "an IPv4 address inside an IPv6 one"),
        ("3fff::/20", "reserved"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
# Here a router of the network turns IPv6 into IPv4: what counts is the address inside.
_NAT64 = IPv6Network("64:ff9b::/96")

# Where clouds hand out the keys of a machine. No setting opens these.
_METADATA = frozenset(map(ip_address, ("169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")))
_NEVER = frozenset({"unspecified", "link-local", "multicast"})


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A checked address. ``rest`` is path and query; ``ip`` is set when the host is written in figures."""

    scheme: str
    host: str
    port: int
    rest: str = "/"
    ip: IpAddress | None = None

    @property
    def url(self) -> str:
        port = "" if USUAL_PORT[self.scheme] == self.port else f":{self.port}"
        return f"{self.scheme}://{self.host_in_url}{port}{self.rest}"

    @property
    def host_in_url(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class AllowedHosts:
    """Private hosts the owner opened: ``nas.lan`` (the usual ports), ``[fd00::5]:80`` (that port only)."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries = frozenset(entry.strip().casefold() for entry in entries if entry.strip())

    def allow(self, address: WebAddress, ports: Collection[int]) -> bool:
        names = {address.host, address.host_in_url}
        if any(f"{name}:{address.port}" in self._entries for name in names):
            return True
        return address.port in ports and not names.isdisjoint(self._entries)


NO_HOSTS = AllowedHosts()


def read_url(text: str, *, ports: Collection[int] = DEFAULT_PORTS, allowed: AllowedHosts = NO_HOSTS) -> WebAddress:
    """Parse an address or raise a ToolError that says what is wrong. ``check_answers`` checks the resolved name."""
    address = _parse(text.strip())
    if allowed.allow(address, ports):
        if address.ip is not None and is_never_allowed(address.ip):
            raise ToolError(f"{address.host_in_url} is closed to tools, whatever the settings say.")
        return address
    if address.ip is not None:
        # Nobody writes the IPv4-in-IPv6 form of a NAT64 router into a URL honestly.
        what = nearness(address.ip) or ("an IPv4 address inside an IPv6 one" if address.ip in _NAT64 else "")
        if what:
            raise ToolError(f"{address.host_in_url} is {what}. Only the public internet is open to tools.")
    elif _is_near(address.host):
        raise ToolError(f"{address.host!r} is a name inside this machine or network, and those are closed to tools.")
    if address.port not in ports:
        usual = ", ".join(map(str, sorted(ports)))
        raise ToolError(f"Port {address.port} is closed to tools. Open ones: {usual}.")
    return address


def check_answers(address: WebAddress, answers: Iterable[str], *, is_allowed: bool) -> tuple[IpAddress, ...]:
    """Check all addresses a name resolves to; one private address rejects all, unless the owner opened the host."""
    found = tuple(dict.fromkeys(_figures(answer) for answer in answers))
    if not found:
        raise ToolError(f"{address.host!r} has no address. Check the spelling of the host.")
    for ip in found:
        if is_never_allowed(ip):
            raise ToolError(f"{address.host!r} leads to {ip}, which is closed to tools.")
        if not is_allowed and (what := nearness(ip)):
            raise ToolError(f"{address.host!r} leads to {ip}, which is {what}. Only the public internet is open.")
    return found


def nearness(ip: IpAddress) -> str:
    """Why an address is not on the public internet (``loopback``, ``private`` ...), or an empty text when it is."""
    if isinstance(ip, IPv4Address):
        return next((what for network, what in _SPECIAL_V4 if ip in network), "")
    if ip in _NAT64:
        return nearness(IPv4Address(int(ip) & 0xFFFF_FFFF))
    special = next((what for network, what in _SPECIAL_V6 if ip in network), "")
    return special or ("" if ip in _PUBLIC_V6 else "reserved")


def is_never_allowed(ip: IpAddress) -> bool:
    """Whether no setting opens this address: keys of cloud machines, link-local, multicast and no address at all."""
    if ip in _METADATA or nearness(ip) in _NEVER:
        return True
    if isinstance(ip, IPv4Address):
        return False
    inner = ip.sixtofour  # the IPv4 address that an IPv6 one carries
    if ip in _NAT64 or (int(ip) >> 32 in (0, 0xFFFF, 0xFFFF_0000) and int(ip) > 1):
        inner = IPv4Address(int(ip) & 0xFFFF_FFFF)
    return inner is not None and is_never_allowed(inner)


def _figures(answer: str) -> IpAddress:
    try:
        return ip_address(answer.partition("%")[0])
    except ValueError:
        raise ToolError(f"The name server answered with {answer[:60]!r}, which is no address.") from None


def _is_near(host: str) -> bool:
    labels = host.split(".")
    # A single label gets the network's own ending, so it means a machine nearby.
    return len(labels) == 1 or labels[-1] in _NEAR_NAMES or f".{host}".endswith(_NEAR_ENDINGS)


def _parse(text: str) -> WebAddress:
    if len(text) > MAX_URL_CHARS:
        raise ToolError(f"The address is longer than {MAX_URL_CHARS} characters.")
    if not text.isprintable() or any(letter.isspace() or letter == "\\" for letter in text):
        _odd("it holds a blank, a backslash or a hidden character")
    scheme, separator, after = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in USUAL_PORT:
        raise ToolError("Only addresses that start with http:// or https:// can be fetched.")
    end = next((place for place, letter in enumerate(after) if letter in "/?#"), len(after))
    rest = after[end:].partition("#")[0]
    rest = rest if rest.startswith("/") else f"/{rest}"
    host, port = _host_and_port(after[:end])
    ip = _literal(host)
    if ip is not None:
        host = str(ip)
    return WebAddress(scheme, host, USUAL_PORT[scheme] if port is None else port, rest, ip)


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise ToolError("The address holds a user name or password. Addresses with credentials are not fetched.")
    if authority.startswith("["):
        host, bracket, port = authority.partition("]")
        if not bracket or port[:1] not in ("", ":") or "%" in host:
            _odd("what stands in brackets is no plain IPv6 address")
        return f"{host}]", _port(port[1:]) if port else None
    host, colon, port = authority.partition(":")
    return _name(host), _port(port) if colon else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536):
        _odd("its port is no number from 1 to 65535")
    return int(text)


def _name(host: str) -> str:
    """Return the host in the one form that is looked up: lower case, ASCII."""
    host = host.lower()
    if not host.isascii():
        if unicodedata.normalize("NFKC", host) != host or not _DEVIATING.isdisjoint(host) or "\u3002" in host:
            _odd("its host is written with look-alike characters; use its plain or xn-- form")
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            _odd("its host is no name")
    if not host:
        raise ToolError("The address has no host.")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        _odd("its host is no plain name")
    return host


def _literal(host: str) -> IpAddress | None:
    """The host when it is an address in figures, None when it is a name. Only the plain form of figures passes."""
    if host.startswith("["):
        try:
            return IPv6Address(host[1:-1])
        except ValueError:
            _odd("what stands in brackets is no plain IPv6 address")
    # A last label in figures makes the whole host figures, however odd: 127.1, 0x7f.1, 2130706433, 0177.0.0.1.
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return None
    try:
        return IPv4Address(host)
    except ValueError:
        _odd("its host is a number, but not four plain ones with dots")


def _odd(why: str) -> NoReturn:
    raise ToolError(f"The address is written oddly: {why}.")
