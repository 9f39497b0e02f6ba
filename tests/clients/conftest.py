"""A gateway with a scripted model, and real client packages that talk to it over HTTP."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.clients.cases import PROPERTY, Client, prepare, table
from tests.clients.environment import ALL
from tests.e2e.api.conftest import sdk, start_sdk
from tests.fakes.model import FakeModel
from tests.integration.api.serving import served
from tests.integration.conftest import Start, start

__all__ = ["sdk", "start", "start_sdk"]  # the gateway in this process, as the integration tests have it


@pytest.fixture
async def client(start: Start, model: FakeModel, tmp_path: Path) -> AsyncIterator[Client]:
    prepare(model)
    async with served(start) as api:
        key = (await api.new_key("clients", "owner"))["Authorization"].removeprefix("Bearer ")
        yield Client(api, model, tmp_path, key)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of clients and cases in the long form."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    rows = [value for report in reports for name, value in report.user_properties if name == PROPERTY]
    if rows and os.environ.get(ALL) == "all":
        terminalreporter.section("clients")
        for line in table(rows):
            terminalreporter.write_line(line)


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """Keep a property of the test for the table: as ``record_property``, which refuses the form of our reports."""

    def keep(name: str, value: object) -> None:
        request.node.user_properties.append((name, value))

    return keep
