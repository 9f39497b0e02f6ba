"""What adapters of one account leave to each other."""

from __future__ import annotations

from hermes.core.manifest import AccountResource


class Thing:
    def __init__(self) -> None:
        self.closes = 0

    async def close(self) -> None:
        self.closes += 1


class Other(Thing):
    pass


async def test_a_thing_is_made_once_and_closed_once_behind_the_last_adapter() -> None:
    kept = AccountResource()
    first, other = kept.one(Thing, Thing), kept.one(Other, Other)
    assert kept.one(Thing, Thing) is first
    assert isinstance(other, Other)
    await kept.close()
    await kept.close()
    assert (first.closes, other.closes) == (1, 1)
