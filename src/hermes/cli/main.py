"""Dispatch a command line, importing only the command that it names.

Every command is a module of ``hermes.cli`` with

    EXAMPLES: str                                        shown under --help
    def add_arguments(parser: argparse.ArgumentParser)   declares what can be typed
    def run(args: argparse.Namespace) -> int             does it and gives the exit code

and one line in ``COMMANDS``, and in ``MODULES`` if the module stands in a folder.
Standard library only, and of that as little as possible: see docs/adr/0003.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

from hermes import __version__
from hermes.cli.commands import BARE, COMMANDS, GROUPS, MODULES

TYPE_CHECKING = False  # what is imported only to name types would be a fifth of the way of `hermes --version`
if TYPE_CHECKING:
    import argparse
    from types import FrameType, TracebackType
    from typing import Protocol

    class Command(Protocol):
        EXAMPLES: str

        def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

        def run(self, args: argparse.Namespace) -> int: ...


USAGE_ERROR = 2
CONFIG_ERROR = 78  # EX_CONFIG: a supervisor must not start it again before somebody edited something
INTERRUPTED = 130
BROKEN_PIPE = 141
ENV_FILE_OPTION = "--env-file"
PROFILE_OPTIONS = ("-p", "--profile")

_TROUBLES_OF_THE_MACHINE = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENAMETOOLONG,
    }
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was typed and return the exit code. Only argparse may leave by SystemExit."""
    typed = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        _interrupt_between_imports()
    print_anything()
    if (is_profile_named(typed) or "HERMES_PROFILE" in os.environ) and (code := _take_profile(typed)):
        return code
    if any(word.startswith(ENV_FILE_OPTION) for word in typed) and (code := _take_env_file(typed)):
        return code
    if typed in (["gateway"], ["gateway", "run"]):
        from hermes.hosting import launch

        launch.start_at_once()  # returns where there is something to look at first
    try:
        code = guarded(lambda: _dispatch(typed))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough. The interpreter flushes once more at its end; give it a place.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _interrupt_between_imports() -> None:
    """Let Ctrl+C wait for the end of an import: orjson crashes the process when its own is interrupted.

    By the built-in modules alone: `hermes --version` is to cost what it costs.
    """
    import _signal  # type: ignore[import-not-found] # built in, as `signal` itself is not
    import _thread
    import time

    def again() -> None:
        time.sleep(0.02)
        os.kill(os.getpid(), _signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        at = frame
        while at is not None:
            if at.f_code.co_filename == "<frozen importlib._bootstrap>":
                _thread.start_new_thread(again, ())
                return
            at = at.f_back
        _signal.default_int_handler(number, frame)

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, interrupt)


def is_profile_named(typed: Sequence[str]) -> bool:
    """Tell whether a profile is named: in front of any command, or anywhere after ``gateway``."""
    return _profile_place(typed) >= 0


def _profile_place(typed: Sequence[str]) -> int:
    place = 0
    while place < len(typed):
        option, equals, _ = typed[place].partition("=")
        if option in PROFILE_OPTIONS:
            return place
        if option == ENV_FILE_OPTION:
            place += 1 if equals else 2
        elif typed[0] == "gateway":
            place += 1
        else:
            break
    return -1


def _take_profile(typed: list[str]) -> int:
    """Take ``-p NAME`` out of the words, and let HERMES_HOME name the home of the profile from here on.

    Without the option HERMES_PROFILE counts. Not 0: the exit code of a mistake.
    """
    from hermes.hosting import profiles

    place, name = _profile_place(typed), os.environ.get("HERMES_PROFILE", "").strip()
    if place >= 0:
        _option, equals, value = typed[place].partition("=")
        words = typed[place : place + (1 if equals else 2)]
        name = value if equals else (words[1] if len(words) == 2 else "")
        del typed[place : place + len(words)]
    elif not name:
        return 0
    from_here = os.environ.get("HERMES_PROFILE", "").strip()
    given = os.path.abspath(os.path.expanduser(os.environ.get("HERMES_HOME") or "~/.hermes"))
    root = profiles.root_of(given, from_here)
    home = profiles.home_in(root, name)
    if reason := profiles.why_no_name(name):
        trouble, code = f"✗ Invalid profile name {name!r}: the name {reason}.", USAGE_ERROR
    elif name != profiles.DEFAULT and not os.path.isdir(home) and typed[:1] != ["profile"]:
        trouble, code = f"✗ There is no profile {name}. Create it: hermes profile create {name}", CONFIG_ERROR
    else:
        os.environ["HERMES_HOME"], os.environ["HERMES_PROFILE"] = home, name
        if name == profiles.DEFAULT:
            del os.environ["HERMES_PROFILE"]
        return 0
    os.environ.pop("HERMES_PROFILE", None)  # what is printed now is not of that profile
    from hermes.hosting.terminal import err
    from hermes.hosting.translation import tr

    err(_as_typed(tr(trouble)))
    return code


def _take_env_file(typed: list[str]) -> int:
    """Take ``--env-file PATH`` out of the words: in front of any command, or anywhere after ``gateway``.

    It goes into the environment, where the supervisor and the worker find it again. Not 0: the exit code of a mistake.
    """
    places = range(len(typed)) if typed[0] == "gateway" else range(1)
    for place in places:
        option, equals, path = typed[place].partition("=")
        if option != ENV_FILE_OPTION:
            continue
        words = typed[place : place + (1 if equals else 2)]
        path = os.path.abspath(os.path.expanduser(path or words[-1]))
        if len(words) == (1 if equals else 2) and os.path.isfile(path):
            os.environ["HERMES_ENV_FILE"] = path
            del typed[place : place + len(words)]
            return 0
        from hermes.hosting.terminal import err
        from hermes.hosting.translation import tr

        err(tr(f"✗ {ENV_FILE_OPTION} takes the path of a file with lines NAME=value; {path} is not a file."))
        return USAGE_ERROR
    return 0


def gateway_main() -> int:
    """The entry point ``hermes-gateway VERB``."""
    _interrupt_between_imports()
    return main(["gateway", *sys.argv[1:]])


def _dispatch(typed: list[str]) -> int:
    match typed:
        case ["--version" | "-V", *_]:
            from hermes.hosting.terminal import out

            out(f"hermes {__version__}")
            return 0
        case ["--help" | "-h" | "help", *_]:
            _print_help()
            return 0
        case [first, *_] if first.startswith("-") and "-z" in typed:  # "--json -z hello" as well as "-z hello --json"
            return _one_shot(typed)
        case ["supervisor", *rest]:  # the process parent; typed by nobody
            from hermes.hosting import parent

            return parent.main(rest, _as_typed)
        case ["--gateway", *rest]:  # the old spelling
            return _run("gateway", ["run", *rest])
        case [name, *rest] if name in BARE:
            # The bare form stands for a verb, with options too: ``gateway --replace``, ``config --all``.
            is_bare = not rest or (rest[0].startswith("-") and rest[0] not in {"-h", "--help"})
            return _run(name, [BARE[name], *rest] if is_bare else rest)
        case [name, *rest] if name in COMMANDS:
            return _run(name, rest)
        case [name, *_] if not name.startswith("-"):
            return _unknown(name)
        case _:
            return _run("chat", typed)


def _run(name: str, rest: list[str]) -> int:
    command = load(name)
    verbs = getattr(command, "VERBS", None)
    if verbs and (not rest or (rest[0] not in verbs and not rest[0].startswith("-"))):
        if rest:
            return _unknown(rest[0], verbs, of=name)
        from hermes.cli.support.program_name import command_name
        from hermes.hosting.terminal import err
        from hermes.hosting.translation import tr

        err(tr(f"✗ A verb is missing: {command_name()} {name} {'|'.join(verbs)}"))
        return USAGE_ERROR
    return command.run(parser_of(name, command).parse_args(rest))


def _one_shot(typed: list[str]) -> int:
    from hermes.cli.chat.one_shot import APPROVALS, FORMATS, OneShotOptions, one_shot
    from hermes.cli.support.help import Parser
    from hermes.cli.support.program_name import command_name

    parser = Parser(prog=command_name(), description="Ask one question, print the answer, exit.")
    parser.add_argument("-z", action="store_true", required=True, help="ask one question and exit")
    parser.add_argument("--json", action="store_true", dest="as_json", help="the same as --output-format json")
    parser.add_argument(
        "--output-format",
        choices=FORMATS,
        default="text",
        dest="output",
        help="text: the answer; json: one object; stream-json: every event as a line, the result last",
    )
    parser.add_argument(
        "--timeout", type=float, default=0.0, metavar="SECONDS", help="stop the turn after so long and exit with 124"
    )
    parser.add_argument(
        "--approve",
        choices=APPROVALS,
        default="none",
        help="answer questions with yes: none, safe (what runs in a sandbox), all (default: none)",
    )
    # As many words as there are, since people forget the quotes; with none at all, one_shot says what to type.
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help="the question; - reads it from stdin")
    args = parser.parse_intermixed_args(typed)
    prompt = sys.stdin.read() if args.prompt == ["-"] else " ".join(args.prompt)
    output = "json" if args.as_json and args.output == "text" else args.output
    return one_shot(prompt, OneShotOptions(output, max(0.0, args.timeout), args.approve))


def load(name: str) -> Command:
    command: Command = import_module(f"hermes.cli.{MODULES.get(name, name)}")
    return command


def parser_of(name: str, command: Command) -> argparse.ArgumentParser:
    import argparse

    from hermes.cli.support.help import Parser
    from hermes.cli.support.program_name import command_name, even_examples

    examples = even_examples(command.EXAMPLES.rstrip())
    parser = Parser(
        prog=f"{command_name()} {name}",
        description=COMMANDS[name] + ".",
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    return parser


def _unknown(name: str, known: Iterable[str] = COMMANDS, *, of: str = "") -> int:
    """Say so, and what was meant. ``of`` is the command whose verb it would be."""
    from difflib import get_close_matches

    from hermes.cli.support.program_name import command_name
    from hermes.hosting.terminal import err
    from hermes.hosting.translation import tr

    typed = " ".join(filter(None, (command_name(), of)))
    near = get_close_matches(name, known, n=1)
    others = f"There are: {', '.join(known)}." if of else f"`{typed} --help` lists what there is."
    advice = f"Did you mean `{typed} {near[0]}`?" if near else others
    err(tr(f"✗ There is no command {' '.join(filter(None, (of, name)))!r}. {advice}"))
    return USAGE_ERROR


def _as_typed(text: str) -> str:
    from hermes.cli.support.program_name import as_typed  # when there is something to say

    return as_typed(text)


def _print_help() -> None:
    from hermes.cli.support.program_name import command_name
    from hermes.hosting.terminal import out
    from hermes.hosting.translation import tr

    hermes = command_name()
    width = max(map(len, COMMANDS))
    out(tr(f"Hermes {__version__}: one AI agent on every chat you use.\n"))
    out(f"  {hermes}                  {tr('chat with the agent')}")
    out(f"  {hermes} -z PROMPT        {tr('ask one question, print the answer, exit (--json: as JSON)')}")
    out(f"  {hermes} --env-file PATH  {tr('also read settings from this file')}")
    out(f"  {hermes} -p NAME …        {tr('use this profile: an agent with its own home')}")
    out(f"  {hermes} COMMAND --help   {tr('show the options and examples of a command')}")
    for heading, names in GROUPS.items():
        out(f"\n{tr(heading)}")
        for name in names:
            out(f"  {name:<{width}}  {tr(COMMANDS[name])}")


def guarded(act: Callable[[], int]) -> int:
    """Turn what the gateway itself says went wrong into words and an exit code."""
    from hermes.core.errors import ConfigError, ForeignHomeError, GatewayError

    try:
        return act()
    except ForeignHomeError as error:  # its text is a screen of its own
        from hermes.hosting.terminal import err
        from hermes.hosting.translation import tr

        err(tr(error))
        return CONFIG_ERROR
    except GatewayError as error:
        _complain(error)
        return CONFIG_ERROR if isinstance(error, ConfigError) else int(getattr(error, "exit_code", 1))
    except ModuleNotFoundError as error:
        from hermes.hosting import launch

        if not (words := launch.describe_missing_package(error)):
            raise  # a mistake of ours: its traceback is what a report needs
        _complain(words)
        return 1
    except OSError as error:
        if error.errno not in _TROUBLES_OF_THE_MACHINE:
            raise  # a mistake of ours: its traceback is what a report needs
        from hermes.cli.support.home import home_folder
        from hermes.store.home_faults import fault_behind

        fault = fault_behind(error, home_folder())
        _complain(str(fault) if fault else f"{error.filename or 'The system reports'}: {error.strerror}.")
        return 1


def _complain(reason: object) -> None:
    from hermes.cli.support.screen import complain  # when there is something to say

    complain(reason)


def print_anything() -> None:
    """A terminal that cannot show ✓ gets a question mark instead of a traceback, and a closed output a place to go."""
    # In this order each takes its own descriptor again, before a database could: `hermes status >&-`.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as we live
    is_bare = False
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
        is_bare |= isinstance(getattr(stream, "buffer", None), io.RawIOBase)
    if is_bare:
        from hermes.hosting.terminal import keep_writes_whole  # only where Python uses no buffer

        keep_writes_whole()
    sys.excepthook = _show_uncaught


def _show_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of an error nobody caught, cleaned: its text may be a stranger's."""
    import traceback

    from hermes.hosting.terminal import err

    err("".join(traceback.format_exception(kind, error, trace)), end="")


if __name__ == "__main__":
    sys.exit(main())
