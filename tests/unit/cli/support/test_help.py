"""The examples under --help stand in even columns, whatever the command is called here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.cli import gateway
from hermes.cli.commands import COMMANDS
from hermes.cli.main import load, main, parser_of
from hermes.cli.support.help import Parser, add_verbs
from hermes.cli.support.program_name import even_examples

CLONE = Path(__file__).resolve().parents[4]


@pytest.fixture(params=["hermes", "./scripts/hermes"])
def hermes(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(CLONE)
    monkeypatch.setenv("PATH", str(tmp_path))
    if request.param == "hermes":
        (tmp_path / "hermes").symlink_to(CLONE / "scripts" / "hermes")
    return str(request.param)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_examples_of_a_command_do_stands_in_one_column(hermes: str, name: str) -> None:
    lines = (parser_of(name, load(name)).epilog or "").splitlines()[1:]
    assert any(line.lstrip().startswith(hermes) for line in lines)
    assert len({found.end() for line in lines if (found := re.search(r"\s{2,}(?=\S)", line[2:]))}) <= 1, lines


def test_an_example_brings_the_line_below_it_along_to_its_verb(hermes: str) -> None:
    examples = "  hermes people list\n  hermes people link a:1 b:2\n             one person: see hermes people list\n"
    added = add_verbs(argparse.ArgumentParser(), {"list": "list", "link": "join"}, examples)
    shown = ["example:", f"  {hermes} people link a:1 b:2", f"{'':8}one person: see {hermes} people list"]
    assert (added["link"].epilog or "").splitlines() == shown


def test_a_longer_name_moves_the_whole_column(hermes: str) -> None:
    one, two = even_examples("  echo x | hermes send -   reads it\n  hermes   see hermes --help").splitlines()
    assert one == f"  echo x | {hermes} send -   reads it"
    assert two == f"  {hermes}{' ' * len('echo x |  send -')}   see {hermes} --help"


def test_a_verb_that_is_not_there_is_answered_with_those_that_people_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "nonsense"]) == 2
    told = capsys.readouterr().err
    assert "worker" not in told
    assert all(verb in told for verb in gateway.VERBS)


def test_what_the_parser_repeats_of_a_command_line_is_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status", "\x1b[2J"])
    assert "unrecognized arguments: ‹U+001B›[2J" in capsys.readouterr().err


def test_a_name_inside_an_address_is_not_taken_for_the_command(hermes: str) -> None:
    example = "  hermes store copy --from postgresql://hermes@db/hermes --to sqlite:////tmp/state.db"
    assert (
        even_examples(example)
        == f"  {hermes} store copy --from postgresql://hermes@db/hermes --to sqlite:////tmp/state.db"
    )


def test_a_command_in_the_help_of_an_option_can_be_typed_as_it_stands(hermes: str) -> None:
    added = Parser()
    assert (
        added.add_argument("--grant", help="as in `hermes approvals grants`").help
        == f"as in `{hermes} approvals grants`"
    )


def test_several_examples_have_their_heading_in_the_plural() -> None:
    added = add_verbs(
        argparse.ArgumentParser(), {"list": "list"}, "  hermes people list\n  hermes people list --json\n"
    )
    assert (added["list"].epilog or "").startswith("examples:\n")


def parsers() -> Iterator[argparse.ArgumentParser]:
    todo = [parser_of(name, load(name)) for name in COMMANDS]
    while todo:
        parser = todo.pop()
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                todo += action.choices.values()


def test_every_command_and_verb_has_an_example() -> None:
    assert [parser.prog for parser in parsers() if "example" not in (parser.epilog or "")] == []


def test_no_help_is_half_english_where_the_terminal_is_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    left = re.compile(r"(?<![\w-])[a-z]{3,} [a-z]{2,}(?!:)")  # two words side by side that are no command
    texts = {
        text for parser in parsers() for text in (parser.description, *(one.help for one in parser._actions)) if text
    }
    does = {
        found[1] for parser in parsers() for found in re.finditer(r" {3,}(\S.*)$", parser.epilog or "", re.MULTILINE)
    }
    assert len(texts) > 200
    spoken = {re.sub(r"`[^`]*`|\./scripts/hermes.*|hermes [a-z].*", "", text) for text in texts | does}
    assert sorted(text for text in spoken if left.search(text)) == []
