"""What people read: no class of an exception, no doubled full stop, one spelling of the program, numbers that agree.

Looked at: every text in the source that is no docstring and no log, every sentence of both languages with sample
values, every ``--help``, and every page of the docs.
"""

from __future__ import annotations

import ast
import builtins
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import aiohttp
import pytest
from aiohttp_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError

import hermes
from hermes.cli.commands import COMMANDS
from hermes.cli.main import load, main, parser_of
from hermes.cli.support.program_name import command_name
from hermes.core.durations import count
from hermes.core.i18n import failures
from hermes.core.i18n.catalogue import CHINESE, ENGLISH
from hermes.core.i18n.en import Texts
from hermes.core.i18n.failures import describe_failure, sentence
from tests.unit import syntax_trees

SOURCE = Path(hermes.__file__).parent
ROOT = SOURCE.parents[1]

CLASS_NAME = re.compile(r"\b[A-Z][a-z]+\w*(?:Error|Exception|Timeout|Expired|Disconnected)\b")
DOUBLED = re.compile(r"(?<![./\\])\.\.(?![./\w\]])|。。|\.。|。\.(?!\w)|[,;:]\.(?=\s|$)|\?\.(?=\s|$)|!\.(?=\s|$)")
"""Two full stops, or one after another mark. ``...`` and paths are neither."""

COMMAND = re.compile(rf"(?<![\w./~-])((?:[\w~.-]*/)*)hermes (?=(?:{'|'.join(COMMANDS)})\b(?!-))")
OTHER_SPELLING = re.compile(r"\bHERMES [a-z]|\bHermes (?:gateway (?:run|start|status)|doctor|pairing list)\b")

PATTERN_OF_OURS = re.compile(r"\|\w+\|")
"""A regular expression by which we know what pip or a provider says; nobody reads it."""

LOGS = {"debug", "info", "warning", "error", "exception", "critical"}

CLASSES_FOR_OTHERS = {
    "agent/toolkit/context.py": "the name of a kind of part",
    "agent/toolkit/toolbox.py": "the model reads it",
    "core/messages.py": "kept with the raw event, for whoever mends the adapter",
    "core/dataclasses.py": "a docstring",
    "hosting/control/server.py": "a field of the answer, by which the client raises the same error",
    "servers/api/content.py": "the type of a JSON value",
    "agent/models/embedded/child.py": "an error without a text; the gateway puts it into a sentence",
    "services/inbound/actions.py": "kept for hermes trace; the chat gets a sentence",
    "services/inbound/judge.py": "kept with the raw event, for whoever mends the adapter",
    "services/turns/runner.py": "kept for hermes trace; the API and the chat show a sentence",
}
"""Where the name of a class goes into a text that is not for people."""


@cache
def trees() -> dict[str, ast.Module]:
    return {name: tree for name, tree in syntax_trees.trees().items() if "bundled_skills" not in name}


def is_log(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr=attr)):
            return attr in LOGS
        case _:
            return False


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text that is no docstring and no log, with its line; in place of a value stands ``{}``."""
    for child in ast.iter_child_nodes(tree):
        match child:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.JoinedStr(values=values):
                parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in values]
                yield child.lineno, "".join(map(str, parts))
                for part in values:
                    yield from texts(part)
            case ast.Constant(value=str(text)):
                yield child.lineno, text
            case _ if not is_log(child):
                yield from texts(child)
            case _:
                continue


def sentences_of(name: str) -> Iterator[tuple[int, str]]:
    for line, text in texts(trees()[name]):
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and " " in text:
            yield line, text


@cache
def sentences() -> tuple[tuple[str, int, str], ...]:
    """Every sentence of the source, with its file and line."""
    return tuple((name, line, text) for name in trees() for line, text in sentences_of(name))


def complaints(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{line}: {text!r}"
        for name, line, text in sentences()
        if pattern.search(text) and not PATTERN_OF_OURS.search(text)
    ]


# The source


@pytest.mark.one_python
def test_no_text_names_the_class_of_an_exception() -> None:
    assert complaints(CLASS_NAME) == []


@pytest.mark.one_python
def test_no_text_has_two_full_stops() -> None:
    assert complaints(DOUBLED) == []


@pytest.mark.one_python
def test_the_program_has_one_name() -> None:
    assert complaints(OTHER_SPELLING) == []


@pytest.mark.one_python
def test_no_text_is_made_of_the_class_of_an_exception() -> None:
    found: dict[str, int] = {}
    for name, tree in trees().items():
        logged = {inner for node in ast.walk(tree) if is_log(node) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Call(func=ast.Name(id="type")), attr="__name__") if node not in logged:
                    found[name] = node.lineno
                case ast.FormattedValue(value=ast.Name(id="error"), conversion=114) if node not in logged:
                    found[name] = node.lineno
                case _:
                    pass
    assert {f"{name}:{line}" for name, line in found.items() if name not in CLASSES_FOR_OTHERS} == set()


@pytest.mark.one_python
def test_a_full_stop_is_not_set_after_a_text_that_may_have_one() -> None:
    """``f"{error}."`` is right as long as the error ends without one; ``sentence(…)`` is always right."""
    found = []
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.JoinedStr):
                continue
            for value, after in zip(node.values, node.values[1:], strict=False):
                if isinstance(after, ast.Constant) and re.match(r"\.(\s|$)", str(after.value)):
                    match value:
                        case ast.FormattedValue(value=ast.Name(id="error")):
                            found.append(f"{name}:{node.lineno}")
                        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="str"), args=[ast.Name(id="error")])):
                            found.append(f"{name}:{node.lineno}")
                        case _:
                            pass
    assert found == []


@pytest.mark.one_python
def test_a_screen_of_the_command_line_spells_the_program_as_it_is_typed_here() -> None:
    """In a command's module the name comes from ``command_name``; other parts' texts pass ``as_typed`` there."""
    found = []
    for name, tree in trees().items():
        if not name.startswith("cli/"):
            continue
        shown_raw = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"out", "out_lines", "err", "note"}
            for inner in ast.walk(node)
        }
        for node in shown_raw:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and COMMAND.search(node.value):
                found.append(f"{name}:{node.lineno}: {node.value!r}")
    assert found == []


def test_what_is_wrong_would_be_found() -> None:
    assert DOUBLED.search("It failed.. Look.")
    assert DOUBLED.search("Done?.")
    assert not DOUBLED.search("Wait ... and see ../there, a...b, [0..9]")
    assert CLASS_NAME.search("could not be reached (ClientConnectorDNSError)")
    assert CLASS_NAME.search("(TimeoutExpired)")
    assert not CLASS_NAME.search("An Error")
    assert [text for _, text in texts(ast.parse('x = f"It broke ({type(error).__name__})."'))] == ["It broke ({})."]


# Both languages, with sample values

SAMPLES: dict[str, object] = dict.fromkeys(
    (
        name
        for text in vars(Texts).values()
        if isinstance(text, str)
        for _, name, _, _ in string.Formatter().parse(text)
        if name
    ),
    "sample",
)
NUMBERS = {
    "after", "all", "before", "completion", "count", "deaths", "done", "hour", "minutes", "more", "most", "number",
    "prompt", "seconds", "total", "turns",
}  # fmt: skip


@pytest.mark.one_python
@pytest.mark.parametrize("words", [ENGLISH, CHINESE], ids=["English", "Chinese"])
@pytest.mark.parametrize("number", [1, 3])
def test_every_sentence_reads_well_with_its_values(words: Texts, number: int) -> None:
    values = {name: number if name in NUMBERS else value for name, value in SAMPLES.items()}
    values |= {"lines": words.lines(number), "span": words.span(number * 60.0), "size": words.amount(number * 1000)}
    for name in (name for name in vars(Texts) if name.isupper()):
        shown = getattr(words, name).format(**values)
        assert "{" not in shown, name
        assert not CLASS_NAME.search(shown), name
        assert not DOUBLED.search(shown), name
        if number == 1 and name not in ALWAYS_SEVERAL:
            assert not re.search(r"\b1 (?!is\b|was\b|has\b)[a-z]+s\b", shown), f"{name}: {shown}"


ALWAYS_SEVERAL = {
    "CHAT_PASTED",  # five lines or more
    "CHAT_MORE_LINES",
    "CHAT_TOKENS",
    "CHAT_TOO_LONG",  # more than a question shows
    "APPROVAL_TIMEOUTS",  # three
    "BACKGROUND_FULL",  # the limit
    "COMPRESS_DONE",  # a summary of one character is none
    "COMPRESS_WOULD",
    "APPROVAL_CUT",
    "APPROVAL_LONG_ELSEWHERE",  # more than an excerpt
    "APPROVAL_LONG_FILE",
    "APPROVAL_LONG_HERE",
    "APPROVAL_LONG_MESSAGES",
    "FILES_TOO_MANY",
    "FILES_TOO_MANY_TO_GET",
    "LOOPING",  # three
    "SET_ASIDE_AFTER_DEATHS",  # three
    "STOPPED_MANY",  # STOPPED_ONE is for one
    "UNDO_SEVERAL",
    "USAGE_SPENT",
}


@pytest.mark.parametrize("number, shown", [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (1500, "1,500 lines")])
def test_a_number_of_lines_agrees_with_its_noun(number: int, shown: str) -> None:
    assert ENGLISH.lines(number) == shown
    assert count(min(number, 2), "line") == ENGLISH.lines(min(number, 2))


# Reasons


def is_error(kind: object) -> TypeGuard[type[Exception]]:
    """Whether it is a class of exceptions; a group of them cannot be made without any."""
    return isinstance(kind, type) and issubclass(kind, Exception) and kind is not ExceptionGroup


ERRORS = [
    *(kind for kind in (*vars(builtins).values(), *vars(aiohttp).values()) if is_error(kind)),
    *(ProxyConnectionError, ProxyError, ProxyTimeoutError),
]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_reason_in_words(kind: type[Exception]) -> None:
    reason = describe_failure(kind.__new__(kind))
    assert not CLASS_NAME.search(reason)
    assert not reason.endswith(".")
    assert reason[0].islower()


@pytest.mark.parametrize("kind", [kind for kind in ERRORS if issubclass(kind, (aiohttp.ClientError, TimeoutError))])
def test_every_failure_of_a_web_call_is_named(kind: type[Exception]) -> None:
    assert describe_failure(kind.__new__(kind)) != failures.UNEXPECTED


def test_a_reason_repeats_no_text_of_the_error() -> None:
    assert describe_failure(OSError(111, "Connect call failed ('10.0.0.1', 8443)")) == "connection refused"
    assert "token" not in describe_failure(aiohttp.InvalidURL("https://api.example/bot123:token/getMe"))


@pytest.mark.parametrize(
    "text, ended",
    [
        ("No", "No."),
        ("No.", "No."),
        ("No..", "No."),
        ("Is it up?", "Is it up?"),
        ("好。", "好。"),
        ("Wait …", "Wait …"),
    ],
)
def test_a_sentence_ends_once(text: str, ended: str) -> None:
    assert sentence(text) == ended


# Help and docs


@pytest.mark.parametrize("command", COMMANDS)
def test_help_spells_the_program_in_one_way_and_reads_well(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    verbs = list(getattr(load(command), "VERBS", {}))
    pages = [parser_of(command, load(command)).format_help()]
    for verb in verbs:
        with pytest.raises(SystemExit):
            main([command, verb, "--help"])
        pages.append(capsys.readouterr().out)
    shown = "\n".join(pages)
    spelled = command_name()
    assert {f"{before}hermes" for before in COMMAND.findall(shown)} <= {spelled}
    assert not CLASS_NAME.search(shown)
    assert not DOUBLED.search(shown)


PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        *ROOT.glob("README*.md"),
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *SOURCE.glob("platforms/*/README.md"),
        ROOT / "bridge" / "README.md",
    )
)
FOR_DEVELOPERS = {"CONTRIBUTING.md", "docs/platforms.md"}
"""Pages that explain how to write a platform, and so name the classes it raises."""


@pytest.mark.one_python
@pytest.mark.parametrize("page", PAGES)
def test_a_page_reads_well(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not OTHER_SPELLING.findall(text)
    prose = re.sub(r"```.*?```|`[^`\n]*`|^    .*$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not [line for line in prose.splitlines() if DOUBLED.search(line)]
    if page not in FOR_DEVELOPERS:
        assert not CLASS_NAME.findall(text)


@pytest.mark.one_python
@pytest.mark.parametrize("page", PAGES)
def test_a_block_of_commands_spells_the_program_in_one_way(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```.*?^```|(?:^    [^\n]*\n)+", text, re.DOTALL | re.MULTILINE):
        assert len(set(COMMAND.findall(block))) <= 1, block
