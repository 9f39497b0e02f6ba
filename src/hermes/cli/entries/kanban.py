"""``hermes kanban``: the board of tasks, for people and for the agent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import command_name
from hermes.core.durations import format_time
from hermes.hosting.terminal import out_lines, out_result
from hermes.store.ids import new_id

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes kanban init                                 create the board; repeating it changes nothing
  hermes kanban create "Tidy the downloads folder" --agent
                                                     the agent begins as soon as the gateway runs
  hermes kanban create "Publish" --needs 1 --agent   begins when task 1 is done
  hermes kanban list                                 every column but the archive
  hermes kanban show 3                               text, dependencies, comments, runs, result
  hermes kanban move 3 ready                         to another column
  hermes kanban assign 3 agent                       to the agent, a person, or a profile
  hermes kanban edit 3 --title "Tidy the desk" --priority 5   change a task
  hermes kanban comment 3 "Use the new logo"
  hermes kanban link 3 https://example.org/issue/7
  hermes kanban need 3 2                             task 3 waits for task 2
  hermes kanban block 3 "waits for the invoice"
  hermes kanban unblock 3
  hermes kanban complete 3
  hermes kanban archive 3
  hermes kanban watch                                follow what happens on the board
  hermes kanban stats                                columns, and whether the agent works on tasks
"""

VERBS = {
    "init": "create the board, if there is none",
    "create": "add a task",
    "list": "list the tasks of a board",
    "show": "show a task with its history",
    "move": "move a task to another column",
    "assign": "assign a task to the agent or to somebody else",
    "edit": "change the title, text or limits of a task",
    "comment": "write a comment below a task",
    "link": "attach a web address to a task",
    "need": "let a task wait for another",
    "block": "mark a task as blocked, with the reason",
    "unblock": "make a blocked task ready again",
    "complete": "mark a task as done",
    "archive": "take a task off the board",
    "watch": "follow what happens on the board",
    "stats": "count the tasks of each column, and show whether the agent works on tasks",
}

COLUMNS = ("triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done", "archived")
WATCH_SECONDS = 1.0
_MOVES = {"block": "blocked", "unblock": "ready", "complete": "done", "archive": "archived"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES, without_json=("watch",))
    for verb in ("create", "list", "watch"):
        added[verb].add_argument("--board", default="main", help="name of the board (default: main)")
    create = added["create"]
    create.add_argument("title", help="what is to be done")
    create.add_argument("--agent", action="store_true", help="assign it to the agent and make it ready")
    create.add_argument(
        "--needs", type=int, action="append", default=[], metavar="N", help="task that must be done first"
    )
    create.add_argument("--state", choices=("triage", "todo"), default="todo", help="column (default: todo)")
    for verb in ("create", "edit"):
        added[verb].add_argument("--body", default=None, help="the text of the task")
        added[verb].add_argument("--priority", type=int, default=None, help="a higher one goes first (default: 0)")
        added[verb].add_argument("--workdir", default=None, metavar="FOLDER", help="folder the agent works in")
        added[verb].add_argument(
            "--limit-seconds", type=int, default=None, metavar="S", help="how long one run may take"
        )
        added[verb].add_argument(
            "--max-attempts", type=int, default=None, metavar="N", help="runs before it is blocked"
        )
    added["edit"].add_argument("--title", default=None, help="the new title")
    for verb in VERBS.keys() - {"init", "create", "list", "watch", "stats"}:
        added[verb].add_argument("task", help="number of the task")
    added["list"].add_argument("--state", action="append", default=[], choices=COLUMNS, help="only this column")
    added["list"].add_argument("--assignee", default="", help="only tasks of this assignee")
    added["move"].add_argument("state", choices=COLUMNS, help="the column")
    added["assign"].add_argument("assignee", help="agent, a person, profile:NAME; '' for nobody")
    added["comment"].add_argument("text", help="the comment")
    added["link"].add_argument("url", help="the address")
    added["link"].add_argument("--title", default="", help="its title")
    added["need"].add_argument("needs", help="number of the task that must be done first")
    added["need"].add_argument("--remove", action="store_true", help="no longer wait for it")
    for verb in ("move", "block"):
        added[verb].add_argument("reason", nargs="*" if verb == "block" else "?", default="", help="why")


def run(args: argparse.Namespace) -> int:
    with GatewayClient(home_folder(), Standalone.GATEWAY) as client:
        if args.verb == "watch":
            return _watch(client, args.board)
        answer = _ask(client, args)
        out_result(answer, _lines(args, answer, is_alone=client.is_alone), as_json=args.as_json)
    return 0


def _ask(client: GatewayClient, args: argparse.Namespace) -> Any:
    match args.verb:
        case "init":
            return client.ask("kanban.init")
        case "stats":
            return client.ask("kanban.stats")
        case "list":
            wanted = {"board": args.board, "states": args.state, "assignee": args.assignee}
            return client.ask("kanban.list", wanted)
        case "create":
            names = ("title", "body", "board", "needs", "state", "priority", "workdir", "limit_seconds", "max_attempts")
            assigned = {"assignee": "agent", "ready": True} if args.agent else {}
            asked = {name: getattr(args, name) for name in names}
            return client.ask("kanban.create", {**asked, **assigned, "key": new_id("k")})
        case "edit":
            fields = ("title", "body", "priority", "workdir", "limit_seconds", "max_attempts")
            return client.ask("kanban.change", {"task": args.task, **{name: getattr(args, name) for name in fields}})
        case "assign":
            return client.ask("kanban.change", {"task": args.task, "assignee": args.assignee})
        case "move":
            return client.ask("kanban.move", {"task": args.task, "state": args.state, "reason": args.reason or ""})
        case "comment":
            return client.ask("kanban.comment", {"task": args.task, "text": args.text})
        case "link":
            return client.ask("kanban.link", {"task": args.task, "url": args.url, "title": args.title})
        case "need":
            return client.ask("kanban.need", {"task": args.task, "needs": args.needs, "remove": args.remove})
        case "show":
            return client.ask("kanban.show", {"task": args.task})
        case verb:
            reason = " ".join(getattr(args, "reason", None) or ())
            return client.ask("kanban.move", {"task": args.task, "state": _MOVES[verb], "reason": reason})


def _lines(args: argparse.Namespace, answer: Any, *, is_alone: bool) -> Iterator[str]:
    match args.verb:
        case "init":
            yield "✓ The board is ready." if answer["is_new"] else "✓ The board is there already; nothing was changed."
        case "stats":
            yield from _stats(answer, is_alone=is_alone)
        case "list":
            yield from _columns(answer)
        case "show":
            yield from _task(answer)
        case _:
            yield f"✓ {_line(answer)}"
            if is_alone and answer["assignee"] == "agent" and answer["state"] == "ready":
                yield f"  The agent begins when the gateway runs: {command_name()} gateway start"


def _columns(tasks: list[Mapping[str, Any]]) -> Iterator[str]:
    if not tasks:
        yield f'No tasks. Add one: {command_name()} kanban create "TITLE"'
    for column in COLUMNS:
        found = [task for task in tasks if task["state"] == column]
        if found:
            yield f"{column} ({len(found)})"
            yield from (f"  {_line(task)}" for task in found)


def _task(task: Mapping[str, Any]) -> Iterator[str]:
    yield _line(task)
    for text in (task["body"], task["reason"]):
        if text:
            yield f"  {text}"
    yield from (f"  waits for #{entry['id']} {entry['title']} ({entry['state']})" for entry in task["needs"])
    yield from (f"  {entry['url']} {entry['title']}".rstrip() for entry in task["links"])
    yield from (f"  {entry['author']}: {entry['body']}" for entry in task["comments"])
    yield from (
        f"  run {entry['attempt']}: {entry['state']} {entry['reason']} ({entry['event_id']})" for entry in task["runs"]
    )
    if task["result"]:
        yield "  result:"
        yield from (f"    {line}" for line in task["result"].splitlines())


def _stats(answer: Mapping[str, Any], *, is_alone: bool) -> Iterator[str]:
    dispatch = answer["dispatch"]
    yield "  ".join(f"{column} {count}" for column, count in answer["counts"].items() if count) or "No tasks."
    if is_alone:
        yield f"Task runner: off, since no gateway runs. Start it: {command_name()} gateway start"
        return
    reason = f": {dispatch['reason']}" if dispatch["reason"] else ""
    yield f"Task runner: {dispatch['activity']}, {dispatch['running']} running, {dispatch['ready']} ready{reason}"


def _line(task: Mapping[str, Any]) -> str:
    notes = [task["state"], *(note for note in (task["blocked_by"], task["assignee"]) if note)]
    urgent = f" !{task['priority']}" if task["priority"] else ""
    return f"#{task['id']}{urgent} {task['title']} ({', '.join(notes)})"


def _watch(client: GatewayClient, board: str) -> int:
    """Print what happens until Ctrl+C, beginning with what has happened last."""
    seen = 0
    for event in client.ask("kanban.events", {"board": board})[-10:]:
        seen = event["id"]
        out_lines([_event(event)])
    while True:
        for event in client.ask("kanban.events", {"after": seen, "board": board}):
            seen = event["id"]
            out_lines([_event(event)])
        time.sleep(WATCH_SECONDS)


def _event(event: Mapping[str, Any]) -> str:
    when = format_time("%H:%M:%S", event["created_at"])
    return f"{when}  #{event['task']} {event['kind']} {event['detail']} (by {event['actor']})"
