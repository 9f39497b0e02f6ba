"""Completion scripts know what the CLI knows, and every shell can read its own."""

from __future__ import annotations

import argparse
import shutil
import subprocess

import pytest

from hermes.cli.commands import COMMANDS
from hermes.cli.completion import CompletionWords, bash, fish, words_of, zsh


def example() -> dict[str, CompletionWords]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    verbs = parser.add_subparsers()
    verbs.add_parser("status", help="How it's doing")
    verbs.add_parser("worker")  # without help: hidden
    return dict.fromkeys(COMMANDS, words_of(parser))


def test_verbs_and_options_are_read_from_the_parser() -> None:
    words = example()["gateway"]
    assert dict(words.verbs) == {"status": "How it's doing"}
    assert words.options == ("--help", "--json")


def test_bash_completes_commands_and_verbs() -> None:
    ask = 'COMP_WORDS=(hermes {}); COMP_CWORD={}; _hermes; echo "${{COMPREPLY[*]}}"'
    script = bash(example()) + ask.format("ga", 1) + "\n" + ask.format("gateway st", 2) + "\n"
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["gateway", "status"]


@pytest.mark.parametrize("shell, write", [("zsh", zsh), ("fish", fish)])
def test_other_shells_can_read_their_script(shell: str, write: object) -> None:
    assert callable(write)
    script = write(example())
    assert all(name in script for name in COMMANDS)
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed; only the words were looked at")
    subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=True, timeout=60)
