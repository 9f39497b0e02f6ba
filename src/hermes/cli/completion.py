"""``hermes completion bash|zsh|fish``: generate scripts from the command table."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from hermes.cli.commands import COMMANDS
from hermes.cli.main import load, parser_of
from hermes.core.dataclasses import dataclass
from hermes.hosting.terminal import err, out

EXAMPLES = """\
  hermes completion bash >> ~/.bashrc
  hermes completion zsh >> ~/.zshrc
  hermes completion fish > ~/.config/fish/completions/hermes.fish
"""

USAGE_ERROR = 2
SHELLS = ("bash", "zsh", "fish")
PLATFORMS, SESSIONS = "platforms", "sessions"
# What follows a command and its verb ('' where it has none) and is known only on this machine at this moment.
VALUES = {
    ("setup", ""): PLATFORMS,
    ("gateway", "setup"): PLATFORMS,
    ("gateway", "test"): PLATFORMS,
    ("pairing", "list"): PLATFORMS,
    ("pairing", "approve"): PLATFORMS,
    ("pairing", "revoke"): PLATFORMS,
    ("pairing", "clear-pending"): PLATFORMS,
    ("sessions", "show"): SESSIONS,
    ("sessions", "export"): SESSIONS,
    ("sessions", "rename"): SESSIONS,
    ("sessions", "delete"): SESSIONS,
}
MAX_SESSIONS = 20
MAX_TITLE_CHARS = 50
GATEWAY_SECONDS = 2.0  # somebody waits with a finger on Tab


# Whether these words follow the name of the program. `setup` after `gateway` is not the command `setup`.
_FISH_TYPED = """\
function __hermes_typed
    set -l typed (commandline -opc)
    set -e typed[1]
    for place in (seq (count $argv))
        test "$typed[$place]" = "$argv[$place]"; or return 1
    end
end"""


@dataclass(frozen=True, slots=True)
class CompletionWords:
    """What may follow a command: its verbs (with their summaries), its long options, and what may follow each verb."""

    verbs: Mapping[str, str]
    options: tuple[str, ...]
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def all(self) -> str:
        return " ".join([*self.verbs, *self.options])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=SHELLS, metavar="bash|zsh|fish")
    # Asked by the scripts themselves, at each Tab.
    parser.add_argument("--values", nargs="+", metavar="COMMAND [VERB]", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.values:
        for value, about in values(args.values[0], "".join(args.values[1:2])):
            out(f"{value}\t{about}" if about else value)
        return 0
    if not args.shell:
        from hermes.cli.support.program_name import command_name

        err(f"✗ Name a shell: {command_name()} completion {'|'.join(SHELLS)}")
        return USAGE_ERROR
    words = {name: words_of(parser_of(name, load(name))) for name in COMMANDS}
    out({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](words), end="")
    return 0


def words_of(parser: argparse.ArgumentParser) -> CompletionWords:
    verbs: dict[str, str] = {}
    after: dict[str, tuple[str, ...]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            # Verbs without a summary are hidden: typed by the gateway itself, not by people.
            verbs |= {choice.dest: choice.help or "" for choice in action._choices_actions}
            after |= {verb: _options(of_verb) for verb, of_verb in action.choices.items()}
        elif action.choices and not action.option_strings:
            verbs |= dict.fromkeys(filter(None, map(str, action.choices)), "")
    return CompletionWords(verbs, _options(parser), after)


def _options(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    shown = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    return tuple(option for action in shown for option in action.option_strings if option.startswith("--"))


# What is known only now


def values(command: str, verb: str) -> Iterator[tuple[str, str]]:
    """List what can follow this word, each with a hint."""
    match VALUES.get((command, verb)):
        case "platforms":
            from hermes.cli.wizard.platform import offered

            yield from ((manifest.id, manifest.title) for manifest in offered())
        case "sessions":
            yield from _sessions()
        case _:
            return


def _sessions() -> Iterator[tuple[str, str]]:
    """The newest sessions, told by the gateway, else by the files of their transcripts: no database is opened here."""
    from hermes.cli.support.home import home_folder
    from hermes.core.errors import GatewayError
    from hermes.core.text import one_line
    from hermes.hosting.control import client as control

    home = home_folder()
    try:
        for session in control.call(home, "sessions.list", {"limit": MAX_SESSIONS}, GATEWAY_SECONDS):
            yield session["id"], one_line(session["title"] or session["first"], MAX_TITLE_CHARS)
    except GatewayError:
        files = sorted((home / "sessions").glob("*.jsonl"), key=lambda path: path.stat().st_mtime, reverse=True)
        yield from ((path.stem, "") for path in files[:MAX_SESSIONS])


# The scripts


def bash(words: Mapping[str, CompletionWords]) -> str:
    second, later = "\n".join(_bash_cases(words, 2)), "\n".join(_bash_cases(words, 3))
    return f"""\
_hermes() {{
    local list="" values="" current="${{COMP_WORDS[COMP_CWORD]}}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        list={shlex.quote(" ".join([*words, "--version", "--help"]))}
    elif [ "$COMP_CWORD" -eq 2 ]; then
        case "${{COMP_WORDS[1]}}" in
{second}
        esac
    else
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{later}
        esac
    fi
    if [ -n "$values" ] && [ "${{current#-}}" = "$current" ]; then
        list="$list $("${{COMP_WORDS[0]}}" completion --values $values 2>/dev/null | cut -f1)"
    fi
    COMPREPLY=($(compgen -W "$list" -- "$current"))
}}
complete -o default -F _hermes hermes
"""


def _bash_cases(words: Mapping[str, CompletionWords], place: int) -> Iterator[str]:
    for typed, listed, has_values in _places(words, place):
        pattern = f'"{typed}"' if typed == typed.strip() else f'"{typed}"*'
        more = f"; values={shlex.quote(typed.strip())}" if has_values else ""
        yield f"            {pattern}) list={shlex.quote(listed)}{more} ;;"


def _places(words: Mapping[str, CompletionWords], place: int) -> Iterator[tuple[str, str, bool]]:
    """Return typed words, what can follow, and whether values can too; a command without verbs ends in a space."""
    for name, each in words.items():
        if place == 2:
            yield name, each.all(), (name, "") in VALUES
        elif each.after:
            for verb, options in each.after.items():
                yield f"{name} {verb}", " ".join(options), (name, verb) in VALUES
        else:
            yield f"{name} ", " ".join(each.options), (name, "") in VALUES


def zsh(words: Mapping[str, CompletionWords]) -> str:
    pairs = (shlex.quote(f"{name}:{COMMANDS[name].replace(':', ' -')}") for name in words)
    commands = "\n".join(f"        {pair}" for pair in pairs)
    second, later = "\n".join(_zsh_cases(words, 2)), "\n".join(_zsh_cases(words, 3))
    return f"""\
#compdef hermes
_hermes_values() {{
    local -a found
    found=("${{(@f)$("${{words[1]}}" completion --values "$@" 2>/dev/null)}}")
    found=("${{(@)found/$'\\t'/:}}")
    _describe value found
}}
_hermes() {{
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
    elif (( CURRENT == 3 )); then
        case "${{words[2]}}" in
{second}
        esac
    else
        case "${{words[2]}} ${{words[3]}}" in
{later}
        esac
    fi
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
compdef _hermes hermes
"""


def _zsh_cases(words: Mapping[str, CompletionWords], place: int) -> Iterator[str]:
    for typed, listed, has_values in _places(words, place):
        pattern = f'"{typed}"' if typed == typed.strip() else f'"{typed}"*'
        more = f"_hermes_values {typed.strip()}; " if has_values else ""
        yield f"            {pattern}) {more}compadd -- {listed} ;;"


def fish(words: Mapping[str, CompletionWords]) -> str:
    return "".join(f"{line}\n" for line in _fish_lines(words))


def _fish_lines(words: Mapping[str, CompletionWords]) -> Iterable[str]:
    yield _FISH_TYPED
    yield "complete -c hermes -f"
    for name, each in words.items():
        yield f"complete -c hermes -n __fish_use_subcommand -a {name} -d {_fish_quote(COMMANDS[name])}"
        is_next = f"-n '__hermes_typed {name}; and test (count (commandline -opc)) -eq 2'"
        for verb, summary in each.verbs.items():
            yield f"complete -c hermes {is_next} -a {verb}" + (f" -d {_fish_quote(summary)}" if summary else "")
        before_verb = is_next if each.after else f"-n '__hermes_typed {name}'"
        yield from _fish_after(before_verb, each.options, name, "")
        for verb, options in each.after.items():
            yield from _fish_after(f"-n '__hermes_typed {name} {verb}'", options, name, verb)


def _fish_after(condition: str, options: Iterable[str], command: str, verb: str) -> Iterator[str]:
    for option in options:
        yield f"complete -c hermes {condition} -l {option.removeprefix('--')}"
    if (command, verb) in VALUES:
        asked = f"(hermes completion --values {command} {verb}".rstrip() + " 2>/dev/null)"
        yield f"complete -c hermes {condition} -a {_fish_quote(asked)}"


def _fish_quote(text: str) -> str:
    # Within single quotes fish knows only these two escapes.
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
