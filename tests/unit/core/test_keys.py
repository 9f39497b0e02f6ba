"""Keys have one public text form, and reading it gives the same key back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.keys import MAIN, AccountKey, ChatKind, SessionKey, Target

PART = st.text(min_size=1, max_size=12)
MAYBE = st.text(max_size=12)
NAME = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789_-", min_size=1, max_size=12)


@given(platform=NAME, kind=st.sampled_from(ChatKind), chat=PART, thread=MAYBE, person=MAYBE, account=NAME, agent=PART)
def test_a_session_key_reads_back_as_itself(
    platform: str, kind: ChatKind, chat: str, thread: str, person: str, account: str, agent: str
) -> None:
    key = SessionKey(platform, kind, chat, thread, person, account, agent)
    assert SessionKey.parse(str(key)) == key


@given(platform=NAME, chat=PART, thread=MAYBE, account=NAME)
def test_a_target_reads_back_as_itself(platform: str, chat: str, thread: str, account: str) -> None:
    target = Target(platform, chat, thread, account=account)
    assert Target.parse(str(target)) == target


@given(platform=NAME, account=NAME)
def test_an_account_key_reads_back_as_itself(platform: str, account: str) -> None:
    key = AccountKey(platform, account)
    assert AccountKey.parse(str(key)) == key


def test_the_text_form_is_the_public_one() -> None:
    key = SessionKey("telegram", ChatKind.GROUP, "-100:5%", "7", "42", account="work")
    assert str(key) == "agent:main:telegram@work:group:-100%3A5%25:t=7:p=42"
    assert str(key.target) == "telegram@work:-100%3A5%25:7"


def test_the_account_main_is_left_out() -> None:
    assert str(AccountKey("telegram", MAIN)) == "telegram"
    assert str(Target("telegram", "42")) == "telegram:42"


def test_a_key_for_one_person_of_a_group_names_them() -> None:
    key = SessionKey("telegram", ChatKind.GROUP, "-5").for_person("9")
    assert str(key) == "agent:main:telegram:group:-5:p=9"


@pytest.mark.parametrize(
    "text", ["", "telegram", "agent:main", "hello:main:telegram:dm:4", "agent:main:telegram:dm:4:x=1", "a:b:c:dm:e"]
)
def test_what_is_not_a_session_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        SessionKey.parse(text)


@pytest.mark.parametrize("text", ["", "telegram", ":42", "telegram:"])
def test_what_is_not_a_target_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a target"):
        Target.parse(text)
