"""Every way a connection can end, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.core.errors import CredentialsError, PlatformError, RateLimitedError, UnreachableError
from hermes.platforms.qq import session
from hermes.platforms.qq.session import ALL_INTENTS, FEWER_INTENTS, End, Session, after

NOW = 1_800_000_000.0
LIVE = Session("session-1", 42)


def end(code: int, reason: str = "scripted", *, lasted: float = 1800.0, was_resume: bool = False, **more: bool) -> End:
    return End(code, reason, lasted, was_resume, **{"was_answered": True, **more})


def after_end(known: Session, ended: End) -> tuple[Session, PlatformError]:
    return after(known, ended, NOW)


@pytest.mark.parametrize("code", [4009, 4008, 1000, 1001, 1006, 0])
def test_after_these_the_session_is_resumed(code: int) -> None:
    known, _ = after_end(LIVE, end(code))
    assert (known.session_id, known.seq) == ("session-1", 42)
    assert known.can_resume


@pytest.mark.parametrize("code", [4001, 4002, 4006, 4007, 4900, 4902, 4905, 4913])
def test_after_these_the_session_is_begun_anew(code: int) -> None:
    known, error = after_end(LIVE, end(code))
    assert not known.can_resume
    assert isinstance(error, UnreachableError)


@pytest.mark.parametrize("code", [4010, 4011, 4012, 4013, 4914, 4915])
def test_after_these_the_operator_is_asked(code: int) -> None:
    _, error = after_end(LIVE, end(code))
    assert isinstance(error, CredentialsError)
    assert f"code={code}" in str(error)


def test_4009_is_told_in_the_words_that_people_search_for() -> None:
    _, error = after_end(LIVE, end(4009, "Session timed out"))
    assert isinstance(error, UnreachableError)
    assert str(error) == "WebSocket closed: code=4009 reason=Session timed out"


def test_4008_waits_a_minute() -> None:
    known, error = after_end(LIVE, end(4008))
    assert isinstance(error, RateLimitedError)
    assert error.retry_after == 60
    assert known.can_resume


def test_4004_keeps_the_session_and_is_given_up_at_the_third() -> None:
    known, errors = LIVE, []
    for _ in range(3):
        known, error = after_end(known, end(4004, lasted=6))
        errors.append(type(error))
    assert errors == [UnreachableError, UnreachableError, CredentialsError]
    assert known.can_resume


def test_4014_is_tried_once_with_fewer_intents() -> None:
    known, error = after_end(LIVE, end(4014, lasted=6))
    assert isinstance(error, UnreachableError)
    assert (LIVE.intents(NOW), known.intents(NOW)) == (ALL_INTENTS, FEWER_INTENTS) == (1174409216, 100663296)
    assert not known.can_resume, "with other intents it is another session"
    known, error = after_end(known, end(4014, lasted=6))
    assert isinstance(error, CredentialsError)


def test_a_day_later_all_intents_are_tried_again() -> None:
    known, _ = after_end(LIVE, end(4014))
    assert known.intents(NOW + 86_000) == FEWER_INTENTS
    assert known.intents(NOW + 87_000) == ALL_INTENTS


def test_two_failed_resumes_end_the_session() -> None:
    silence = end(0, "no answer", lasted=10, was_resume=True, was_answered=False)
    once, _ = after_end(LIVE, silence)
    assert once.can_resume
    twice, _ = after_end(once, silence)
    assert not twice.can_resume


@pytest.mark.parametrize("code", [4009, 1000, 4008])
def test_a_resume_after_which_qq_closes_at_once_has_failed_too(code: int) -> None:
    once, _ = after_end(LIVE, end(code, lasted=1, was_resume=True))
    assert once.failed_resumes == 1
    twice, _ = after_end(once, end(code, lasted=1, was_resume=True))
    assert not twice.can_resume


def test_a_line_that_breaks_after_the_answer_says_nothing_about_the_session() -> None:
    known = LIVE
    for _ in range(5):
        known, _ = after_end(known, end(1006, lasted=1, was_resume=True))
    assert known.can_resume


def test_a_resume_that_held_counts_as_good() -> None:
    known, _ = after_end(replace(LIVE, failed_resumes=1), end(4009, was_resume=True))
    assert known.can_resume
    assert known.settled().failed_resumes == 0


def test_an_invalid_session_is_forgotten_at_once_unless_it_may_be_resumed() -> None:
    assert not after_end(LIVE, end(0, was_resume=True, lasted=1, was_answered=False, may_resume=False))[0].can_resume
    assert after_end(LIVE, end(0, was_resume=True, lasted=6, may_resume=True))[0].can_resume


def test_three_connections_that_end_at_once_make_it_wait_and_say_what_to_check() -> None:
    known, errors = Session(), []
    for _ in range(3):
        known, error = after_end(known, end(1006, lasted=0.5))
        errors.append(error)
    assert [type(error) for error in errors] == [UnreachableError, UnreachableError, RateLimitedError]
    assert "check the bot's permissions" in str(errors[-1])
    assert known.quick_ends == 0


def test_a_connection_that_held_starts_the_count_anew() -> None:
    known, _ = after_end(replace(LIVE, quick_ends=2), end(4009))
    assert known.quick_ends == 0


def test_what_is_remembered_comes_back_from_its_marks() -> None:
    known = Session("session-1", 42, 1, 2, 1, 1_800_000_000)
    assert Session.of(known.cursor(Session())) == known
    assert known.cursor(known) == {}
    assert replace(known, seq=43).cursor(known) == {"seq": "43"}


def test_marks_that_cannot_be_read_count_as_not_there() -> None:
    assert Session.of({"session_id": "s", "seq": "many", "failed_resumes": "-1", "quick_ends": "9" * 40}) == Session(
        "s"
    )
    assert not Session("s").can_resume, "a session of which nothing was stored cannot be resumed"


def test_the_first_frames_are_as_qq_wants_them() -> None:
    assert session.identify("T", ALL_INTENTS)["d"] == {
        "token": "QQBot T",
        "intents": 1174409216,
        "shard": [0, 1],
        "properties": {},
    }
    assert session.resume("T", LIVE)["d"] == {"token": "QQBot T", "session_id": "session-1", "seq": 42}
