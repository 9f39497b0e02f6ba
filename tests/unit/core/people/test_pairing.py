"""Pairing codes: derived, without look-alikes, one for each request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.people import pairing
from hermes.core.people.pairing import as_typed, button_data, code_of, is_live, is_same, read_button

SECRET = b"s" * 32


def code(user_id: str = "7", asked_at: float = 1000.0, secret: bytes = SECRET, account: str = "main") -> str:
    return code_of(secret, platform="telegram", account=account, user_id=user_id, asked_at=asked_at)


@given(st.text(), st.floats(min_value=0, max_value=4e9))
def test_a_code_is_eight_plain_characters_and_always_the_same(user_id: str, asked_at: float) -> None:
    made = code(user_id, asked_at)
    assert made == code(user_id, asked_at)
    assert len(made) == 8
    assert set(made) <= set(pairing.ALPHABET)


def test_no_character_looks_like_another() -> None:
    assert not set("01IOL") & set(pairing.ALPHABET)


def test_another_person_time_account_or_home_gives_another_code() -> None:
    assert len({code(), code("8"), code(asked_at=1001.0), code(secret=b"t" * 32), code(account="work")}) == 5


def test_codes_are_spread_over_the_whole_alphabet() -> None:
    seen = "".join(code(str(number)) for number in range(500))
    assert set(seen) == set(pairing.ALPHABET)


def test_how_it_was_typed_does_not_matter() -> None:
    assert as_typed(" `k7qp-m3xw` ") == "K7QPM3XW"
    assert is_same("K7QPM3XW", "k7qp m3xw")
    assert not is_same("K7QPM3XW", "K7QPM3X")
    assert not is_same("K7QPM3XW", "ключ")


def test_a_code_lives_an_hour() -> None:
    assert is_live(1000.0, 1000.0 + 3599)
    assert not is_live(1000.0, 1000.0 + 3600)


@given(st.text())
def test_only_our_own_buttons_are_read(data: str) -> None:
    read = read_button(data)
    assert read is None or button_data(read[0], read[1], approve=read[2]) == data


def test_a_button_fits_the_narrowest_platform() -> None:
    assert read_button(button_data("wecom_callback", "K7QPM3XW", approve=True)) == ("wecom_callback", "K7QPM3XW", True)
    assert len(button_data("wecom_callback", "K7QPM3XW", approve=False)) <= 64
