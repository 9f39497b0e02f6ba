"""A backup taken under load, restored through the command line while the gateway runs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from hermes.store.backup import shelf
from tests.chaos.world import World, opened

SECONDS = 60.0


async def hermes(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-P", "-m", "hermes", *words],
        env=world.gateway.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_backup_under_load_restores_to_a_gateway_that_answers_with_its_history(tmp_path: Path) -> None:
    async with opened(tmp_path / "world", seed=3) as world:
        telegram, home = world.telegram, world.gateway.home
        (home / "skills" / "mine").mkdir(parents=True)
        (home / "skills" / "mine" / "SKILL.md").write_text("---\nname: mine\ndescription: x\n---\nhello\n")
        telegram.user_says("the code word is heron", chat=7)
        await telegram.wait_for(lambda: telegram.has_answered(7, "echo: the code word is heron"), SECONDS)

        async def load() -> None:
            for number in range(100_000):
                text = f"noise {number}"
                telegram.user_says(text, chat=8)
                await telegram.wait_for(partial(telegram.has_answered, 8, f"echo: {text}"), SECONDS)

        noise = asyncio.create_task(load())
        made = await hermes(world, "backup", "create", "--json")
        noise.cancel()
        await asyncio.gather(noise, return_exceptions=True)
        assert made.returncode == 0, made.stderr
        archive = json.loads(made.stdout)["file"]

        telegram.user_says("said after the backup", chat=7)
        await telegram.wait_for(lambda: telegram.has_answered(7, "echo: said after the backup"), SECONDS)
        (home / "skills" / "mine" / "SKILL.md").unlink()
        before = world.gateway.worker()
        restored = await hermes(world, "backup", "restore", archive, "--yes")
        assert restored.returncode == 0, restored.stderr
        assert "✓ Restored." in restored.stdout
        assert await world.gateway.ready() != before
        assert (home / "skills" / "mine" / "SKILL.md").exists()

        telegram.user_says("what was it?", chat=7)
        await telegram.wait_for(lambda: telegram.has_answered(7, "echo: what was it?"), SECONDS)
        asked = json.dumps(world.model.requests[-1])
        assert "the code word is heron" in asked
        assert "said after the backup" not in asked
        assert shelf.set_aside_folders(home)
        checked = await hermes(world, "doctor")
        assert "damage" not in checked.stdout.casefold(), checked.stdout

        undone = await hermes(world, "backup", "restore", "--undo", "--yes")
        assert undone.returncode == 0, undone.stderr
        await world.gateway.ready()
        telegram.user_says("and now?", chat=7)
        await telegram.wait_for(lambda: telegram.has_answered(7, "echo: and now?"), SECONDS)
        assert "said after the backup" in json.dumps(world.model.requests[-1])
