"""Transcripts of hermes-agent, read as they are found in the wild: told in our terms, and never changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import GatewayError
from hermes.core.messages import Role
from hermes.hosting.importers import hermes_agent
from hermes.store import codec
from tests.fixtures.homes import snapshot

ANA = "20260105_120000_ab12cd34"
GROUP = "20260105_130000_00ff00ff"
OLD = "20251224_180000_deadbeef"


def write_home(home: Path) -> Path:
    """A home as hermes-agent leaves it: an index of what goes on, and transcripts of that and of what went before."""
    folder = home / "sessions"
    folder.mkdir(parents=True)
    origin = {"platform": "telegram", "chat_id": "7", "chat_type": "dm", "user_id": "7", "user_name": "Ana"}
    in_group = {"platform": "telegram", "chat_id": "-100", "chat_type": "group", "user_id": "8", "thread_id": None}
    index = {
        "_README": "An index of the sessions that go on.",
        "agent:main:telegram:dm:7": _entry(ANA, "telegram", "dm", origin),
        "agent:main:telegram:group:-100:8": _entry(GROUP, "telegram", "group", in_group),
    }
    (folder / "sessions.json").write_text(json.dumps(index, indent=2))
    call = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    ana: list[Any] = [
        {"role": "session_meta", "tools": [], "model": "x/y", "platform": "telegram"},
        {"role": "user", "content": "what is here?", "timestamp": "2026-01-05T12:00:01"},
        {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": "2026-01-05T12:00:02"},
        {"role": "tool", "content": "notes.txt", "tool_call_id": "c1", "timestamp": "2026-01-05T12:00:03"},
        {"role": "assistant", "content": "A file.", "reasoning": "hm", "timestamp": "2026-01-05T12:00:04"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and this?"},
                {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
            ],
        },
        {"role": "assistant", "content": "A picture."},
    ]
    _write(folder / f"{ANA}.jsonl", ana)
    _write(folder / f"{GROUP}.jsonl", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
    with (folder / f"{OLD}.jsonl").open("wb") as file:
        file.write(b'{"role": "session_meta", "platform": "discord"}\n')
        file.write(b'{"role": "user", "content": "old\\u0000 words"}\n')
        file.write(b'{"role": "assistant", "conte\n')
        file.write(b"[1, 2]\n\n")
        file.write(b'{"role": "narrator", "content": "meanwhile"}\n')
        file.write(b'{"role": "assistant", "content": "old answer"}\n')
        file.write(b'{"role": "user", "content": "torn at the e')
    (folder / "20260101_000000_empty000.jsonl").write_text("")
    return home


def _entry(session_id: str, platform: str, kind: str, origin: dict[str, Any]) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "created_at": "2026-01-05T12:00:00",
        "updated_at": "2026-01-05T12:30:00",
        "display_name": "Ana",
        "platform": platform,
        "chat_type": kind,
        "origin": origin,
        "input_tokens": 12,
    }


def _write(path: Path, lines: list[Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def read(home: Path, session_id: str) -> hermes_agent.Read:
    source = hermes_agent.find(home)
    return hermes_agent.read(home / "sessions" / f"{session_id}.jsonl", source)


def test_a_transcript_is_told_in_our_terms(tmp_path: Path) -> None:
    session = read(write_home(tmp_path), ANA).session
    assert session is not None
    assert (session.key, session.user_id, session.is_current) == ("agent:main:telegram:dm:7", "7", True)
    lines = [codec.load_chat(line.body) for line in session.lines]
    assert [line.role for line in lines] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
        Role.ASSISTANT,
        Role.USER,
        Role.ASSISTANT,
    ]
    assert lines[1].tool_calls[0].name == "terminal"
    assert (lines[2].tool_call_id, lines[2].name) == ("c1", "terminal")
    assert lines[4].images[0].url == "https://x.test/a.png"
    assert [line.exchange for line in session.lines] == [1, 1, 1, 1, 2, 2]
    assert all(one.at <= other.at for one, other in zip(session.lines, session.lines[1:], strict=False))


def test_a_person_of_a_group_keeps_a_talk_of_their_own_and_a_thread_is_shared(tmp_path: Path) -> None:
    session = read(write_home(tmp_path), GROUP).session
    assert session is not None
    assert (session.key, session.user_id) == ("agent:main:telegram:group:-100:p=8", "8")
    home = write_home(tmp_path / "forum")
    index = home / "sessions" / "sessions.json"
    index.write_text(index.read_text().replace('"thread_id": null', '"thread_id": "5"'))
    session = read(home, GROUP).session
    assert session is not None
    assert (session.key, session.user_id) == ("agent:main:telegram:group:-100:t=5", "")


def test_an_index_without_origins_is_understood_by_its_keys(tmp_path: Path) -> None:
    home = write_home(tmp_path)
    index = home / "sessions" / "sessions.json"
    told = {
        key: {"session_id": entry["session_id"]}
        for key, entry in json.loads(index.read_text()).items()
        if key[0] != "_"
    }
    index.write_text(json.dumps(told))
    keys = [made.key for name in (ANA, GROUP) if (made := read(home, name).session)]
    assert keys == ["agent:main:telegram:dm:7", "agent:main:telegram:group:-100:p=8"]


def test_lines_that_cannot_be_read_are_told_and_left_out(tmp_path: Path) -> None:
    made = read(write_home(tmp_path), OLD)
    assert made.session is not None
    assert [codec.load_chat(line.body).text for line in made.session.lines] == ["old␀ words", "old answer"]
    assert (made.session.key, made.session.is_current) == (f"agent:main:discord:dm:imported-{OLD}", False)
    assert made.troubles == [
        f"{OLD}.jsonl line 3: not JSON; left out.",
        f"{OLD}.jsonl line 4: not a message; left out.",
        f"{OLD}.jsonl line 6: 'narrator' says nothing; left out.",
        f"{OLD}.jsonl line 8: not JSON; left out.",
    ]


def test_the_same_transcript_has_the_same_name_whatever_the_index_says(tmp_path: Path) -> None:
    home = write_home(tmp_path)
    one = read(home, ANA).session
    (home / "sessions" / "sessions.json").unlink()
    other = read(home, ANA).session
    assert one is not None
    assert other is not None
    assert one.id == other.id


def test_a_home_a_folder_an_index_and_one_file_can_be_named(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    before = snapshot(home)
    assert len(hermes_agent.find(home).files) == 4
    assert hermes_agent.find(home / "sessions").files == hermes_agent.find(home).files
    assert hermes_agent.find(home / "sessions" / "sessions.json").files == hermes_agent.find(home).files
    assert len(hermes_agent.find(home / "sessions" / f"{ANA}.jsonl").files) == 1
    with pytest.raises(GatewayError, match="There is no"):
        hermes_agent.find(tmp_path / "nowhere")
    assert hermes_agent.find(tmp_path).troubles[0].endswith("holds no transcripts (*.jsonl).")
    assert snapshot(home) == before


def test_a_spoiled_index_costs_the_names_and_not_the_words(tmp_path: Path) -> None:
    home = write_home(tmp_path)
    (home / "sessions" / "sessions.json").write_text("{")
    source = hermes_agent.find(home)
    assert "cannot be read" in source.troubles[0]
    assert read(home, ANA).session is not None
