"""A chain asks again where that helps, falls back, and tells it in words."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.errors import ProviderError
from hermes.agent.models.fallback import Chain, Patience
from hermes.core.errors import ModelError
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.messages import ChatMessage, Role, ToolSpec
from hermes.core.ports import ModelEvent, ModelNotice, ModelReply, ModelRequest, ReasoningDelta, TextDelta
from tests.fakes.clock import FakeClock

REQUEST = ModelRequest([ChatMessage(Role.USER, "hi")], model="chosen", tools=[ToolSpec("now", "The time.")])
Script = Sequence[ModelEvent | ModelError]


class Scripted:
    """A model that plays one script per call; the last one goes on for ever."""

    def __init__(self, provider: str, *scripts: Script, has_tools: bool = True) -> None:
        self.label = f"{provider} / m"
        self.has_tools = has_tools
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self._scripts = list(scripts)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        try:
            for event in self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]:
                if isinstance(event, ModelError):
                    raise event
                yield event
        finally:
            self.closed += 1


class Naps:
    """Sleeping that takes no time, and remembers."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        self._clock.advance(seconds)


def failing(
    kind: Kind, retry_after: float | None = None, partial: str = "", provider: str = "openrouter"
) -> ModelError:
    return ProviderError(kind, provider, retry_after=retry_after, partial=partial)


def answering(text: str) -> Script:
    return [TextDelta(text), ModelReply(text)]


@pytest.fixture
def naps(clock: FakeClock) -> Naps:
    return Naps(clock)


def chain(clock: FakeClock, naps: Naps, *models: Scripted, retries: int = 2) -> Chain:
    return Chain(models, clock=clock, sleep=naps, chance=lambda: 0.5, patience=Patience(retries=retries))


async def heard(model: Chain, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


@pytest.mark.parametrize("kind", [Kind.TRANSIENT, Kind.RATE, Kind.EMPTY])
@pytest.mark.parametrize("retries", [0, 1, 6])
async def test_retry_count_is_exact(clock: FakeClock, naps: Naps, kind: Kind, retries: int) -> None:
    model = Scripted("openrouter", [failing(kind)])
    with pytest.raises(ModelError):
        await heard(chain(clock, naps, model, retries=retries))
    assert len(model.requests) == retries + 1
    assert len(naps.taken) == retries


@pytest.mark.parametrize("kind", [Kind.QUOTA, Kind.AUTH, Kind.MODEL, Kind.CONTEXT, Kind.REQUEST])
async def test_what_time_does_not_mend_is_not_tried_again(clock: FakeClock, naps: Naps, kind: Kind) -> None:
    model = Scripted("openrouter", [failing(kind)])
    with pytest.raises(ModelError) as caught:
        await heard(chain(clock, naps, model))
    assert caught.value.kind is kind
    assert len(model.requests) == 1


async def test_an_answer_that_would_end_the_same_way_is_not_paid_for_again(clock: FakeClock, naps: Naps) -> None:
    spent = ProviderError(Kind.EMPTY, "openrouter", is_settled=True)
    first, second = Scripted("openrouter", [spent]), Scripted("openkey", answering("hello"))
    assert (await heard(chain(clock, naps, first, second)))[-1] == ModelReply("hello")
    assert len(first.requests) == 1


async def test_retry_that_succeeds_is_silent(clock: FakeClock, naps: Naps) -> None:
    model = Scripted("openrouter", [failing(Kind.TRANSIENT)], answering("hello"))
    assert await heard(chain(clock, naps, model)) == answering("hello")
    assert naps.taken == [0.25]


async def test_pauses_grow_with_full_jitter_up_to_a_bound(clock: FakeClock, naps: Naps) -> None:
    with pytest.raises(ModelError):
        await heard(chain(clock, naps, Scripted("openrouter", [failing(Kind.TRANSIENT)]), retries=7))
    assert naps.taken == [0.25, 0.5, 1, 2, 4, 4, 4]


@given(st.integers(0, 5), st.floats(0, 1, exclude_max=True))
def test_pause_is_never_longer_than_promised(retried: int, chance: float) -> None:
    patience = Patience(retries=6)
    pause = patience.pause_before_retry(failing(Kind.TRANSIENT), retried, chance)
    assert pause is not None
    assert 0 <= pause <= min(patience.longest_pause_seconds, patience.first_pause_seconds * 2**retried)


async def test_wait_that_a_provider_asks_for_is_kept(clock: FakeClock, naps: Naps) -> None:
    model = Scripted("openrouter", [failing(Kind.RATE, retry_after=7)], answering("hello"))
    await heard(chain(clock, naps, model))
    assert naps.taken == [7.25]


async def test_wait_that_is_too_long_goes_to_the_fallback_and_is_remembered(clock: FakeClock, naps: Naps) -> None:
    first = Scripted("openrouter", [failing(Kind.RATE, retry_after=300)], answering("back again"))
    model = chain(clock, naps, first, Scripted("ollama", answering("hello")))
    for _ in range(2):
        assert isinstance((await heard(model))[0], ModelNotice)
    assert (naps.taken, len(first.requests)) == ([], 1)
    clock.advance(301)
    assert await heard(model) == answering("back again")


async def test_fallback_is_told_in_the_words_people_meet(clock: FakeClock, naps: Naps) -> None:
    first = Scripted("openrouter", [failing(Kind.QUOTA)])
    events = await heard(chain(clock, naps, first, Scripted("ollama", answering("hello"))))
    notice = "My model (openrouter) says the account is out of credit. I answered with the fallback, ollama / m."
    assert events == [ModelNotice(notice), *answering("hello")]


async def test_without_a_fallback_the_owner_is_told_what_to_do(clock: FakeClock, naps: Naps) -> None:
    with pytest.raises(ModelError) as caught:
        await heard(chain(clock, naps, Scripted("openrouter", [failing(Kind.QUOTA)])))
    assert str(caught.value) == (
        "My model (openrouter) says the account is out of credit, and there is no fallback. "
        "Owner: check the key and credit, then `hermes doctor`."
    )


async def test_when_all_fail_the_first_one_counts(clock: FakeClock, naps: Naps) -> None:
    fallback = Scripted("ollama", [failing(Kind.TRANSIENT, provider="ollama")])
    with pytest.raises(ModelError) as caught:
        await heard(chain(clock, naps, Scripted("openrouter", [failing(Kind.AUTH)]), fallback))
    assert (caught.value.kind, caught.value.provider) == (Kind.AUTH, "openrouter")
    assert "does not accept the key, and the fallback (ollama / m) failed too." in str(caught.value)
    assert len(fallback.requests) == 3


async def test_empty_account_is_not_asked_at_every_call(clock: FakeClock, naps: Naps) -> None:
    first = Scripted("openrouter", [failing(Kind.QUOTA)])
    model = chain(clock, naps, first, Scripted("ollama", answering("hello")))
    for _ in range(3):
        assert isinstance((await heard(model))[0], ModelNotice), "told with every answer"
    assert len(first.requests) == 1
    clock.advance(61)
    await heard(model)
    assert len(first.requests) == 2


async def test_new_key_counts_at_the_next_call(clock: FakeClock, naps: Naps) -> None:
    first = Scripted("openrouter", [failing(Kind.AUTH)], answering("hello"))
    model = chain(clock, naps, first, Scripted("ollama", answering("meanwhile")))
    assert (await heard(model))[-1] == ModelReply("meanwhile")
    assert await heard(model) == answering("hello")


async def test_conversation_that_is_too_long_is_not_handed_on(clock: FakeClock, naps: Naps) -> None:
    fallback = Scripted("ollama", answering("hello"))
    with pytest.raises(ModelError) as caught:
        await heard(chain(clock, naps, Scripted("openrouter", [failing(Kind.CONTEXT)]), fallback))
    assert caught.value.kind is Kind.CONTEXT
    assert fallback.requests == []


async def test_fallback_gets_only_what_it_can_use(clock: FakeClock, naps: Naps) -> None:
    first = Scripted("openrouter", [failing(Kind.MODEL)])
    fallback = Scripted("ollama", answering("hello"), has_tools=False)
    model = chain(clock, naps, first, fallback)
    await heard(model)
    assert (first.requests[0].model, fallback.requests[0].model) == ("chosen", "")
    assert (len(first.requests[0].tools), len(fallback.requests[0].tools)) == (1, 0)
    assert (model.label, model.has_tools) == ("openrouter / m", True)


async def test_text_that_was_shown_is_superseded_by_one_more_try(clock: FakeClock, naps: Naps) -> None:
    broken = failing(Kind.TRANSIENT, partial="Once upon")
    again = [ReasoningDelta("hm"), *answering("A whole story")]
    model = Scripted("openrouter", [TextDelta("Once upon"), broken], again)
    assert await heard(chain(clock, naps, model)) == [
        TextDelta("Once upon"),
        ModelNotice("My model (openrouter) did not answer. I asked once more; the answer starts over."),
        ModelReply("A whole story"),
    ]


async def test_text_that_was_shown_is_started_over_only_once(clock: FakeClock, naps: Naps) -> None:
    model = Scripted("openrouter", [TextDelta("Once upon"), failing(Kind.TRANSIENT, partial="Once upon")])
    fallback = Scripted("ollama", answering("A story"))
    events = await heard(chain(clock, naps, model, fallback, retries=5))
    assert len(model.requests) == 2
    assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta("Once upon")]
    assert events[-1] == ModelReply("A story")


async def test_partial_text_stays_with_the_last_error(clock: FakeClock, naps: Naps) -> None:
    model = Scripted("openrouter", [TextDelta("Once upon"), failing(Kind.TRANSIENT, partial="Once upon")])
    with pytest.raises(ModelError) as caught:
        await heard(chain(clock, naps, model))
    assert caught.value.partial == "Once upon"


async def test_deadline_holds_over_all_tries(clock: FakeClock, naps: Naps) -> None:
    model = Scripted("openrouter", [failing(Kind.RATE, retry_after=6)])
    fallback = Scripted("ollama", [failing(Kind.RATE, retry_after=6, provider="ollama")])
    request = ModelRequest(REQUEST.messages, deadline_seconds=10)
    with pytest.raises(ModelError):
        await heard(chain(clock, naps, model, fallback, retries=9), request)
    assert [asked.deadline_seconds for asked in model.requests] == [10, 3.75]
    assert [asked.deadline_seconds for asked in fallback.requests] == [3.75]


async def test_closing_the_chain_closes_the_model(clock: FakeClock, naps: Naps) -> None:
    model = Scripted("openrouter", answering("hello"))
    events = chain(clock, naps, model).stream(REQUEST)
    assert await anext(events) == TextDelta("hello")
    assert model.closed == 0
    await events.aclose()
    assert model.closed == 1


async def test_error_of_any_model_is_understood(clock: FakeClock, naps: Naps) -> None:
    first = Scripted(
        "embedded", [ModelError(Kind.REQUEST, "The built-in model is being fetched.", provider="embedded")]
    )
    events = await heard(chain(clock, naps, first, Scripted("ollama", answering("hello"))))
    assert events[0] == ModelNotice("The built-in model is being fetched. I answered with the fallback, ollama / m.")
