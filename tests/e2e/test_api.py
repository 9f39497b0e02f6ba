"""The API of the real gateway: its key from the command line, keys that act at once, a port that stays closed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal
from tests.e2e.test_process_gateway import free_port


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with Terminal(tmp_path_factory.mktemp("api"), API_SERVER_PORT=str(free_port())) as terminal:
        terminal.start_gateway()
        yield terminal


def asked(terminal: Terminal, path: str, key: str, body: object = None) -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{terminal.environ['API_SERVER_PORT']}{path}",
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        data=None if body is None else json.dumps(body).encode(),
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own port
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


def test_the_key_that_is_shown_opens_the_door(terminal: Terminal) -> None:
    shown = terminal.here("api-key", "show")
    assert (shown.returncode, shown.stderr) == (0, "")
    key = shown.stdout.strip()
    assert json.loads(terminal.here("api-key", "show", "--json").stdout) == {
        "name": "default",
        "role": "owner",
        "key": key,
    }
    body = {"model": "hermes", "messages": [{"role": "user", "content": "hello"}]}
    status, answer = asked(terminal, "/v1/chat/completions", key, body)
    assert status == 200
    assert "echo: hello" in json.dumps(answer)
    status, detailed = asked(terminal, "/health/detailed", key)
    assert (status, detailed["gateway_state"], detailed["home"]) == (200, "running", str(terminal.home))
    log = (terminal.home / "logs" / "gateway.log").read_text()
    assert key not in log


def test_a_key_made_beside_a_running_gateway_works_at_once_and_is_revoked_at_once(terminal: Terminal) -> None:
    made = terminal.here("api-key", "create", "phone", "--role", "guest")
    key, words = made.stdout.splitlines()
    assert made.returncode == 0
    assert "never shown again" in words
    assert asked(terminal, "/v1/models", key)[0] == 200
    taken = terminal.here("api-key", "create", "phone")
    assert (taken.returncode, "already" in taken.stderr) == (1, True)
    listed = json.loads(terminal.here("api-key", "list", "--json").stdout)
    assert [(each["name"], each["role"], each["revoked_at"]) for each in listed] == [("phone", "guest", None)]
    assert key not in terminal.here("api-key", "list").stdout
    assert terminal.here("api-key", "revoke", "phone").returncode == 0
    assert asked(terminal, "/v1/models", key)[0] == 401
    assert terminal.here("api-key", "revoke", "phone").returncode == 1
    assert ", revoked 20" in terminal.here("api-key", "list").stdout


@pytest.mark.parametrize("name", ["default", "", "a b", "../x", "x" * 65])
def test_names_that_no_key_can_have_are_refused_in_words(terminal: Terminal, name: str) -> None:
    refused = terminal.here("api-key", "create", name)
    assert refused.returncode == 1
    assert refused.stderr.startswith("✗ ")


def test_keys_can_be_made_before_the_gateway_ever_ran(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        key = terminal.here("api-key", "show").stdout.strip()
        assert (terminal.home / "api_server.key").read_text().strip() == key
        made = terminal.here("api-key", "create", "phone", "--json")
        assert json.loads(made.stdout)["name"] == "phone"
        assert json.loads(terminal.here("api-key", "list", "--json").stdout)[0]["name"] == "phone"


@pytest.mark.parametrize("key", ["changeme", "hunter2"], ids=["an example", "a short one"])
def test_without_a_real_key_nothing_is_served_to_the_network_and_the_rest_runs(tmp_path: Path, key: str) -> None:
    port = str(free_port())
    with Terminal(tmp_path, API_SERVER_HOST="0.0.0.0", API_SERVER_PORT=port, API_SERVER_KEY=key) as terminal:
        terminal.start_gateway()
        with pytest.raises(OSError, match="refused"):
            asked(terminal, "/health", "any")
        told = terminal.here("gateway", "status")
        assert told.returncode == 1
        assert "the API stays closed: 0.0.0.0 can be reached from the network" in told.stdout
        assert terminal.here("-z", "hello").stdout == "echo: hello\n"
        assert "API stays closed" in (terminal.home / "logs" / "gateway.log").read_text()
        assert "the API stays closed" in terminal.here("doctor").stdout


def test_a_trace_by_the_id_that_a_client_shows_says_what_was_asked(terminal: Terminal) -> None:
    key = terminal.here("api-key", "show").stdout.strip()
    body = {"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "what is new?"}]}
    _, answer = asked(terminal, "/v1/chat/completions", key, body)
    assert "request from key:default: “what is new?”" in terminal.here("trace", str(answer["id"])).stdout
