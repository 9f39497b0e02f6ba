"""``hermes model``: what there is, one of it chosen, and what is wrong with it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Coroutine
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.main import main
from hermes.config import load
from tests.e2e.terminal import patched_environ
from tests.fakes.local_models import FakeLocalServer, lm_studio, ollama
from tests.fakes.model import FakeModel, Refusal
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.test_configuration_is_live import until
from tests.integration.watching import answered

NOBODY = "http://127.0.0.1:9"
Ran = tuple[int, str]
Hermes = Callable[..., Coroutine[Any, Any, Ran]]


@pytest.fixture
def hermes(tmp_path: Path) -> Hermes:
    """``await hermes("model", "list", OPENAI_API_KEY=…)``: the exit code and all that was printed."""

    async def run(*words: str, **environ: str) -> Ran:
        own = {"HERMES_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
        own |= {"OLLAMA_BASE_URL": NOBODY, "LMSTUDIO_BASE_URL": NOBODY, **environ}
        out = io.StringIO()

        def act() -> int:
            with redirect_stdout(out), redirect_stderr(out):
                return main(list(words))

        with patched_environ(own):
            return await asyncio.to_thread(act), out.getvalue()

    return run


async def test_list_shows_what_is_configured_and_what_runs_here(hermes: Hermes) -> None:
    keys = {"OPENAI_API_KEY": "sk-openai-0123456x7Q", "ANTHROPIC_API_KEYS": "sk-ant-0123456aaa, sk-ant-0123456bbb"}
    async with ollama("qwen3:8b", "llama3.2") as one, lm_studio("qwen/qwen3-8b") as other:
        addresses = {"OLLAMA_BASE_URL": f"{one.url}/v1", "LMSTUDIO_BASE_URL": f"{other.url}/v1"}
        code, told = await hermes("model", "list", **keys, **addresses)
    assert code == 0
    lines = told.splitlines()
    assert lines[0] == "* openai     gpt-4o-mini   (chat_completions, key …x7Q)"
    assert "  anthropic  claude-haiku-5-5   (anthropic_messages, key …aaa, …bbb)" in lines
    assert f"  ollama runs at {one.url} and offers qwen3:8b, llama3.2" in lines
    assert "4,096 tokens" in told
    assert "OLLAMA_CONTEXT_LENGTH=32768" in told
    assert told.rstrip().endswith("model use lmstudio/qwen/qwen3-8b")


@pytest.mark.parametrize(
    "server, expected",
    [
        (ollama("qwen3", loaded={"qwen3": 32_768}), ""),
        (ollama("qwen3", loaded={"qwen3": 4096}), "OLLAMA_CONTEXT_LENGTH"),
        (FakeLocalServer({}), "does not run at"),
        (ollama(), "has no model yet"),
    ],
    ids=["enough", "too little", "somebody else", "empty"],
)
async def test_a_loaded_model_with_enough_context_is_not_warned_of(
    hermes: Hermes, server: FakeLocalServer, expected: str
) -> None:
    async with server:
        _, told = await hermes("model", "list", OLLAMA_BASE_URL=f"{server.url}/v1")
    about = "\n".join(line for line in told.splitlines() if "lmstudio" not in line)
    assert expected in about
    assert ("!" in about) == (expected == "OLLAMA_CONTEXT_LENGTH")


async def test_lists_can_be_read_by_programs(hermes: Hermes) -> None:
    async with lm_studio("m", loaded={"m": 4096}) as server:
        code, told = await hermes("model", "--json", LMSTUDIO_BASE_URL=f"{server.url}/v1")
    found = json.loads(told)
    assert code == 0
    assert [provider["name"] for provider in found["providers"] if provider["in_use"]] == ["embedded"]
    assert found["local"][1]["models"] == ["m"]
    assert (found["local"][1]["is_running"], found["local"][1]["context"]) == (True, 4096)
    assert found["local"][0]["is_running"] is False


# Choosing


async def test_use_is_followed_by_the_running_gateway(
    hermes: Hermes, start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    config = tmp_path / "home" / "config.yaml"
    async with FakeModel() as relay, start() as gateway:
        config.write_text(f"# mine\nproviders:\n  relay:\n    base_url: {relay.url}\n    default_model: m-1\n")
        await until(lambda: "relay" in gateway.config.providers)
        code, told = await hermes("model", "use", "relay/m-2")
        assert (code, told.splitlines()[0].startswith("✓ relay / m-2 answers from now on")) == (0, True)
        await until(lambda: gateway.config.model.default == "m-2")
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        assert relay.last_request["model"] == "m-2"
        assert model.requests == []
    assert config.read_text().startswith("# mine\n")


async def test_use_tells_what_a_local_server_does_not_offer(hermes: Hermes, tmp_path: Path) -> None:
    async with ollama("qwen3:latest") as server:
        address = {"OLLAMA_BASE_URL": f"{server.url}/v1"}
        _, told = await hermes("model", "use", "ollama/qwen3", **address)
        assert "does not offer" not in told
        assert "OLLAMA_CONTEXT_LENGTH" in told
        _, told = await hermes("model", "use", "ollama/gemma", "--json", **address)
        assert "ollama does not offer gemma; it has qwen3:latest." in json.loads(told)["notes"]
    assert load(tmp_path / "home", {}, tmp_path, ()).config.model.default == "gemma"


@pytest.mark.parametrize(
    "name, yaml, words",
    [
        ("anthropic/claude", "", "anthropic has no key. Set ANTHROPIC_API_KEY"),
        ("nosuch/x", "", "There is no provider 'nosuch'. Known: openai"),
        ("ollama", "", "Which model of ollama? Write ollama/MODEL."),
        ("gpt-5", "", "I have only the built-in model, so gpt-5 cannot answer."),
        ("embedded/gpt-5", "", "I have only the built-in model, so gpt-5 cannot answer."),
        ("ollama/x", "model: {provider: openai, base_url: 'http://a'}\n", "model.base_url is set for openai"),
        ("ollama/x", "model: gpt-4o\n", "edit it by hand"),
    ],
)
async def test_use_refuses_in_words_and_changes_nothing(
    hermes: Hermes, tmp_path: Path, name: str, yaml: str, words: str
) -> None:
    config = tmp_path / "home" / "config.yaml"
    config.parent.mkdir(mode=0o700, exist_ok=True)
    config.write_text(yaml)
    code, told = await hermes("model", "use", name)
    assert code == 1
    assert words in told
    assert config.read_text() == yaml


async def test_a_model_may_be_named_without_its_provider(hermes: Hermes, tmp_path: Path) -> None:
    key = {"OPENROUTER_API_KEY": "sk-or-0123456789"}
    assert (await hermes("model", "use", "openai/gpt-5", **key))[0] == 0
    chosen = load(tmp_path / "home", key, tmp_path, ()).config.model
    assert (chosen.provider, chosen.default) == ("openrouter", "openai/gpt-5")


# Trying


@pytest.mark.parametrize("mode", ["chat_completions", "responses", "anthropic_messages"])
async def test_a_model_that_answers_is_told_with_its_time(hermes: Hermes, tmp_path: Path, mode: str) -> None:
    async with FakeModel() as server:
        config = tmp_path / "home" / "config.yaml"
        config.parent.mkdir(mode=0o700, exist_ok=True)
        provider = f"{{base_url: '{server.url}', api_mode: {mode}, default_model: m-1}}"
        config.write_text(f"providers: {{relay: {provider}}}\n")
        server.says("OK.")
        code, told = await hermes("model", "test")
        assert (code, server.last_request["model"]) == (0, "m-1")
        assert told.startswith("✓ relay / m-1 answers in ")
        assert told.rstrip().endswith("s (12 tokens in, 7 out): OK.")


KEY = "sk-openai-0123456x7Q"


@pytest.mark.parametrize(
    "status, body, failed, words",
    [
        (401, "bad key", "key", "It comes from environment and ends in …x7Q"),
        (404, "The model `gpt-4o-mini` does not exist", "model name", "“gpt-4o-mini”"),
        (429, "You exceeded your current quota, check billing", "quota", "Top up at openai"),
        (404, b"404 page not found", "address", "providers.openai.base_url is http://127.0.0.1"),
        (429, "slow down", "rate limit", "too many requests"),
        (500, "oops", "provider", "problem of its own"),
    ],
)
async def test_what_fails_is_named(
    hermes: Hermes, model: FakeModel, status: int, body: str | bytes, failed: str, words: str
) -> None:
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url}
    model.fails_next(status, body)
    code, told = await hermes("model", "test", **environ)
    assert code == 1
    assert told.startswith(f"✗ openai / gpt-4o-mini: the {failed}. My model (openai) ")
    assert words in told
    assert KEY not in told
    model.fails_next(status, body)
    _, told = await hermes("model", "test", "openai/gpt-4o-mini", "--json", **environ)
    assert (json.loads(told)["ok"], json.loads(told)["failed"]) == (False, failed)
    assert len(model.requests) == 2, "one call each: nothing is tried again"


async def test_a_key_too_short_to_show_any_of_it_is_named_by_its_place(hermes: Hermes, model: FakeModel) -> None:
    model.fails_next(401, "bad key")
    _, told = await hermes("model", "test", OPENAI_API_KEY="sk-bad", OPENAI_BASE_URL=model.url)
    assert "It comes from environment. Set another: " in told


async def test_an_address_where_nobody_is_and_a_missing_key_are_told(hermes: Hermes) -> None:
    code, told = await hermes("model", "test", OPENAI_BASE_URL=f"{NOBODY}/v1")
    assert code == 1
    assert "the address. My model (openai) could not be reached (connection refused)" in told
    async with FakeModel(key="sk-right") as strict:
        code, told = await hermes("model", "test", OPENAI_BASE_URL=strict.url)
    assert "the key. My model (openai) needs a key, and none is set" in told
    assert "config set OPENAI_API_KEY -" in told


async def test_several_keys_are_told_by_their_last_letters(hermes: Hermes, model: FakeModel) -> None:
    model.bad_keys = {"sk-one-0123456aaa": Refusal(401, "bad key"), "sk-two-0123456bbb": Refusal(429, "slow down")}
    keys = "sk-one-0123456aaa,sk-two-0123456bbb,sk-three-0123456ccc"
    code, told = await hermes("model", "test", OPENAI_API_KEYS=keys, OPENAI_BASE_URL=model.url)
    assert code == 0
    assert told.splitlines()[-1] == "  keys: …aaa was refused, …bbb rests 30 s, …ccc in use"


async def test_a_model_that_says_nothing_was_reached(hermes: Hermes, model: FakeModel) -> None:
    model.says("")
    code, told = await hermes("model", "test", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=model.url)
    assert code == 0
    assert "takes the call and answers with nothing" in told
