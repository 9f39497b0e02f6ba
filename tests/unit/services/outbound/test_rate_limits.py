"""Who may call when: finals first, each chat at its pace, and no call more than the platform allows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.core.keys import Target
from hermes.core.messages import Capabilities, Rate, Rates
from hermes.services.outbound.rate_limits import NO_LIMITS, RateLimiter, Slot, Urgency

A, B, C, GROUP = (Target("telegram", chat) for chat in ("1", "2", "3", "-4"))


def rate_limiter(in_all: Rate | None = None, in_chat: Rate | None = None, in_group: Rate | None = None) -> RateLimiter:
    limits = Capabilities(text_limit=100, rates=Rates(in_all, in_chat, in_group, ("-",)))
    return RateLimiter(lambda _: limits)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def places(rate_limiter: RateLimiter, targets: Sequence[Target], urgency: Urgency = Urgency.FINAL) -> list[Slot]:
    return [place for target in targets if (place := rate_limiter.at_once(target, urgency)) is not None]


async def test_a_platform_without_rates_is_never_waited_for() -> None:
    free = RateLimiter(lambda _: Capabilities(text_limit=100))
    assert free.at_once(A) is NO_LIMITS
    assert await free.edit(A) is NO_LIMITS
    assert RateLimiter(lambda _: None).at_once(A) is NO_LIMITS


async def test_no_more_calls_are_made_than_the_platform_allows_in_all() -> None:
    paced = rate_limiter(in_all=Rate(3, 0.05))
    taken = places(paced, [Target("telegram", str(number)) for number in range(10)])
    assert len(taken) == 3
    loop = asyncio.get_running_loop()
    taken[0].end()
    ended = loop.time()
    await paced.final(A)
    assert loop.time() - ended >= 0.05, "a call counts until its time has passed since its answer"


async def test_accounts_of_one_platform_are_counted_each_for_itself() -> None:
    paced = rate_limiter(in_all=Rate(1, 60))
    assert paced.at_once(A) is not None
    assert paced.at_once(B) is None
    assert paced.at_once(Target("telegram", "1", account="work")) is not None


async def test_a_chat_that_has_to_wait_holds_up_no_other_chat() -> None:
    paced = rate_limiter(in_all=Rate(30, 60), in_chat=Rate(1, 60))
    places(paced, [A])
    waiting = asyncio.create_task(paced.final(A))
    await settled()
    assert not waiting.done()
    assert paced.at_once(B) is not None
    waiting.cancel()


async def test_a_group_has_a_rate_of_its_own_and_edits_leave_some_of_it_for_answers() -> None:
    paced = rate_limiter(in_group=Rate(10, 60))
    edits = places(paced, [GROUP] * 20, Urgency.EDIT)
    assert len(edits) == 8
    assert len(places(paced, [GROUP] * 20)) == 2
    assert len(places(paced, [A] * 20)) == 20


async def test_a_final_goes_before_edits_that_have_waited_longer() -> None:
    paced = rate_limiter(in_all=Rate(1, 0.01))
    [first] = places(paced, [A])
    order: list[str] = []

    async def edit(target: Target) -> None:
        place = await paced.edit(target)
        order.append(f"edit {target.chat}")
        assert place is not None
        place.end()

    async def final(target: Target) -> None:
        place = await paced.final(target)
        order.append(f"final {target.chat}")
        place.end()

    tasks = [asyncio.create_task(edit(A)), asyncio.create_task(edit(B))]
    await settled()
    tasks.append(asyncio.create_task(final(C)))
    await settled()
    first.end()
    async with asyncio.timeout(20):
        await asyncio.gather(*tasks)
    assert order == ["final 3", "edit 1", "edit 2"]


async def test_an_edit_that_would_be_overtaken_in_its_chat_is_dropped() -> None:
    paced = rate_limiter(in_chat=Rate(1, 0.01))
    [first] = places(paced, [A])
    edit = asyncio.create_task(paced.edit(A))
    await settled()
    final = asyncio.create_task(paced.final(A))
    async with asyncio.timeout(20):
        assert await edit is None
        first.end()
        assert await final


async def test_finals_get_their_places_in_the_order_in_which_they_asked() -> None:
    paced = rate_limiter(in_all=Rate(1, 0.001))
    [first] = places(paced, [A])
    order: list[int] = []

    async def final(number: int) -> None:
        place = await paced.final(Target("telegram", f"{number}"))
        order.append(number)
        place.end()

    tasks = [asyncio.create_task(final(number)) for number in range(10)]
    await settled()
    first.end()
    async with asyncio.timeout(20):
        await asyncio.gather(*tasks)
    assert order == list(range(10))


async def test_typing_never_waits_and_never_keeps_anybody_waiting() -> None:
    paced = rate_limiter(in_all=Rate(10, 60), in_chat=Rate(1, 60))
    assert len(places(paced, [A] * 9, Urgency.SIGN)) == 4
    assert paced.at_once(A) is not None, "typing is not shown as a message of the chat"


async def test_who_gives_up_waiting_leaves_the_place_to_the_next() -> None:
    paced = rate_limiter(in_chat=Rate(1, 0.001))
    [first] = places(paced, [A])
    gone, patient = (asyncio.create_task(paced.final(A)) for _ in range(2))
    await settled()
    gone.cancel()
    first.end()
    async with asyncio.timeout(20):
        assert await patient


async def test_a_place_that_was_not_used_is_free_at_once_and_only_once() -> None:
    paced = rate_limiter(in_all=Rate(1, 60))
    [place] = places(paced, [A])
    place.give_back()
    place.give_back()
    assert len(places(paced, [A, B, C])) == 1


async def test_a_refusal_holds_its_chat_and_a_second_one_the_whole_account() -> None:
    paced = rate_limiter(in_chat=Rate(5, 0.001))
    paced.hold(A, 0.05)
    assert paced.at_once(A) is None
    assert paced.at_once(A, Urgency.SIGN) is None
    assert paced.at_once(B) is not None
    paced.hold(B, 0.05)
    assert paced.at_once(C) is None
    async with asyncio.timeout(20):
        assert await paced.final(C)


async def test_a_platform_that_means_the_whole_account_is_believed() -> None:
    paced = rate_limiter(in_chat=Rate(5, 0.001))
    paced.hold(A, 60, in_all=True)
    assert paced.at_once(B) is None


async def test_chats_that_are_quiet_again_are_forgotten() -> None:
    paced = rate_limiter(in_chat=Rate(1, 0.0001))
    for number in range(2000):
        [place] = places(paced, [Target("telegram", str(number))])
        place.end()
    [account] = paced._accounts.values()
    assert len(account._chats) < 1500


async def test_with_nobody_waiting_no_timer_runs() -> None:
    paced = rate_limiter(in_all=Rate(2, 60), in_chat=Rate(1, 60))
    for place in places(paced, [A, B]):
        place.end()
    [account] = paced._accounts.values()
    assert account._timer is None
    assert all(chat.timer is None for chat in account._chats.values())
