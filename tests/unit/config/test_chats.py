"""Settings for single chats: the narrower goes before the wider, and what a chat leaves open comes from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.toolkit.toolsets import access_of
from hermes.config import Config, load
from hermes.config.schema import BusyMode, ResetMode
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.targets.patterns import ChatPattern
from hermes.services.adapters.registry import find_platforms
from hermes.services.models import route_of
from tests.unit.config.samples import Home

MANIFESTS = tuple(find_platforms().manifests.values())
YAML = """
model: {default: gpt-4o-mini, provider: openai}
model_routes: {quick: openai/gpt-nano}
providers:
  openai: {api_key: sk-0123456789abcdef}
  openrouter: {api_key: sk-or-0123456789abcdef}
personalities:
  clerk: You are a clerk.
  pirate: You are a pirate.
agent:
  persona: You are a butler.
  busy_mode: interrupt
sessions:
  reset: {mode: both, at_hour: 5, idle_minutes: 60}
  reset_by_platform: {telegram: {mode: idle}}
chats:
  telegram:
    personality: clerk
    busy_mode: queue
  telegram@work:*:
    model: openrouter/some/model
    toolsets: [web, read_file]
  telegram:-100:
    model: quick
    reset: {mode: none}
    group_sessions_per_user: false
  telegram:-100:7:
    persona: You are a parrot.
    model: other-model
"""


def loaded_from(tmp_path: Path, yaml: str) -> tuple[Config, list[str]]:
    home = Home(tmp_path)
    home.write(yaml=yaml)
    loaded = load(home.path, {}, home.cwd, MANIFESTS)
    return loaded.config, [str(problem) for problem in loaded.problems]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config, problems = loaded_from(tmp_path, YAML)
    assert problems == []
    return config


def group(chat: str = "-100", thread: str = "", account: str = "main") -> SessionKey:
    return SessionKey("telegram", ChatKind.GROUP, chat, thread, account=account)


def test_a_thread_goes_before_its_chat_and_a_chat_before_its_platform(config: Config) -> None:
    assert config.persona_for(group("-5")).text == "You are a clerk."
    assert config.persona_for(group()).name == "clerk"
    assert config.persona_for(group(thread="7")).text == "You are a parrot."
    assert config.busy_mode_for(group(thread="7")) is BusyMode.QUEUE
    assert config.busy_mode_for(group(account="work")) is BusyMode.INTERRUPT
    assert config.persona_for(group(account="work")).text == "You are a butler."


def test_what_a_chat_chose_itself_goes_before_everything(config: Config) -> None:
    assert config.persona_for(group(thread="7"), "pirate").text == "You are a pirate."
    assert config.persona_for(group(thread="7"), "gone").text == "You are a parrot."
    assert config.busy_mode_for(group(), "steer") is BusyMode.STEER
    assert route_of(config, group(), "openai/gpt-9") == "openai/gpt-9"
    assert route_of(config, group(), "nobody/gpt-9") == "openai/gpt-nano"


def test_a_model_may_be_a_route_a_provider_with_its_model_or_a_model_of_the_provider_in_use(config: Config) -> None:
    assert route_of(config, group()) == "openai/gpt-nano"
    assert route_of(config, group(account="work")) == "openrouter/some/model"
    assert route_of(config, group(thread="7")) == "openai/other-model"
    assert route_of(config, group("-5")) == ""


def test_tools_of_a_chat_are_those_it_names(config: Config) -> None:
    own = access_of(config, group(account="work"))
    assert own.has("web", "web_extract")
    assert own.has("files", "read_file")
    assert not own.has("files", "write_file")
    assert not own.has("terminal", "terminal")
    assert access_of(config, group()).has("terminal", "terminal")


def test_a_chat_is_renewed_by_its_own_policy_which_takes_over_what_it_leaves_out(config: Config) -> None:
    assert config.reset_for(group("-5")).mode is ResetMode.IDLE
    own = config.reset_for(group())
    assert (own.mode, own.at_hour, own.idle_minutes) == (ResetMode.NONE, 5, 60)


def test_one_group_can_be_shared_while_the_others_are_not(config: Config) -> None:
    assert not config.has_session_per_person(group())
    assert config.has_session_per_person(group("-5"))


def test_the_older_names_are_read_too(tmp_path: Path) -> None:
    yaml = (
        "group_sessions_per_user: false\nagent: {personalities: {pirate: Arr.}}\nchats: {local: {personality: pirate}}"
    )
    config, problems = loaded_from(tmp_path, yaml)
    assert problems == []
    assert not config.has_session_per_person(group())
    assert config.persona_for(SessionKey("local", ChatKind.DM, "cli")).text == "Arr."


def test_names_that_lead_nowhere_are_pointed_out(tmp_path: Path) -> None:
    yaml = "chats: {telegran:7: {personality: nobody}, 'two words': {model: x}}"
    _, problems = loaded_from(tmp_path, yaml)
    told = " ".join(problems)
    assert "'telegran'" in told
    assert "'nobody'" in told
    assert "two words" in told


@pytest.mark.parametrize(
    "pattern, key, is_about",
    [
        ("telegram", group(), True),
        ("telegram:*", group(thread="7"), True),
        ("telegram:*:7", group(thread="8"), False),
        ("telegram@*", group(account="work"), True),
        ("telegram", group(account="work"), False),
        ("telegram:!a%3Ab", group("!a:b"), True),
        ("discord", group(), False),
    ],
)
def test_a_pattern_is_a_target_with_stars(pattern: str, key: SessionKey, is_about: bool) -> None:
    assert ChatPattern.parse(pattern).is_about(key) is is_about
