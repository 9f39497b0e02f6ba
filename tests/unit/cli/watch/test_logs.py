"""`hermes logs`: which lines, and none torn apart."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.cli.main import BROKEN_PIPE
from hermes.cli.watch import logs
from hermes.hosting.logs import format as log_format
from hermes.hosting.logs.reader import LogFilter, LogTail, entries, newest

SOURCES = Path(__file__).resolve().parents[4] / "src"

LINES = """\
Gateway started in 0.7 s.
2026-05-01T12:00:00.000+00:00 INFO Connected platform=telegram account=main
2026-05-01T12:00:01.000+00:00 ERROR Adapter broke target=telegram:42 reason="it said \\"no\\""
  Traceback (most recent call last):
    ValueError
2026-05-01T12:00:02.000+00:00 WARNING Disconnected platform=qq account=main
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    path = tmp_path / "logs" / "gateway.log"
    path.parent.mkdir()
    path.write_text(LINES)
    return path


def texts(path: Path, wanted: LogFilter, limit: int = 50) -> list[str]:
    return [entry.text for entry in newest(str(path), wanted, limit)]


def typed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    logs.add_arguments(parser)
    return parser.parse_args(words)


def test_a_traceback_stays_with_its_line(log: Path) -> None:
    (error,) = texts(log, LogFilter(level="ERROR"))
    assert error.endswith("ValueError")
    assert error.count("\n") == 2


def test_a_level_shows_itself_and_worse(log: Path) -> None:
    assert [text.split()[1] for text in texts(log, LogFilter(level="WARNING"))] == ["ERROR", "WARNING"]


def test_a_component_is_found_in_any_field(log: Path) -> None:
    assert len(texts(log, LogFilter(component="telegram"))) == 2
    assert len(texts(log, LogFilter(component="qq"))) == 1
    assert texts(log, LogFilter(component="account")) == []


def test_only_the_newest_are_shown_and_older_files_fill_up(log: Path) -> None:
    log.with_name("gateway.log.1").write_text("2026-04-30T12:00:00.000+00:00 INFO Older\n")
    assert [text.split()[2] for text in texts(log, LogFilter(level="INFO"), 2)] == ["Adapter", "Disconnected"]
    assert texts(log, LogFilter(), 50)[0].endswith("Older")


def test_since_takes_a_span_or_a_time(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert logs.run(typed("--since", "2026-05-01T12:00:01+00:00", "--json")) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["level"] for one in told] == ["ERROR", "WARNING"]
    assert told[0]["fields"]["reason"] == 'it said "no"'
    assert logs.run(typed("--since", "2h")) == 0


def test_a_time_nobody_understands_is_a_clear_sentence(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert logs.run(typed("--since", "yesterday")) == 2
    assert "30m, 2h, 1d" in capsys.readouterr().err


def test_no_log_yet_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    assert logs.run(typed()) == 1
    assert "There is no log yet" in capsys.readouterr().err


def test_following_goes_on_in_the_next_file_after_a_rotation(log: Path) -> None:
    tail = LogTail(str(log))
    assert tail.entries() == []
    with log.open("a") as file:
        file.write("one\ntwo\nhal")
    assert [entry.text for entry in tail.entries()] == ["one", "two"]
    log.rename(log.with_name("gateway.log.1"))
    log.write_text("three\n")
    assert [entry.text for entry in tail.entries()] == ["three"]
    with log.open("a") as file:
        file.write("four\n")
    assert [entry.text for entry in tail.entries()] == ["four"]
    tail.close()


def test_half_a_line_waits_for_its_rest() -> None:
    assert [entry.text for entry in entries(["a\n", "  more\n", None, "b\n"])] == ["a\n  more", "b"]


def test_following_ends_when_its_reader_has_left_though_nothing_is_logged(log: Path) -> None:
    command = [sys.executable, "-m", "hermes", "logs", "-f"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(SOURCES)}) as following:
        assert following.stdout is not None
        following.stdout.readline()
        following.stdout.close()
        assert following.wait(timeout=60) == BROKEN_PIPE


def test_a_log_of_json_is_filtered_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "gateway.log"
    lines = [
        log_format.json_line(1_000.0, "INFO", "Connected", {"platform": "telegram"}),
        log_format.json_line(2_000.0, "WARNING", "Disconnected", {"platform": "qq", "reason": "code=4009"}),
        log_format.line(3_000.0, "ERROR", "Worker ended", {"code": 9}),
    ]
    path.write_text("\n".join(lines) + "\n")
    [found] = newest(str(path), LogFilter(component="qq"), 10)
    assert (found.level, found.at, found.fields["reason"]) == ("WARNING", 2_000.0, "code=4009")
    assert [entry.level for entry in newest(str(path), LogFilter(level="WARNING", since=1_500.0), 10)] == [
        "WARNING",
        "ERROR",
    ]
