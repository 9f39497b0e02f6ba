"""A damaged state.db under a gateway that runs.

The gateway is fresh: with much in its log, a checkpoint may write the damaged page anew before anybody sees it.
"""

from __future__ import annotations

from hermes.hosting.control import client as control
from tests.e2e.keeping import until
from tests.e2e.test_troubleshooting import World, damage, same_process, world

__all__ = ["same_process", "world"]


def test_a_damaged_state_db_is_recovered_in_the_running_process_and_told(world: World, same_process: int) -> None:
    world.says("before the damage")
    damage(world.home / "state.db")
    world.says("after the damage")

    def is_recovered() -> bool:
        """Every write looks at the file; one that was touched a moment ago is compared a little later."""
        control.call(world.home, "doctor.heal", timeout=60)
        return bool(list(world.home.glob("state.db.corrupt.*")))

    until(is_recovered, 100)
    assert "state.db was damaged" in " ".join(world.doctor()["stores"]["more"])
    assert "file is not a database" in world.log()
    assert list(world.home.glob("state.db.corrupt.*"))
    told = [text for text in world.chats.telegram.texts(7) if "state.db was damaged" in text]
    assert told, "the home channel is told"
