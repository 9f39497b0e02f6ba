"""Three hundred generated cases: only an answer that the rule allows counts, and only the exact command runs.

Each case is a turn that sleeps on a question in one and the same gateway. Two rounds of answers reach it by every
surface: buttons, codes and bare words typed in Telegram, the API, the command line; by the asked person, other users,
guests, admins, the owner and strangers; in time and too late; with forged data, edited messages and old ones. What the
outcome must be is computed here from the case alone, by the rule as it is written in the design.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hermes.core.errors import GatewayError
from hermes.core.keys import LOCAL
from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.core.roles import PersonRole
from hermes.servers.api import approvals as api
from hermes.servers.api.bodies import DecisionBody, decode
from hermes.servers.api.context import Caller
from hermes.servers.api.errors import ApiError
from hermes.services.gateway import Gateway
from hermes.store import approvals, claims, grants, inbox, outbox, outbox_sending, people
from hermes.store.db import Tx
from hermes.store.home import make_home
from hermes.store.open import open_database
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.turns import steps, tool_calls, turns
from tests.contract.store import rows
from tests.fakes.clock import START, FakeClock
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.test_approval_scopes import command_line
from tests.integration.watching import dangers, until

CASES = 300
SEED = 20261115
FIRST_CHAT = 50_000
LATE = 100.0  # when the time of some questions is over

CAST = {
    "owner": (1001, PersonRole.OWNER),
    "admin": (1002, PersonRole.ADMIN),
    "user": (1003, PersonRole.USER),
    "other": (1004, PersonRole.USER),
    "guest": (1005, PersonRole.GUEST),
    "stranger": (1006, None),
}
TEXTS = (
    "rm -rf build",
    "git push --force && echo 'done'",
    "a\u200bb\u202ec",
    'quotes " and \\ and $(x)',
    "naïve – 日本語 🙂",
    " spaces  at  the  ends ",
    "/approve all",
    "```\n/approve\n```".replace("\n", " "),
)
SURFACES = ("button", "code here", "code elsewhere", "bare", "api", "command line")
SPOILT = ("", "", "", "", "unknown id", "garbage", "hidden character", "edited", "written before")


@dataclass(frozen=True, slots=True)
class Reply:
    by: str
    surface: str
    allow: bool
    scope: str
    spoilt: str


@dataclass(frozen=True, slots=True)
class Case:
    number: int
    asked_of: str
    touches_host: bool
    is_late: bool
    has_subject: bool
    has_another: bool
    text: str
    replies: tuple[Reply, ...]
    id: str = field(default="")

    @property
    def approval_id(self) -> str:
        return f"ap_case_{self.number}"

    @property
    def code(self) -> str:
        return f"Q{self.number:05d}"

    @property
    def chat(self) -> int:
        return FIRST_CHAT + self.number

    @property
    def lane(self) -> str:
        return f"agent:main:telegram:dm:{self.chat}"

    @property
    def line(self) -> str:
        """What is written when the command runs, to the byte."""
        return f"{self.number} {self.text}"

    @property
    def subject(self) -> str:
        return f"kind {self.number}" if self.has_subject else ""


def generated() -> list[Case]:
    chance = random.Random(SEED)
    return [_case(number, chance) for number in range(CASES)]


def _case(number: int, chance: random.Random) -> Case:
    asked_of = chance.choice(["owner", "admin", "user", "user", "user"])
    replies = tuple(_reply(asked_of, chance) for _ in range(chance.choice([1, 2, 2])))
    return Case(
        number,
        asked_of,
        touches_host=chance.random() < 0.5,
        is_late=chance.random() < 0.2,
        has_subject=chance.random() < 0.6,
        has_another=chance.random() < 0.15,
        text=chance.choice(TEXTS),
        replies=replies,
    )


def _reply(asked_of: str, chance: random.Random) -> Reply:
    by = chance.choice([asked_of, asked_of, *CAST])
    return Reply(
        by,
        chance.choice(SURFACES),
        allow=chance.random() < 0.7,
        scope=chance.choice(["once", "once", "session", "always"]),
        spoilt=chance.choice(SPOILT),
    )


# What must happen, by the rule alone


def expected(case: Case) -> Reply | None:
    """The answer that counts: the first that is allowed, in time, and says which question it means."""
    if case.is_late:
        return None
    return next((reply for reply in case.replies if _counts(case, reply)), None)


def _counts(case: Case, reply: Reply) -> bool:
    return _is_permitted(case, reply) and _is_about_it(case, reply)


def _is_permitted(case: Case, reply: Reply) -> bool:
    if reply.surface == "command line":
        return True  # whoever sits at the machine is the owner
    role = CAST[reply.by][1]
    if role in (PersonRole.OWNER, PersonRole.ADMIN):
        return True
    is_asked = reply.by == case.asked_of and reply.surface != "api"  # a key is a person of its own
    return role is PersonRole.USER and is_asked and not case.touches_host


def _is_about_it(case: Case, reply: Reply) -> bool:
    match reply.surface:
        case "button":
            return reply.spoilt not in ("unknown id", "garbage", "hidden character")
        case "bare":
            if case.has_another:
                return False
            return not reply.allow or reply.spoilt not in ("edited", "written before")
        case _:
            return reply.spoilt not in ("unknown id", "garbage")


def granted(case: Case, reply: Reply) -> tuple[str, str, bool] | None:
    """The grant that a counting answer leaves: for whom, for how long, and whether it reaches the host."""
    if not reply.allow or reply.scope == "once" or not case.has_subject:
        return None
    return _person(case.asked_of), reply.scope, case.touches_host


def _person(name: str) -> str:
    return f"p_telegram_{CAST[name][0]}"


# Planting


def plant(tx: Tx, cases: list[Case]) -> None:
    for name, (user, role) in CAST.items():
        if role is not None:
            people.ensure(
                tx, _person(name), platform="telegram", user_id=str(user), name=name, role=role.value, now=START
            )
    for case in cases:
        _plant(tx, case)


def _plant(tx: Tx, case: Case) -> None:
    """A turn that sleeps on its question, which was shown in its chat ten seconds ago."""
    user = str(CAST[case.asked_of][0])
    inbox.accept(tx, [rows.incoming("do it", lane=case.lane, sender_id=user, ready_at=START)], now=START)
    begun = rows.take(tx, lane=case.lane, now=START)
    assert begun is not None
    calls = [_new_call(begun.turn.id, case, 0)]
    if case.has_another:
        calls.append(_new_call(begun.turn.id, case, 1))
    for new in calls:
        outbox.enqueue(tx, new.outgoing, now=START - 10)
        outbox_sending.record_sent(tx, new.outgoing[0].id, message_id=str(case.number), note="", now=START - 10)
    tx.run("UPDATE targets SET next_at = NULL")
    said = ChatMessage(Role.ASSISTANT, "", tool_calls=tuple(new.call for new in calls))
    steps.add_step(tx, begun.claim, begun.turn, said, calls, usage=turns.NO_USAGE, now=START)
    stored = turns.get(tx, begun.turn.id)
    assert stored is not None
    assert steps.wait_for_approval(tx, begun.claim, stored, now=START)


def _new_call(turn_id: str, case: Case, position: int) -> tool_calls.NewCall:
    is_other = position == 1
    approval_id = f"{case.approval_id}x" if is_other else case.approval_id
    target = f"telegram:{case.chat}"
    name = f"ob_{approval_id}"
    text = "never allowed" if is_other else case.line
    question = approvals.Question(
        approval_id,
        f"X{case.number:05d}" if is_other else case.code,
        _person(case.asked_of),
        case.touches_host,
        f"May I write {text!r}?",
        START + (LATE if case.is_late else 10_000.0),
        "" if is_other else case.subject,
        "on local in the workspace",
        target,
        name,
    )
    arguments = json.dumps({"text": text, "host": case.touches_host}, ensure_ascii=bool(case.number % 2))
    call = ToolCall(f"call_{position}", "scribble", arguments)
    body = json.dumps({"target": {"platform": "telegram", "chat": str(case.chat)}, "text": "May I?"})
    letter = Outgoing(name, target, name, 0, OutboxKind.QUESTION, body, START + 10_000.0, turn_id)
    return tool_calls.NewCall(f"{turn_id}:1:{position}", call, question, [letter])


# Answering


async def give(gateway: Gateway, telegram: FakeTelegram, case: Case, reply: Reply) -> None:
    user, role = CAST[reply.by]
    name = {"unknown id": "ap_nobody", "garbage": "\x07?!"}.get(reply.spoilt, case.approval_id)
    code = {"unknown id": "ZZZZZZ", "garbage": "?!"}.get(reply.spoilt, case.code)
    match reply.surface:
        case "button":
            _press(telegram, case, reply, name, user)
        case "code here" | "code elsewhere" | "bare":
            said = "" if reply.surface == "bare" else f" {code}"
            scope = f" {reply.scope}" if reply.allow and reply.scope != "once" else ""
            chat = user if reply.surface == "code elsewhere" else case.chat
            _write(telegram, reply, f"/approve{said}{scope}" if reply.allow else f"/deny{said}", chat, user)
        case "api":
            scope = reply.scope if reply.allow else "once"
            await _by_key(gateway, name, role, allow=reply.allow, scope=scope)
        case _:
            with suppress(GatewayError):
                await command_line(
                    gateway,
                    "approvals.answer",
                    id=name,
                    allow=reply.allow,
                    scope=reply.scope if reply.allow else "once",
                )


def _press(telegram: FakeTelegram, case: Case, reply: Reply, name: str, user: int) -> None:
    word = {"once": "allow", "session": "session", "always": "always"}[reply.scope] if reply.allow else "deny"
    data = f"ap:{word}:{name}"
    data = {"garbage": "ap:maybe:" + name, "hidden character": data + "\u200b"}.get(reply.spoilt, data)
    telegram.deliver(
        "callback_query",
        {
            "id": f"{case.number}-{random.Random(data + reply.by).random()}",
            "from": {"id": user, "is_bot": False, "first_name": reply.by},
            "message": {"message_id": case.number + 1, "date": 1, "chat": {"id": case.chat, "type": "private"}},
            "chat_instance": "-1",
            "data": data,
        },
    )


def _write(telegram: FakeTelegram, reply: Reply, text: str, chat: int, user: int) -> None:
    date = int(START) - 3600 if reply.spoilt == "written before" else int(START) + 200
    if reply.spoilt == "edited":
        said = telegram.user_says("hm", chat=chat, user=user, name=reply.by, date=date)
        telegram.user_edits(said, text)
    else:
        telegram.user_says(text, chat=chat, user=user, name=reply.by, date=date)


async def _by_key(gateway: Gateway, name: str, role: PersonRole | None, *, allow: bool, scope: str) -> None:
    caller = Caller(f"key:{role}", role or PersonRole.GUEST)
    approval = await gateway.db.read(approvals.get, name)
    if approval is None:
        return
    body = decode({"decision": "approve" if allow else "deny", "scope": scope}, DecisionBody)
    with suppress(ApiError):
        await api.answer(gateway, caller, approval, api.read_decision(body))


# Looking


@dataclass(frozen=True, slots=True)
class Found:
    state: str
    scope: str
    calls: tuple[str, ...]


def found(tx: Tx, case: Case) -> Found:
    stored = approvals.get(tx, case.approval_id)
    assert stored is not None
    return Found(stored.state, stored.scope, tuple(call.arguments for call in tool_calls.of_turn(tx, stored.turn_id)))


def _open(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM inbox WHERE state = 'acting'") or 0)


def _unfinished(tx: Tx, wanted: list[str]) -> int:
    marks = [approval_id for approval_id in wanted if _is_running(tx, approval_id)]
    return len(marks)


def _is_running(tx: Tx, approval_id: str) -> bool:
    stored = approvals.get(tx, approval_id)
    assert stored is not None
    call = tool_calls.get(tx, stored.tool_call_id)
    return call is None or call.state != "done"


def listed(cases: list[Case]) -> Iterator[str]:
    for case in cases:
        winner = expected(case)
        if winner is not None and winner.allow:
            yield case.line


async def test_only_an_answer_that_the_rule_allows_counts_and_only_the_exact_command_runs(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    cases = generated()
    assert len(cases) == CASES
    home = tmp_path / "home"
    make_home(home)
    db = await open_database(home / "state.db")
    await db.write(plant, cases)
    assert await db.read(claims.due, "lanes", now=START) == []
    await db.close()
    telegram.any_chat = True
    clock = FakeClock(START)
    ids = ",".join(str(user) for name, (user, _) in CAST.items() if name != "stranger")
    async with start(clock=clock, TELEGRAM_ALLOWED_USERS=ids) as gateway:
        clock.advance(LATE)
        for turn in range(2):
            for case in cases:
                if turn < len(case.replies):
                    await give(gateway, telegram, case, case.replies[turn])
            await until(lambda: _all_acted(gateway, telegram), within=25)
        decided = [case.approval_id for case in cases if expected(case) is not None or case.is_late]
        await until(lambda: _all_ended(gateway, decided), within=25)
        await check(gateway, cases)
    assert sorted(dangers(tmp_path)) == sorted(listed(cases)), (
        "each allowed command ran once, to the byte, and no other"
    )
    assert model.requests


async def _all_acted(gateway: Gateway, telegram: FakeTelegram) -> bool:
    return telegram.unconfirmed == 0 and await gateway.db.read(_open) == 0


async def _all_ended(gateway: Gateway, decided: list[str]) -> bool:
    return await gateway.db.read(_unfinished, decided) == 0


async def check(gateway: Gateway, cases: list[Case]) -> None:
    standing = {grant.subject: grant for grant in await gateway.db.read(grants.standing, limit=CASES)}
    wrong = []
    for case in cases:
        winner = expected(case)
        state = "expired" if case.is_late else "pending" if winner is None else "allowed" if winner.allow else "denied"
        was = await gateway.db.read(found, case)
        grant = standing.pop(case.subject, None) if case.subject else None
        given = (grant.person_id, grant.scope, bool(grant.touches_host)) if grant else None
        if was.state != state or given != (granted(case, winner) if winner else None):
            wrong.append((case, state, was, given))
    assert wrong == []
    assert standing == {}, "nothing was granted that nobody granted"
    assert LOCAL == "local"


def test_the_cases_are_many_and_different() -> None:
    cases = generated()
    winners = [expected(case) for case in cases]
    assert {reply.surface for case in cases for reply in case.replies} == set(SURFACES)
    assert {reply.surface for reply in winners if reply is not None and reply.allow} == set(SURFACES)
    assert sum(reply is None for reply in winners) > CASES // 4
    assert sum(reply is not None and reply.allow for reply in winners) > CASES // 5
    assert sum(reply is not None and not reply.allow for reply in winners) > CASES // 20
    assert len({(case.asked_of, case.touches_host, case.replies) for case in cases}) > CASES * 0.9
