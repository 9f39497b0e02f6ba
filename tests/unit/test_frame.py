"""What the frame promises: a home of its own for every test, no way out, time that is handed in, a core without I/O."""

from __future__ import annotations

import ast
import os
import socket
import sys
from pathlib import Path

import pytest

from hermes.core.ports import Clock
from tests.conftest import BeyondLoopbackError
from tests.fakes.clock import FakeClock
from tests.unit.syntax_trees import trees

SOURCES = Path(__file__).resolve().parents[2] / "src" / "hermes"


def test_no_test_connects_beyond_loopback(beyond_loopback: list[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(0.1)
        with pytest.raises(BeyondLoopbackError, match=r"192\.0\.2\.1"):
            sock.connect(("192.0.2.1", 443))
    assert beyond_loopback == ["socket.connect to 192.0.2.1"]
    beyond_loopback.clear()


def test_no_test_asks_a_name_server(beyond_loopback: list[str]) -> None:
    with pytest.raises(BeyondLoopbackError):
        socket.getaddrinfo("example.org", 443)
    beyond_loopback.clear()


def test_loopback_is_open() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=1) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_every_test_has_an_empty_home_of_its_own(tmp_path: Path) -> None:
    assert Path.home().is_relative_to(tmp_path)
    assert not list(Path.home().iterdir())
    assert Path(os.environ["HERMES_HOME"]).parent == Path.home()


def test_settings_of_the_machine_do_not_reach_a_test() -> None:
    leaked = [name for name in os.environ if name.startswith(("TELEGRAM_", "OPENAI_", "API_SERVER_"))]
    assert not leaked


def test_time_moves_only_when_told(clock: FakeClock) -> None:
    handed_in: Clock = clock
    before, steady = handed_in.now(), handed_in.monotonic()
    clock.advance(90)
    assert (handed_in.now() - before, handed_in.monotonic() - steady) == (90, 90)
    clock.jump(-3600)
    assert handed_in.monotonic() - steady == 90
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def imported_by(path: Path) -> set[str]:
    nodes = [
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }


@pytest.mark.parametrize("path", sorted((SOURCES / "core").rglob("*.py")), ids=lambda path: path.name)
def test_core_needs_nothing_but_the_standard_library(path: Path) -> None:
    foreign = {
        name
        for name in imported_by(path)
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith("hermes.core")
    }
    # The grammar of bash is data and no I/O (docs/adr/0020); one module asks it, at the first judged command.
    grammar = {"tree_sitter", "tree_sitter_bash"} if path.parent.name == "shell_safety" else set()
    # The due times of cron are computed without I/O; imported with the first job.
    due_times = {"cronsim"} if path.parent.name == "entries" else set()
    assert not foreign - grammar - due_times


@pytest.mark.one_python
def test_every_module_says_what_it_is_for() -> None:
    assert not [name for name, tree in trees().items() if tree.body and not ast.get_docstring(tree)]
