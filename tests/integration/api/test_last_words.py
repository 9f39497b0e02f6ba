"""A stream tells the last words before the end, also when it looks into the store just as the turn ends."""

from __future__ import annotations

from hermes.servers.api.results import end_in_store
from hermes.services.events import TextArrived, TurnEnded
from tests.fakes.model import FakeModel
from tests.integration.conftest import Start
from tests.integration.test_door import request
from tests.integration.watching import until


async def test_a_turn_that_has_just_ended_still_has_its_words_to_say(start: Start, model: FakeModel) -> None:
    model.says("The last words.")
    async with start() as gateway, gateway.requests.ask(request("hello")) as handle:

        async def has_ended() -> bool:
            state = await gateway.requests.state_of(handle.event_id)
            return state is not None and state.status == "completed"

        await until(has_ended)
        assert await end_in_store(handle, gateway.requests) is None, "who follows hears of it in its turn"
        heard = list(handle.ready())

        async def is_told() -> bool:  # who runs the turn tells of its end after the store has it
            heard.extend(handle.ready())
            return bool(heard) and isinstance(heard[-1], TurnEnded)

        await until(is_told)
    assert "".join(event.text for event in heard if isinstance(event, TextArrived)) == "The last words."
    assert isinstance(heard[-1], TurnEnded)
