"""Slash commands as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.slash_command import CommandLine, nearest, read_command


@pytest.mark.parametrize(
    "text, name, rest",
    [
        ("/stop", "stop", ""),
        (" /stop ", "stop", ""),
        ("/STOP", "stop", ""),
        ("/new@ana_bot", "new", ""),
        ("/approve K7QP2M", "approve", "K7QP2M"),
        ("/deny K7QP2M not  on a Sunday", "deny", "K7QP2M not  on a Sunday"),
        ("/deny\nbecause", "deny", "because"),
        ("/busy@bot  queue ", "busy", "queue"),
    ],
)
def test_a_command_is_read(text: str, name: str, rest: str) -> None:
    assert read_command(text) == CommandLine(name, rest)


@pytest.mark.parametrize("text", ["", "/", "/ stop", "/etc/hosts", "/5", "stop", "a /stop", "//stop", "/stop!", "/é"])
def test_a_path_or_a_sentence_is_none(text: str) -> None:
    assert read_command(text) is None


@given(st.text(max_size=200))
def test_any_text_is_read_without_breaking(text: str) -> None:
    line = read_command(text)
    if line is not None:
        assert text.strip().startswith("/")
        assert line.name == line.name.lower()
        assert line.rest == line.rest.strip()


@given(st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True), st.text(max_size=40).map(str.strip))
def test_name_and_rest_come_back_whole(name: str, rest: str) -> None:
    assert read_command(f"/{name} {rest}") == CommandLine(name, rest)


def test_a_slip_of_the_finger_finds_the_nearest() -> None:
    known = ["status", "stop", "new", "approve"]
    assert nearest("statsu", known) == "status"
    assert nearest("aprove", known) == "approve"
    assert nearest("xyzzy", known) == ""
