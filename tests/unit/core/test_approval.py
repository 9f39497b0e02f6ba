"""Who may answer an approval, and what a button says."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.approval import button_data, may_answer, read_button
from hermes.core.people import PersonRole
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
    assert allowed == (is_trusted or (is_asked and not touches_host))


def test_a_question_asked_of_nobody_is_not_answered_by_somebody_without_a_name() -> None:
    """An unknown person has no id; a question whose asker was not known has none either."""
    assert not may_answer(asked_of="", touches_host=False, person_id="", role=PersonRole.GUEST)


@given(st.booleans())
def test_a_button_says_what_was_put_into_it(allow: bool) -> None:
    approval_id = new_id("ap")
    data = button_data(approval_id, allow=allow)
    assert len(data.encode()) <= 64, "the narrowest platform's limit"
    read = read_button(data)
    assert read is not None
    assert (read.approval_id, read.allow) == (approval_id, allow)


@given(st.text(max_size=80))
def test_any_other_text_is_no_answer(text: str) -> None:
    read = read_button(text)
    assert read is None or text.startswith(("ap:allow:", "ap:deny:"))
