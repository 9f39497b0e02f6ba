"""``hermes approvals`` as people type it, with no gateway running: it opens the store alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hermes.cli.main import main
from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.core.roles import PersonRole
from hermes.store import inbox, people
from hermes.store.approvals import Question
from hermes.store.db import Tx
from hermes.store.home import make_home
from hermes.store.open import open_database
from hermes.store.turns import steps, tool_calls, turns
from tests.contract.store import rows

CODES = ("K7QP2M", "M3XW9D")


@pytest.fixture
async def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which two questions wait."""
    folder = tmp_path / "home"
    make_home(folder)
    monkeypatch.setenv("HERMES_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    db = await open_database(folder / "state.db")
    await db.write(plant, time.time())
    await db.close()
    return folder


def plant(tx: Tx, now: float) -> None:
    people.ensure(tx, "p_7", platform="telegram", user_id="7", name="Ana", role=PersonRole.USER.value, now=now)
    inbox.accept(tx, [rows.incoming("do it", ready_at=now)], now=now)
    begun = rows.take(tx, now=now)
    assert begun is not None
    calls = [
        tool_calls.NewCall(
            f"c_{code}",
            ToolCall(f"call_{code}", "terminal", json.dumps({"command": f"rm -rf {code}\u202e"}, ensure_ascii=False)),
            Question(f"ap_{code}", code, "p_7", True, "It deletes folders.", now + 300, "delete", "in ~/work"),
        )
        for code in CODES
    ]
    said = ChatMessage(Role.ASSISTANT, "", tool_calls=tuple(new.call for new in calls))
    steps.add_step(tx, begun.claim, begun.turn, said, calls, usage=turns.NO_USAGE, now=now)
    turn = turns.get(tx, begun.turn.id)
    assert turn is not None
    assert steps.wait_for_approval(tx, begun.claim, turn, now=now)


def test_what_waits_is_listed_with_nothing_hidden(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approvals"]) == 0
    said = capsys.readouterr().out
    for word in (*CODES, "terminal in ~/work for Ana, touches this machine", "rm -rf K7QP2M‹U+202E›", "5 min more"):
        assert word in said


def test_an_answer_a_grant_and_its_end(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approvals", "approve", CODES[0].lower(), "--scope", "always"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("✓ Approved, going on.")
    assert "It goes on when the gateway runs" in said
    assert main(["approvals", "deny", CODES[1], "not", "on", "a", "Sunday"]) == 0
    assert main(["approvals", "list"]) == 0
    assert "Nothing waits for an answer." in capsys.readouterr().out
    assert main(["approvals", "grants", "--json"]) == 0
    [grant] = json.loads(capsys.readouterr().out)
    assert (grant["subject"], grant["person"], grant["touches_host"]) == ("delete", "Ana", 1)
    assert main(["approvals", "grants"]) == 0
    assert "delete (this machine), always" in capsys.readouterr().out
    assert main(["approvals", "revoke", grant["id"]]) == 0
    assert main(["approvals", "grants"]) == 0
    assert "Nothing is granted" in capsys.readouterr().out


def test_all_are_answered_at_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approvals", "deny", "all", "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)["answered"]) == sorted(CODES)


@pytest.mark.parametrize(
    "typed, words",
    [
        (["approve", "ZZZZZZ"], "No request has the code 'ZZZZZZ'"),
        (["revoke", "gr_nobody"], "There is no grant 'gr_nobody'"),
    ],
)
def test_what_is_not_there_is_said_with_where_to_look(
    home: Path, capsys: pytest.CaptureFixture[str], typed: list[str], words: str
) -> None:
    assert main(["approvals", *typed]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "Look: " in said


def test_a_second_answer_is_told_who_was_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approvals", "approve", CODES[0]]) == 0
    assert main(["approvals", "deny", CODES[0]]) == 1
    assert "already allowed by the owner" in capsys.readouterr().err


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["approvals", "--help"])
    assert "approvals approve K7QP2M" in capsys.readouterr().out
