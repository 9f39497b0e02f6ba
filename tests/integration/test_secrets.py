"""Canaries: what is secret is planted everywhere, everything goes wrong that can, and nothing of it is ever written."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.world import GatewayProcess, Victim, until
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.proxy import FakeHttpProxy
from tests.fakes.telegram import FakeTelegram

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]  # ten processes, on a machine that may be busy

ROOT = Path(__file__).parents[2]
WRITTEN_BY_THE_OWNER = {".env", "config.yaml", "notes.txt"}
CANARIES = {
    "telegram": "42:CANARY-telegram-Zq81",
    "openai": "sk-CANARY-openai-Zq82",
    "openrouter": "sk-CANARY-openrouter-Zq83",
    "relay": "sk-CANARY-relay-Zq84",
    "relay_env": "sk-CANARY-relayenv-Zq85",
    "api": "CANARY-api-server-Zq86",
    "proxy": "CANARY-proxy-Zq87",
    "database": "CANARY-database-Zq88",
    "wrong_token": "42:CANARY-wrong-telegram-Zq89",
    "late": "sk-CANARY-late-Zq90",
}


def settings(home: Path, telegram: FakeTelegram, model: FakeModel, proxy: FakeHttpProxy) -> None:
    """As an owner writes them, half in .env and half in config.yaml."""
    home.mkdir()
    (home / ".env").write_text(
        f"TELEGRAM_BOT_TOKEN={CANARIES['telegram']}\n"
        f"TELEGRAM_BASE_URL={telegram.url}\nTELEGRAM_ALLOWED_USERS=7\n"
        f"OPENAI_API_KEY={CANARIES['openai']}\nOPENAI_BASE_URL={model.url}\n"
        f"OPENROUTER_API_KEY={CANARIES['openrouter']}\n"
        f"RELAY_SECRET={CANARIES['relay_env']}\n"
        f"API_SERVER_KEY={CANARIES['api']}\nAPI_SERVER_PORT=0\n"
        f"ALL_PROXY={proxy.url}\nNO_PROXY=elsewhere.example\n"
        f"HERMES_DATABASE_URL=mysql://hermes:{CANARIES['database']}@127.0.0.1/hermes\n",
        encoding="utf-8",
    )
    (home / "config.yaml").write_text(
        "logs:\n  level: DEBUG\nproviders:\n"
        f"  relay:\n    base_url: {model.url}\n    api_key: {CANARIES['relay']}\n    default_model: m\n"
        f"  other:\n    base_url: {model.url}\n    api_key_env: RELAY_SECRET\n    default_model: m\n"
        # The key itself where a variable's name belongs, and a key where a number belongs.
        f"  odd:\n    base_url: {model.url}\n    api_key_env: {CANARIES['relay']}\n"
        f"agent:\n  max_iterations: 5\nmodel:\n  provider: openai\n  fallbacks: [relay/m, other/m]\n",
        encoding="utf-8",
    )


def typed(folder: Path, environ: dict[str, str], *command: str) -> str:
    done = subprocess.run(
        [str(ROOT / "scripts" / "hermes"), *command],
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


def found_in(text: str | bytes) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    # Also half of one, and without the part that everybody may know (the bot's id).
    needles = {name: value.partition(":")[2] or value for name, value in CANARIES.items()}
    return [name for name, value in needles.items() if value.encode() in data or value[:-4].encode() in data]


def written(folder: Path) -> dict[str, list[str]]:
    """Every file below the folder that holds a canary and was not written by the owner."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in WRITTEN_BY_THE_OWNER]
    return {str(path.relative_to(folder)): hits for path in files if (hits := found_in(path.read_bytes()))}


async def test_ten_canaries_are_found_nowhere_after_a_session_full_of_failures(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text(f"the key is {CANARIES['openai']}\n", encoding="utf-8")
    home = tmp_path / "h"
    async with (
        FakeTelegram(token=CANARIES["telegram"]) as telegram,
        FakeModel(key=CANARIES["relay"]) as model,
        FakeHttpProxy(login=f"ana:{CANARIES['proxy']}") as proxy,
    ):
        settings(home, telegram, model, proxy)
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MESSAGING_CWD": str(work)}
        said: list[str] = []
        with (tmp_path / "gateway.out").open("w", encoding="utf-8") as output:
            gateway = GatewayProcess(home, environ, output)
            gateway.start()
            try:
                await gateway.ready()
                await session(telegram, model, gateway, home)
                said = await asyncio.to_thread(asked_afterwards, tmp_path, {**environ, "HERMES_HOME": str(home)})
                said.append(str(gateway.status()))
            finally:
                await gateway.stop()
        sent = [*telegram.texts(), *(str(request["messages"]) for request in model.requests)]
    assert "echo: hello" in telegram.texts(7)[0]
    assert written(tmp_path) == {}
    assert [hits for text in (*said, *sent) if (hits := found_in(text))] == []


async def session(telegram: FakeTelegram, model: FakeModel, gateway: GatewayProcess, home: Path) -> None:
    # The first model refuses its key and repeats it in the refusal; the fallback answers.
    telegram.user_says("hello")
    await telegram.wait_for(lambda: any("echo: hello" in text for text in telegram.texts(7)), 15)
    # A tool brings a key out of a file.
    model.when("read", calls_tools(("read_file", {"path": "notes.txt"})))
    telegram.user_says("read it")
    await until(lambda: any(_is_tool_result(request) for request in model.requests), 10)
    # Telegram fails in every way it can, each time with the token in its words.
    telegram.refuse_next("sendMessage", 400, f"Bad Request: /bot{telegram.token}/sendMessage cannot be found")
    telegram.refuse_next("getUpdates", 500, f"Internal error in /bot{telegram.token}/getUpdates")
    telegram.user_says("refused")
    telegram.drop_connection()
    await gateway.kill(Victim.WORKER)
    await gateway.ready()
    # A wrong token, then the right one; a key that comes later.
    env = (home / ".env").read_text(encoding="utf-8")
    (home / ".env").write_text(env.replace(CANARIES["telegram"], CANARIES["wrong_token"]), encoding="utf-8")
    await until(lambda: gateway.status()["platforms"][0]["state"] == "signed out", 10)
    (home / ".env").write_text(env.replace(CANARIES["openai"], CANARIES["late"]), encoding="utf-8")
    await until(lambda: gateway.status()["platforms"][0]["state"] == "connected", 10)
    telegram.user_says("late")
    await telegram.wait_for(lambda: any("late" in text for text in telegram.texts(7)), 10)


def _is_tool_result(request: dict[str, Any]) -> bool:
    return any(message["role"] == "tool" for message in request["messages"])


def asked_afterwards(folder: Path, environ: dict[str, str]) -> list[str]:
    """Every command that shows something."""
    commands = [
        ("gateway", "status", "--json"), ("doctor",), ("config", "show", "--all"), ("config", "explain", "ALL_PROXY"),
        ("logs",), ("trace", "msg:7:1"), ("trace", "--json", "msg:7:2"),
    ]  # fmt: skip
    return [typed(folder, environ, *command) for command in commands]
