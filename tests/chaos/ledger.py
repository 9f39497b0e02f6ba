"""Lost, doubled, out of order: counted from what the fake saw, never from our own store."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.chaos.world import Flight


@dataclass(frozen=True, slots=True)
class Said:
    """A message that must be answered once."""

    chat: int
    text: str
    kill: int

    @property
    def answer(self) -> str:
        return f"echo: {self.text}"


IN_THE_SOCKET_SECONDS = 0.1
"""What a process wrote before it was gone may lie so long in the socket before the fake takes it; no successor can
write so soon."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill. ``noted_until``: answers that left the fake before this were surely noted down; later ones may be."""

    number: int
    point: str
    victim: str
    at: float
    gone_at: float
    noted_until: float
    back_seconds: float
    was_reached: bool
    is_stuck: bool

    def left_in_doubt(self, flight: Flight) -> bool:
        """Whether the outcome of this send could not be known to whoever came after the kill."""
        if flight.taken_at > self.gone_at + IN_THE_SOCKET_SECONDS:
            return False
        return flight.answered_at is None or flight.answered_at > self.noted_until


@dataclass(slots=True)
class Verdict:
    messages: int = 0
    lost: list[Said] = field(default_factory=list)
    doubled: list[Said] = field(default_factory=list)
    unmarked: list[Said] = field(default_factory=list)
    out_of_order: list[Said] = field(default_factory=list)
    unfinished: list[Said] = field(default_factory=list)  # a preview stands where its answer should
    repeats: int = 0
    repeats_in_flight: int = 0  # of these: the fake had not answered the first send when the kill came

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.unmarked or self.out_of_order or self.unfinished)


def judge(said: Sequence[Said], flights: Iterable[Flight], kills: Sequence[Kill]) -> Verdict:
    """Each answer once; a repeat only of a send that a kill left in doubt, one for each, marked; a chat in order."""
    sends: dict[tuple[str, str], list[Flight]] = defaultdict(list)
    for flight in sorted(flights, key=lambda flight: flight.taken_at):
        sends[flight.sent.chat, flight.text].append(flight)
    verdict = Verdict(messages=len(said))
    for message in said:
        _judge_one(message, sends[str(message.chat), message.answer], kills, verdict)
    verdict.out_of_order = _out_of_order(said, sends)
    return verdict


def _judge_one(message: Said, answers: Sequence[Flight], kills: Sequence[Kill], verdict: Verdict) -> None:
    if not answers:
        verdict.lost.append(message)
    elif answers[-1].is_preview:
        verdict.unfinished.append(message)
    for earlier, repeat in pairwise(answers):
        doubts = [kill for kill in kills if kill.at <= repeat.taken_at and kill.left_in_doubt(earlier)]
        verdict.repeats += 1
        verdict.repeats_in_flight += any(kill.at < (earlier.answered_at or math.inf) for kill in doubts)
        if not doubts:
            verdict.doubled.append(message)
        if not repeat.is_marked:
            verdict.unmarked.append(message)


def _out_of_order(said: Sequence[Said], sends: Mapping[tuple[str, str], Sequence[Flight]]) -> list[Said]:
    late: list[Said] = []
    latest: dict[int, float] = defaultdict(float)
    for message in said:
        if answers := sends[str(message.chat), message.answer]:
            first = answers[0].taken_at
            if first < latest[message.chat]:
                late.append(message)
            latest[message.chat] = max(first, latest[message.chat])
    return late


def told(verdict: Verdict, flights: Sequence[Flight], kills: Sequence[Kill]) -> list[str]:
    """Everything that must not have happened, with its story."""
    return [
        f"{name}: {story(message, flights, kills)}"
        for name in ("lost", "doubled", "unmarked", "out_of_order", "unfinished")
        for message in getattr(verdict, name)
    ]


def story(message: Said, flights: Iterable[Flight], kills: Sequence[Kill]) -> str:
    """What happened to one message, for whoever looks for the reason: times count from its kill."""
    kill = next(kill for kill in kills if kill.number == message.kill)
    lines = [f"{message.text!r} in chat {message.chat}, kill {kill.number} {kill.point}, {kill.victim}"]
    lines.append(f"  gone after {kill.gone_at - kill.at:.3f} s, noted until {kill.noted_until - kill.at:.3f} s")
    for flight in flights:
        if flight.sent.chat == str(message.chat) and flight.text == message.answer:
            answered = "never" if flight.answered_at is None else f"{flight.answered_at - kill.at:.3f} s"
            taken = flight.taken_at - kill.at
            lines.append(f"  sent {taken:.3f} s, answered {answered}: {flight.sent.text!r} {flight.sent.edits or ''}")
    return "\n".join(lines)
