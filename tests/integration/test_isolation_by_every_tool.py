"""Two persons, their roles, every tool and every command: nobody reads or changes what is another's.

Each plants something of every kind; then each reaches for the other's by every tool there is, in a task that is handed
on too, by a file named in an answer, and by every command. A new tool or command has to be added here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.backends import bubblewrap, landlock
from hermes.agent.kanban import Actor
from hermes.agent.toolkit.schema import tools_of
from hermes.app.tools import COMMANDS, TOOLS
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.roles import PersonRole
from hermes.services.commands.base import collect
from hermes.services.gateway import Gateway
from hermes.store.db import Tx
from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.watching import SECONDS, code_in, make, results, until

pytestmark = pytest.mark.one_python

ANA, BEN = USER, 8
NO_VOICE = {"TTS_PROVIDER": "openai", "TTS_BASE_URL": "http://127.0.0.1:9"}
PICTURE = b"\x89PNG\r\n\x1a\n"
KINDS = ("file", "todo", "process", "message", "grant", "talk", "title", "photo", "job", "task")
SHOWN = ("file", "todo", "process", "talk", "job", "task")  # what a person's own tools show
OF_ADMINS = ("job", "task")  # what the lists of admins hold of everybody
NO_TASK = 999
OWNER = Actor("owner", "", PersonRole.OWNER)
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Belongings:
    """What one of them has. ``home`` is the folder of Hermes; ``outside`` a file of the machine's owner."""

    user: int
    home: Path
    outside: Path
    session: str = ""
    process: str = ""
    log: str = ""
    grant: str = ""
    job: str = ""
    task: int = 0

    @property
    def person(self) -> str:
        return f"p_telegram_{self.user}"

    @property
    def lane(self) -> str:
        return f"agent:main:telegram:dm:{self.user}"

    @property
    def workspace(self) -> Path:
        return self.home / "workspaces" / self.person

    @property
    def diary(self) -> Path:
        return self.workspace / "diary.txt"

    @property
    def photo(self) -> Path:
        return self.workspace / "photo.png"

    def canary(self, kind: str) -> str:
        return f"canary-{kind}-of-{self.user}"

    @property
    def paths(self) -> list[str]:
        """Every way to name it that somebody else might try."""
        return [
            str(self.diary),
            f"../{self.workspace.name}/diary.txt",
            str(self.home / "state.db"),
            str(self.home / "sessions" / f"{self.session}.jsonl"),
            str(self.home / "outputs" / self.log),
            str(self.outside),
        ]


def shell(theirs: Belongings) -> list[str]:
    read = [f"cat '{path}'; cp '{path}' stolen.txt; cat stolen.txt" for path in theirs.paths]
    return [
        *read,
        f"echo mine now > '{theirs.diary}'",
        f"ls -laR '{theirs.home}' /proc/1/root/'{theirs.workspace}'",
        f"grep -rs canary- '{theirs.home.parent}' /tmp /var/tmp /root /home -m1 | head -c 2000",
        "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep canary-",
        "pkill -f canary- ; kill -9 -1",
    ]


def code(theirs: Belongings) -> list[str]:
    tried = "for path in {paths}:\n    try:\n        print(open(path).read())\n    except OSError as error:\n"
    tried += (
        "        print(error.errno)\ntry:\n    open({diary!r}, 'w').write('mine now')\nexcept OSError:\n    print('no')"
    )
    return [tried.format(paths=theirs.paths, diary=str(theirs.diary))]


Attempts = Callable[[Belongings], list[dict[str, Any]]]

ATTEMPTS: dict[str, Attempts] = {
    "cancel_cronjob": lambda theirs: [{"job": theirs.job, "action": each} for each in ("pause", "resume", "remove")],
    "change_cronjob": lambda theirs: [{"job": theirs.job, "prompt": "mine now"}, {"job": theirs.job, "name": "mine"}],
    "clarify": lambda theirs: [{"question": f"What is in {theirs.diary}?"}],
    "delegate_task": lambda theirs: [{"tasks": [f"errand: read {theirs.diary}"]}],
    "execute_code": lambda theirs: [{"code": text} for text in code(theirs)],
    "find_tools": lambda theirs: [{"need": f"read session {theirs.session}"}],
    "kanban_block": lambda theirs: [{"task": theirs.task, "reason": "mine now"}],
    "kanban_comment": lambda theirs: [{"task": theirs.task, "text": "mine now"}],
    "kanban_create": lambda theirs: [{"title": "wait for it", "needs": [theirs.task]}],
    "kanban_list": lambda _: [{}, {"state": "triage"}, {"state": "todo"}],
    "kanban_move": lambda theirs: [{"task": theirs.task, "state": state} for state in ("ready", "done", "archived")],
    "kanban_show": lambda theirs: [{"task": theirs.task}],
    "list_cronjobs": lambda _: [{}],
    "patch": lambda theirs: [{"path": path, "edits": [{"old": "canary", "new": "mine now"}]} for path in theirs.paths],
    "process": lambda theirs: [
        {"action": "list"},
        *({"action": action, "id": theirs.process, "seconds": 1} for action in ("log", "wait", "kill")),
    ],
    "read_file": lambda theirs: [{"path": path} for path in theirs.paths],
    "schedule_cronjob": lambda theirs: [
        {"prompt": "mine now", "schedule": "0 8 1 1 *", "deliver": f"telegram:{theirs.user}"}
    ],
    "search_files": lambda theirs: [
        {"pattern": "canary", "path": path, "kind": kind}
        for path in (*theirs.paths, "..", "/")
        for kind in ("text", "names")
    ],
    "send_message": lambda theirs: [
        {"text": "mine now", "target": target} for target in (f"telegram:{theirs.user}", "all", "local")
    ],
    "session_search": lambda theirs: [
        {"query": "canary"},
        {"query": "canary-talk-of"},
        {"session": theirs.session},
        {"session": theirs.session, "query": "canary"},
    ],
    "skill_manage": lambda theirs: [
        {"action": "write_file", "name": "plan", "file": f"../../../{theirs.workspace.name}/diary.txt", "content": "x"},
        {"action": "create", "name": f"../../workspaces/{theirs.workspace.name}", "content": "mine now"},
        {"action": "delete", "name": f"../workspaces/{theirs.workspace.name}"},
    ],
    "skill_view": lambda theirs: [
        {"name": "plan", "file": f"../../../workspaces/{theirs.workspace.name}/diary.txt"},
        {"name": f"../workspaces/{theirs.workspace.name}", "file": "diary.txt"},
        *({"name": "gateway-troubleshooting", "file": path} for path in theirs.paths),
    ],
    "skills_list": lambda theirs: [{}, {"category": f"../workspaces/{theirs.workspace.name}"}],
    "terminal": lambda theirs: [
        *({"command": command} for command in shell(theirs)),
        {"command": "cat diary.txt", "folder": str(theirs.workspace)},
        {"command": f"cat {theirs.diary}", "background": True},
    ],
    "text_to_speech": lambda theirs: [{"text": str(theirs.diary)}],
    "todo": lambda _: [{}, {"items": [{"id": "1", "text": "mine now", "state": "done"}], "merge": True}],
    "vision": lambda theirs: [
        {"image": path}
        for path in (str(theirs.photo), f"../{theirs.workspace.name}/photo.png", f"file://{theirs.photo}")
    ],
    "web_extract": lambda theirs: [
        {"url": address}
        for path in theirs.paths
        for address in (f"file://{path}", f"http://127.0.0.1/{path}", f"file://localhost{path}")
    ],
    "web_search": lambda theirs: [{"query": theirs.session}],
    "write_file": lambda theirs: [{"path": path, "content": "mine now"} for path in theirs.paths],
}
"""How each tool is used to reach what is another's."""

IN_TURNS_OF_THEIR_OWN = ("clarify", "delegate_task", "schedule_cronjob", "send_message")
"""The first ends its turn, the second has turns of its own, and the others may have to be asked about."""

ERRAND = ("read_file", "terminal", "session_search", "process", "vision")
"""What an errand tries: it has its person's reach, and no more."""

READING: dict[str, Callable[[Belongings], list[str]]] = {
    "agents": lambda _: ["/agents", "/agents stop all"],
    "approvals": lambda theirs: ["/approvals", f"/approvals revoke {theirs.grant}"],
    "branch": lambda _: ["/branch"],
    "cron": lambda theirs: [
        "/cron",
        *(f"/cron {verb} {theirs.job}" for verb in ("show", "history", "edit", "pause", "resume", "run", "remove")),
        f"/cron edit {theirs.job} mine now",
    ],
    "history": lambda _: ["/history 50"],
    "kanban": lambda theirs: [
        "/kanban",
        *(
            f"/kanban {verb} {theirs.task} mine now"
            for verb in ("show", "comment", "assign", "block", "done", "archive")
        ),
    ],
    "resume": lambda theirs: ["/resume", f"/resume {theirs.session}", f"/resume {theirs.session[:8]}", "/resume 2"],
    "rollback": lambda _: ["/rollback", "/rollback 1", "/rollback 1 force", "/rollback last force"],
    "sessions": lambda _: ["/sessions"],
    "skills": lambda theirs: ["/skills", f"/skills show ../workspaces/{theirs.workspace.name}"],
    "status": lambda _: ["/status"],
    "title": lambda _: ["/title"],
    "tools": lambda _: ["/tools"],
    "undo": lambda _: ["/undo 20"],
    "usage": lambda _: ["/usage"],
    "compress": lambda _: ["/compress"],
    "whoami": lambda _: ["/whoami"],
    "stop": lambda _: ["/stop"],
    "new": lambda _: ["/new"],
}
"""Every command that shows or changes something which a person has."""

OF_THE_CHAT = {"busy", "language", "model", "personality", "reasoning", "verbose", "voice"}
TURNS = {"background", "queue", "retry", "steer"}  # and what turns reach for is tried above
OF_THE_GATEWAY = {"commands", "help", "owner", "platform", "platforms", "restart", "sethome", "version"}
ANSWERS = {"approve", "deny"}  # tried below, and by the three hundred cases of test_approval_cases.py


def test_every_tool_and_every_command_is_tried_here() -> None:
    assert set(ATTEMPTS) == {tool.name for tool in tools_of(*TOOLS)}
    known = {found.name for found in collect(COMMANDS).values()}
    assert known - OF_THE_CHAT - TURNS - OF_THE_GATEWAY - ANSWERS == set(READING)


class Place:
    """The gateway, and what people do there."""

    def __init__(self, gateway: Gateway, telegram: FakeTelegram, model: FakeModel) -> None:
        self.gateway, self.telegram, self.model = gateway, telegram, model
        self._answered: set[str] = set()

    async def turn(self, user: int, *answers: Reply | str, answer: str = "approve", scope: str = "") -> None:
        """One turn that the model carries out like this; what it asks about is answered."""
        await until(self._is_idle)  # an answer is seen before its turn has ended, and a message then would disturb it
        self.model.script([*answers, *([] if isinstance(answers[-1], str) else ["Done."])])
        before = self._done(user)
        self.telegram.user_says("go on", chat=user)
        while True:
            await self.telegram.wait_for(partial(self._goes_on, user, before), 3 * SECONDS)
            if self._done(user) > before:
                return
            code = self._open(user)[0]
            self._answered.add(code)
            self.telegram.user_says(f"/{answer} {code} {scope}".strip(), chat=user)

    async def _is_idle(self) -> bool:
        return not self.gateway.lanes.running()

    def _goes_on(self, user: int, done: int) -> bool:
        return self._done(user) > done or bool(self._open(user))

    def _open(self, user: int) -> list[str]:
        """The codes of what is asked and was not answered here; a card that is decided loses its buttons later."""
        asked = [code_in(sent) for sent in self.telegram.sent if sent.buttons and sent.chat == str(user)]
        return [code for code in asked if code not in self._answered]

    async def types(self, user: int, command: str) -> None:
        before = len(self.telegram.texts(user))
        self.telegram.user_says(command, chat=user)
        await self.telegram.wait_for(lambda: len(self.telegram.texts(user)) > before, SECONDS)
        if self.telegram.texts(user)[before] == ENGLISH.COMPRESS_AT_IT:  # the model's next words are not the turn's
            await self.telegram.wait_for(lambda: len(self.telegram.texts(user)) > before + 1, SECONDS)

    def _done(self, user: int) -> int:
        return sum(text.startswith("Done.") for text in self.telegram.texts(user))

    async def plant(self, had: Belongings) -> Belongings:
        """One of everything, by the person's own tools and commands."""
        planting = calls_tools(
            ("write_file", {"path": "diary.txt", "content": "before"}),
            ("write_file", {"path": "diary.txt", "content": had.canary("file")}),
            ("todo", {"items": [{"id": "1", "text": had.canary("todo")}]}),
            ("terminal", {"command": f"echo {had.canary('process')}; sleep 600", "background": True}),
            ("send_message", {"text": had.canary("message")}),
            ("schedule_cronjob", {"prompt": had.canary("job"), "name": had.canary("job"), "schedule": "0 8 1 1 *"}),
            ("kanban_create", {"title": had.canary("task"), "body": had.canary("task")}),
            ("scribble", {"text": had.canary("grant"), "host": False}),
            text=had.canary("talk"),
        )
        await self.turn(had.user, planting, scope="always")
        had.photo.write_bytes(PICTURE + had.canary("photo").encode())
        await self.types(had.user, f"/title {had.canary('title')}")

        def look(tx: Tx) -> list[str]:
            queries = (
                "SELECT session_id FROM turns WHERE person_id = :person ORDER BY created_at LIMIT 1",
                "SELECT id FROM processes WHERE person_id = :person",
                "SELECT log FROM processes WHERE person_id = :person",
                "SELECT id FROM grants WHERE person_id = :person",
                "SELECT id FROM jobs WHERE person_id = :person",
            )
            return [str(tx.value(query, person=had.person)) for query in queries]

        [task] = [each for each in await self.gateway.board().tasks(OWNER) if each.made_by == had.person]
        session, process, log, grant, job = await self.gateway.db.read(look)
        return replace(had, session=session, process=process, log=log, grant=grant, job=job, task=task.id)

    async def seen_by_oneself(self, mine: Belongings) -> list[str]:
        """The same tools show a person what is their own: what nobody finds would prove nothing."""
        own = calls_tools(
            ("read_file", {"path": "diary.txt"}),
            ("todo", {}),
            ("process", {"action": "log", "id": mine.process}),
            ("session_search", {"session": mine.session}),
            ("list_cronjobs", {}),
            ("kanban_show", {"task": mine.task}),
        )
        await self.turn(mine.user, own)
        told = "\n".join(results(self.model))
        return [kind for kind in KINDS if mine.canary(kind) in told and kind in SHOWN]

    async def state(self, of: Belongings) -> str:
        """What is stored of a person, and what lies in their workspace."""

        def look(tx: Tx) -> list[Any]:
            told = {"person": of.person, "session": of.session, "lane": of.lane}
            return [tx.all(query, lambda *row: row, **{given: told[given]}) for query, given in KEPT]

        files = {path.name: path.read_bytes().hex() for path in sorted(of.workspace.iterdir()) if path.is_file()}
        task = repr(await self.gateway.board().show(OWNER, of.task))
        return json.dumps([await self.gateway.db.read(look), task, files, self.telegram.texts(of.user)], indent=1)

    async def reach(self, user: int, role: PersonRole, theirs: Belongings) -> None:
        """By every tool, in an errand too, by a file that an answer names, and by every command.

        An admin sees and changes everybody's grants, jobs and tasks: that is what admins are for.
        """
        if role is PersonRole.ADMIN:
            theirs = replace(theirs, grant="g_none", job="job_none", task=NO_TASK)
        calls: list[Call] = [
            (name, arguments)
            for name, attempts in ATTEMPTS.items()
            if name not in IN_TURNS_OF_THEIR_OWN
            for arguments in attempts(theirs)
        ]
        files = "\n".join(f"MEDIA:{path}" for path in (*theirs.paths, theirs.photo))
        await self.turn(user, calls_tools(*calls), f"Done.\n{files}")
        [handed_on] = [("delegate_task", arguments) for arguments in ATTEMPTS["delegate_task"](theirs)]
        errand = calls_tools(*(call for call in calls if call[0] in ERRAND))
        # A guest hands nothing on: what was meant for the errand is then done in the turn itself.
        ends = ["Done."] if role is PersonRole.GUEST else ["Done.", "Done."]
        await self.turn(user, calls_tools(handed_on), errand, *ends)
        for name in ("send_message", "schedule_cronjob"):
            for arguments in ATTEMPTS[name](theirs):
                await self.turn(user, calls_tools((name, arguments)), answer="deny")
        [asked] = ATTEMPTS["clarify"](theirs)
        self.model.script([calls_tools(("clarify", asked))])
        await self.types(user, "ask me")
        for typed in READING.values():
            for command in typed(theirs):
                await self.types(user, command)
        for title in (theirs.canary("title"), "no such title"):
            await self.types(user, f"/resume {title}")
        known_title, unknown_title = self.telegram.texts(user)[-2:]
        assert known_title.replace(theirs.canary("title"), "no such title") == unknown_title


KEPT = (
    ("SELECT seq, kind, body FROM transcript WHERE session_id = :session ORDER BY seq", "session"),
    ("SELECT title, key, ended_at FROM sessions WHERE id = :session", "session"),
    ("SELECT items FROM todos WHERE session_id = :session", "session"),
    ("SELECT number, path, undone_at FROM checkpoints WHERE person_id = :person ORDER BY number", "person"),
    ("SELECT id, ended_at, exit_code FROM processes WHERE person_id = :person ORDER BY id", "person"),
    ("SELECT id, subject, revoked_at FROM grants WHERE person_id = :person ORDER BY id", "person"),
    ("SELECT id, name, prompt, state, next_slot FROM jobs WHERE person_id = :person ORDER BY id", "person"),
    ("SELECT session_id, turn_id FROM lanes WHERE key = :lane", "lane"),
)
"""What must be as it was, and by whom or what it is found."""


@pytest.fixture
def sandboxed() -> None:
    if (why := bubblewrap.why_not()) and landlock.why_not():
        pytest.skip(why)


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    "ana,ben",
    [
        (PersonRole.USER, PersonRole.USER),
        (PersonRole.USER, PersonRole.ADMIN),
        (PersonRole.ADMIN, PersonRole.ADMIN),
        (PersonRole.GUEST, PersonRole.USER),
    ],
    ids=lambda role: str(role),
)
async def test_nobody_reads_or_changes_what_is_anothers(
    start: Start,
    telegram: FakeTelegram,
    model: FakeModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ana: PersonRole,
    ben: PersonRole,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the owner's own workspace
    outside = tmp_path / "letter.txt"
    outside.write_text("canary-letter-of-the-owner")
    home = tmp_path / "home"
    async with start(MESSAGING_CWD="", TELEGRAM_ALLOWED_USERS=f"{ANA},{BEN}", **NO_VOICE) as gateway:
        place = Place(gateway, telegram, model)
        await gateway.skills.is_synced.wait()
        people = {ANA: Belongings(ANA, home, outside), BEN: Belongings(BEN, home, outside)}
        for user in people:
            await make(gateway, user, PersonRole.USER)
            people[user] = await place.plant(people[user])
        assert await place.seen_by_oneself(people[ANA]) == list(SHOWN)
        for user, role in ((ANA, ana), (BEN, ben)):
            await make(gateway, user, role)
        for user, role, other in ((ANA, ana, BEN), (BEN, ben, ANA)):
            theirs = people[other]
            before, asked, told = await place.state(theirs), len(model.requests), len(telegram.texts(user))
            await place.reach(user, role, theirs)
            assert await place.state(theirs) == before
            seen = "\n".join([*map(json.dumps, model.requests[asked:]), *telegram.texts(user)[told:-2]])
            hidden = [kind for kind in KINDS if role is not PersonRole.ADMIN or kind not in OF_ADMINS]
            assert [kind for kind in hidden if theirs.canary(kind) in seen] == []
            assert "canary-letter" not in seen
    assert outside.read_text() == "canary-letter-of-the-owner"
    assert not [sent for sent in telegram.sent if sent.file], "no file went out"
