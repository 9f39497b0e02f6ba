"""``hermes trace``: list the latest messages; ``trace ID``: one as a timeline."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import command_name
from hermes.cli.support.tables import table
from hermes.core.dataclasses import dataclass
from hermes.core.durations import count, format_duration, format_time
from hermes.core.text import one_line
from hermes.hosting.terminal import out_result

if TYPE_CHECKING:
    import argparse

MAX_QUOTE_CHARS = 70
MAX_NAME_CHARS = 30
# The mark of an outcome, where it is neither good nor still open.
BAD = frozenset({"failed", "refused", "set aside", "not delivered", "stopped", "interrupted"})
GOOD = "answered"

EXAMPLES = """\
  hermes trace                      the latest messages: time, chat, sender, outcome
  hermes trace --limit 100
  hermes trace t_1k4m9x2c7qf4b      a turn
  hermes trace ev_1k4m9x2c7qf4b     an inbound message
  hermes trace ob_1k4m9x2c7qf4b     an outbound message
  hermes trace msg:42:1001          a message by the platform's id (chat 42, message 1001)
  hermes trace chatcmpl-ev_1k4m9x2c   an API request, by the id the client shows (also run_…, resp_…)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id",
        nargs="?",
        default="",
        help="id of an event (ev_…), turn (t_…), delivery (ob_…) or approval (ap_…); without: the latest messages",
    )
    parser.add_argument("-n", "--limit", type=int, default=20, help="number of messages (default: 20)")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    verb, asked = ("trace", {"id": args.id}) if args.id else ("trace.list", {"limit": max(1, args.limit)})
    with GatewayClient(home_folder(), Standalone.STORE) as client:
        answer = client.ask(verb, asked)
    return out_result(answer, timeline(answer) if args.id else latest(answer), as_json=args.as_json)


def latest(answer: Mapping[str, Any]) -> list[str]:
    """The latest messages as a table, and how to see more of them."""
    messages, total = answer["messages"], answer["total"]
    if not messages and (lost := answer.get("lost")):  # a gateway of an older version does not say
        return ["No messages are left.", *lost]
    if not messages:
        return [f"No messages yet. Write the first: {command_name()}"]
    more = f" (all: {command_name()} trace --limit {total})" if len(messages) < total else ""
    return [
        *table(("when", "chat", "person", "outcome", "id", "text"), [_row(message) for message in messages]),
        "",
        f"{len(messages)} of {count(total, 'message')}{more}. One of them: {command_name()} trace {messages[0]['id']}",
    ]


def _row(message: Mapping[str, Any]) -> tuple[str, ...]:
    outcome = message["outcome"]
    mark = "✓" if outcome == GOOD else "✗" if outcome in BAD else "…"
    reason = f" ({one_line(message['reason'], MAX_QUOTE_CHARS)})" if message["reason"] else ""
    return (
        _when(message["at"]),
        one_line(message["chat"], MAX_NAME_CHARS),
        one_line(message["person"], MAX_NAME_CHARS),
        f"{mark} {outcome}",
        message["id"],
        f"{_quoted(message['text'])}{reason}",
    )


def _when(at: float) -> str:
    """The time of today, else the day too: a window of 80 columns has room for little more."""
    is_today = format_time("%Y-%m-%d", at) == format_time("%Y-%m-%d", time.time())
    return format_time("%H:%M:%S" if is_today else "%m-%d %H:%M", at)


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """Something that happened. ``order`` settles what is first among things of one instant."""

    at: float
    order: int
    what: str
    words: str


def timeline(life: Mapping[str, Any]) -> list[str]:
    moments = sorted(_moments(life))
    start = moments[0].at if moments else 0.0
    rows = [f"  {_since(moment.at - start):>8}  {moment.what:<7} {moment.words}" for moment in moments]
    when = format_time("%Y-%m-%d %H:%M:%S", start)
    return [*_headline(life), f"  began {when}", *rows, *_open(life)]


def _headline(life: Mapping[str, Any]) -> Iterator[str]:
    turn = life["turn"]
    if turn is None:
        state = life["events"][0]["state"] if life["events"] else life["letters"][0]["state"]
        yield f"No turn: {_spoken(state)}"
        return
    took = f" in {_took(turn['ended_at'] - turn['created_at'])}" if turn["ended_at"] else ""
    reason = f" ({turn['reason']})" if turn["reason"] else ""
    yield f"Turn {turn['id']}: {_spoken(turn['state'])}{took}{reason}"
    facts = [turn["model"] or "no model answered", f"{turn['prompt_tokens']} + {turn['completion_tokens']} tokens"]
    if turn["steps"]:
        facts.append(f"{count(turn['steps'], 'step')} with tools")
    facts.append(count(turn["attempts"], "attempt"))
    yield f"  {', '.join(facts)}"
    yield f"  {turn['lane']}, session {turn['session_id']}"


def _moments(life: Mapping[str, Any]) -> Iterator[Moment]:
    for event in life["events"]:
        yield Moment(
            event["received_at"],
            0,
            "in",
            f"{event['id']} {event['kind']} from {event['sender_id']}: {_quoted(event['text'])}",
        )
        if event["settled_at"]:
            reason = f": {event['reason']}" if event["reason"] else ""
            yield Moment(event["settled_at"], 8, "in", f"{event['id']} {_spoken(event['state'])}{reason}")
    if turn := life["turn"]:
        yield Moment(turn["created_at"], 2, "turn", "begins")
        if turn["ended_at"]:
            yield Moment(turn["ended_at"], 7, "turn", _spoken(turn["state"]))
    for line in life["lines"]:
        message = line["message"]
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            asks = ", ".join(call["name"] for call in message.get("tool_calls", ()))
            words = _quoted(message.get("text", "")) + (f" asks for {asks}" if asks else "")
            yield Moment(line["at"], 3, "model", words)
    for call in life["calls"]:
        yield from _of_call(call)
    for approval in life["approvals"]:
        yield Moment(approval["created_at"], 4, "ask", f"{approval['code']} {_quoted(approval['question'])}")
        if approval["answered_at"]:
            by = f" by {approval['answered_by']}" if approval["answered_by"] else ""
            reason = f": {approval['reason']}" if approval["reason"] else ""
            yield Moment(approval["answered_at"], 4, "ask", f"{approval['code']} {approval['state']}{by}{reason}")
    for letter in life["letters"]:
        where = f"{letter['id']} {letter['kind']} → {letter['target']}"
        yield Moment(letter["created_at"], 8, "out", f"{where}: {_quoted(letter['text'])}")
        if letter["settled_at"]:
            receipt = f" as message {letter['message_id']}" if letter["message_id"] else ""
            tries = f" at attempt {letter['attempts']}" if letter["attempts"] > 1 else ""
            reason = f" ({letter['reason']})" if letter["reason"] else ""
            yield Moment(letter["settled_at"], 9, "out", f"{letter['id']} {letter['state']}{receipt}{tries}{reason}")


def _of_call(call: Mapping[str, Any]) -> Iterator[Moment]:
    name = f"{call['name']} {one_line(call['arguments'], MAX_QUOTE_CHARS)}"
    if call["started_at"]:
        yield Moment(call["started_at"], 5, "tool", f"{name} started")
    if call["ended_at"]:
        took = f" after {_took(call['ended_at'] - call['started_at'])}" if call["started_at"] else ""
        yield Moment(call["ended_at"], 6, "tool", f"{call['name']} {call['outcome']}{took}: {_quoted(call['result'])}")
    elif not call["started_at"]:
        yield Moment(call["created_at"], 5, "tool", f"{name} {call['state']}")


def _open(life: Mapping[str, Any]) -> Iterator[str]:
    """What has not ended yet."""
    for event in life["events"]:
        if not event["settled_at"]:
            yield f"  still {_spoken(event['state'])}: {event['id']}"
    for approval in life["approvals"]:
        if approval["state"] == "pending":
            yield f"  waits for an answer: /approve {approval['code']} or /deny {approval['code']}"
    for letter in life["letters"]:
        if not letter["settled_at"]:
            reason = f" ({letter['reason']})" if letter["reason"] else ""
            yield f"  still {letter['state']}, {count(letter['attempts'], 'attempt')}: {letter['id']}{reason}"


def _quoted(text: str) -> str:
    return f"“{one_line(text, MAX_QUOTE_CHARS)}”" if text else "(no text)"


def _spoken(state: str) -> str:
    return state.replace("_", " ")


def _took(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 10 else format_duration(seconds)


def _since(seconds: float) -> str:
    return f"+{seconds:.3f} s" if seconds < 60 else f"+{format_duration(seconds)}"
