"""The agent cannot answer its own questions: its processes, of every shape, at every door of a real gateway."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.config import EnvFiles, explain, load
from hermes.hosting import heartbeat, paths, processes
from hermes.hosting.control import client as control
from hermes.hosting.control.access import OPEN_TO_OUTSIDE, OPEN_TO_TOOLS
from hermes.hosting.control.handlers.gateway import verbs_of
from hermes.hosting.heartbeat_writer import Heartbeat
from hermes.hosting.worker import StopRequest, WorkerOptions, lifecycle_verbs
from hermes.servers.api.api import WORK, adders
from hermes.servers.api.context import ApiParts
from hermes.servers.api.models import plain_path
from hermes.servers.app import make_app
from hermes.services.adapters.registry import find_platforms
from tests.e2e.keeping import ROOT
from tests.e2e.test_process_gateway import free_port
from tests.fakes.model import FakeModel, ThreadedModel, calls_tools

ATTACK = Path(__file__).parent / "doors_attack.py"
SECONDS = 60.0

REFUSED = "cannot answer its own questions"
CANARY = "canary-0123456789abcdef"
CANNOT_TELL = "cannot tell which process"

SHAPES = ["child", "grandchild", "double fork", "disguised", "setsid", "nohup", "tmux", "pid namespace"]

MAY_ASK = {
    "ping", "status", "cron.status", "config.reload", "doctor.stores", "store.counts", "sessions.count",
    "sessions.list", "sessions.show", "trace.list", "grants.list", "people.list", "api_keys.list", "restart",
}  # fmt: skip
"""Written down once more, on purpose: whoever opens another verb to tools has to do it here too, and to think."""


# What doors there are, by the gateway's own registries


@cache
def registries() -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Every verb of the socket, and every route that changes something, as the code lists them."""

    async def look(home: Path) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        setting = GatewayOptions(home, {}, home, only=frozenset({"local"}))
        async with open_gateway(setting) as gateway:
            options = WorkerOptions(home, StopRequest(), Heartbeat(str(home), ""))
            verbs = frozenset({**verbs_of(gateway), **lifecycle_verbs(options)})
            app = make_app(adders(ApiParts(gateway)))
            routes = frozenset(
                (route.method, route.resource.canonical)
                for route in app.router.routes()
                if route.resource is not None and route.method not in ("GET", "HEAD", "OPTIONS")
            )
            return verbs, frozenset((method, path) for method, path in routes if plain_path(path) not in WORK)

    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"hermes-registry-{os.getpid()}"
    try:
        return asyncio.run(look(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# A gateway with a question in it


class Scene:
    def __init__(self, folder: Path, model: FakeModel) -> None:
        self.folder = folder
        self.model = model
        self.home = folder / "hermes"
        self.port = free_port()
        self.environ = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "HERMES_HOME": str(self.home),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "DEPLOY_TOKEN": CANARY,
        }  # fmt: skip
        self.home.mkdir(mode=0o700)
        (self.home / ".env").write_text(
            f"OPENAI_API_KEY=sk-test-0123456789\nOPENAI_BASE_URL={model.url}\nAPI_SERVER_PORT={self.port}\n"
        )
        self.code = ""
        self.named_key = ""
        self._told: dict[str, dict[str, str]] = {}

    def hermes(self, *words: str, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
        """A person, in a terminal of their own."""
        command = [sys.executable, "-P", "-m", "hermes", *words]
        return subprocess.run(
            command, env=self.environ, cwd=self.folder, capture_output=True, text=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def ask_about(self, mode: str) -> None:
        (self.home / "config.yaml").write_text(f"approvals:\n  mode: '{mode}'\n")
        control.call(self.home, "config.reload", timeout=20)

    def agent_runs(self, *words: str) -> None:
        """The owner's agent, in an attacker's hands, runs this in its terminal."""
        command = " ".join(f"'{word}'" for word in words)
        self.model.script([calls_tools(("terminal", {"command": command, "timeout": 50})), "Done."])
        done = self.hermes("-z", "attack")
        assert "Done." in done.stdout, done.stdout + done.stderr

    def pending(self) -> list[str]:
        return [one["code"] for one in control.call(self.home, "approvals.list", timeout=20)]

    def default_key(self) -> str:
        return (self.home / "api_server.key").read_text().strip()

    def spec(self) -> Path:
        verbs, routes = registries()
        answer = {"id": self.code, "allow": True, "scope": "always"}
        known: dict[str, dict[str, Any]] = {
            "approvals.answer": answer,
            "say": {"chat": "cli", "text": f"/approve {self.code}"},
            "api_keys.create": {"name": "mallory", "role": "owner"},
            "people.role": {"person": "telegram:666", "role": "owner"},
            "pairing.approve": {"platform": "telegram", "code": "ABCDEFGH"},
        }
        spec = {
            "home": str(self.home),
            "port": self.port,
            "default_key": self.default_key(),
            "named_key": self.named_key,
            "verbs": {verb: known.get(verb, {}) for verb in sorted(verbs - OPEN_TO_TOOLS)},
            "files": [
                (form, verb, known[verb])
                for form in ("plain", "locked", "ofd")
                for verb in ("pairing.approve", "approvals.answer")
            ],
            "routes": [(method, re.sub(r"\{[^}]+\}", f"{self.approval_id}", path)) for method, path in sorted(routes)],
        }
        path = self.folder / "spec.json"
        path.write_text(json.dumps(spec))
        return path

    @property
    def approval_id(self) -> str:
        waiting = control.call(self.home, "approvals.list", timeout=20)
        return next((str(one["id"]) for one in waiting if one["code"] == self.code), "ap_0")

    def attacked_by(self, shape: str) -> dict[str, str]:
        """What each door said to a process of this shape. Each shape is tried once."""
        if shape not in self._told:
            out = self.folder / f"out {shape}"
            self.agent_runs(sys.executable, str(ATTACK), shape, str(self.spec()), str(out))
            self._told[shape] = json.loads(out.read_text())
        return self._told[shape]

    def worker(self, other_than: int = 0) -> int:
        seen = heartbeat.read(paths.heartbeat(str(self.home)))
        is_up = seen is not None and seen.ready_at > 0 and processes.is_alive(seen.pid, "")
        return seen.pid if seen is not None and is_up and seen.pid != other_than else 0


def until(ask: Callable[[], Any], seconds: float = SECONDS) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
    return answer


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ThreadedModel() as model:
        scene = Scene(tmp_path_factory.mktemp("doors"), model.fake)
        started = scene.hermes("gateway", "start")
        assert started.returncode == 0, started.stdout + started.stderr
        made = scene.hermes("api-key", "create", "phone", "--role", "owner")
        scene.named_key = made.stdout.splitlines()[0]
        (scene.folder / "build").mkdir()
        model.fake.script([calls_tools(("terminal", {"command": "rm -rf build"}))])
        scene.hermes("-z", "clean up")
        [scene.code] = scene.pending()
        scene.ask_about("off")  # from here on no command is judged: what is tried is whether the doors hold alone
        try:
            yield scene
        finally:
            scene.hermes("gateway", "stop")


def test_the_verbs_that_are_open_to_tools_are_those_somebody_thought_about() -> None:
    verbs, _ = registries()
    assert MAY_ASK == OPEN_TO_TOOLS
    assert verbs >= OPEN_TO_TOOLS
    assert {"pairing.list", "pairing.approve", "pairing.revoke", "pairing.clear"} == OPEN_TO_OUTSIDE - OPEN_TO_TOOLS
    assert verbs - OPEN_TO_TOOLS >= {
        "approvals.answer",
        "approvals.list",
        "people.role",
        "api_keys.create",
        "say",
        "stop",
    }


def skip_without(shape: str) -> None:
    program = {"tmux": "tmux", "pid namespace": "unshare"}.get(shape)
    if program and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    if shape == "pid namespace" and subprocess.run(["unshare", "--pid", "--fork", "true"], check=False).returncode:
        pytest.skip("this machine allows no new pid namespace")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_process_of_the_agent_is_refused_every_changing_verb_of_the_socket(scene: Scene, shape: str) -> None:
    skip_without(shape)
    told = scene.attacked_by(shape)
    verbs = registries()[0] - OPEN_TO_TOOLS
    assert {verb for verb in verbs if REFUSED not in told[f"socket {verb}"]} == set()
    assert scene.pending() == [scene.code]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_process_of_the_agent_decides_nothing_by_request_files(scene: Scene, shape: str) -> None:
    skip_without(shape)
    told = {door: said for door, said in scene.attacked_by(shape).items() if door.startswith("file ")}
    assert len(told) == 6
    assert {door for door, said in told.items() if REFUSED not in said and CANNOT_TELL not in said} == set()
    assert REFUSED in told["file locked pairing.approve"]


@pytest.mark.parametrize("whose", ["default", "named"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_process_of_the_agent_changes_nothing_over_http(scene: Scene, shape: str, whose: str) -> None:
    """The default key stands in a file that it can read; the named one was stolen."""
    skip_without(shape)
    told = {door: said for door, said in scene.attacked_by(shape).items() if door.startswith(f"http {whose} ")}
    assert len(told) == len(registries()[1]) > 5
    assert {door: said for door, said in told.items() if not said.startswith("403 ") or REFUSED not in said} == {}
    assert scene.pending() == [scene.code]


def test_nothing_of_all_that_was_taken(scene: Scene) -> None:
    for shape in ("double fork", "disguised"):
        scene.attacked_by(shape)
    assert [key["name"] for key in control.call(scene.home, "api_keys.list")] == ["phone"]
    assert not [one for one in control.call(scene.home, "people.list") if "666" in str(one["accounts"])]
    assert control.call(scene.home, "grants.list") == []
    assert (scene.folder / "build").is_dir()


def test_a_connection_whose_maker_has_ended_changes_nothing(scene: Scene) -> None:
    told = scene.attacked_by("connect and leave")
    wrong = {door: said for door, said in told.items() if REFUSED not in said and CANNOT_TELL not in said}
    assert wrong == {}
    assert scene.pending() == [scene.code]


def kept_process(scene: Scene, name: str) -> tuple[Path, int]:
    out = scene.folder / name
    scene.agent_runs(sys.executable, str(ATTACK), "kept", str(scene.spec()), str(out))
    until(lambda: Path(f"{out}.pid").exists() and Path(f"{out}.pid").read_text())
    return out, int(Path(f"{out}.pid").read_text())


def test_a_process_kept_from_before_a_restart_is_still_the_agents(scene: Scene) -> None:
    out, pid = kept_process(scene, "kept over a restart")
    before = scene.worker()
    assert scene.hermes("gateway", "restart").returncode == 0
    assert scene.worker() not in (0, before)
    assert processes.is_alive(pid, "")
    Path(f"{out}.go").touch()
    told = json.loads(until(lambda: out.exists() and out.read_text()))
    verbs = registries()[0] - OPEN_TO_TOOLS
    assert {verb for verb in verbs if REFUSED not in told[f"socket {verb}"]} == set()
    assert {door for door, said in told.items() if door.startswith("http ") and REFUSED not in said} == set()
    assert scene.pending() == [scene.code]


def test_a_process_that_fled_into_a_session_of_its_own_does_not_outlive_a_killed_worker(scene: Scene) -> None:
    _, pid = kept_process(scene, "kept over a kill")
    worker = scene.worker()
    assert processes.parent_of(pid) == processes.parent_of(worker), "the supervisor adopts it"
    os.kill(worker, signal.SIGKILL)
    until(lambda: not processes.is_alive(pid, ""))
    until(lambda: scene.worker(other_than=worker))
    until(lambda: not any(_is_ended(one) for one in processes.children(processes.parent_of(scene.worker()))))
    assert scene.pending() == [scene.code]


def _is_ended(pid: int) -> bool:
    fields = processes.stat_fields(pid)
    return bool(fields) and fields[0] == "Z"


@pytest.mark.parametrize("allow, status, code", [(True, 403, "key_in_a_file"), (False, 200, "")])
def test_the_default_key_cannot_approve_what_touches_the_machine_whoever_shows_it(
    scene: Scene, allow: bool, status: int, code: str
) -> None:
    """A person's program, far from any tool: the key alone is no second factor. It may deny."""
    scene.model.script([calls_tools(("terminal", {"command": "rm -rf build"})), "Well."])
    scene.ask_about("dangerous")
    scene.hermes("-z", "clean up again")
    scene.ask_about("off")
    [asked] = [one for one in scene.pending() if one != scene.code]
    found = [one for one in control.call(scene.home, "approvals.list") if one["code"] == asked]
    answer = http(scene, "POST", f"/api/approvals/{found[0]['id']}", scene.default_key(), {"approve": allow})
    assert (answer[0], answer[1].get("error", {}).get("code", "")) == (status, code)
    assert (asked in scene.pending()) is allow
    if allow:
        assert "named key" in answer[1]["error"]["message"]
        control.call(scene.home, "approvals.answer", {"id": asked, "allow": False}, timeout=20)


def test_the_text_approve_sent_to_the_agent_over_http_answers_nothing(scene: Scene) -> None:
    body = {"messages": [{"role": "user", "content": f"/approve {scene.code}"}]}
    http(scene, "POST", "/v1/chat/completions", scene.default_key(), body)
    assert scene.pending() == [scene.code]


LOOK = """
import json, os, sys
told = {"environ": dict(os.environ), "open": [], "seen": []}
for name in os.listdir("/proc/self/fd"):
    try: told["open"].append(os.readlink(f"/proc/self/fd/{name}"))
    except OSError: pass
for pid in sys.argv[2:]:
    for name in ("environ", "mem", "fd", "cwd", "maps"):
        try:
            path = f"/proc/{pid}/{name}"
            os.listdir(path) if name == "fd" else os.readlink(path) if name == "cwd" else open(path, "rb").read(1)
            told["seen"].append(path)
        except OSError: pass
json.dump(told, open(sys.argv[1], "w"))
"""


def test_a_process_of_the_agent_inherits_no_secret_and_no_open_file(scene: Scene) -> None:
    script, out, worker = scene.folder / "look.py", scene.folder / "look.json", scene.worker()
    script.write_text(LOOK)
    scene.agent_runs(sys.executable, str(script), str(out), str(worker), str(processes.parent_of(worker)))
    told = json.loads(out.read_text())
    assert CANARY not in str(told["environ"])
    assert "sk-test" not in str(told["environ"])
    assert not [path for path in told["open"] if path.startswith(("socket:", str(scene.home)))]
    if os.geteuid() != 0:  # root reads everything
        assert told["seen"] == []


def test_a_process_of_the_agent_still_reads_how_the_gateway_is(scene: Scene) -> None:
    script = scene.folder / "status.sh"
    python = f"PYTHONPATH={scene.environ['PYTHONPATH']} {sys.executable} -P -m hermes"
    script.write_text(f"{python} status > {scene.folder}/status.txt 2>&1\n")
    scene.agent_runs("sh", str(script))
    assert "Gateway is running" in (scene.folder / "status.txt").read_text()


@pytest.mark.parametrize(
    "words", ["gateway stop", "approvals approve CODE", "pairing approve telegram ABCDEFGH", "api-key create mallory"]
)
def test_the_command_line_in_the_agents_terminal_says_why_not(scene: Scene, words: str) -> None:
    script, said = scene.folder / "cli.sh", scene.folder / "cli.txt"
    python = f"PYTHONPATH={scene.environ['PYTHONPATH']} {sys.executable} -P -m hermes"
    script.write_text(f"{python} {words.replace('CODE', scene.code)} > {said} 2>&1\n")
    scene.agent_runs("sh", str(script))
    assert "the agent's own terminal" in said.read_text()
    assert scene.worker()
    assert scene.pending() == [scene.code]


def test_z_a_person_at_a_terminal_answers_and_the_work_goes_on(scene: Scene) -> None:
    """Last, since the question is gone afterwards."""
    scene.model.script(["Cleaned."])
    answered = scene.hermes("approvals", "approve", scene.code)
    assert answered.returncode == 0, answered.stderr
    until(lambda: not (scene.folder / "build").exists())
    assert scene.pending() == []


# Without a gateway

ALONE = """
import asyncio, json, os, sys, time
from pathlib import Path
from hermes.cli.support.standalone import alone_chat
from hermes.hosting import processes

async def main(home, attack, spec, out):
    async with alone_chat(Path(home)):
        child = await asyncio.create_subprocess_exec(sys.executable, attack, "double fork", spec, out)
        await child.wait()
        adopted = processes.children(os.getpid())
        print(json.dumps(adopted), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_chat_that_works_alone_knows_the_agents_processes_too(tmp_path: Path) -> None:
    home, spec, out = tmp_path / "home", tmp_path / "spec.json", tmp_path / "out"
    verbs: dict[str, dict[str, str]] = {verb: {} for verb in sorted(registries()[0] - OPEN_TO_TOOLS - {"stop"})}
    keys = {"default_key": "", "named_key": "", "port": 1, "routes": [], "files": []}
    spec.write_text(json.dumps({"home": str(home), "verbs": verbs, **keys}))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-c", ALONE, str(home), str(ATTACK), str(spec), str(out)]
    subprocess.run(command, env=environ, cwd=tmp_path, check=True, capture_output=True, timeout=SECONDS)
    told = json.loads(out.read_text())
    assert {verb for verb in verbs if REFUSED not in told[f"socket {verb}"]} == set()


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Types a command where a gateway was, as a person (``is_marked=False``) or as what is left of its tools."""
    folder = tmp_path_factory.mktemp("left")
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    marked = (
        "import os, sys; from hermes.hosting import tool_processes; tool_processes.mark_children()\n"
        "os.execv(sys.executable, [sys.executable, '-P', '-m', 'hermes', *sys.argv[1:]])"
    )

    def run(*words: str, is_marked: bool) -> str:
        begin = ["-c", marked] if is_marked else ["-P", "-m", "hermes"]
        done = subprocess.run(
            [sys.executable, *begin, *words], env=environ, cwd=folder, check=False, capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
        return done.stdout + done.stderr

    run("api-key", "create", "first", is_marked=False)
    return run


@pytest.mark.parametrize(
    "words",
    [
        ("approvals", "approve", "all"),
        ("api-key", "create", "mallory", "--role", "owner"),
        ("people", "role", "telegram:666", "owner"),
        ("-z", "/approve ABCDEF"),
        ("backup", "create", "all-words.tar.gz"),
        ("backup", "restore", "--yes", "--other-home", "evil.tar.gz"),
        ("update",),
        ("doctor", "--fix", "--yes"),
    ],
)
def test_a_process_that_outlived_its_gateway_decides_nothing_alone(
    left_behind: Callable[..., str], words: tuple[str, ...]
) -> None:
    """Supervisor and worker were killed at once; what is left of their tools finds the home free."""
    assert REFUSED in left_behind(*words, is_marked=True)


def test_a_person_decides_where_no_gateway_runs(left_behind: Callable[..., str]) -> None:
    assert REFUSED not in left_behind("approvals", "approve", "all", is_marked=False)


# Settings of a hostile folder

HOSTILE = {
    "OPENAI_BASE_URL": "http://127.0.0.1:6/v1",
    "OPENAI_API_KEY": "sk-hostile-0123456789",
    "HERMES_MODEL": "evil",
    "TELEGRAM_BOT_TOKEN": "666666:hostile-hostile-hostile-hostile",
    "TELEGRAM_ALLOWED_USERS": "666",
    "GATEWAY_OWNERS": "telegram:666",
    "API_SERVER_HOST": "0.0.0.0",
    "API_SERVER_KEY": "hostile-hostile-hostile-hostile",
    "HERMES_DATABASE_URL": "postgresql://hostile",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", ["file", "link", "named by a file"])
def test_the_folder_we_are_in_sets_nothing(tmp_path: Path, name: str, form: str) -> None:
    home, folder = tmp_path / "ours", tmp_path / "hostile-repo"
    home.mkdir()
    folder.mkdir()
    hostile = "".join(f"{key}={value}\n" for key, value in HOSTILE.items())
    match form:
        case "link":
            (tmp_path / "elsewhere").write_text(hostile)
            (folder / ".env").symlink_to(tmp_path / "elsewhere")
        case "named by a file":
            (folder / "more.env").write_text(hostile)
            (folder / ".env").write_text(f"HERMES_ENV_FILE={folder / 'more.env'}\n")
        case _:
            (folder / ".env").write_text(hostile)
    manifests = tuple(find_platforms().manifests.values())
    loaded = load(home, {}, folder, manifests)
    found = explain(loaded, name)
    assert found.stated == (), found
    assert HOSTILE[name] not in str(found)
    assert any("is ignored" in str(problem) for problem in loaded.problems)
    assert not any(value in str(problem) for problem in loaded.problems for value in HOSTILE.values())
    assert EnvFiles.of(home, {}).all() == {}


def test_a_hostile_folder_is_told_and_a_named_file_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "hostile-repo"
    folder.mkdir()
    (folder / ".env").write_text("HERMES_MODEL=evil\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}

    def hermes(*words: str) -> str:
        command = [sys.executable, "-P", "-m", "hermes", *words]
        done = subprocess.run(
            command, env=environ, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return done.stdout + done.stderr

    assert "evil" not in hermes("config", "explain", "HERMES_MODEL")
    assert "./.env: is ignored, though it sets HERMES_MODEL" in hermes("config", "check")
    assert "evil" in hermes("--env-file", ".env", "config", "explain", "HERMES_MODEL")
    assert "evil" in hermes("--env-file=.env", "config", "explain", "HERMES_MODEL")
    assert "takes the path of a file" in hermes("--env-file", "nowhere", "config", "check")


def http(scene: Scene, method: str, path: str, key: str, body: object) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{scene.port}{path}",
        method=method,
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        data=json.dumps(body).encode(),
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own port
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


# A gateway that is not root cannot look at the descriptors of everybody. It stands for it here: as root it starts a
# tool, then becomes somebody else, and asks who is at the other end.
NOT_ROOT = """
import os, socket, sys, time
from hermes.hosting.tool_processes import ToolProcesses
os.setgroups([])
server = socket.create_server(("127.0.0.1", 0))
server.settimeout(20)
known = ToolProcesses()
known.origin_of_connection(("127.0.0.1", 1), ("127.0.0.1", 2))  # what it imports is not to be found as somebody else
"a".encode("idna")
ready, tell = os.pipe()
child = os.fork()
if child == 0:
    os.close(1)
    os.close(2)
    {become}
    line = socket.socket()
    line.connect(server.getsockname())
    line.sendall(b"POST")
    {leave}
    os.write(tell, b"1")
    time.sleep(60)
    os._exit(0)
os.setgid(65533)
os.setuid(65533)
line, address = server.accept()
os.read(ready, 1)
line.recv(4)
print(known.origin_of_connection(address, server.getsockname()))
os.kill(child, 9) if {is_same} else None
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else needs root")
@pytest.mark.parametrize(
    "become, leave, is_same",
    [
        ("os.setgid(65533); os.setuid(65533)", "line.close()", True),
        ("os.setgid(65533); os.setuid(65533)", "line.shutdown(socket.SHUT_WR)", True),
        ("os.setgid(65534); os.setuid(65534)", "pass", False),
        ("os.setgid(65534); os.setuid(65534)", "line.close()", False),
    ],
    ids=["closed at once", "closed for writing", "under a subordinate id", "under a subordinate id, closed at once"],
)
def test_a_tool_at_the_other_end_of_a_connection_is_never_taken_for_a_person(
    become: str, leave: str, is_same: bool
) -> None:
    code = NOT_ROOT.format(become=become, leave=leave, is_same=is_same)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() in ("a tool's", "unknown")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
