"""``hermes completion bash|zsh|fish``: one script from the same table and parsers that the CLI itself uses."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Mapping

from hermes.cli.commands import COMMANDS
from hermes.cli.main import load, parser_of
from hermes.core.dataclasses import dataclass

EXAMPLES = """\
  hermes completion bash >> ~/.bashrc
  hermes completion zsh >> ~/.zshrc
  hermes completion fish > ~/.config/fish/completions/hermes.fish
"""


@dataclass(frozen=True, slots=True)
class CompletionWords:
    """What may follow a command: its verbs (with their summaries) and its long options."""

    verbs: Mapping[str, str]
    options: tuple[str, ...]

    def all(self) -> str:
        return " ".join([*self.verbs, *self.options])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> int:
    words = {name: words_of(parser_of(name, load(name))) for name in COMMANDS}
    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](words), end="")
    return 0


def words_of(parser: argparse.ArgumentParser) -> CompletionWords:
    verbs: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            # Verbs without a summary are hidden: typed by the gateway itself, not by people.
            verbs |= {choice.dest: choice.help or "" for choice in action._choices_actions}
        elif action.choices and not action.option_strings:
            verbs |= dict.fromkeys(map(str, action.choices), "")
    options = tuple(option for action in parser._actions for option in action.option_strings if option.startswith("--"))
    return CompletionWords(verbs, options)


def bash(words: Mapping[str, CompletionWords]) -> str:
    cases = "\n".join(f"        {name}) list={shlex.quote(each.all())} ;;" for name, each in words.items())
    return f"""\
_hermes() {{
    local list
    case "${{COMP_WORDS[1]}}" in
{cases}
        *) list="" ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then list={shlex.quote(" ".join([*words, "--version", "--help"]))}; fi
    COMPREPLY=($(compgen -W "$list" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _hermes hermes
"""


def zsh(words: Mapping[str, CompletionWords]) -> str:
    commands = "\n".join(f"        {_zsh_pair(name, COMMANDS[name])}" for name in words)
    cases = "\n".join(f"        {name}) compadd -- {each.all()} ;;" for name, each in words.items())
    return f"""\
#compdef hermes
_hermes() {{
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    case "${{words[2]}}" in
{cases}
    esac
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
compdef _hermes hermes
"""


def fish(words: Mapping[str, CompletionWords]) -> str:
    return "".join(f"{line}\n" for line in _fish_lines(words))


def _fish_lines(words: Mapping[str, CompletionWords]) -> Iterable[str]:
    yield "complete -c hermes -f"
    for name, each in words.items():
        yield f"complete -c hermes -n __fish_use_subcommand -a {name} -d {_fish_quote(COMMANDS[name])}"
        inside = f"-n '__fish_seen_subcommand_from {name}'"
        for verb, summary in each.verbs.items():
            yield f"complete -c hermes {inside} -a {verb}" + (f" -d {_fish_quote(summary)}" if summary else "")
        for option in each.options:
            yield f"complete -c hermes {inside} -l {option.removeprefix('--')}"


def _zsh_pair(name: str, summary: str) -> str:
    return shlex.quote(f"{name}:{summary.replace(':', ' -')}")


def _fish_quote(text: str) -> str:
    # Within single quotes fish knows only these two escapes.
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
