"""No sentence for a person in a chat stands outside the catalogue."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hermes
from hermes.core.i18n.en import Texts

pytestmark = pytest.mark.one_python

SOURCE = Path(hermes.__file__).parent
SERVICES = SOURCE / "services"

FOR_OPERATORS = {
    "http.py",
    "local_models.py",
    "models.py",
    "backups.py",
    "adapters/probe.py",
    "adapters/qr.py",
    "adapters/registry.py",
    "socks.py",
    "adapters/account.py",
    "adapters/supervisor.py",
    "keep_running.py",
}
"""Files whose sentences stand in logs, in `hermes status` and on the command line, which has a catalogue of its own."""

FILES = sorted(path.relative_to(SERVICES).as_posix() for path in SERVICES.rglob("*.py"))
CHAT_FACING = [name for name in FILES if name not in FOR_OPERATORS]

WORDS = re.compile(r"[A-Za-z]{2,}[,.:;!?]? [A-Za-z]{2,}")

QUIET_CALLS = {"debug", "info", "warning", "error", "exception", "command"}
"""Logs; and the marks of commands, whose summaries the catalogue translates by their names."""

QUIET_KEYWORDS = {"reason", "name"}
"""What is stored for `hermes trace`, and the names of tasks."""

KNOWN_BY_NAME = {"usage", "USAGE"}
"""How a command is typed: the same in every language."""

FOR_OTHERS = {
    "approvals.py": {"not yours", "too late", "the owner"},  # states; the name is translated where it is shown
    "turns/attachments.py": None,  # what the model reads about files
    "requests/background.py": None,  # the model's briefing
    "cron/firing.py": None,  # the model's briefing; a reason that ``Texts.reason`` translates
    "cron/for_tools.py": None,  # what the model reads about jobs
    "cron/scripts.py": None,  # why a script failed, kept in the history of the job
    "commands/cron.py": {"run by"},  # the name of a run in the store
    "webhooks/webhooks.py": None,  # the model's briefing, and the command line
    "turns/preparation.py": None,  # what the model reads first, and reasons in the store
    "commands/restart.py": {"asked in"},  # the log's reason
    "turns/compression.py": {"preview of"},  # the name of a task
    "cluster/calls.py": None,  # logs, `hermes cluster`, and what the model reads about a process elsewhere
    "cluster/node.py": None,  # logs, `hermes status`, reasons in the outbox
    "cluster/processes.py": None,  # what the model reads about a process at another node
    "cluster/services.py": {  # the names of tasks
        "node calls",
        "node facts",
        "pairings of other nodes",
        "turns of other nodes",
        "turns of this node",
    },
    "cluster/turns.py": {"A node drains its own turns only.", "is no reason to stop a turn."},  # the asking node's log
    "kanban/dispatch.py": None,  # the model's briefing
    "outbound/delivery.py": {
        "does not edit",
        "the adapter failed:",
        "is not connected",
        "is not connected at this node",
        "no answer within",
    },  # reasons in the outbox
    "requests/requests.py": {"client gone"},  # a reason in the inbox
    "requests/subtasks.py": None,  # what the model is told and reads
    "inbound/judge.py": {"more characters]"},  # for the model
    "people/pairing.py": {"min ago", "was not approved by pairing. Look: hermes pairing list"},  # the command line
    "turns/stop.py": {"a fresh session was started", "interrupted by a newer message"},
    "turns/runner.py": {  # reasons in the store, translated by ``Texts.reason`` where they are shown
        "crashed three times while it ran",
        "it took too long",
        "nobody answered what it asked",
        "the model repeated one call",
    },
}
"""Sentences that no chat shows as they are; None where all of a file's are such."""


def sentences(tree: ast.AST) -> Iterator[str]:
    """Every text of two words or more that is no docstring, no log and no name."""
    for child in ast.iter_child_nodes(tree):
        match child:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in QUIET_CALLS:
                continue
            case ast.keyword(arg=name) if name in QUIET_KEYWORDS | KNOWN_BY_NAME:
                continue
            case ast.Assign(targets=[ast.Name(id=name)]) if name in KNOWN_BY_NAME:
                continue
            case ast.Constant(value=str(text)) if WORDS.search(text):
                yield " ".join(text.split())
            case _:
                yield from sentences(child)


@pytest.mark.parametrize("name", CHAT_FACING)
def test_what_people_read_is_in_the_catalogue(name: str) -> None:
    allowed = FOR_OTHERS.get(name, set())
    if allowed is None:
        return
    found = set(sentences(ast.parse((SERVICES / name).read_text(encoding="utf-8"))))
    assert not found - allowed, f"services/{name}: put these into core/i18n/en.py and core/i18n/zh.py"
    assert not allowed - found, f"services/{name} does not say these any more"


def test_a_bare_sentence_would_be_found() -> None:
    tree = ast.parse('async def f(ctx):\n    """A docstring is none."""\n    return f"There are {ctx} of them here."')
    assert list(sentences(tree)) == ["There are", "of them here."]


def test_every_sentence_of_the_catalogue_is_used() -> None:
    catalogue = {SOURCE / "core" / "i18n" / "en.py", SOURCE / "core" / "i18n" / "zh.py"}
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path not in catalogue)
    used = set(re.findall(r"\b[A-Z][A-Z_]+\b", code))
    assert {name for name in vars(Texts) if name.isupper()} <= used
