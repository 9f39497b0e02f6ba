"""A running gateway follows its files; what is bad in them changes nothing but what is said."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.config import ConfigWatch, Loaded
from hermes.core.secret import Secret
from tests.unit.config.samples import MANIFESTS, TOKEN, Home


class Watching:
    """A watch, and the changes it told."""

    def __init__(self, home: Home) -> None:
        self._told: asyncio.Queue[Loaded] = asyncio.Queue()
        self.watch = ConfigWatch(
            home.path,
            home.environ,
            home.cwd,
            MANIFESTS,
            self._told.put_nowait,
            poll_seconds=0.01,
            settle_seconds=0.005,
        )

    async def change(self) -> Loaded:
        async with asyncio.timeout(20):
            return await self._told.get()

    @property
    def is_quiet(self) -> bool:
        return self._told.empty()


@asynccontextmanager
async def watching(home: Home) -> AsyncIterator[Watching]:
    seen = Watching(home)
    task = asyncio.create_task(seen.watch.run())
    try:
        yield seen
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_token_an_allowlist_and_a_key_count_without_a_restart(home: Home) -> None:
    async with watching(home) as seen:
        home.write(env=f"TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS=1\nOPENAI_API_KEY=sk-0123456789")
        config = (await seen.change()).config
        assert config is seen.watch.current
        assert config.platforms["telegram"]["main"].is_ready
        assert config.platforms["telegram"]["main"].access.allowed_users == {"1"}
        assert config.model.provider == "openai"
        assert config.providers["openai"].api_key == Secret("sk-0123456789")


async def test_every_file_is_watched(home: Home) -> None:
    async with watching(home) as seen:
        home.write(json='{"language": "en"}')
        assert (await seen.change()).config.language == "en"
        home.write(yaml="language: zh")
        assert (await seen.change()).config.language == "zh"
        home.write(env="HERMES_LANGUAGE=en")
        assert (await seen.change()).config.language == "en"
        (home.path / ".env").unlink()
        assert (await seen.change()).config.language == "zh"


async def test_a_file_named_at_the_start_is_watched(home: Home) -> None:
    home.write(named_env="HERMES_LANGUAGE=en", yaml="language: en")
    async with watching(home) as seen:
        home.write(named_env="HERMES_LANGUAGE=zh")
        assert (await seen.change()).config.language == "zh"


async def test_a_bad_edit_keeps_the_last_good_value_of_that_key_alone(home: Home) -> None:
    home.write(yaml="agent: {max_iterations: 7, busy_mode: queue}")
    async with watching(home) as seen:
        home.write(yaml="agent: {max_iterations: seven, busy_mode: steer}")
        loaded = await seen.change()
        assert loaded.config.agent.max_iterations == 7
        assert loaded.config.agent.busy_mode == "steer"
        assert "The last good value stays." in str(loaded.problems[0])
        home.write(yaml="agent: {max_iterations: sieben, busy_mode: steer}")
        assert (await seen.change()).config.agent.max_iterations == 7
        home.write(yaml="agent: {max_iterations: 8}")
        loaded = await seen.change()
        assert loaded.config.agent.max_iterations == 8
        assert loaded.problems == ()


async def test_a_broken_file_leaves_all_it_said_in_force(home: Home) -> None:
    home.write(yaml=f"platforms: {{telegram: {{token: '{TOKEN}'}}}}")
    async with watching(home) as seen:
        home.write(yaml="platforms: {telegram: {token: [")
        loaded = await seen.change()
        assert loaded.config.platforms["telegram"]["main"].is_ready
        assert "What it said before stays in force." in str(loaded.problems[0])


async def test_an_edit_that_changes_nothing_is_not_told(home: Home) -> None:
    home.write(env="HERMES_LANGUAGE=en")
    async with watching(home) as seen:
        home.write(env="# a comment\nHERMES_LANGUAGE=en")
        await asyncio.sleep(0.1)  # longer than several looks
        assert seen.is_quiet


async def test_a_problem_is_logged_once_and_again_only_when_it_comes_back(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if "agnet" in record.getMessage()]

    home.write(yaml="agnet: 1")
    with caplog.at_level(logging.WARNING):
        async with watching(home) as seen:
            home.write(env="HERMES_LANGUAGE=en")
            await seen.change()
            assert len(said()) == 1
            home.write(yaml="")
            await seen.change()
            home.write(yaml="agnet: 1")
            await seen.change()
            assert len(said()) == 2


async def test_reload_reads_at_once(home: Home) -> None:
    seen = Watching(home)
    home.write(env="HERMES_LANGUAGE=en")
    assert seen.watch.reload().config.language == "en"
    assert (await seen.change()).config.language == "en"


async def test_nothing_is_left_running_after_the_end(home: Home) -> None:
    threads = threading.active_count()
    async with watching(home):
        await asyncio.sleep(0)
    assert threading.active_count() == threads


async def test_a_file_that_becomes_readable_by_chmod_counts_without_a_restart(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def read_as_a_user(path: Path) -> bytes:  # the tests may run as root, who may read everything
        if not path.stat().st_mode & 0o400:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_as_a_user)
    home.write(env=f"TELEGRAM_BOT_TOKEN={TOKEN}")
    (home.path / ".env").chmod(0o000)
    async with watching(home) as seen:
        assert "cannot be read" in str(seen.watch.loaded.problems[0])
        (home.path / ".env").chmod(0o600)
        loaded = await seen.change()
        assert (loaded.problems, loaded.config.platforms["telegram"]["main"].is_ready) == ((), True)
