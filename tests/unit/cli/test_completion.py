"""Completion scripts know what the CLI knows, and every shell can read its own."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hermes.cli.commands import COMMANDS
from hermes.cli.completion import VALUES, CompletionWords, bash, fish, words_of, zsh
from hermes.cli.main import load, main, parser_of

SOURCES = Path(__file__).resolve().parents[3] / "src"


def example() -> dict[str, CompletionWords]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--values", help=argparse.SUPPRESS)  # hidden too
    verbs = parser.add_subparsers()
    verbs.add_parser("status", help="How it's doing").add_argument("--long")
    verbs.add_parser("worker")  # without help: hidden
    return dict.fromkeys(COMMANDS, words_of(parser))


def real() -> dict[str, CompletionWords]:
    return {name: words_of(parser_of(name, load(name))) for name in COMMANDS}


def test_verbs_and_options_are_read_from_the_parser() -> None:
    words = example()["gateway"]
    assert dict(words.verbs) == {"status": "How it's doing"}
    assert words.options == ("--help", "--json")
    assert words.after["status"] == ("--help", "--long")


def completed(typed: str, folder: Path) -> list[str]:
    """What bash offers after this, with a `hermes` on the PATH that is this one."""
    command = folder / "hermes"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m hermes "$@"\n')
    command.chmod(0o755)
    words = typed.split(" ")
    ask = f"COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; _hermes; "
    script = f'{bash(real())}{ask}printf "%s\\n" "${{COMPREPLY[@]}}"\n'
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True, timeout=60, env=environ)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_verbs_and_the_options_of_a_verb(tmp_path: Path) -> None:
    assert completed("hermes ga", tmp_path) == ["gateway"]
    assert completed("hermes gateway st", tmp_path) == ["start", "stop", "status"]
    assert completed("hermes gateway status --", tmp_path) == ["--help", "--json", "--system"]
    assert completed("hermes trace --l", tmp_path) == ["--limit"]
    assert completed("hermes trace ev_1 --l", tmp_path) == ["--limit"]


def test_bash_completes_platforms_where_one_is_named(tmp_path: Path) -> None:
    platforms = {"telegram", "discord", "slack", "qq"}
    assert platforms <= set(completed("hermes gateway setup ", tmp_path))
    assert completed("hermes gateway setup tele", tmp_path) == ["telegram"]
    assert completed("hermes setup tele", tmp_path) == ["telegram"]
    assert completed("hermes gateway setup telegram --to", tmp_path) == ["--token"]


def test_bash_completes_the_newest_sessions_without_opening_the_database(tmp_path: Path) -> None:
    home = Path(os.environ["HERMES_HOME"])
    (home / "sessions").mkdir(parents=True)
    for number in range(30):
        file = home / "sessions" / f"s_number{number:02}.jsonl"
        file.touch()
        os.utime(file, (number, number))
    found = completed("hermes sessions show s_", tmp_path)
    assert found == [f"s_number{number:02}" for number in range(29, 9, -1)]
    assert completed("hermes sessions show s_number2", tmp_path) == [
        f"s_number{number}" for number in range(29, 19, -1)
    ]
    assert not (home / "state.db").exists()


@pytest.mark.parametrize("shell, write", [("zsh", zsh), ("fish", fish)])
def test_other_shells_ask_for_the_same_values(
    shell: str, write: Callable[[Mapping[str, CompletionWords]], str]
) -> None:
    script = write(real())
    assert all(name in script for name in COMMANDS)
    asked = "_hermes_values {}" if shell == "zsh" else "hermes completion --values {}"
    for words in VALUES:
        assert asked.format(" ".join(filter(None, words))) in script
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed; only the words were looked at")
    subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=True, timeout=60)


def test_without_a_shell_it_is_asked_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 2
    assert capsys.readouterr().err.endswith("completion bash|zsh|fish\n")


@pytest.mark.parametrize("typed", [[], ["tcsh"]])
def test_a_shell_that_is_missing_or_unknown_is_answered_with_the_known_ones(
    typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["completion", *typed])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert re.search(r"bash\W+zsh\W+fish", capsys.readouterr().err.splitlines()[-1])
