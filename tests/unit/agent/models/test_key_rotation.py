"""Several keys of one provider: who is used, who rests, and when one comes back."""

from __future__ import annotations

import pytest

from hermes.agent.models.key_rotation import QUOTA_REST_SECONDS, RATE_REST_SECONDS, KeyRotation
from hermes.core.errors import ModelError
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.secret import Secret
from tests.fakes.clock import FakeClock

ONE, TWO, THREE = (Secret(f"sk-0123456789-{name}") for name in ("one", "two", "thr"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ring(clock: FakeClock) -> KeyRotation:
    return KeyRotation("relay", [ONE, TWO, THREE], clock)


def failed(kind: Kind, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, "no", retry_after=retry_after)


def test_a_key_stays_in_use_until_it_fails(ring: KeyRotation) -> None:
    assert [ring.current() for _ in range(3)] == [ONE] * 3
    assert ring.after(ONE, failed(Kind.RATE)) == TWO
    assert [ring.current() for _ in range(3)] == [TWO] * 3


def test_a_refused_key_is_passed_over_for_good(ring: KeyRotation, clock: FakeClock) -> None:
    assert ring.after(ONE, failed(Kind.AUTH)) == TWO
    clock.advance(1_000_000)
    assert ring.after(TWO, failed(Kind.RATE)) == THREE
    assert ring.after(THREE, failed(Kind.RATE)) is None
    assert ring.current() != ONE


@pytest.mark.parametrize(
    "error, rest",
    [
        (failed(Kind.RATE, 7), 7.0),
        (failed(Kind.RATE), RATE_REST_SECONDS),
        (failed(Kind.QUOTA), QUOTA_REST_SECONDS),
    ],
)
def test_a_key_with_too_many_requests_rests_as_long_as_the_provider_asks(
    clock: FakeClock, error: ModelError, rest: float
) -> None:
    ring = KeyRotation("relay", [ONE, TWO], clock)
    ring.after(ONE, error)
    ring.after(TWO, failed(Kind.RATE, rest + 100))
    assert ring.current() == ONE, "the one that is soonest back"
    assert [str(state) for state in ring.states()] == [f"…one rests {rest:.0f} s", f"…two rests {rest + 100:.0f} s"]
    clock.advance(rest)
    assert str(ring.states()[0]) == "…one in use"


@pytest.mark.parametrize("kind", [Kind.TRANSIENT, Kind.MODEL, Kind.CONTEXT, Kind.REQUEST, Kind.EMPTY])
def test_what_is_not_about_the_key_changes_nothing(ring: KeyRotation, kind: Kind) -> None:
    assert ring.after(ONE, failed(kind)) is None
    assert ring.current() == ONE


@pytest.mark.parametrize("kind", [Kind.AUTH, Kind.RATE, Kind.QUOTA])
def test_a_single_key_is_never_passed_over(clock: FakeClock, kind: Kind) -> None:
    ring = KeyRotation("relay", [ONE], clock)
    assert ring.after(ONE, failed(kind)) is None
    assert ring.current() == ONE
    assert not ring.has_several


def test_without_a_key_there_is_none(clock: FakeClock) -> None:
    ring = KeyRotation("relay", [], clock)
    assert ring.current() is None
    assert ring.after(None, failed(Kind.AUTH)) is None
    assert ring.states() == []


def test_when_all_are_refused_the_first_is_told(ring: KeyRotation) -> None:
    for key in (ONE, TWO, THREE):
        last = ring.after(key, failed(Kind.AUTH))
    assert last is None
    assert ring.current() == ONE
    assert [state.is_refused for state in ring.states()] == [True] * 3


def test_no_state_shows_a_key(ring: KeyRotation) -> None:
    assert "0123456789" not in repr(ring.states())
    assert [str(state) for state in ring.states()] == ["…one in use", "…two ready", "…thr ready"]
