"""The command line in Chinese, as a person with a Chinese terminal sees it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal

ZH = {"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": ""}
ALLOWED = re.compile(
    r"\S*\|\S*|chmod -R go= \S+|[A-Z][A-Z0-9_]{2,}\b"  # names of settings, and what stands for a value
    r"|\b(?:Hermes|Python|SQLite|Slack|WhatsApp|WeChat|Telegram|Discord|Node|Socket Mode|Enter|Ollama|LM Studio)\b"
    r"|\b(?:API|JSON|YAML|QR|ID|MB|GB|ms|min|Ctrl|PROMPT|COMMAND|PATH|OpenAI)\b"
    r"|`[^`]*`|[~./\w-]*/[\w./~-]*|\S*hermes [^（；，。]*|--?[\w-]+|\{[^}]*\}|\[[^\]]*\]|\S+[:=_@.…]\S*|\b\w+\.\w+\b"
)
VALUES = {
    "telegram", "weixin", "slack", "whatsapp", "discord", "qq", "pairing", "open", "allowlist", "disabled", "cli",
    "text", "json", "stream", "none", "safe", "all", "once", "user", "owner", "admin", "guest", "id", "git", "token",
    "embedded", "smollm", "instruct", "npm", "bash", "zsh", "fish", "work", "run", "start", "stop", "restart", "status",
    "setup", "test", "reset", "auto", "chat", "gateway", "send", "trace", "logs", "sessions", "people", "skills",
    "tools", "config",
    "model", "approvals", "api", "key", "doctor", "version", "completion", "installed", "terminal", "web", "local", "s",
    "openai", "ollama", "qwen", "echo", "Sum", "this", "up", "hello", "pid", "exit", "help", "x", "m", "h",
    "curl", "openrouter", "sk", "abc", "phone", "and", "H", "Authorization", "Bearer", "show", "http", "v", "models",
    "backup", "create", "list", "verify", "restore", "import", "profile", "remove", "systemd", "launchd", "sudo",
    "install", "uninstall", "agent", "OpenClaw",
}  # fmt: skip


def english_in(text: str) -> list[str]:
    """Lines that are not in Chinese and hold words of English."""
    found = []
    for line in text.splitlines():
        words = [word for word in re.findall(r"[A-Za-z]+", ALLOWED.sub(" ", line)) if word not in VALUES]
        if len(words) > 1 or (words and not re.search("[\u4e00-\u9fff]", line)):
            found.append(line)
    return found


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    made = Terminal(tmp_path, **ZH)
    made.model_url = "http://127.0.0.1:9/v1"
    return made


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("status",),
        ("gateway", "status"),
        ("gateway", "--help"),
        ("gateway", "setup", "--help"),
        ("gateway", "setup", "nosuch", "--yes"),
        ("setup", "--help"),
        ("chat", "--help"),
        ("doctor", "--user", "5"),
        ("doctor",),
        ("doctor", "--help"),
        ("security", "audit"),
        ("pairing", "--help"),
        ("nosuch",),
        ("gateway", "nosuch"),
        ("gateway", "stop"),
        ("setup",),
    ],
    ids=" ".join,
)
def test_a_chinese_terminal_is_shown_no_english_sentence(terminal: Terminal, words: tuple[str, ...]) -> None:
    done = terminal.here(*words) if "--help" not in words else terminal.hermes(*words)
    shown = done.stdout + done.stderr
    assert re.search("[\u4e00-\u9fff]", shown)
    assert english_in(shown) == []


def test_doctor_speaks_chinese_where_the_configuration_says_so_and_json_stays_english(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, LANG="en_US.UTF-8", LC_ALL="")
    terminal.model_url = "http://127.0.0.1:9/v1"
    terminal.home.mkdir()
    (terminal.home / "config.yaml").write_text("language: zh\n", encoding="utf-8")
    shown = terminal.hermes("doctor").stdout
    assert "主目录" in shown
    assert english_in(shown.replace("fake-1", "").replace("gpt-4o-mini", "")) == []
    found = json.loads(terminal.hermes("doctor", "--json").stdout)
    assert [one["name"] for one in found["findings"]][:3] == ["home", "config", "stores"]
    assert not re.search("[\u4e00-\u9fff]", json.dumps(found, ensure_ascii=False))


def test_the_owners_language_goes_before_that_of_the_terminal(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, **ZH, HERMES_LANGUAGE="en")
    terminal.model_url = "http://127.0.0.1:9/v1"
    assert "Gateway is not running" in terminal.here("status").stdout
