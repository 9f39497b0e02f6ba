"""Judge the gateway's state from its snapshot, heartbeat, locks and last exit.

Nothing here is guessed from a pid. A gateway that answers tells about its platforms; one that does not is
judged by its heartbeat; one that holds no lock is not running, whatever a file says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.durations import count, format_duration, format_time
from hermes.hosting.build import Build
from hermes.hosting.heartbeat import Beat
from hermes.store.sqlite.losses import tells_of_loss

HEART_STOPPED_SECONDS = 4.0  # it beats once a second
RESTARTED_AFTER_SECONDS = 30.0
QUIET_SECONDS = 30.0  # no good frame for so long: the connection is only said to be there
CONNECTING_SECONDS = 30.0
HOUR_SECONDS = 3600.0
MANY_RESTARTS = 3  # within an hour: something is wrong; fewer are only mentioned

_FINE = frozenset({"connected", "elsewhere", "off"})
_STANDS = {
    "conflict": "is used by another process",
    "broken": "keeps failing",
    "silent": "has gone silent",
    "not configured": "is not set up completely",
}
"""How an account stands, where the state alone makes no sentence."""


class State(StrEnum):
    RUNNING = "running"
    DEGRADED = "degraded"
    STALLED = "stalled"
    NOT_RUNNING = "not running"


EXIT_CODES = {State.RUNNING: 0, State.DEGRADED: 1, State.STALLED: 1, State.NOT_RUNNING: 3}
_MARKS = {State.RUNNING: "✓", State.DEGRADED: "!", State.STALLED: "✗", State.NOT_RUNNING: "✗"}


@dataclass(frozen=True, slots=True)
class Facts:
    """All that can be known from outside. ``snapshot`` None: it did not answer (or nothing runs).

    ``is_held``: a lock says that a gateway is there; ``is_hidden``: its locks cannot be looked at. ``last_exit`` is
    what the supervisor wrote down. ``installed`` is the code on the disk, ``platforms`` those that are set up while no
    gateway runs. ``faults`` are those of the home, each with its cure, if no snapshot has them. ``service`` is a
    sentence about what keeps the gateway up.
    """

    now: float
    monotonic: float
    snapshot: Mapping[str, Any] | None = None
    is_held: bool = False
    is_hidden: bool = False
    beat: Beat | None = None
    last_exit: Mapping[str, Any] | None = None
    booted_at: float = 0.0
    command: str = "hermes"
    installed: Build | None = None
    platforms: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    service: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """``is_dead``: it ended by itself, and platforms that are set up are not heard."""

    state: State
    lines: tuple[str, ...]
    is_dead: bool = False

    @property
    def exit_code(self) -> int:
        return 1 if self.is_dead else EXIT_CODES[self.state]


def judge(facts: Facts) -> Status:
    """The one state, and the screen that tells it."""
    if facts.snapshot is not None:
        return _answering(facts, facts.snapshot)
    if facts.is_hidden:
        judged = Status(State.NOT_RUNNING, ("✗ Whether the gateway runs cannot be seen from here.",))
    else:
        judged = _silent(facts) if facts.is_held else _absent(facts)
    headline = judged.lines[0]
    faults = [f"  trouble    {fault}" for fault in facts.faults if fault.partition(" → ")[0] not in headline]
    return replace(judged, lines=(headline, *faults, *judged.lines[1:]))


def troubles(snapshot: Mapping[str, Any]) -> list[str]:
    """Everything that is not as it should be, each as half a sentence; empty when all is well.

    What was repaired without a loss is over: the rows below tell of it.
    """
    repaired = snapshot.get("repaired", ())
    found = [str(words).rstrip(".") for words in snapshot.get("troubles", ()) if words not in repaired]
    # The store tells of the same disk in its own words, which begin in the same way.
    faults = [str(fault) for fault in snapshot.get("faults", ())]
    found += [fault for fault in faults if not any(words.startswith(fault.partition(" → ")[0]) for words in found)]
    if failure := (snapshot.get("model") or {}).get("failure"):
        found.append(f"the built-in model cannot answer: {failure.rstrip('.')}")
    if reason := snapshot.get("safe_reason"):
        until = f" until {_clock(snapshot['paused_until'], '%H:%M:%S')}" if snapshot.get("paused_until") else ""
        found.insert(0, f"platforms are paused{until}, since {reason}")
    if snapshot.get("state") == "stopping":
        found.insert(0, "it is stopping")
    found += [words for platform in snapshot.get("platforms", ()) if (words := _trouble(platform, snapshot["now"]))]
    return found


def _trouble(platform: Mapping[str, Any], now: float) -> str:
    account, state, since = platform["account"], platform["state"], platform.get("since") or 0.0
    age = platform.get("last_frame_age")
    if state == "connected" and age is not None and age > platform.get("quiet_after", QUIET_SECONDS):
        return f"{account} is connected, but nothing was heard for {format_duration(age)}"
    if state in _FINE or (state == "connecting" and now - since < CONNECTING_SECONDS):
        return ""
    stands = _STANDS.get(state, f"is {state}")
    return f"{account} {stands} since {_clock(since)}" if since else f"{account} {stands}"


def cures(snapshot: Mapping[str, Any]) -> list[str]:
    """List what to do about each platform in trouble."""
    platforms = snapshot.get("platforms", ())
    return [f"{platform['account']} → {platform['cure']}" for platform in platforms if platform.get("cure")]


def restarts(facts: Facts) -> tuple[int, str]:
    """Count unasked worker exits of the last hour, with half a sentence about them."""
    last = facts.last_exit or {}
    ages = [facts.now - float(at) for at in last.get("unasked_ends", ()) if facts.now - float(at) < HOUR_SECONDS]
    if not ages or not last.get("restarted"):
        return 0, ""
    times = "once" if len(ages) == 1 else f"{len(ages)} times"
    return len(ages), f"restarted {times} in the last hour, last: {last['how']} {format_duration(min(ages))} ago"


def outdated(facts: Facts) -> str:
    """That the gateway runs other code than is installed, with the cure; '' when it does not."""
    running, installed = facts.snapshot or {}, facts.installed
    if installed is None or not running:
        return ""
    runs = Build(str(running.get("version", "")), str(running.get("commit", "")), str(running.get("code", "")))
    if (runs.version, runs.commit) == (installed.version, installed.commit):
        return ""
    if runs.folder not in ("", installed.folder):
        if runs.version == installed.version:
            return ""  # another copy of the same: its commit says nothing about this one
        return f"it runs Hermes {runs} from {runs.folder}, and this command is {installed}"
    return f"it runs Hermes {runs if runs.version else 'of before'}, and {installed} is installed"


def _answering(facts: Facts, snapshot: Mapping[str, Any]) -> Status:
    found = troubles(snapshot)
    number, words = restarts(facts)
    if number >= MANY_RESTARTS:
        found.append(words)
    state = State.DEGRADED if found else State.RUNNING
    about = _headline(snapshot)
    if found:
        safe = "" if any(map(tells_of_loss, found)) else _waiting_answers(snapshot)
        first = f"{'; '.join(words.rstrip('.') for words in found)}.{safe}"
        rows = (f"  {about}", *_details(snapshot), *_service(facts), *_about_process(facts))
        return Status(state, (_first(state, first), *rows))
    return Status(state, (_first(state, about), *_details(snapshot), *_service(facts), *_about_process(facts)))


def _service(facts: Facts) -> list[str]:
    return [f"  service    {facts.service}"] if facts.service else []


def _about_process(facts: Facts) -> list[str]:
    """What the process itself needs, each with what to type."""
    return [f"  {name:<10} {words}" for name, words in cures_of_process(facts)]


def cures_of_process(facts: Facts) -> list[tuple[str, str]]:
    """List what to do about the process, each a name and a sentence."""
    found = []
    if (facts.snapshot or {}).get("safe_reason"):
        found.append(("paused", f"try the platforms now → {facts.command} gateway restart, or /platform resume NAME"))
    number, words = restarts(facts)
    if number:
        found.append(("restarts", f"{words} → {facts.command} logs --level warning"))
    if words := outdated(facts):
        found.append(("version", f"{words} → {facts.command} gateway restart"))
    return found


def _headline(snapshot: Mapping[str, Any]) -> str:
    parts = [f"up {format_duration(snapshot['now'] - snapshot['started_at'])}"]
    if keeper := snapshot.get("kept_up_by"):
        parts.append(f"kept up by {keeper}")
    if (age := snapshot.get("heartbeat_age")) is not None:
        parts.append(f"heartbeat {format_duration(age)} ago")
    if rss := snapshot.get("rss"):
        parts.append(f"{rss / 1_000_000:.0f} MB")
    return ", ".join(parts)


def _waiting_answers(snapshot: Mapping[str, Any]) -> str:
    waiting = int(snapshot.get("waiting", {}).get("answers", 0))
    if not waiting:
        return " Nothing is lost."
    return f" Nothing is lost: {count(waiting, 'answer')} {'waits' if waiting == 1 else 'wait'}."


def _details(snapshot: Mapping[str, Any]) -> list[str]:
    rows = [_platform_row(platform) for platform in snapshot.get("platforms", ())]
    if not rows:
        rows.append("chats      none yet")
    rows += [_node_row(node, is_this=node["name"] == snapshot.get("node")) for node in snapshot.get("nodes", ())]
    if model := snapshot.get("model"):
        rows.append(_model_row(model))
    if waiting := snapshot.get("waiting"):  # without its store the gateway does not know
        messages, approvals = int(waiting.get("messages", 0)), int(waiting.get("approvals", 0))
        rows.append(f"waiting    {count(messages, 'message')}, {count(approvals, 'approval')}")
    rows += [f"config     {problem}" for problem in snapshot.get("problems", ())]
    rows += [f"repaired   {words}" for words in snapshot.get("repaired", ())]
    if snapshot.get("http"):
        rows.append(f"health     {snapshot['http']}")
    return [f"  {row}".rstrip() for row in rows]


def _platform_row(platform: Mapping[str, Any]) -> str:
    row = f"{platform['account']:<10} {platform['state']:<12} "
    if cure := platform.get("cure"):
        return f"{row}→ {cure}"
    age = platform.get("last_frame_age")
    heard = f"last frame {format_duration(age)} ago" if age is not None else ""
    counts = f"{platform.get('in_today', 0)} in, {platform.get('out_today', 0)} out today"
    note = f"; {platform['note']}" if platform.get("note") else ""
    return f"{row}{heard:<21} {counts}{note}"


def _node_row(node: Mapping[str, Any], *, is_this: bool) -> str:
    """One of several gateways on one database."""
    where = "this one" if is_this else f"on {node['host']}"
    accounts = [duty.removeprefix("account:") for duty in node["duties"] if duty.startswith("account:")]
    held = ", ".join([count(node["lanes"], "lane"), *accounts])
    return f"node       {node['name']:<12} {node['state']}, {where}, {held}, Hermes {node['version']}"


def _model_row(model: Mapping[str, Any]) -> str:
    age = model.get("last_answer_age")
    answered = f"last answer {format_duration(age)} ago" if age is not None else "not used yet"
    note = f"; {model['note']}" if model.get("note") else ""
    return f"{'model':<10} {model.get('label', 'none'):<34} {answered}{note}"


def _silent(facts: Facts) -> Status:
    """A gateway holds the home, and did not answer."""
    beat = facts.beat
    age = beat.age(facts.now, facts.monotonic) if beat else None
    if beat is None or age is None or _ended_since(beat, facts.last_exit):
        words = "it is starting."
        if facts.last_exit and facts.last_exit.get("restarted"):
            ago = format_duration(facts.now - float(facts.last_exit["at"]))
            words = f"the worker ended {ago} ago ({facts.last_exit['how']}) and is {_again(facts)}."
        return Status(State.DEGRADED, (_first(State.DEGRADED, words), *_about_process(facts)))
    if age > HEART_STOPPED_SECONDS:
        return _heart_stopped(facts, beat, age)
    if not beat.ready_at:
        held_up = f": {beat.doing.rstrip('.')}" if beat.doing else ""
        if "PostgreSQL" in beat.doing:
            held_up += ". It keeps trying → start that server, or correct HERMES_DATABASE_URL"
        return Status(State.DEGRADED, (_first(State.DEGRADED, f"it is starting{held_up}."),))
    words = f"the process is alive but did not answer in time. Look: {facts.command} logs"
    return Status(State.STALLED, (_first(State.STALLED, words),))


def _ended_since(beat: Beat, last_exit: Mapping[str, Any] | None) -> bool:
    return last_exit is not None and float(last_exit.get("at", 0)) >= beat.at


def _again(facts: Facts) -> str:
    """When the next start is, and how to have it now."""
    at = float((facts.last_exit or {}).get("next_start_at", 0.0))
    if at - facts.now < 1:
        return "being started again"
    when = f"{_clock(at, '%H:%M:%S')}, in {format_duration(at - facts.now)}"
    return f"started again at {when}; now: {facts.command} gateway restart"


def _heart_stopped(facts: Facts, beat: Beat, age: float) -> Status:
    where = f" in {beat.doing}" if beat.doing else ""
    first = f"the process lives, its heart stopped {format_duration(age)} ago{where}."
    left = RESTARTED_AFTER_SECONDS - age
    soon = f"The supervisor restarts it in {format_duration(left)}." if left > 1 else "The supervisor restarts it now."
    second = f"  {count(beat.waiting, 'message')} {'is' if beat.waiting == 1 else 'are'} safe in the inbox. {soon}"
    if turn := re.search(r"\bt_\w+", beat.doing):
        second += f" What happened: {facts.command} trace {turn.group()}"
    return Status(State.STALLED, (_first(State.STALLED, first), second))


def _absent(facts: Facts) -> Status:
    lines: Sequence[str] = (
        _first(State.NOT_RUNNING, _how_it_ended(facts)),
        f"  Start it: {facts.command} gateway run        In the background: {facts.command} gateway start",
        "  Messages sent meanwhile are answered after the start, if the platform keeps them.",
    )
    if facts.beat is None and facts.last_exit is None:
        lines = lines[:2]
    lines = (*lines, *_service(facts))
    if facts.platforms:
        names = ", ".join(facts.platforms)
        lines = (*lines, f"  Until then no message is received on {names}.")
    return Status(State.NOT_RUNNING, tuple(lines), is_dead=bool(facts.platforms) and has_died(facts))


def has_died(facts: Facts) -> bool:
    """Tell whether a gateway that was here ended unasked."""
    if facts.beat is None and facts.last_exit is None:
        return False
    is_recorded = facts.beat is None or _ended_since(facts.beat, facts.last_exit)
    return not is_recorded or (facts.last_exit or {}).get("kind") != "asked"


def _how_it_ended(facts: Facts) -> str:
    beat, last = facts.beat, facts.last_exit
    if beat is not None and not _ended_since(beat, last):
        # Its supervisor wrote nothing after the last beat: it was killed too.
        ago = format_duration(facts.now - beat.at)
        if facts.booted_at > beat.at:
            return f"the machine went down after {_clock(beat.at)}, {ago} ago, and nothing started it again."
        return f"killed {ago} ago (out of memory?), and nothing kept it up."
    if last is None:
        return "it was never started here."
    ago = format_duration(facts.now - float(last["at"]))
    match last["kind"]:
        case "asked":
            return f"stopped {ago} ago, as asked."
        case "configuration":
            return f"its configuration stopped it {ago} ago. What is wrong: {facts.command} doctor"
        case "memory":
            return f"killed {ago} ago (out of memory), and nothing kept it up."
        case _:
            return f"{last['how']} {ago} ago, and nothing kept it up."


def _first(state: State, words: str) -> str:
    return f"{_MARKS[state]} Gateway is {state}: {words}"


def _clock(at: float, form: str = "%H:%M") -> str:
    return format_time(form, at)
