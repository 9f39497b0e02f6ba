"""Ten thousand updates that nobody should send through the reader, five hundred of them through the adapter."""

from __future__ import annotations

import copy
import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from hermes.core.messages import Ignored, InboundMessage, Press, Unreadable
from hermes.core.text import storable
from hermes.platforms.telegram import wire
from hermes.platforms.telegram.parse import Me
from tests.contract.adapters.conftest import Inbox, receiving
from tests.fakes.telegram import FakeTelegram
from tests.integration.test_bad_input import ODD, SAMPLES

ME = Me("42", "test_bot")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
Json = dict[str, Any]


def mutated(chance: random.Random, update: Json) -> Json:
    """The same with one to three things in it gone, something else, or one level deeper."""
    whole: Json = copy.deepcopy(update)
    for _ in range(chance.randint(1, 3)):
        at: Any = whole
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = chance.choice(keys)
            if isinstance(at[key], dict | list) and at[key] and chance.random() < 0.8:
                at = at[key]
                continue
            match chance.randrange(4):
                case 0:
                    del at[key]
                case 1:
                    at[key] = [at[key]]
                case _:
                    at[key] = copy.deepcopy(chance.choice(ODD))
            break
    return whole


def strange(chance: random.Random, number: int) -> Json:
    kind, content = SAMPLES[number % len(SAMPLES)]
    return mutated(chance, {kind: content})


@pytest.mark.one_python
def test_ten_thousand_strange_updates_are_read_or_kept_and_each_has_a_key_by_which_it_is_known() -> None:
    chance = random.Random(8)
    kinds = {InboundMessage: 0, Press: 0, Ignored: 0, Unreadable: 0}
    for number in range(10_000):
        event = wire.understand({"update_id": number, **strange(chance, number)}, ME, NOW)
        kinds[type(event)] += 1
        assert isinstance(event, Ignored) or event.keys
        assert all(storable(key) == key for key in event.keys)
    assert all(count > 50 for count in kinds.values()), kinds


async def test_five_hundred_strange_updates_cost_no_neighbour_its_place() -> None:
    chance = random.Random(9)
    inbox = Inbox()
    async with FakeTelegram() as fake:
        said = []
        for number in range(500):
            if number in (100, 400):  # after these it goes on one by one until they are passed
                fake.deliver_raw(lambda update: b'{"update_id":%d,"message":{"text":"never ends' % update)
            odd = json.dumps(strange(chance, number))[1:]
            fake.deliver_raw(lambda update, odd=odd: f'{{"update_id":{update},{odd}'.replace(",}", "}").encode())  # type: ignore[misc]
            if number % 5 == 0:
                said.append(fake.user_says(f"number {number}", chat=8, user=8))
        said.append(fake.user_says("the last", chat=8, user=8))
        async with fake.adapter() as adapter, receiving(adapter, inbox) as running:
            await fake.wait_for(lambda: said[-1].key in inbox.keys, 15)
            assert not running.done()
    ours = {each.key for each in said}
    assert [key for key in inbox.keys if key in ours] == [each.key for each in said]
    assert [event for event in inbox.events if isinstance(event, Unreadable)]
