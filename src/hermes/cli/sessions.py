"""``hermes sessions``: list, read, export, rename, delete and import sessions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import command_name
from hermes.cli.support.prompts import confirm
from hermes.core.durations import count, format_time, parse_duration
from hermes.core.text import one_line
from hermes.hosting.terminal import err, out, out_json, out_lines, out_result, rewrite_line

if TYPE_CHECKING:
    import argparse

USAGE_ERROR = 2
LONG_SECONDS = 120.0
IMPORT_SECONDS = 600.0
AFTER_THE_LAST = 2**53
"""Of a session that is asked for without its lines."""

EXAMPLES = """\
  hermes sessions list                        newest first; --key agent:main:telegram:dm:42 for one chat
  hermes sessions show s_1k4m9x2c7qf4b        the title or the start of the id is enough
  hermes sessions export s_1k4m9x2c7qf4b > talk.jsonl
  hermes sessions rename s_1k4m9x2c7qf4b "Plans for May"
  hermes sessions delete s_1k4m9x2c7qf4b
  hermes sessions prune --older-than 90d --dry-run
  hermes sessions import talk.jsonl           import an exported session, here or in another home
  hermes sessions import ~/.hermes-old --dry-run   list the hermes-agent sessions that would be imported
  hermes sessions delete im_1k4m9x2c7qf4b     undo an import
  hermes sessions rebuild                     restore lost sessions from sessions/*.jsonl
"""

VERBS = {
    "list": "list the newest conversations",
    "show": "show a conversation",
    "export": "print a conversation as JSON lines",
    "rename": "change the title of a conversation",
    "delete": "delete a conversation, or everything from one import",
    "import": "import sessions of hermes-agent or of another home",
    "prune": "delete ended conversations that have been idle for long",
    "rebuild": "restore lost conversations from the transcript files",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES, without_json=("export",))
    for verb in ("show", "export", "rename", "delete"):
        added[verb].add_argument("id", help="id of the session (s_…)")
    added["import"].add_argument("path", metavar="PATH", help="a home, its sessions folder, or one .jsonl file")
    added["import"].add_argument("--dry-run", action="store_true", help="only list what would be imported")
    added["rebuild"].add_argument("id", nargs="?", default="", help="only this session")
    added["rename"].add_argument("title")
    added["list"].add_argument("--key", default="", help="only this conversation")
    added["list"].add_argument("-n", "--limit", type=int, default=20, help="number of conversations (default: 20)")
    added["prune"].add_argument("--older-than", required=True, metavar="SPAN", help="30d, 12w")
    added["prune"].add_argument("--dry-run", action="store_true", help="only list what would be deleted")
    for verb in ("delete", "prune"):
        added[verb].add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(args: argparse.Namespace) -> int:
    with GatewayClient(home_folder(), Standalone.STORE) as client:
        match args.verb:
            case "list":
                return _list(client, args)
            case "show":
                return _show(client, args.id, as_json=args.as_json)
            case "export":
                client.ask("sessions.show", {"id": args.id}, _print_line, timeout=LONG_SECONDS)
                return 0
            case "rename":
                answer = client.ask("sessions.rename", {"id": args.id, "title": args.title})
                before = f" (was “{answer['was']}”)" if answer["was"] else ""
                lines = [f"✓ {answer['id']} is called “{answer['title']}” now{before}."]
                return out_result(answer, lines, as_json=args.as_json)
            case "delete":
                return _delete(client, args)
            case "prune":
                return _prune(client, args)
            case "import":
                return _import(client, args)
            case _:
                return _rebuild(client, args)


def _list(client: GatewayClient, args: argparse.Namespace) -> int:
    sessions = client.ask("sessions.list", {"key": args.key, "limit": max(1, args.limit)})
    if args.as_json:
        _print_json(sessions)
        return 0
    for session in sessions:
        when = format_time("%Y-%m-%d %H:%M", session["updated_at"])
        state = "" if session["ended_at"] is None else " (ended)"
        title = one_line(session["title"] or session["first"], 60)
        out_lines(
            [f"{session['id']}  {when}  {count(session['seq'], 'line'):>10}  {session['key']}{state}", f"    {title}"]
        )
    if not sessions:
        out(f"No conversations yet. Start one: {command_name()}")
    elif len(sessions) == max(1, args.limit):
        total = client.ask("sessions.count", {"key": args.key})
        if total > len(sessions):
            key = f" --key {args.key}" if args.key else ""
            out(
                f"{len(sessions)} of {total} sessions. All of them: {command_name()} sessions list{key} --limit {total}"
            )
    return 0


def _show(client: GatewayClient, name: str, *, as_json: bool) -> int:
    lines: list[Mapping[str, Any]] = []
    session = client.ask("sessions.show", {"id": name}, lines.append, timeout=LONG_SECONDS)
    lines = [line for line in lines if "message" in line]
    if as_json:
        _print_json({**session, "lines": lines})
        return 0
    began = format_time("%Y-%m-%d %H:%M", session["created_at"])
    out_lines([f"{session['id']}  {session['key']}  began {began}  {session['title']}".rstrip()])
    for line in lines:
        out(_spoken(line))
    return 0


def _spoken(line: Mapping[str, Any]) -> str:
    message: Mapping[str, Any] = line["message"] if isinstance(line["message"], Mapping) else {"text": line["message"]}
    clock = format_time("%H:%M:%S", line["at"])
    role = str(message.get("role", "?"))
    text = str(message.get("text", ""))
    if role == "tool":
        text = one_line(text, 200)
    calls = "".join(
        f"\n  → {call['name']} {one_line(call['arguments'], 120)}" for call in message.get("tool_calls", ())
    )
    return f"\n{clock} {role}\n{text}{calls}".rstrip()


def _import(client: GatewayClient, args: argparse.Namespace) -> int:
    asked = {"path": os.path.abspath(os.path.expanduser(args.path)), "dry_run": args.dry_run}
    answer = client.ask("sessions.import", asked, _tell_progress, timeout=IMPORT_SECONDS)
    if args.as_json:
        _print_json(answer)
        return 0
    for trouble in answer["troubles"]:
        err(f"! {trouble}")
    if answer["more_troubles"]:
        err(f"! … and {answer['more_troubles']} more")
    out("\n".join(_imported(answer, is_dry=args.dry_run)))
    return 0


def _imported(answer: Mapping[str, Any], *, is_dry: bool) -> Iterator[str]:
    would = "would come" if is_dry else "came"
    yield f"✓ {count(answer['transcripts'], 'transcript')} read: {count(answer['new'], 'session')} {would} along."
    if answer["longer"]:
        yield f"  {count(answer['longer'], 'session')} longer than at the last import."
    yield f"  {count(answer['lines'], 'line')} {'would be' if is_dry else 'were'} added."
    if answer["same"]:
        yield f"  {count(answer['same'], 'session')} already here."
    if answer["ours"]:
        yield f"  {count(answer['ours'], 'session')} continued here meanwhile, and left as is."
    if answer["empty"]:
        yield f"  {count(answer['empty'], 'session')} without any message."
    if answer["batch"]:
        yield f"Take it back: {command_name()} sessions delete {answer['batch']}"


def _tell_progress(event: Mapping[str, Any]) -> None:
    if sys.stderr.isatty() and "done" in event:
        rewrite_line(sys.stderr, f"  {event['done']} of {event['of']}")
        if event["done"] == event["of"]:
            err()


def _delete_import(client: GatewayClient, args: argparse.Namespace) -> int:
    if not args.yes and not _sure(f"Delete what the import {args.id} brought?"):
        return _not_sure(f"delete {args.id}")
    answer = client.ask("sessions.delete_import", {"batch": args.id}, timeout=LONG_SECONDS)
    lines = [f"✓ {count(len(answer['deleted']), 'session')} of {answer['batch']} deleted."]
    if answer["kept"]:
        lines.append(f"  Kept, because they continued here: {', '.join(answer['kept'][:20])}")
    return out_result(answer, lines, as_json=args.as_json)


def _delete(client: GatewayClient, args: argparse.Namespace) -> int:
    if args.id.startswith("im_"):
        return _delete_import(client, args)
    name = args.id
    if not args.yes:  # a title or the start of an id was enough to name it: say which one that is
        session = client.ask("sessions.show", {"id": args.id, "after": AFTER_THE_LAST})
        title = one_line(session["title"] or session["first"], 60)
        what = f"{session['id']}{f' “{title}”' if title else ''} ({count(session['seq'], 'line')})"
        if not _sure(f"Delete {what} and its transcript for good?"):
            return _not_sure(f"delete {session['id']}")
        name = session["id"]
    answer = client.ask("sessions.delete", {"id": name}, timeout=LONG_SECONDS)
    lines = [f"✓ {answer['id']} is deleted ({count(answer['seq'], 'line')})."]
    if not answer.get("is_complete", True):
        lines.append("  Its text leaves the free pages of the database by tomorrow; unsent replies are sent first.")
    lines.append("  Earlier backups contain it until you delete them.")
    return out_result(answer, lines, as_json=args.as_json)


def _prune(client: GatewayClient, args: argparse.Namespace) -> int:
    seconds = parse_duration(args.older_than)
    if seconds is None:
        err(f"✗ --older-than {args.older_than}: write 30d, 12w or 48h")
        return USAGE_ERROR
    asked: dict[str, Any] = {"older_than_seconds": seconds, "dry_run": True}
    found = client.ask("sessions.prune", asked)["sessions"]
    if not args.dry_run and found:
        if not args.yes and not _sure(f"Delete {count(len(found), 'ended session')} for good?"):
            return _not_sure("prune --older-than SPAN")
        found = client.ask("sessions.prune", {**asked, "dry_run": False}, timeout=LONG_SECONDS)["sessions"]
    done = "would be deleted" if args.dry_run else "deleted"
    lines = [*found[:50], f"✓ {count(len(found), 'session')} {done}."]
    return out_result({"sessions": found, "deleted": not args.dry_run}, lines, as_json=args.as_json)


def _rebuild(client: GatewayClient, args: argparse.Namespace) -> int:
    answer = client.ask("sessions.rebuild", {"id": args.id}, timeout=LONG_SECONDS)
    lines = [f"{session_id}  {count(number, 'line')} put back" for session_id, number in answer["restored"].items()]
    looked = count(answer["looked_at"], "transcript")
    lines.append(f"✓ {looked} read" + ("." if lines else ": nothing is missing from the store."))
    return out_result(answer, lines, as_json=args.as_json)


def _sure(question: str) -> bool:
    return sys.stdin.isatty() and confirm(question)


def _not_sure(verb: str) -> int:
    err(f"✗ Nothing was deleted. To delete it without a question: {command_name()} sessions {verb} --yes")
    return 1


def _print_line(event: Mapping[str, Any]) -> None:
    """As it stands in the session's own file: what is exported can be imported."""
    line = dict(event)
    if "message" in line:
        body = line.pop("message")
        line |= {"role": body.get("role", line["kind"]) if isinstance(body, Mapping) else line["kind"], "body": body}
    _print_json(line)


def _print_json(value: Any) -> None:
    if not (isinstance(value, Mapping) and value.get("kind") == "again"):
        out_json(value)
