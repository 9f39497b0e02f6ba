"""Known secrets are hidden in every form in which they are met, and private keys whoever they belong to."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from hermes.core.secret import HIDDEN, Redactor, Secret
from tests.unit.cpu import cpu_seconds, only_own_garbage

ODD = 'pa/ss@w"ör\\d'
LINES = [f"{letter * 64}" for letter in "abcd"]
KEY = "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *LINES, "efgh", "-----END OPENSSH PRIVATE KEY-----"])
NUMBERED = [f"{number}\t{line}" for number, line in enumerate(KEY.splitlines(), 1)]


@pytest.mark.parametrize("form", [ODD, quote(ODD, safe=""), json.dumps(ODD)[1:-1], json.dumps(ODD, ensure_ascii=False)])
def test_a_secret_is_hidden_as_it_is_in_an_address_and_in_json(form: str) -> None:
    hidden = Redactor([Secret(ODD)])(f"before {form} after")
    assert HIDDEN in hidden
    assert "ss" not in hidden.replace("ssh", "")


@pytest.mark.parametrize(
    "text",
    [KEY, "\n".join(NUMBERED), "\n".join(NUMBERED[:4]), "\n".join(NUMBERED[1:]), KEY.replace("\n", "\r\n")],
    ids=["whole", "with line numbers", "its beginning", "its end", "line ends of Windows"],
)
def test_a_private_key_is_hidden_also_by_half(text: str) -> None:
    hidden = Redactor()(f"first\n{text}\nlast")
    assert not [line for line in LINES if line in hidden]
    assert hidden.startswith("first\n")
    assert hidden.endswith("last")


def test_words_about_keys_stay() -> None:
    text = "A key file begins with -----BEGIN PRIVATE KEY----- and then comes base64."
    assert Redactor()(text) == text


def test_masked_bytes_are_as_many_as_before() -> None:
    raw = b"\xff " + ODD.encode() + b"\n" + KEY.encode() + b"\n\x00"
    masked = Redactor([Secret(ODD)]).mask(raw)
    assert len(masked) == len(raw)
    assert ODD.encode() not in masked
    assert LINES[2].encode() not in masked
    assert masked.startswith(b"\xff ")


BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    "piece",
    [
        f"{BEGIN}\n",
        BEGIN,
        END,
        f"{BEGIN}{'A' * 70}\n",
        f"{'A' * 16}\n",
        f"{'A' * 16} ",
        "A",
        f"{'A' * 16}\n{END}\n",
        "\n",
    ],
)
def test_a_text_made_to_be_slow_is_looked_through_at_once(piece: str) -> None:
    hostile = f"{BEGIN}{piece * (500_000 // len(piece))} PRIVATE KEY-----"
    with only_own_garbage():
        assert cpu_seconds(lambda: (Redactor()(hostile), Redactor().mask(hostile.encode()))) < 2


def test_two_keys_and_what_stands_between_them() -> None:
    assert Redactor()(f"{KEY}\nbetween\n{KEY}") == f"{HIDDEN}\nbetween\n{HIDDEN}"


def test_the_end_of_one_key_does_not_reach_over_to_another() -> None:
    halves = "\n".join([*LINES, "efgh", END, "a line of plain words in between", *LINES, END, "last"])
    assert Redactor()(halves) == f"{HIDDEN}\na line of plain words in between\n{HIDDEN}\nlast"
