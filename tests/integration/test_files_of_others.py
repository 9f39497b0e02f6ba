"""Two persons, two roles, every file tool: nobody reads or changes what is another's, the owner's or Hermes' own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.roles import PersonRole
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.watching import a_model_accepts, answered, make, results, transcript

CANARY = "canary-4711"
BEN = 8


def reaching_for(paths: list[str]) -> list[tuple[str, dict[str, object]]]:
    """Every file tool, on every path."""
    calls: list[tuple[str, dict[str, object]]] = []
    for path in paths:
        calls += [
            ("read_file", {"path": path}),
            ("search_files", {"pattern": "canary", "path": path}),
            ("search_files", {"pattern": "*", "path": path, "kind": "names"}),
            ("write_file", {"path": path, "content": "mine now"}),
            ("patch", {"path": path, "edits": [{"old": CANARY, "new": "mine now"}]}),
        ]
    return calls


@pytest.mark.parametrize("role", [PersonRole.USER, PersonRole.ADMIN])
@pytest.mark.parametrize("asker,other", [(USER, BEN), (BEN, USER)], ids=["one", "the other"])
async def test_no_file_tool_reaches_what_is_anothers(
    start: Start,
    telegram: FakeTelegram,
    model: FakeModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    role: PersonRole,
    asker: int,
    other: int,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the owner's workspace, with the home of Hermes in it
    home, theirs = tmp_path / "home", tmp_path / "home" / "workspaces" / f"p_telegram_{other}"
    closed = [theirs / "diary.txt", tmp_path / "letter.txt", home / "canary.txt"]
    async with start(MESSAGING_CWD="", TELEGRAM_ALLOWED_USERS=f"{USER},{BEN}") as gateway:
        for user in (USER, BEN):
            await make(gateway, user, role)
        theirs.mkdir(parents=True)
        for path in closed:
            path.write_text(f"{CANARY}\n")
        paths = [*map(str, closed), f"../p_telegram_{other}/diary.txt", "../../canary.txt", "~/letter.txt", "../.."]
        model.script([calls_tools(*reaching_for(paths), ("write_file", {"path": "own.txt", "content": "x"})), "Done."])
        telegram.user_says("go", chat=asker)
        await answered(telegram, "Done.")
        assert a_model_accepts(await transcript(gateway))
    told = results(model)
    assert len(told) == len(paths) * 5 + 1
    assert not any(CANARY in text for text in told)
    assert all("outside the workspace" in text or "closed to tools" in text for text in told[:-1])
    assert [path.read_text() for path in closed] == [f"{CANARY}\n"] * 3
    assert (home / "workspaces" / f"p_telegram_{asker}" / "own.txt").read_text() == "x"
