"""Bridges that are linked to a fake WhatsApp."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.fakes.whatsapp import FakeWhatsApp
from tests.fakes.whatsapp_bridge import RunningBridge, lay_out


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("bridge") / "program")


@pytest_asyncio.fixture
async def whatsapp() -> AsyncIterator[FakeWhatsApp]:
    async with FakeWhatsApp() as fake:
        yield fake


@pytest.fixture
def stopped(program: Path, whatsapp: FakeWhatsApp, tmp_path: Path) -> RunningBridge:
    """A bridge that has been linked and does not run."""
    bridge = RunningBridge(program, tmp_path, whatsapp.bridge_environ)
    whatsapp.link_session(bridge.session)
    return bridge


@pytest_asyncio.fixture
async def bridge(stopped: RunningBridge) -> AsyncIterator[RunningBridge]:
    async with stopped:
        await stopped.becomes("connected")
        yield stopped
