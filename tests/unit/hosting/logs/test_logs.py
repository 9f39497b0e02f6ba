"""One event, one line; both files; no secret in either."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import sys
import threading
import warnings
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hermes.core.durations import format_time, use_zone
from hermes.core.secret import Redactor, Secret
from hermes.hosting.logs import format as log_format
from hermes.hosting.logs.logs import CleanFormatter, LineFormatter, Logs, set_format

log = logging.getLogger("hermes.test")


def shown(message: str, **fields: object) -> str:
    record = logging.makeLogRecord({"msg": message, "levelname": "WARNING", "levelno": 30, **fields})
    return LineFormatter(Redactor()).format(record)


def test_words_come_first_and_fields_after() -> None:
    line = shown("Disconnected", platform="qq", account="main", reason="WebSocket closed: code=4009", reconnect_in=2.0)
    head, _, rest = line.partition(" ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", head)
    assert rest == 'WARNING Disconnected platform=qq account=main reason="WebSocket closed: code=4009" reconnect_in=2.0'


@pytest.mark.parametrize("value, text", [(10.0, "10.0"), (2.0, "2.0"), (0.1 + 0.2, "0.3"), (7, "7"), ("", '""')])
def test_figures_are_short_and_an_empty_value_is_seen(value: object, text: str) -> None:
    assert shown("Tried", value=value).endswith(f" value={text}")


def test_a_line_break_in_a_value_cannot_pass_for_a_line() -> None:
    assert "\n" not in shown("Said\nINFO Paired", text="a\nERROR b")


def test_a_log_of_json_has_one_object_for_each_line_and_no_secret(tmp_path: Path) -> None:
    token = 'sk-"quoted"-secret-0123456789'
    set_format("json")
    try:
        with Logs.open(str(tmp_path), Redactor([Secret(token)]), console=False):
            log.warning("Disconnected\nINFO Paired", extra={"platform": "qq", "wait": 2.5, "ok": True, "time": "x"})
            try:
                raise ValueError(f"refused {token}")
            except ValueError:
                log.exception("Failed", extra={"reason": float("nan")})
    finally:
        set_format("text")
    lines = [json.loads(line) for line in (tmp_path / "logs" / "gateway.log").read_text().splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [
        ("WARNING", "Disconnected\nINFO Paired"),
        ("ERROR", "Failed"),
    ]
    assert (lines[0]["platform"], lines[0]["wait"], lines[0]["ok"], lines[0]["time_"]) == ("qq", 2.5, True, "x")
    assert lines[1]["reason"] == "nan"
    assert "ValueError: refused" in lines[1]["trace"]
    assert "quoted" not in (tmp_path / "logs" / "gateway.log").read_text()
    assert log_format.ends_in_json(str(tmp_path / "logs" / "gateway.log"))
    assert log_format.ends_in_json(str(tmp_path / "nowhere")) is False


def test_times_are_those_of_the_zone_that_is_used() -> None:
    use_zone(lambda: ZoneInfo("Asia/Shanghai"))
    try:
        assert log_format.stamp(0.25) == "1970-01-01T08:00:00.250+08:00"
        assert format_time("%H:%M", 0.0) == "08:00"
    finally:
        use_zone(lambda: None)


def test_both_files_are_written_for_their_owner_alone(tmp_path: Path) -> None:
    with Logs.open(str(tmp_path), Redactor(), console=False):
        log.info("Connected", extra={"platform": "telegram"})
        log.warning("Disconnected", extra={"platform": "telegram"})
    everything, errors = tmp_path / "logs" / "gateway.log", tmp_path / "logs" / "errors.log"
    assert [row.split(" ", 1)[1] for row in everything.read_text().splitlines()] == [
        "INFO Connected platform=telegram",
        "WARNING Disconnected platform=telegram",
    ]
    assert errors.read_text().count("\n") == 1
    assert stat.S_IMODE(everything.stat().st_mode) == stat.S_IMODE(errors.stat().st_mode) == 0o600
    assert stat.S_IMODE(everything.parent.stat().st_mode) == 0o700


def test_secrets_are_hidden_in_words_fields_and_tracebacks(tmp_path: Path) -> None:
    token = "123456:AAH-secret-token"
    with Logs.open(str(tmp_path), Redactor([Secret(token)]), console=False):
        try:
            raise RuntimeError(f"POST /bot{token}/getMe")
        except RuntimeError:
            log.exception("Failed with %s", token, extra={"url": f"/bot{token}"})
    text = (tmp_path / "logs" / "errors.log").read_text()
    assert "RuntimeError" in text
    assert token not in text


def test_a_file_that_was_moved_away_is_opened_anew(tmp_path: Path) -> None:
    everything = tmp_path / "logs" / "gateway.log"
    with Logs.open(str(tmp_path), Redactor(), console=False) as logs:
        log.info("One")
        logs.flush()
        everything.rename(tmp_path / "old.log")
        log.info("Two")
    assert "Two" in everything.read_text()
    assert "One" in (tmp_path / "old.log").read_text()


def test_a_log_folder_that_cannot_be_made_leaves_the_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").write_text("a file stands where the folder should be")
    with Logs.open(str(tmp_path), Redactor(), console=False):
        log.info("Still here")
    out = capsys.readouterr().out
    assert "Log files cannot be written" in out
    assert "Still here" in out


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with Logs.open(str(tmp_path), Redactor(), console=False):
        log.info("One")
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_a_terminal_obeys_is_spelled_out_in_words_values_and_tracebacks() -> None:
    try:
        raise RuntimeError("\x1b[2J\x9b1A\u202e\x85ERROR forged")
    except RuntimeError:
        line = shown("Said\x1b]0;x\x07\u2028INFO Paired", text="\x9b2J\x7f\u202eb", exc_info=sys.exc_info())
    first, *rest = line.splitlines()
    assert "Said‹U+001B›]0;x‹U+0007›‹U+2028›INFO Paired" in first
    assert 'text="\\u009b2J\\u007f\\u202eb"' in first
    assert rest[-1] == "  RuntimeError: ‹U+001B›[2J‹U+009B›1A‹U+202E›‹U+0085›ERROR forged"
    assert all(row.isprintable() for row in [first, *rest])


def test_a_warning_without_a_log_is_cleaned_too() -> None:
    record = logging.makeLogRecord({"msg": "Unclosed %s", "args": ("\x1b[2J",), "levelno": 30})
    assert CleanFormatter().format(record) == "Unclosed ‹U+001B›[2J"


def test_lines_that_a_file_could_not_take_are_counted_and_told_when_it_can(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    everything = tmp_path / "logs" / "gateway.log"
    everything.mkdir()  # stands where the file should be
    with Logs.open(str(tmp_path), Redactor(), console=False) as logs:
        log.info("Lost")
        logs.flush()
        assert logs.trouble() == "gateway.log cannot be written (Is a directory)"
        everything.rmdir()
        assert logs.trouble() == ""
        log.info("Kept")
    rows = [row.split(" ", 1)[1] for row in everything.read_text().splitlines()]
    assert rows == [
        'WARNING Log lines lost lines=2 reason="gateway.log cannot be written (Is a directory)"',
        "INFO Kept",
    ]


def test_a_line_that_a_full_disk_cut_short_is_ended_before_the_next(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    everything = tmp_path / "logs" / "gateway.log"
    everything.write_text("2026-05-01T12:00:00.000+02:00 INFO Conn")
    with Logs.open(str(tmp_path), Redactor(), console=False):
        log.info("Next")
    assert everything.read_text().splitlines()[1].endswith(" INFO Next")


def test_what_python_would_print_by_itself_is_a_line_of_the_log(tmp_path: Path) -> None:
    def fail() -> None:
        raise RuntimeError("in a thread")

    with Logs.open(str(tmp_path), Redactor(), console=False):
        thread = threading.Thread(target=fail, name="aside")
        thread.start()
        thread.join(10)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("old\nthing", DeprecationWarning, stacklevel=1)
    rows = (tmp_path / "logs" / "gateway.log").read_text().splitlines()
    told = [row.split(" ", 1)[1] for row in rows if not row.startswith("  ")]
    assert told[0] == "ERROR Thread failed who=aside"
    assert "DeprecationWarning: old\\nthing" in told[1]
    assert len(told) == 2
