"""Files that the environment names, SOUL.md, and settings written as YAML."""

from __future__ import annotations

import pytest

from hermes.config import explain
from hermes.config.edit import set_value
from hermes.config.trees import Items, Leaf, Table, read_yaml
from hermes.config.write import render_yaml
from hermes.core.keys import SessionKey
from tests.unit.config.samples import TOKEN, Home


def test_hermes_config_and_hermes_env_name_files_in_place_of_those_of_the_home(home: Home) -> None:
    home.write(yaml="agent: {max_iterations: 7}", env="SESSION_IDLE_MINUTES=7")
    (home.path / "other.yaml").write_text("agent: {max_iterations: 9}\n")
    (home.path / "other.env").write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
    home.set(HERMES_CONFIG=str(home.path / "other.yaml"), HERMES_ENV=str(home.path / "other.env"))
    assert home.config.agent.max_iterations == 9
    assert home.config.sessions.reset.idle_minutes == 120
    assert home.telegram.is_ready
    assert home.problems == ()


def test_a_setting_is_written_into_the_file_that_is_read(home: Home) -> None:
    (home.path / "other.yaml").write_text("")
    (home.path / "other.env").write_text("")
    home.set(HERMES_CONFIG=str(home.path / "other.yaml"), HERMES_ENV=str(home.path / "other.env"))
    set_value(home.load(), "agent.max_iterations", "11")
    set_value(home.load(), "platforms.telegram.token", TOKEN)
    assert home.config.agent.max_iterations == 11
    assert home.telegram.is_ready
    assert not (home.path / "config.yaml").exists()
    assert not (home.path / ".env").exists()


def test_a_named_file_that_is_not_there_is_told(home: Home) -> None:
    home.set(HERMES_CONFIG=str(home.path / "gone.yaml"), HERMES_ENV="production")
    assert f"HERMES_CONFIG: names {home.path / 'gone.yaml'}, and there is no such file." in home.said
    assert "HERMES_ENV: names " in home.said


def test_soul_is_who_the_agent_is_unless_a_persona_is_set(home: Home) -> None:
    (home.path / "SOUL.md").write_text("<!-- write below -->\nYou are Heron.\nSpeak calmly.\n")
    here = SessionKey.parse("agent:main:telegram:dm:42")
    loaded = home.load()
    assert loaded.config.persona_for(here).text == "You are Heron.\nSpeak calmly."
    assert "SOUL.md" in str(explain(loaded, "agent.persona"))
    home.write(yaml="agent: {persona: You are Wren.}")
    assert home.config.persona_for(here).text == "You are Wren."


def test_a_soul_of_comments_alone_or_of_endless_length_is_none(home: Home) -> None:
    (home.path / "SOUL.md").write_text("<!-- nothing yet")
    assert home.config.agent.persona == ""
    (home.path / "SOUL.md").write_text("x" * 200_000)
    assert home.config.agent.persona == ""
    assert "SOUL.md: is 200,000 bytes long" in home.said


@pytest.mark.parametrize(
    "text",
    ["gpt-4o-mini", "", "0123", "+49123", "a: b", "# no", "null", "~", "'", '"', "两\nlines\t\x07", "- x", "{a}"],
)
def test_what_is_written_as_yaml_is_read_back_as_it_was(text: str) -> None:
    tree = Table(
        {"a": Table({text or "empty": Leaf(text)}), "list": Items([Leaf(text), Leaf("b")]), "none": Leaf(None)}
    )
    back, problems = read_yaml(render_yaml(tree).encode(), "config.yaml")
    assert problems == []
    assert back is not None
    assert _plain(back) == _plain(tree)


def _plain(tree: Table | Items | Leaf) -> object:
    match tree:
        case Leaf(text):
            return text
        case Items(items):
            return [_plain(item) for item in items]
        case Table(entries):
            return {name: _plain(value) for name, value in entries.items()}
