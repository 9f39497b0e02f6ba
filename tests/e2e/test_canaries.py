"""Forty canaries, a day's worth of traffic in which everything prints them, and not one in what we write or say."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from base64 import b64encode
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from tests.chaos.world import GatewayProcess, Victim, until
from tests.fakes.model import FakeModel, Reply
from tests.fakes.proxy import FakeHttpProxy
from tests.fakes.server import Sent
from tests.fakes.telegram import UNPACED, FakeTelegram
from tests.integration.watching import code_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]  # a dozen processes, on a machine that may be busy

ROOT = Path(__file__).parents[2]
OWNER, STRANGER = 7, 99


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _named(*names: str) -> dict[str, str]:
    return {name: f"CANARY-{name}-Zq{number:02d}x9" for number, name in enumerate(names, 10)}


CANARIES = {
    # platforms, providers, the API
    **{name: f"42:{value}" for name, value in _named("telegram", "second_bot", "wrong_bot").items()},
    **{
        name: f"sk-{value}"
        for name, value in _named("openai", "openai_more", "openrouter", "anthropic", "late").items()
    },
    **_named("relay", "relay_more", "relay_env", "api_server"),
    # web, voices
    **_named("brave", "tavily", "tts", "elevenlabs", "stt"),
    # inside addresses
    **_named("all_proxy", "https_proxy", "provider_proxy", "telegram_proxy", "base_url", "webhook_query"),
    **_named("database", "searxng", "redis"),
    "odd_password": 'CANARY-odd/p@ss"w\\rd-Zq99x9',
    # variables that are nobody's setting
    **_named("FOO_TOKEN", "DB_PASSWORD", "OAUTH_CLIENT_SECRET", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "SMTP_PASS"),
    **_named("MY_SERVICE_SECRET", "SKILL_KEY", "PG_URL"),
    # files of the owner
    **_named("ssh_key", "pem_in_workspace", "aws", "netrc", "git_credentials"),
}
OWNERS_OWN = {
    ".env",
    "config.yaml",
    "notes.txt",
    "id_ed25519",
    "server.pem",
    "credentials",
    ".netrc",
    ".git-credentials",
}
"""Files in which the owner wrote them down."""


def key_file(canary: str) -> str:
    lines = [b64encode(os.urandom(48)).decode() for _ in range(4)]
    inside = canary.replace("-", "").replace("_", "")
    return "\n".join(
        ["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, f"{inside}{'A' * 20}", "-----END OPENSSH PRIVATE KEY-----"]
    )


def needles() -> dict[str, list[bytes]]:
    """Each canary in every form in which it might be met: as it is, in an address, in JSON, in a key, by half."""
    found = {}
    for name, value in CANARIES.items():
        core = value.partition(":")[2] or value  # a bot's number everybody may know
        forms = {core, quote(core, safe=""), json.dumps(core)[1:-1], core.replace("-", "").replace("_", ""), core[:-3]}
        found[name] = [form.encode() for form in forms]
    return found


NEEDLES = needles()


def found_in(text: str | bytes) -> list[str]:
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return [name for name, forms in NEEDLES.items() if any(form in data for form in forms)]


def test_there_are_forty_of_them() -> None:
    assert len(CANARIES) >= 40


class Scene:
    """The gateway with all of it planted, and the people and programs who make it show."""

    def __init__(self, folder: Path, telegram: FakeTelegram, model: FakeModel, proxy: FakeHttpProxy, port: int) -> None:
        self.folder, self.telegram, self.model, self.proxy, self.port = folder, telegram, model, proxy, port
        self.home, self.work = folder / "h", folder / "work"
        self.said: list[str] = []

    def plant(self) -> None:
        known = CANARIES
        for place in (self.home, self.work, self.folder / ".ssh", self.folder / ".aws"):
            place.mkdir(parents=True)
        address = self.model.url.removeprefix("http://")
        odd = quote(known["odd_password"], safe="")
        lines = {
            "TELEGRAM_BOT_TOKEN": known["telegram"],
            "TELEGRAM_BASE_URL": self.telegram.url,
            "TELEGRAM_ALLOWED_USERS": str(OWNER),
            "GATEWAY_OWNERS": "local",
            **UNPACED,
            "OPENAI_API_KEY": known["openai"],
            "OPENAI_API_KEYS": known["openai_more"],
            "OPENAI_BASE_URL": self.model.url,
            "OPENROUTER_API_KEY": known["openrouter"],
            "ANTHROPIC_API_KEY": known["anthropic"],
            "RELAY_SECRET": known["relay_env"],
            "API_SERVER_KEY": known["api_server"],
            "API_SERVER_PORT": str(self.port),
            "BRAVE_API_KEY": known["brave"],
            "TAVILY_API_KEY": known["tavily"],
            "SEARXNG_URL": f"http://ana:{known['searxng']}@127.0.0.1:9",
            "ELEVENLABS_API_KEY": known["elevenlabs"],
            "STT_API_KEY": known["stt"],
            "ALL_PROXY": self.proxy.url,
            "HTTPS_PROXY": f"http://ana:{known['https_proxy']}@127.0.0.1:9",
            "NO_PROXY": "elsewhere.example",
            "HERMES_DATABASE_URL": f"mysql://hermes:{known['database']}@127.0.0.1/hermes",
            "REDIS_URL": f"redis://:{known['redis']}@127.0.0.1/0",
            "MY_SERVICE_SECRET": known["MY_SERVICE_SECRET"],
            "SKILL_KEY": known["SKILL_KEY"],
        }
        (self.home / ".env").write_text("".join(f"{name}={value}\n" for name, value in lines.items()), "utf-8")
        (self.home / "config.yaml").write_text(
            "logs:\n  level: DEBUG\nplatforms:\n  telegram:\n    accounts:\n      second:\n"
            f"        token: '{known['second_bot']}'\n        base_url: http://127.0.0.1:9\n"
            f"        proxy: http://ana:{known['telegram_proxy']}@127.0.0.1:9\n"
            f"tts:\n  api_key: {known['tts']}\nproviders:\n"
            f"  relay:\n    base_url: {self.model.url}\n    api_key: {known['relay']}\n"
            f"    api_keys: [{known['relay_more']}]\n    default_model: m\n"
            f"  other:\n    base_url: {self.model.url}\n    api_key_env: RELAY_SECRET\n    default_model: m\n"
            f"  inside:\n    base_url: http://ana:{known['base_url']}@{address}\n"
            f"    api_key: x\n    default_model: m\n"
            f"  odd:\n    base_url: {self.model.url}\n    proxy: http://ana:{odd}@127.0.0.1:9\n    default_model: m\n"
            f"  beyond:\n    base_url: {self.model.url}\n    default_model: m\n"
            f"    proxy: http://ana:{known['provider_proxy']}@127.0.0.1:9\n"
            f"model:\n  provider: openai\n  fallbacks: [inside/m, odd/m, beyond/m, relay/m, other/m]\n",
            "utf-8",
        )
        (self.work / "notes.txt").write_text(
            "\n".join(value for name, value in known.items() if name not in NOT_YET_KNOWN), "utf-8"
        )
        (self.work / "server.pem").write_text(key_file(known["pem_in_workspace"]))
        (self.folder / ".ssh" / "id_ed25519").write_text(key_file(known["ssh_key"]))
        (self.folder / ".aws" / "credentials").write_text(f"aws_secret_access_key = {known['aws']}\n")
        (self.folder / ".netrc").write_text(f"machine x login ana password {known['netrc']}\n")
        (self.folder / ".git-credentials").write_text(f"https://ana:{known['git_credentials']}@example.org\n")

    def install_skill(self) -> None:
        place = self.home / "skills" / "own" / "keys"
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(
            "---\nname: keys\ndescription: Show that a key is set.\nrequired_environment_variables:\n"
            "  - name: SKILL_KEY\n    prompt: a key\n---\nPrint it.\n",
            "utf-8",
        )

    @property
    def environ(self) -> dict[str, str]:
        """What is set where the gateway is started: variables that are no settings of ours among them."""
        names = ("FOO_TOKEN", "DB_PASSWORD", "OAUTH_CLIENT_SECRET", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "SMTP_PASS")
        own = {name: CANARIES[name] for name in names} | {"PG_URL": f"postgres://ana:{CANARIES['PG_URL']}@db/x"}
        own["HOOK_URL"] = f"https://hooks.example/x?token={CANARIES['webhook_query']}"
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "MESSAGING_CWD": str(self.folder), **own}

    # Who makes it show

    async def turn(self, *calls: tuple[str, dict[str, Any]], answer: str = "approve", says: str = "go on") -> None:
        """The model makes these calls; whatever is asked about them is answered."""
        asked, done = len(self._questions()), self._done()
        self.model.script([Reply(tool_calls=calls), "Done."] if calls else ["Done."])
        self.telegram.user_says(says, chat=OWNER)
        while True:
            await self.telegram.wait_for(partial(self._goes_on, done, asked), 30)
            if self._done() > done:
                return
            self.telegram.user_says(f"/{answer} {code_in(self._questions()[asked])}", chat=OWNER)
            asked += 1

    def _done(self) -> int:
        return self.telegram.texts(OWNER).count("Done.")

    def _questions(self) -> list[Sent]:
        return [sent for sent in self.telegram.sent if sent.buttons]

    def _goes_on(self, done: int, asked: int) -> bool:
        return self._done() > done or len(self._questions()) > asked

    def typed(self, *command: str) -> str:
        environ = {**self.environ, "HERMES_HOME": str(self.home)}
        done = subprocess.run(
            [str(ROOT / "scripts" / "hermes"), *command],
            env=environ, cwd=self.folder, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        return done.stdout + done.stderr

    async def asks(self, path: str, body: dict[str, Any]) -> None:
        """Over the API; its answer is kept whatever it is."""
        headers = {"Authorization": f"Bearer {CANARIES['api_server']}"}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession(trust_env=False) as http, http.post(url, json=body, headers=headers) as answer:
            self.said.append(await answer.text())

    async def reads(self, path: str) -> None:
        headers = {"Authorization": f"Bearer {CANARIES['api_server']}"}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession(trust_env=False) as http, http.get(url, headers=headers) as answer:
            self.said.append(await answer.text())


NOT_YET_KNOWN = ("ssh_key", "pem_in_workspace", "aws", "netrc", "git_credentials", "late", "wrong_bot")
"""What stands in no settings when the notes are read."""

PRINTS = (
    "cat work/notes.txt",
    "env; printenv; cat /proc/$PPID/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n'",
    "cat h/.env h/config.yaml h/api_server.key",
    "cat .ssh/id_ed25519; head -4 .ssh/id_ed25519; tail -3 .ssh/id_ed25519; cat work/server.pem",
    "cat work/notes.txt >&2; exit 3",
    "for i in $(seq 300); do cat work/notes.txt; done",
)
"""What the owner lets the agent type."""


async def day(scene: Scene, gateway: GatewayProcess) -> None:
    """Everything prints them that can: tools, refusals, tracebacks, people and programs."""
    telegram, model, known = scene.telegram, scene.model, CANARIES
    await scene.turn(says="hello")
    await asyncio.to_thread(scene.typed, "people", "role", f"telegram:{OWNER}", "owner")
    for command in PRINTS:
        await scene.turn(("terminal", {"command": command}))
    await scene.turn(
        ("read_file", {"path": "work/notes.txt"}),
        ("read_file", {"path": "work/server.pem"}),
        ("read_file", {"path": "work/server.pem", "first_line": 2}),
        ("read_file", {"path": ".ssh/id_ed25519", "count": 5}),
        ("search_files", {"pattern": "CANARY", "path": "work", "files": "*.txt"}),
        ("search_files", {"pattern": "CANARY", "path": "work", "files": "*.pem"}),
        ("execute_code", {"code": "import os; print(open('work/notes.txt').read(), dict(os.environ)); 1 / 0"}),
        ("execute_code", {"code": "raise SystemExit(open('work/notes.txt').read())"}),
        ("terminal", {"command": "cat work/notes.txt; sleep 0.2; cat work/notes.txt", "background": True}),
        ("process", {"action": "list"}),
        ("web_extract", {"url": f"http://127.0.0.1:{scene.port}/health"}),
        ("web_search", {"query": "weather"}),
        ("text_to_speech", {"text": "hello"}),
        ("vision", {"image": "work/notes.txt"}),
        ("session_search", {"query": "CANARY"}),
        ("todo", {"items": [{"id": "1", "text": "read the notes"}]}),
        ("send_message", {"text": "the notes are read"}),
    )
    for path in (".aws/credentials", ".netrc", ".git-credentials"):
        await scene.turn(("read_file", {"path": path}), answer="deny")
    # People and programs send what they should keep to themselves.
    await scene.turn(says=f"my keys are {known['openai']} and {known['odd_password']} and {known['telegram']}")
    telegram.user_says(f"/title {known['relay']}", chat=OWNER)
    telegram.user_says(f"/nonsense {known['brave']}", chat=OWNER)
    telegram.user_says(f"let me in: {known['tavily']}", chat=STRANGER, user=STRANGER)
    telegram.something_broken_arrives()
    asked = {"role": "user", "content": f"{known['stt']} {known['DB_PASSWORD']}"}
    await scene.asks("/v1/chat/completions", {"model": "hermes", "messages": [asked]})
    await scene.asks("/v1/responses", {"input": known["GH_TOKEN"], "instructions": f"say {known['SMTP_PASS']}"})
    await scene.asks("/v1/chat/completions", {"model": known["anthropic"], "messages": "no list"})
    # Providers and platforms repeat the key that they refuse.
    model.fails_next(401, f"Incorrect API key provided: {known['openai']}")
    model.fails_next(400, f"Bad header: {known['relay']}", code="x")
    telegram.user_says("who answers?", chat=OWNER)
    await telegram.wait_for(lambda: any("who answers" in text for text in telegram.texts(OWNER)), 30)
    telegram.refuse_next("sendMessage", 400, f"Bad Request: /bot{known['telegram']}/sendMessage cannot be found")
    telegram.refuse_next("getUpdates", 500, f"Internal error in /bot{known['telegram']}/getUpdates")
    calls = len(telegram.called("sendMessage"))
    telegram.user_says("refused", chat=OWNER)
    await telegram.wait_for(lambda: len(telegram.called("sendMessage")) > calls, 30)
    await gateway.kill(Victim.WORKER)
    await gateway.ready()
    # A wrong token, then the right one; a key that comes later.
    env = (scene.home / ".env").read_text("utf-8")
    (scene.home / ".env").write_text(env.replace(known["telegram"], known["wrong_bot"]), "utf-8")
    await until(lambda: "signed out" in str(gateway.status()["platforms"]), 15)
    (scene.home / ".env").write_text(env.replace(known["openai"], known["late"]), "utf-8")
    await until(lambda: "connected" in str(gateway.status()["platforms"]), 15)
    await scene.turn(("terminal", {"command": "cat h/.env"}))


async def asked_afterwards(scene: Scene) -> str:
    """Every command and address that shows something; the key that one of them makes."""
    commands = [
        ("gateway", "status", "--json"), ("doctor",), ("config", "show", "--all"), ("config", "explain", "ALL_PROXY"),
        ("config", "explain", "PG_URL"), ("logs",), ("trace", f"msg:{OWNER}:1"), ("trace", "--json", f"msg:{OWNER}:1"),
        ("sessions", "list"), ("approvals", "list"), ("people", "list"), ("pairing", "list"), ("skills", "list"),
        ("model", "list"), ("model", "test"), ("tools",), ("api-key", "list"),
    ]  # fmt: skip
    for command in commands:
        scene.said.append(await asyncio.to_thread(scene.typed, *command))
    listed = json.loads(await asyncio.to_thread(scene.typed, "sessions", "list", "--json"))
    for session in listed[:3]:
        for verb in ("show", "export"):
            scene.said.append(await asyncio.to_thread(scene.typed, "sessions", verb, session["id"]))
    for path in ("/health/detailed", "/metrics", "/v1/models", "/api/sessions", "/v1/toolsets", "/openapi.json"):
        await scene.reads(path)
    made = await asyncio.to_thread(scene.typed, "api-key", "create", "phone", "--json")
    return str(json.loads(made)["key"])


def written(folder: Path) -> dict[str, list[str]]:
    """Every file below the folder that holds a canary and was not written by the owner."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in OWNERS_OWN]
    return {str(path.relative_to(folder)): hits for path in files if (hits := found_in(path.read_bytes()))}


async def test_no_canary_is_found_in_what_a_days_traffic_leaves_and_says(tmp_path: Path, free_port: int) -> None:
    async with (
        FakeTelegram(token=CANARIES["telegram"]) as telegram,
        FakeModel() as model,
        FakeHttpProxy(login=f"ana:{CANARIES['all_proxy']}") as proxy,
    ):
        scene = Scene(tmp_path, telegram, model, proxy, free_port)
        scene.plant()
        with (tmp_path / "gateway.out").open("w", encoding="utf-8") as output:
            gateway = GatewayProcess(scene.home, scene.environ, output)
            gateway.start()
            try:
                await gateway.ready()
                scene.install_skill()
                await day(scene, gateway)
                made = await asked_afterwards(scene)
                scene.said.append(str(gateway.status()))
            finally:
                await gateway.stop()
        sent = [*telegram.texts(), *map(json.dumps, model.requests)]
    assert written(tmp_path) == {}
    assert [hits for text in (*scene.said, *sent) if (hits := found_in(text))] == []
    files = [path for path in scene.home.rglob("*") if path.is_file()]
    assert not [path for path in files if made.encode() in path.read_bytes()], (
        "of a key that was made, only its hash is kept"
    )
    assert sum("[hidden]" in text for text in sent) > 5, "they were printed, and hidden"
