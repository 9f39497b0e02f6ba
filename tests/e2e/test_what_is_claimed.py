"""What a screen says is so: the model that was tested, the port that is open, the token that is used."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.keeping import until
from tests.e2e.terminal import Terminal
from tests.e2e.test_process_gateway import free_port


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with Terminal(tmp_path, HOME=str(tmp_path)) as terminal:
        yield terminal


class Unset(Terminal):
    """Without the settings that the other terminal has: what is written into the home counts."""

    @property
    def environ(self) -> dict[str, str]:
        own = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "API_SERVER_PORT")
        return {name: value for name, value in super().environ.items() if name not in own}


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Terminal]:
    with Unset(tmp_path, HOME=str(tmp_path)) as terminal:
        terminal.home.mkdir(mode=0o700)
        (terminal.home / ".env").write_text(f"API_SERVER_PORT={free_port()}\n")
        yield terminal


def health(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
            return bool(json.load(answer)["status"] == "ok")
    except OSError:
        return False


def models(port: int, key: str) -> int:
    """The status that a request with this key gets."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/models", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - our own port
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


# The model


@pytest.mark.parametrize(
    "model, words",
    [
        ("{provider: nowhere, default: gpt-4o-mini}", "There is no provider 'nowhere'."),
        ("{default: gpt-4o-mini}", "I have only the built-in model, so gpt-4o-mini cannot answer."),
        ("{default: openrouter/gpt-4o-mini}", "so openrouter/gpt-4o-mini cannot answer."),
    ],
)
def test_a_model_that_is_not_there_fails_its_test_and_the_built_in_one_is_not_asked(
    bare: Terminal, model: str, words: str
) -> None:
    (bare.home / "config.yaml").write_text(f"model: {model}\n")
    tried = bare.hermes("model", "test")
    assert (tried.returncode, tried.stdout) == (1, "")
    assert words in tried.stderr
    checked = bare.hermes("config", "check")
    assert "model.default" in checked.stdout or "model.provider" in checked.stdout
    for command in ("status", "doctor"):
        assert "model.default" in bare.hermes(command).stdout or "model.provider" in bare.hermes(command).stdout


# The API


def test_the_port_moves_when_its_number_changes_and_the_key_counts_at_once(bare: Terminal) -> None:
    before, after = free_port(), free_port()
    assert bare.hermes("config", "set", "API_SERVER_PORT", str(before)).returncode == 0
    bare.start_gateway()
    until(lambda: health(before))
    assert bare.hermes("config", "set", "API_SERVER_PORT", str(after)).returncode == 0
    until(lambda: health(after))
    assert not health(before)
    old = (bare.home / "api_server.key").read_text().strip()
    assert models(after, old) == 200
    assert bare.hermes("config", "set", "API_SERVER_KEY", "k-0123456789abcdef0123456789abcdef").returncode == 0
    until(lambda: models(after, "k-0123456789abcdef0123456789abcdef") == 200)
    assert models(after, old) in {401, 429}  # 429: so many wrong keys came from here a moment ago


def test_the_port_opens_and_closes_with_its_switch_and_its_host(bare: Terminal) -> None:
    port = free_port()
    (bare.home / ".env").write_text(f"API_SERVER_PORT={port}\nAPI_SERVER_ENABLED=false\n")
    bare.start_gateway()
    assert not health(port)
    (bare.home / ".env").write_text(f"API_SERVER_PORT={port}\n")
    until(lambda: health(port))
    # The whole network may not reach it without a key of the owner's own.
    (bare.home / ".env").write_text(f"API_SERVER_PORT={port}\nAPI_SERVER_HOST=0.0.0.0\n")
    until(lambda: not health(port))
    for command in ("status", "doctor"):
        told = bare.hermes(command)
        assert told.returncode == 1
        assert "the API stays closed: 0.0.0.0 can be reached from the network" in told.stdout
        assert "API_SERVER_KEY" in told.stdout
    (bare.home / ".env").write_text(
        f"API_SERVER_PORT={port}\nAPI_SERVER_HOST=0.0.0.0\nAPI_SERVER_KEY=k-0123456789abcdef0123456789abcdef\n"
    )
    until(lambda: health(port))
    (bare.home / ".env").write_text(f"API_SERVER_PORT={port}\nAPI_SERVER_HOST=0.0.0.0\n")
    until(lambda: not health(port))
    (bare.home / ".env").write_text(f"API_SERVER_PORT={port}\n")
    until(lambda: health(port))
    until(lambda: bare.hermes("status").returncode == 0)


# Tokens and logins


def test_an_example_left_as_token_is_named_with_its_reason(bare: Terminal) -> None:
    with (bare.home / ".env").open("a") as file:
        file.write("TELEGRAM_BOT_TOKEN=YOUR_BOT_TOKEN\n")
    words = "line 2: TELEGRAM_BOT_TOKEN: still holds an example value, so it is not used. Write your own there"
    assert words in bare.hermes("config", "check").stdout
    assert words in bare.hermes("status").stdout
    assert words in bare.hermes("doctor").stdout
    bare.start_gateway()
    for command in (("status",), ("gateway", "status"), ("doctor",)):
        assert bare.hermes(*command).stdout.count(words) == 1


def test_a_weixin_account_without_its_token_is_cured_by_signing_in(bare: Terminal) -> None:
    with (bare.home / ".env").open("a") as file:
        file.write("WEIXIN_ACCOUNT_ID=abc@im.bot\n")
    bare.start_gateway()
    status, doctor = bare.hermes("status"), bare.hermes("doctor")
    assert status.returncode == doctor.returncode == 1
    for told in (status.stdout, doctor.stdout):
        assert "hermes weixin login" in told.replace("/scripts/", "")
    assert bare.hermes("weixin", "--help").returncode == 0


# Screens and chats


def test_sethome_is_refused_in_the_terminal_and_nothing_is_written(terminal: Terminal) -> None:
    said = terminal.hermes("chat", typed="/sethome\n").stdout
    assert "The terminal cannot be home" in said
    assert not (terminal.home / "config.yaml").exists()


def test_the_banner_promises_only_what_there_is(terminal: Terminal) -> None:
    terminal.start_gateway()
    console = terminal.home / "logs" / "console.log"
    until(lambda: "Gateway started in" in console.read_text(encoding="utf-8"))  # the report's last line
    screen = console.read_text(encoding="utf-8")
    assert "Messaging platforms + cron scheduler + OpenAI API" in screen
    assert "Cron     on, no jobs yet" in screen


def test_the_index_of_conversations_names_the_one_of_the_terminal(terminal: Terminal) -> None:
    assert terminal.hermes("-z", "hello").stdout == "echo: hello\n"
    index = json.loads((terminal.home / "sessions" / "sessions.json").read_text(encoding="utf-8"))
    assert [entry["platform"] for entry in index.values()] == ["local"]
    [session] = [entry["session_id"] for entry in index.values()]
    assert (terminal.home / "sessions" / f"{session}.jsonl").is_file()
