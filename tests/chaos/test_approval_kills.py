"""A question outlives kill -9 of whoever asked it, and is answered afterwards: by its button, or while nobody runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hermes.hosting.control import client as control
from tests.chaos.world import ROOT, GatewayProcess, Victim, World, opened
from tests.fakes.server import Sent

SECONDS = 20.0
RAN = "ran.txt"


async def ask(world: World, what: str, number: int) -> Sent:
    """The owner lets the agent ask for something dangerous; returns the question.

    It is settled then: a gateway killed between sending and recording would rightly send it once more.
    """
    world.model.commands[what] = f"rm -rf build && echo {what!r} >> {RAN}"
    world.telegram.user_says(what)
    await world.telegram.wait_for(lambda: len(questions(world)) >= number, SECONDS)
    async with asyncio.timeout(SECONDS):
        while (await asyncio.to_thread(world.gateway.status))["waiting"].get("answers", 1):  # noqa: ASYNC110 - a process
            await asyncio.sleep(0.01)
    return questions(world)[number - 1]


def questions(world: World) -> list[Sent]:
    return [sent for sent in world.telegram.sent if "/approve " in sent.text or sent.edits]


async def done(world: World, what: str) -> None:
    await world.telegram.wait_for(lambda: world.telegram.has_answered(7, f"echo: {what}"), SECONDS)


async def typed(gateway: GatewayProcess, *words: str) -> Any:
    """``hermes approvals …`` as people type it, in a process of its own."""
    command = [str(ROOT / "scripts" / "hermes"), "approvals", *words, "--json"]
    asked = await asyncio.create_subprocess_exec(*command, env=gateway.environ, stdout=asyncio.subprocess.PIPE)
    said, _ = await asked.communicate()
    assert asked.returncode == 0, said
    return json.loads(said)


@pytest.mark.timeout(240)
async def test_a_question_is_answered_after_its_gateway_was_killed(tmp_path: Path) -> None:
    ran = tmp_path / "world" / "work" / RAN
    async with opened(tmp_path / "world", seed=5) as world:
        world.telegram.user_says("hello")
        await done(world, "hello")
        person = {"person": "telegram:7", "role": "owner"}
        await asyncio.to_thread(control.call, world.gateway.home, "people.role", person)

        first = await ask(world, "tidy up", 1)
        await world.gateway.kill(Victim.WORKER)
        await world.gateway.ready()
        world.telegram.user_presses(first, "Approve")
        await done(world, "tidy up")
        assert ran.read_text() == "tidy up\n"
        await world.telegram.wait_for(lambda: not first.buttons and "Approved by" in first.text, SECONDS)

        second = await ask(world, "tidy more", 2)
        await world.gateway.kill(Victim.BOTH)
        [waiting] = await typed(world.gateway, "list")
        assert json.loads(waiting["arguments"])["command"] == world.model.commands["tidy more"]
        told = await typed(world.gateway, "approve", waiting["code"], "--scope", "always")
        assert told["answered"] == [waiting["code"]]
        assert ran.read_text() == "tidy up\n", "nobody runs, so nothing ran"
        world.gateway.start()
        await world.gateway.ready()
        await done(world, "tidy more")
        assert ran.read_text() == "tidy up\ntidy more\n"
        world.telegram.user_presses(second, "Deny")
        told_at_the_button = world.telegram.answered_presses
        await world.telegram.wait_for(
            lambda: any("already allowed by the owner" in text for text in told_at_the_button.values()), SECONDS
        )

        world.model.commands["tidy again"] = f"rm -rf build && echo 'tidy again' >> {RAN}"
        world.telegram.user_says("tidy again")
        await done(world, "tidy again")  # granted for good, so it is not asked about
        assert ran.read_text() == "tidy up\ntidy more\ntidy again\n"
        assert len(questions(world)) == 2
