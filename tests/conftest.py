"""What holds for every test: a home of its own, no settings of the machine, and no way beyond loopback."""

from __future__ import annotations

import ipaddress
import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from hermes.hosting import processes
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from tests.contract.store.servers import PostgresForTests
    from tests.fakes.model import FakeModel
    from tests.fakes.telegram import FakeTelegram

# Under load an example may take long for reasons of the machine; the test's own timeout is the bound.
settings.register_profile("hermes", deadline=None, max_examples=60)
settings.register_profile("few", settings.get_profile("hermes"), max_examples=15)
settings.load_profile("hermes")

_OURS = (
    "HERMES_",
    "TELEGRAM_",
    "QQ_",
    "QQBOT_",
    "SLACK_",
    "WEIXIN_",
    "DISCORD_",
    "WHATSAPP_",
    "OPENAI_",
    "OPENROUTER_",
    "API_SERVER_",
    "GATEWAY_",
    "MESSAGING_",
    "SESSION_",
    "WEB_",
    "BRAVE_",
    "TAVILY_",
    "SEARXNG_",
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_KEPT = "HERMES_TEST_"  # switches of the test suite itself


# Every process that a test starts imports the same sources: without bytecode it would compile them anew, which takes
# longer than most commands do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Started in the background of a shell, or by nohup, we would hand deafness for Ctrl+C to all that tests start."""
    if config.getoption("--few-cases"):
        settings.load_profile("few")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


MOST_WHOLE = 4  # cases of a test that are variants; more of them are a table


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run the first and the last case of every long table, and a few examples of every property"
    parser.addoption("--few-cases", action="store_true", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the middle of long tables if told so; what a fixture is parametrized by is no table."""
    if not config.getoption("--few-cases"):
        return
    tables: defaultdict[tuple[object, ...], list[pytest.Item]] = defaultdict(list)
    for item in items:
        tables[_table_of(item)].append(item)
    middle = {item for cases in tables.values() if len(cases) > MOST_WHOLE for item in cases[1:-1]}
    if middle:
        config.hook.pytest_deselected(items=sorted(middle, key=lambda item: item.nodeid))
        items[:] = [item for item in items if item not in middle]


def _table_of(item: pytest.Item) -> tuple[object, ...]:
    """Name the test of a case, with the parameters of its fixtures."""
    given: dict[str, object] = (
        item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    )
    marked = {
        name.strip()
        for mark in item.iter_markers("parametrize")
        for name in (mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0])
    }
    own = tuple(f"{name}={value!r}" for name, value in given.items() if name not in marked)
    return item.nodeid.partition("[")[0], own


def pytest_collection_finish(session: pytest.Session) -> None:
    """What takes minutes once in the life of an environment is no part of any test's time."""
    if not session.config.option.collectonly and any("whatsapp" in item.nodeid for item in session.items):
        from tests.fakes.whatsapp_bridge import why_not_installed

        why_not_installed()


class BeyondLoopbackError(RuntimeError):
    """Not an OSError, so that nothing mistakes it for a network that is down."""


def _is_near(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host is None or host in {"", "localhost", "0.0.0.0", "::", "ip6-localhost"}:
        return True
    try:
        address = ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback


class _Guard:
    """Sees every connect, sendto and name lookup of this process, in every thread."""

    def __init__(self) -> None:
        self.attempts: list[str] = []

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not event.startswith("socket."):
            return
        if event in {"socket.connect", "socket.sendto"}:
            address = args[1]
            if isinstance(address, tuple) and not _is_near(address[0]):
                self._refuse(f"{event} to {address[0]}")
        elif event == "socket.getaddrinfo" and not (_is_near(args[0]) or _is_number(args[0])):
            self._refuse(f"name lookup of {args[0]}")

    def _refuse(self, what: str) -> None:
        self.attempts.append(what)
        raise BeyondLoopbackError(f"No test reaches beyond loopback: {what}")


def _is_number(host: object) -> bool:
    """An address in figures is looked up without asking anybody."""
    try:
        ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host))
    except ValueError:
        return False
    return True


_guard = _Guard()
sys.addaudithook(_guard)


@pytest.fixture(autouse=True)
def _stays_on_loopback() -> Iterator[None]:
    _guard.attempts.clear()
    yield
    # Whoever swallowed the error above still fails here.
    attempts, _guard.attempts = _guard.attempts, []
    assert not attempts, f"No test reaches beyond loopback: {attempts}"


@pytest.fixture(autouse=True)
def _adopts_no_orphans() -> None:
    """A command that ran in this process before may have made it the parent of orphans."""
    processes.prctl(processes.PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOME is new and empty, HERMES_HOME names a folder in it that does not exist yet; no setting leaks in."""
    for name in list(os.environ):
        upper = name.upper()
        if (upper.startswith(_OURS) and not upper.startswith(_KEPT)) or upper in _PROXIES:
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HERMES_HOME", str(home / ".hermes"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresForTests]:
    """One server for the whole run: whoever leaves it takes it away from everybody in this process."""
    from tests.contract.store.servers import postgres_for_tests  # psycopg is loaded only where it is needed

    with postgres_for_tests() as server:
        yield server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    from tests.fakes.telegram import FakeTelegram

    async with FakeTelegram() as fake:
        yield fake


@pytest.fixture
async def model() -> AsyncIterator[FakeModel]:
    from tests.fakes.model import FakeModel

    async with FakeModel() as fake:
        yield fake


@pytest.fixture
def beyond_loopback() -> list[str]:
    """The attempts seen so far in this test; a test of the guard itself clears them."""
    return _guard.attempts
