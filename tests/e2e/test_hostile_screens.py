"""Forty hostile texts come in by every way there is, and no screen of the command line shows one of them raw."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.commands import COMMANDS
from hermes.cli.support.program_name import command_name
from hermes.hosting import paths
from hermes.hosting.control import client as control
from hermes.store.home import make_home
from tests.e2e.keeping import until
from tests.e2e.terminal import Terminal, patched_environ
from tests.fakes.hostile import HOSTILE, MARKS, marks_in, raw_in
from tests.fakes.local_models import ollama
from tests.fakes.model import FakeModel, Refusal, Reply, calls_tools
from tests.fakes.telegram import FakeTelegram

FIRST_USER, FIRST_STRANGER = 1000, 9000
ALL = len(HOSTILE)
SKILL = "---\nname: {name}\ndescription: {description}\n---\nDo it: {body}\n"


class Stage:
    """The fakes on a loop of their own, and a gateway in the foreground whose window is kept in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self.window = folder / "window"

    @contextlib.contextmanager
    def open(self) -> Iterator[Stage]:
        with self._looping(), self._fakes(), self._opened_terminal(), self._running_gateway():
            self._talk()
            yield self

    @contextlib.contextmanager
    def _looping(self) -> Iterator[None]:
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()

    @contextlib.contextmanager
    def _fakes(self) -> Iterator[None]:
        fakes = contextlib.AsyncExitStack()

        async def enter() -> None:
            self.telegram = await fakes.enter_async_context(FakeTelegram(username=f"bot{HOSTILE[0]}"))
            self.model = await fakes.enter_async_context(FakeModel())
            self.ollama = await fakes.enter_async_context(ollama(*HOSTILE))

        self._run(enter())
        try:
            yield
        finally:
            self._run(fakes.aclose())

    @contextlib.contextmanager
    def _opened_terminal(self) -> Iterator[None]:
        environ = {
            **self.telegram.environ,
            "TELEGRAM_ALLOWED_USERS": ",".join(str(FIRST_USER + number) for number in range(ALL)),
            "TELEGRAM_DM_POLICY": "pairing",
            "TELEGRAM_HOME_CHANNEL": str(FIRST_USER),
            "OPENAI_BASE_URL": self.model.url,
            "OLLAMA_BASE_URL": f"{self.ollama.url}/v1",
            "LMSTUDIO_BASE_URL": "http://127.0.0.1:9",
        }
        with Terminal(self._folder, **environ) as self.terminal:
            make_home(self.terminal.home)
            self._seed_files(self.terminal.home)
            yield

    @contextlib.contextmanager
    def _running_gateway(self) -> Iterator[None]:
        command, environ = self.terminal.command("gateway", "run"), self.terminal.environ
        with (
            self.window.open("wb") as file,
            subprocess.Popen(command, cwd=self._folder, env=environ, stdout=file, stderr=file) as gateway,
        ):
            try:
                until(lambda: b"Gateway started" in self.window.read_bytes(), 60)
                yield
            finally:
                gateway.send_signal(signal.SIGTERM)
                gateway.wait(30)

    def _run(self, act: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(act, self._loop).result(60)

    def act(self, verb: Callable[..., object], *args: object, **more: object) -> None:
        """Let somebody do something at a fake, on its own loop."""

        async def done() -> None:
            verb(*args, **more)

        self._run(done())

    def _seed_files(self, home: Path) -> None:
        for number, text in enumerate(HOSTILE):
            folder = home / "skills" / "own" / f"skill-{number:02d}"
            folder.mkdir(parents=True, exist_ok=True)
            description = json.dumps(text)
            (folder / "SKILL.md").write_text(SKILL.format(name=folder.name, description=description, body=text))
        personalities = {f"p{number:02d}": text for number, text in enumerate(HOSTILE)}
        config = {"agent": {"personalities": personalities, HOSTILE[1]: 1}, HOSTILE[2]: {"a": HOSTILE[3]}}
        (home / "config.yaml").write_text(json.dumps(config))
        log = Path(paths.log(str(home)))
        log.parent.mkdir(parents=True, exist_ok=True)
        old = "\n".join(f"2026-05-01T12:00:0{n % 10}.000+00:00 INFO Said text={t}" for n, t in enumerate(HOSTILE))
        log.write_text(f"{old}\n", encoding="utf-8", newline="\n")

    def _talk(self) -> None:
        """People with hostile names say hostile things and send hostile files; the model says them back."""
        command = "rm -rf " + " ".join(f"'/tmp/{text}'" for text in HOSTILE[:8])
        self.model.when("please delete", calls_tools(("terminal", {"command": command}), text=HOSTILE[4]))
        self.model.when("please fail", Refusal(400, f"no: {HOSTILE[5]}"))
        for number, text in enumerate(HOSTILE):
            user = FIRST_USER + number
            self.act(self.telegram.user_says, text, chat=user, name=text)
        until(lambda: len({sent.chat for sent in self.telegram.sent}) >= ALL, 60)
        self.act(self.telegram.user_sends, b"x", f"{HOSTILE[34]}.txt", HOSTILE[1], chat=FIRST_USER)
        self.asked = self.terminal.here("-z", "please delete")
        self.act(self.telegram.user_says, "please fail", chat=FIRST_USER + 2, name=HOSTILE[2])
        for number in range(3):
            self.act(self.telegram.user_says, HOSTILE[number], chat=FIRST_STRANGER + number, name=HOSTILE[number])
        home = self.terminal.home
        until(lambda: len(control.call(home, "approvals.list")) >= 1, 60)
        until(lambda: len(control.call(home, "pairing.list", {"platform": ""})["waiting"]) >= 1, 60)
        # The answers to a file and to a failure, three codes and three announcements: nothing else is on its way.
        until(lambda: len(self.telegram.sent) >= ALL + 8, 60)
        self.sessions = control.call(home, "sessions.list", {"key": "", "limit": 100})
        self.act(self.telegram.refuse_next, "sendMessage", 400, f"Bad Request: {HOSTILE[6]}")
        control.call(home, "send", {"target": f"telegram:{FIRST_USER}", "text": HOSTILE[7], "key": "k1"}, 20)
        until(lambda: control.call(home, "outbox.dead"), 60)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("hostile")).open() as stage:
        yield stage


SCREENS: dict[str, tuple[list[str], int]] = {
    "sessions list": (["sessions", "list", "-n", "100"], ALL),
    "sessions list as JSON": (["sessions", "list", "-n", "100", "--json"], ALL),
    "people": (["people", "list"], ALL),
    "people as JSON": (["people", "list", "--json"], ALL),
    "pairing": (["pairing", "list"], 1),
    "pairing as JSON": (["pairing", "list", "--json"], 1),
    "approvals": (["approvals", "list"], 8),
    "approvals as JSON": (["approvals", "list", "--json"], 8),
    "grants": (["approvals", "grants"], 0),
    "dead letters": (["send", "--dead"], 2),
    "dead letters as JSON": (["send", "--dead", "--json"], 2),
    "send": (["send", "--wait", "telegram:1000", HOSTILE[8]], 0),
    "send to nobody": (["send", HOSTILE[9], "hello"], 0),
    "retry of nothing": (["send", "--retry", HOSTILE[9]], 1),
    "log": (["logs", "-n", "1000"], ALL),
    "log as JSON": (["logs", "-n", "1000", "--json"], ALL),
    "log of a part": (["logs", "--component", HOSTILE[1]], 0),
    "status": (["status"], 0),
    "status as JSON": (["status", "--json"], 0),
    "gateway status": (["gateway", "status"], 0),
    "doctor": (["doctor"], 1),
    "doctor as JSON": (["doctor", "--json"], 1),
    "doctor of a user": (["doctor", "--user", str(FIRST_USER + 4)], 1),
    "doctor of nobody": (["doctor", "--user", HOSTILE[4]], 1),
    "config": (["config", "show"], 0),
    "config as JSON": (["config", "show", "--json"], 0),
    "config check": (["config", "check"], 2),
    "config check as JSON": (["config", "check", "--json"], 2),
    "config get": (["config", "get", HOSTILE[5]], 1),
    "config explain": (["config", "explain", HOSTILE[5]], 1),
    "skills": (["skills", "list"], ALL),
    "skills as JSON": (["skills", "list", "--json"], ALL),
    "a skill": (["skills", "show", "skill-07"], 1),
    "a skill as JSON": (["skills", "show", "skill-07", "--json"], 1),
    "a skill looked at": (["skills", "scan", "skill-07"], 0),
    "no skill": (["skills", "show", HOSTILE[3]], 1),
    "tools": (["tools", "list"], 0),
    "no tool": (["tools", "enable", HOSTILE[3], "--platform", "local"], 1),
    "models": (["model", "list"], ALL),
    "models as JSON": (["model", "list", "--json"], ALL),
    "no model": (["model", "use", f"ollama/{HOSTILE[3]}"], 0),
    "bot": (["gateway", "test", "telegram"], 1),
    "bot as JSON": (["gateway", "test", "telegram", "--json"], 1),
    "bot set up": (["gateway", "setup", "telegram", "--token", "42:TEST-token", "--yes"], 1),
    "no platform": (["gateway", "setup", HOSTILE[3], "--yes"], 1),
    "API keys": (["api-key", "list"], 0),
    "API key made": (["api-key", "create", HOSTILE[3]], 0),
    "nothing to trace": (["trace", HOSTILE[3]], 1),
    "no command": ([HOSTILE[3]], 1),
    "no verb": (["sessions", HOSTILE[3]], 1),
    "completion": (["completion", "bash"], 0),
    "version": (["version"], 0),
    "slack": (["slack", "manifest", "--name", HOSTILE[18][:20]], 0),
}


@pytest.mark.parametrize("screen", SCREENS)
def test_no_screen_shows_them_raw(stage: Stage, screen: str) -> None:
    words, least = SCREENS[screen]
    done = stage.terminal.here(*words)
    assert raw_in(done.stdout + done.stderr) == []
    assert len(marks_in(done.stdout + done.stderr)) >= least, done.stdout + done.stderr
    if "--json" in words and done.stdout:
        for line in done.stdout.splitlines():
            json.loads(line)


OURS = re.compile(rf"(?<![\w./~-])((?:[\w~.-]*/)*)hermes (?=(?:{'|'.join(COMMANDS)})\b(?!-))")
SAID_BY_OTHERS = {"log", "log as JSON", "a skill", "a skill as JSON", "skills", "skills as JSON", "completion"}
"""Screens that repeat what stands in files: there a command stays as it was written."""


@pytest.mark.parametrize("screen", [name for name in SCREENS if name not in SAID_BY_OTHERS and "JSON" not in name])
def test_a_screen_spells_the_program_in_one_way(stage: Stage, screen: str) -> None:
    with patched_environ(stage.terminal.environ):
        here = command_name()
    done = stage.terminal.here(*SCREENS[screen][0])
    assert {f"{folder}hermes" for folder in OURS.findall(done.stdout + done.stderr)} <= {here}


def test_no_conversation_shows_them_raw(stage: Stage) -> None:
    shown = ""
    for session in stage.sessions:
        for words in (["sessions", "show", session["id"]], ["sessions", "export", session["id"]]):
            shown += stage.terminal.here(*words).stdout
    assert raw_in(shown) == []
    assert marks_in(shown) == set(MARKS)


def test_a_conversation_that_is_exported_holds_what_was_said(stage: Stage) -> None:
    said = set()
    for session in stage.sessions:
        for line in stage.terminal.here("sessions", "export", session["id"]).stdout.splitlines():
            said.add(json.dumps(json.loads(line), ensure_ascii=False))
    for text in HOSTILE:
        assert any(json.dumps(text, ensure_ascii=False)[1:-1] in line for line in said), text


def test_a_title_cannot_take_over_the_screen(stage: Stage) -> None:
    for session, title in zip(stage.sessions, HOSTILE, strict=False):
        done = stage.terminal.here("sessions", "rename", session["id"], title)
        assert raw_in(done.stdout + done.stderr) == []
    done = stage.terminal.here("sessions", "list", "-n", "100")
    assert raw_in(done.stdout) == []
    assert marks_in(done.stdout) == set(MARKS)
    done = stage.terminal.here("sessions", "show", stage.sessions[0]["id"])
    assert raw_in(done.stdout) == []


def test_an_answer_asked_for_once_is_clean_on_a_pipe_too(stage: Stage) -> None:
    for text in HOSTILE:
        done = stage.terminal.here("-z", text)
        assert raw_in(done.stdout + done.stderr) == []
        assert marks_in(done.stdout), done
    done = stage.terminal.here("-z", HOSTILE[0], "--json")
    assert raw_in(done.stdout) == []
    assert json.loads(done.stdout)["answer"] == f"echo: {HOSTILE[0]}"


def test_what_is_asked_first_is_shown_clean(stage: Stage) -> None:
    assert raw_in(stage.asked.stdout + stage.asked.stderr) == []
    assert "It asks first" in stage.asked.stderr


def test_a_chat_in_the_terminal_shows_streams_cut_anywhere_and_failures_clean(stage: Stage) -> None:
    lines = []
    for number, text in enumerate(HOSTILE):
        stage.model.when(f"say number {number:02d}", Reply(tokens=tuple(text)))
        lines.append(f"say number {number:02d}")
    done = stage.terminal.here("chat", "--session", "hostile", typed="\n".join([*lines, "please fail", "/exit"]) + "\n")
    assert raw_in(done.stdout + done.stderr) == []
    assert marks_in(done.stdout) == set(MARKS)


def test_a_trace_shows_them_clean(stage: Stage) -> None:
    shown = ""
    for text in HOSTILE:
        asked = json.loads(stage.terminal.here("-z", text, "--json").stdout)
        done = stage.terminal.here("trace", asked["turn"])
        shown += done.stdout + done.stderr + stage.terminal.here("trace", asked["event"], "--json").stdout
    assert raw_in(shown) == []
    assert marks_in(shown) == set(MARKS)


def test_a_log_that_is_followed_is_clean(stage: Stage) -> None:
    log = Path(paths.log(str(stage.terminal.home)))
    with subprocess.Popen(
        stage.terminal.command("logs", "-f", "-n", "0"), env=stage.terminal.environ, stdout=subprocess.PIPE
    ) as following:
        assert following.stdout is not None
        os.set_blocking(following.stdout.fileno(), False)
        seen = b""

        def has_all() -> bool:
            nonlocal seen
            with log.open("a", encoding="utf-8", newline="\n") as file:
                file.write("".join(f"printed by somebody {text}\n" for text in HOSTILE))
            seen += following.stdout.read() or b"" if following.stdout else b""
            return marks_in(seen.decode("utf-8", "replace")) == set(MARKS)

        until(has_all, 60)
        following.terminate()
    assert raw_in(seen.decode()) == []


def test_the_window_and_the_log_of_the_gateway_are_clean(stage: Stage) -> None:
    window = stage.window.read_text(encoding="utf-8")
    assert raw_in(window) == []
    assert "botmark00 ‹U+001B›[2J" in window
    own = [line for line in stage_log(stage) if "Said text=" not in line and "printed by somebody" not in line]
    assert raw_in("\n".join(own)) == []
    assert marks_in("\n".join(own))


def stage_log(stage: Stage) -> list[str]:
    return Path(paths.log(str(stage.terminal.home))).read_bytes().decode("utf-8").split("\n")
