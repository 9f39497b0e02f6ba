"""Who may answer an approval, and what a button says."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.approval import (
    PressedAnswer,
    Scope,
    TypedApproval,
    button_data,
    effect_sha256,
    may_answer,
    read_approve,
    read_button,
    read_deny,
    was_written_after,
)
from hermes.core.roles import PersonRole
from hermes.store.ids import new_id


@pytest.mark.parametrize(
    "role, is_asked, touches_host",
    list(itertools.product(PersonRole, [True, False], [True, False])),
)
def test_the_asked_person_an_admin_or_the_owner_and_for_the_host_only_the_latter(
    role: PersonRole, is_asked: bool, touches_host: bool
) -> None:
    person = "p_ana" if is_asked else "p_bo"
    allowed = may_answer(asked_of="p_ana", touches_host=touches_host, person_id=person, role=role)
    is_trusted = role in (PersonRole.OWNER, PersonRole.ADMIN)
    may_at_all = role is not PersonRole.GUEST
    assert allowed == (is_trusted or (may_at_all and is_asked and not touches_host))


def test_a_question_asked_of_nobody_is_not_answered_by_somebody_without_a_name() -> None:
    """An unknown person has no id; a question whose asker was not known has none either."""
    assert not may_answer(asked_of="", touches_host=False, person_id="", role=PersonRole.GUEST)


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("allow", [True, False])
def test_a_button_says_what_was_put_into_it(allow: bool, scope: Scope) -> None:
    approval_id = new_id("ap")
    data = button_data(approval_id, allow=allow, scope=scope)
    assert len(data.encode()) <= 64, "the narrowest platform's limit"
    assert read_button(data) == PressedAnswer(approval_id, allow, scope if allow else Scope.ONCE)


@given(st.text(max_size=80))
def test_any_other_text_is_no_answer(text: str) -> None:
    read = read_button(text)
    assert read is None or text.startswith(("ap:allow:", "ap:session:", "ap:always:", "ap:deny:"))


@pytest.mark.parametrize("data", ["ap:allow:", "ap:Allow:ap_1", "ap:forever:ap_1", "ap:allow", "xap:allow:ap_1", ""])
def test_data_that_nobody_of_us_wrote_answers_nothing(data: str) -> None:
    assert read_button(data) is None


@pytest.mark.parametrize(
    "typed, word, scope, unread",
    [
        ("", "", Scope.ONCE, ""),
        ("k7qp2m", "K7QP2M", Scope.ONCE, ""),
        ("K7QP2M session", "K7QP2M", Scope.SESSION, ""),
        ("K7QP2M ALWAYS", "K7QP2M", Scope.ALWAYS, ""),
        ("always", "", Scope.ALWAYS, ""),
        ("session K7QP2M", "K7QP2M", Scope.SESSION, ""),
        ("All", "all", Scope.ONCE, ""),
        ("all session", "all", Scope.SESSION, ""),
        ("once", "", Scope.ONCE, ""),
        ("K7QP2M please do", "K7QP2M", Scope.ONCE, "please do"),
        ("session always", "", Scope.SESSION, "session always"),
    ],
)
def test_what_stands_behind_approve(typed: str, word: str, scope: Scope, unread: str) -> None:
    assert read_approve(typed) == TypedApproval(word, scope, unread)


@pytest.mark.parametrize(
    "typed, first, rest, whole",
    [
        ("", "", "", ""),
        ("K7QP2M", "K7QP2M", "", "K7QP2M"),
        ("K7QP2M not now", "K7QP2M", "not now", "K7QP2M not now"),
        ("not now", "not", "now", "not now"),
        ("ALL  go away", "all", "go away", "all go away"),
    ],
)
def test_what_stands_behind_deny(typed: str, first: str, rest: str, whole: str) -> None:
    read = read_deny(typed)
    assert (read.first, read.rest, read.whole) == (first, rest, whole)


@pytest.mark.parametrize(
    "sent, received, delivered, counts",
    [
        (100.0, 100.5, 99.0, True),
        (100.0, 100.9, 100.7, True),  # written in the second of the delivery: platforms tell whole seconds
        (99.0, 105.0, 100.2, False),  # written before, arrived after: it was about something else
        (100.0, 99.0, 99.5, False),
        (100.0, 100.5, None, False),
    ],
)
def test_an_answer_without_a_code_counts_only_for_what_was_shown_before_it_was_written(
    sent: float, received: float, delivered: float | None, counts: bool
) -> None:
    assert was_written_after(sent_at=sent, received_at=received, delivered_at=delivered) is counts


def test_the_name_of_an_effect_changes_with_every_letter_of_it() -> None:
    names = {effect_sha256(tool, call) for tool in ("terminal", "danger") for call in ("{}", "{ }", '{"a": 1}')}
    assert len(names) == 6
