"""The troubleshooting guide as a suite: each symptom is produced, named with its cure, and cured.

One gateway on Telegram, QQ and a scripted model is shared by all tests. Each test leaves it as it found it; where the
row says that nothing needs a restart, the worker is the same process afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import re
import signal
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, Self

import pytest

from hermes.core.errors import GatewayError
from hermes.hosting import heartbeat, locks, paths
from hermes.hosting.control import client as control
from tests.e2e.keeping import until
from tests.e2e.terminal import Terminal
from tests.e2e.test_process_gateway import free_port
from tests.fakes.model import Refusal
from tests.fakes.qq import FakeQQ
from tests.fakes.telegram import FakeTelegram

KEY = "sk-openkey-0123456789abcx7Q"
WRONG = "sk-openkey-revoked000000zz9"
CONFIG = """\
# mine
model:
  provider: openkey
  default: gpt-4o-mini
providers:
  openkey:
    base_url: {url}
    api_key_env: OPENKEY_API_KEY
"""
pytestmark = pytest.mark.timeout(180)


class Chats:
    """Telegram and QQ on a loop in a thread, for tests that have none."""

    def __enter__(self) -> Self:
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="fake chats", daemon=True)
        self._thread.start()
        assert self._is_up.wait(20), "the fakes did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as stack:
            self.telegram = await stack.enter_async_context(FakeTelegram())
            self.qq = await stack.enter_async_context(FakeQQ())
            self._is_up.set()
            await self._over.wait()

    def do(self, act: Callable[[], Any]) -> Any:
        """Call it on the loop of the fakes, and wait for what it returns."""

        async def run() -> Any:
            found = act()
            return await found if inspect.isawaitable(found) else found

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(20)


class World:
    def __init__(self, terminal: Terminal, chats: Chats) -> None:
        self.terminal = terminal
        self.chats = chats
        self.home = terminal.home
        self.model = terminal._model.fake

    def worker(self) -> int:
        """The process that answers; 0 while none does."""
        with contextlib.suppress(GatewayError):
            return int(control.call(self.home, "ping")["pid"])
        return 0

    def status(self) -> str:
        shown = self.terminal.here("gateway", "status")
        return shown.stdout + shown.stderr

    def doctor(self, *words: str) -> dict[str, dict[str, Any]]:
        told = self.terminal.told("doctor", *words)
        return {finding["name"]: finding for finding in told["findings"]}

    def fix(self) -> list[str]:
        done = self.terminal.told("doctor", "--fix")["repairs"]
        assert all(repair["ok"] for repair in done), done
        return [repair["text"] for repair in done]

    def says(self, text: str, expect: str = "") -> None:
        """A person writes on Telegram, and the answer is waited for."""
        telegram = self.chats.telegram
        self.chats.do(lambda: telegram.user_says(text))
        wanted = expect or f"echo: {text}"
        try:
            until(lambda: any(wanted in said for said in telegram.texts(7)), 30)
        except AssertionError:
            raise AssertionError(f"{wanted!r} is not among {telegram.texts(7)[-3:]}") from None

    def account(self, name: str) -> dict[str, Any]:
        platforms = control.call(self.home, "status")["platforms"]
        return dict(next(platform for platform in platforms if platform["account"] == name))

    def is_well(self) -> bool:
        return bool(self.worker()) and self.terminal.here("gateway", "status").returncode == 0

    def log(self) -> str:
        return Path(paths.log(str(self.home))).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("troubles")
    with Chats() as chats:
        environ = {
            **chats.telegram.environ,
            **chats.qq.environ,
            "TELEGRAM_ALLOWED_USERS": "7",
            "TELEGRAM_HOME_CHANNEL": "7",
            "QQ_ALLOWED_USERS": "7",
            "GATEWAY_OWNERS": "local",
            "API_SERVER_PORT": str(free_port()),
        }
        with Terminal(folder, **environ) as terminal:
            terminal.home.mkdir(mode=0o700)
            (terminal.home / ".env").write_text(f"OPENKEY_API_KEY={KEY}\n")
            (terminal.home / "config.yaml").write_text(CONFIG.format(url=terminal.model_url))
            for name in (".env", "config.yaml"):
                (terminal.home / name).chmod(0o600)
            world = World(terminal, chats)
            world.model.bad_keys[WRONG] = Refusal(401, "Incorrect API key provided.", code="invalid_api_key")
            terminal.start_gateway()
            assert terminal.here("kanban", "create", "water the plants").returncode == 0
            until(world.is_well, 60)
            yield world


@pytest.fixture(autouse=True)
def _is_well_at_first(world: World) -> None:
    """A test that failed may have left it down: the next one begins with a gateway that runs."""
    if not world.worker():
        world.terminal.start_gateway()
        until(world.is_well, 60)


@pytest.fixture
def same_process(world: World) -> Iterator[int]:
    """Nothing needs a restart: the same worker process answers afterwards."""
    before = world.worker()
    yield before
    assert until(world.worker, 60) == before


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


# A gateway that is well


def test_a_gateway_that_is_well_has_no_trouble_and_says_in_words_that_nobody_keeps_it_up(world: World) -> None:
    world.says("hello")
    assert "unsupervised: it runs by hand" in world.status()
    findings = world.doctor("--live")
    assert [name for name, finding in findings.items() if finding["level"] == "trouble"] == []
    assert findings["live"]["text"].startswith("openkey / gpt-4o-mini answered a test call in")
    assert findings["model"]["more"][-1] == "Key from .env line 1, ends in …x7Q"
    assert [finding["number"] for finding in findings.values()] == list(range(1, len(findings) + 1))
    expected = {"home", "config", "stores", "model", "network", "people", "unanswered", "ports", "clock", "growth"}
    assert expected | {"versions", "service"} <= findings.keys()


def test_one_command_tests_every_account_and_the_model(world: World) -> None:
    sent = len(world.chats.telegram.texts(7))
    shown = world.terminal.here("gateway", "test", "telegram")
    assert shown.returncode == 0, shown.stderr
    assert "✓ A test message is in telegram:7" in shown.stdout
    assert "✓ openkey / gpt-4o-mini answered a test call in" in shown.stdout
    assert len(world.chats.telegram.texts(7)) == sent + 1
    told = world.terminal.told("gateway", "test")
    assert {one["account"]: one["ok"] for one in told["accounts"]} == {"telegram": True, "qq": False}
    assert told["model"]["ok"] is True, "QQ has no home channel, so its test message has nowhere to go"


# The process


def test_a_dead_process_is_named_and_fix_starts_it_again(world: World) -> None:
    holder, worker = locks.holder(paths.parent_lock(str(world.home))), world.worker()
    assert holder is not None
    assert holder.pid > 1 < worker
    for pid in (holder.pid, worker):
        with contextlib.suppress(ProcessLookupError):  # the worker dies with its parent
            os.kill(pid, signal.SIGKILL)
    until(lambda: not control.is_running(world.home))
    assert "✗ Gateway is not running: killed" in world.status()
    assert re.search("Until then no message is received on .*telegram", world.status())
    service = world.doctor()["service"]
    assert (service["level"], service["can_fix"]) == ("trouble", True)
    assert service["command"].endswith("hermes gateway start")
    assert any("Gateway started" in text for text in world.fix())
    world.says("are you back?")


def test_a_gateway_that_was_stopped_on_request_is_not_started_by_fix(world: World) -> None:
    assert world.terminal.here("gateway", "stop").returncode == 0
    service = world.doctor()["service"]
    assert (service["level"], service["can_fix"]) == ("trouble", False)
    assert world.fix() == []
    assert not control.is_running(world.home)
    world.terminal.start_gateway()
    until(world.is_well, 60)


def test_a_stalled_loop_is_named_and_fix_restarts_it(world: World) -> None:
    stopped = world.worker()
    assert stopped > 1
    os.kill(stopped, signal.SIGSTOP)
    until(lambda: time.time() - heart(world.home) > 4.5, 20)
    status = world.terminal.here("gateway", "status")
    assert (status.returncode, "✗ Gateway is stalled: the process lives, its heart stopped" in status.stdout) == (
        1,
        True,
    )
    service = world.doctor()["service"]
    assert (service["level"], service["can_fix"]) == ("trouble", True)
    assert any("Gateway restarted" in text for text in world.fix())
    assert world.worker() not in (0, stopped)
    world.says("and again?")


def heart(home: Path) -> float:
    seen = heartbeat.read(paths.heartbeat(str(home)))
    return seen.at if seen else time.time()


def test_a_second_gateway_is_refused_with_the_pid_of_the_first(world: World, same_process: int) -> None:
    holder = locks.holder(paths.parent_lock(str(world.home)))
    assert holder is not None
    second = world.terminal.hermes("gateway", "run")
    assert (second.returncode, f"(pid {holder.pid})" in second.stderr) == (1, True)
    assert "gateway run --replace" in second.stderr


# Connections


def test_a_bot_that_another_program_uses_too_is_named_and_comes_back_by_itself(world: World, same_process: int) -> None:
    telegram = world.chats.telegram
    words = "Conflict: terminated by other getUpdates request"
    world.chats.do(lambda: telegram.refuse_next("getUpdates", 409, words, times=1000))
    until(lambda: world.account("telegram")["state"] == "conflict", 30)
    assert "telegram is used by another process since" in world.status()
    service = world.doctor()["service"]
    assert service["level"] == "trouble"
    assert "telegram → stop the other program that uses this account" in service["more"]
    world.chats.do(lambda: telegram.accept("getUpdates"))
    assert world.terminal.here("-z", "/platform resume telegram").returncode == 0
    until(lambda: world.account("telegram")["state"] == "connected", 60)


def test_a_dead_socket_is_named_by_host_and_connected_again_without_a_person(world: World, same_process: int) -> None:
    telegram = world.chats.telegram
    world.chats.do(telegram.stop)
    until(lambda: world.account("telegram")["state"] not in ("connected", "connecting"), 30)
    assert "telegram is " in world.status().splitlines()[0]
    network = world.doctor()["network"]
    assert network["level"] == "trouble"
    lines = [network["text"], *network["more"]]
    host = telegram.url.removeprefix("http://")
    assert any(f"{host} cannot be reached" in line for line in lines), lines
    world.chats.do(telegram.start)
    until(lambda: world.account("telegram")["state"] == "connected", 60)
    world.says("heard again?")


def test_a_timed_out_session_of_qq_is_resumed_counted_and_no_alarm(world: World, same_process: int) -> None:
    until(lambda: world.account("qq")["state"] == "connected", 30)
    resumed = world.log().count("platform=qq")
    world.chats.do(world.chats.qq.time_out)
    until(lambda: "code=4009" in world.log(), 20)
    until(lambda: world.account("qq")["state"] == "connected", 30)
    assert "Disconnected" in world.log()
    assert world.log().count("platform=qq") > resumed
    assert world.terminal.here("gateway", "status").returncode == 0


def test_a_revoked_bot_token_is_named_with_the_setting(world: World, same_process: int) -> None:
    telegram = world.chats.telegram
    world.chats.do(telegram.refuse_credentials)
    world.chats.do(telegram.drop_connection)
    until(lambda: world.account("telegram")["state"] == "signed out", 30)
    assert "telegram is signed out since" in world.status()
    assert any("TELEGRAM_BOT_TOKEN" in line for line in world.doctor()["service"]["more"])
    tested = world.terminal.here("gateway", "test", "telegram", "--no-model")
    assert (tested.returncode, "Telegram" in tested.stderr) == (1, True)
    world.chats.do(telegram.accept_credentials)
    assert world.terminal.here("-z", "/platform resume telegram").returncode == 0
    until(lambda: world.account("telegram")["state"] == "connected", 60)


# Stores, while the gateway runs


def damage(path: Path, count: int = 100) -> None:
    with path.open("r+b") as file:
        file.write(b"\xa5" * count)


def test_damaged_stores_are_named_and_fix_brings_every_row_back_while_the_rest_works(world: World) -> None:
    kept = respond(world, "remember me")
    assert world.terminal.here("gateway", "restart").returncode == 0  # nothing is left in a log beside the files
    before = until(world.worker, 60)
    for name in ("kanban.db", "response_store.db"):
        damage(world.home / name)
    stores = world.doctor()["stores"]
    assert (stores["level"], stores["can_fix"]) == ("trouble", True)
    assert stores["text"].startswith("kanban.db is damaged (file is not a database)")
    assert stores["more"][0].startswith("response_store.db is damaged (")
    assert stores["command"].endswith("hermes doctor --fix")
    world.says("does the rest still work?")
    done = world.fix()
    assert sorted(text.split()[0] for text in done) == ["kanban.db", "response_store.db"]
    assert all("Recovered all" in text for text in done), done
    assert world.doctor()["stores"]["level"] == "good"
    assert list(world.home.glob("kanban.db.corrupt.*"))
    assert "water the plants" in world.terminal.here("kanban", "list").stdout
    assert call(world, f"/v1/responses/{kept}")["id"] == kept
    assert world.worker() == before


def test_a_board_without_a_column_is_named_and_mended_in_the_running_process(world: World, same_process: int) -> None:
    with closing(sqlite3.connect(world.home / "kanban.db", isolation_level=None)) as file:
        file.execute("ALTER TABLE tasks DROP COLUMN session_id")
    stores = world.doctor()["stores"]
    assert stores["text"].startswith("kanban.db lacks column tasks.session_id")
    world.fix()
    assert world.doctor()["stores"]["level"] == "good"
    assert "water the plants" in world.terminal.here("kanban", "list").stdout
    until(lambda: "no such column: tasks.session_id" in world.log())


def call(world: World, path: str, body: object = None) -> dict[str, Any]:
    key = world.terminal.here("api-key", "show").stdout.strip()
    request = urllib.request.Request(
        f"http://127.0.0.1:{world.terminal.environ['API_SERVER_PORT']}{path}",
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        data=None if body is None else json.dumps(body).encode(),
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own port
        found: dict[str, Any] = json.load(answer)
        return found


def respond(world: World, text: str) -> str:
    return str(call(world, "/v1/responses", {"model": "hermes", "input": text})["id"])


# The model


def test_a_wrong_key_is_named_with_its_place_and_a_right_one_counts_at_once(world: World, same_process: int) -> None:
    env = world.home / ".env"
    change(env, KEY, WRONG)
    found = world.doctor("--live")
    model = found["model"]
    assert (model["level"], "openkey answers 401. Key from .env line 1, ends in …zz9" in model["text"]) == (
        "trouble",
        True,
    )
    assert (found["live"]["level"], "the key." in found["live"]["text"]) == ("trouble", True)
    assert WRONG not in json.dumps(found)
    tested = world.terminal.here("gateway", "test", "telegram")
    assert (tested.returncode, "✗ openkey / gpt-4o-mini: the key." in tested.stderr) == (1, True)
    control.call(world.home, "config.reload")
    world.says("with the wrong key", "does not accept the key")
    change(env, WRONG, KEY)
    control.call(world.home, "config.reload")
    world.says("with the right key")
    assert world.doctor()["model"]["level"] != "trouble"


def test_a_model_of_another_provider_is_named_and_fix_corrects_the_setting(world: World, same_process: int) -> None:
    config = world.home / "config.yaml"
    change(config, "provider: openkey\n  default: gpt-4o-mini", "provider: openai\n  default: openkey/gpt-4o-mini")
    found = world.doctor()["config"]
    assert (found["level"], found["can_fix"]) == ("hint", True)
    assert "but model.provider is openai, so it is asked of openai" in found["text"]
    assert world.fix() == ["config.yaml: model.provider is openkey now"]
    control.call(world.home, "config.reload")
    world.says("who answers now?")
    assert world.model.requests[-1]["model"] == "gpt-4o-mini", "the prefix is not sent"
    undone = world.terminal.here("doctor", "--undo")
    assert (undone.returncode, undone.stdout) == (0, "✓ config.yaml is as it was before\n")
    assert "provider: openai" in config.read_text()
    change(config, "provider: openai\n  default: openkey/gpt-4o-mini", "provider: openkey\n  default: gpt-4o-mini")


def test_an_account_without_credit_is_named_and_people_are_told(world: World, same_process: int) -> None:
    empty = Refusal(403, "user quota is not enough", code="insufficient_user_quota")
    world.model.when("credit|test of the connection", empty)
    asked = world.model.asked
    world.says("is there credit?", "out of credit")
    assert world.model.asked - asked <= 2, "no tight retry"
    live = world.doctor("--live")["live"]
    assert (live["level"], "the quota." in live["text"], "Top up at openkey" in live["command"]) == (
        "trouble",
        True,
        True,
    )
    world.model.when("credit|test of the connection", "OK")


# Settings and rights


def test_a_misspelt_setting_and_open_files_are_repaired_and_taken_back(world: World, same_process: int) -> None:
    env = world.home / ".env"
    env.write_text(f"{env.read_text()}TELEGRAM_REQUIRE_MENTON=false\n")
    env.chmod(0o644)
    found = world.doctor()
    assert (found["home"]["level"], ".env" in found["home"]["text"]) == ("hint", True)
    assert "TELEGRAM_REQUIRE_MENTON is unknown. → TELEGRAM_REQUIRE_MENTION?" in str(found["config"])
    audit = {one["name"]: one for one in world.terminal.told("security", "audit")["findings"]}
    assert (audit["files"]["level"], audit["people"]["level"]) == ("trouble", "good")
    world.fix()
    assert "TELEGRAM_REQUIRE_MENTION=false" in env.read_text()
    assert env.stat().st_mode & 0o777 == 0o600
    assert world.doctor()["home"]["level"] == world.doctor()["config"]["level"] == "good"
    assert world.terminal.here("doctor", "--undo").returncode == 0
    assert ("TELEGRAM_REQUIRE_MENTON=false" in env.read_text(), env.stat().st_mode & 0o777) == (True, 0o644)
    env.write_text(f"OPENKEY_API_KEY={KEY}\n")
    env.chmod(0o600)


# A full reset


def test_a_reset_keeps_people_and_conversations_and_verifies_the_start(world: World) -> None:
    world.says("remember the blue door")
    shown = world.terminal.here("gateway", "reset", "--keep-backup", "--watch", "1")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for words in (
        "✓ Gateway stopped as asked",
        "✓ A new state.db is there",
        "✓ Gateway started",
        "✓ Gateway is running",
    ):
        assert words in shown.stdout
    assert "✓ No error in the log since the start" in shown.stdout
    (kept,) = (world.home / "backups").glob("state.db.*.reset")
    assert str(kept) in shown.stdout
    until(world.is_well, 60)
    world.says("and now?")
    sent = json.dumps(world.model.requests[-1]["messages"])
    assert "remember the blue door" in sent, "the conversation goes on"
    recovered = world.terminal.here("store", "recover", str(kept), "--to", str(world.home.parent / "old.db"), "--json")
    assert json.loads(recovered.stdout)["tables"]["inbox"] > 0
