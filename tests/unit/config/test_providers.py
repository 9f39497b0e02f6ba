"""Which model answers, and whose key is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.config import KNOWN, EnvFiles, ProviderConfig, explain, resolve_key
from hermes.core.secret import Secret
from tests.unit.config.samples import Home


@pytest.mark.parametrize(
    "line,provider",
    [
        ("OPENAI_API_KEY=sk-0123456789", "openai"),
        ("OPENROUTER_API_KEY=sk-or-0123456789", "openrouter"),
        ("OPENAI_BASE_URL=http://127.0.0.1:11434/v1", "openai"),
    ],
)
def test_one_line_replaces_the_embedded_model(home: Home, line: str, provider: str) -> None:
    config = home.write(env=line).config
    assert config.model.provider == provider
    assert config.model.default == KNOWN[provider].default_model
    assert home.problems == ()


def test_a_base_url_goes_with_its_provider(home: Home) -> None:
    config = home.set(OPENAI_API_KEY="sk-0123456789", OPENAI_BASE_URL="http://127.0.0.1:9/v1").config
    assert config.providers["openai"].base_url == "http://127.0.0.1:9/v1"
    assert config.providers["openrouter"].base_url == "https://openrouter.ai/api/v1"


def test_the_first_of_the_table_is_chosen_when_two_keys_are_there(home: Home) -> None:
    home.set(OPENROUTER_API_KEY="sk-or-0123456789", OPENAI_API_KEY="sk-0123456789")
    assert home.config.model.provider == "openai"


CUSTOM = """
model: {default: gpt-4o-mini, provider: openkey, api_mode: chat_completions}
providers:
  openkey: {base_url: "https://relay.example/v1", %s, api_mode: chat_completions}
"""


def test_a_provider_of_ones_own_with_its_key_in_the_file(home: Home) -> None:
    provider = home.write(yaml=CUSTOM % "api_key: sk-in-the-file").config.providers["openkey"]
    assert provider.api_key == Secret("sk-in-the-file")
    assert provider.base_url == "https://relay.example/v1"
    assert home.problems == ()


@pytest.mark.parametrize("place", ["environment", ".env"])
def test_api_key_env_works_from_the_environment_and_from_the_file(home: Home, place: str) -> None:
    home.write(yaml=CUSTOM % "api_key_env: OPENKEY_TOKEN")
    if place == "environment":
        home.set(OPENKEY_TOKEN="sk-by-name-1")
    else:
        home.write(env="OPENKEY_TOKEN=sk-by-name-1")
    assert home.config.providers["openkey"].api_key == Secret("sk-by-name-1")
    assert home.problems == ()


def test_a_provider_is_found_by_the_name_of_its_key_alone(home: Home) -> None:
    home.write(yaml=CUSTOM % "default_model: x", env="OPENKEY_API_KEY=sk-by-custom")
    assert home.config.providers["openkey"].api_key == Secret("sk-by-custom")


def test_a_named_variable_takes_the_place_of_the_usual_one(home: Home) -> None:
    home.write(yaml="providers: {openai: {api_key_env: MY_KEY}}", env="MY_KEY=sk-mine-mine").set(
        OPENAI_API_KEY="sk-other"
    )
    assert home.config.providers["openai"].api_key == Secret("sk-mine-mine")


def test_one_variable_may_serve_two_providers(home: Home) -> None:
    home.write(
        yaml="providers: {a: {base_url: 'http://a', api_key_env: K_1}, b: {base_url: 'http://b', api_key_env: K_1}}",
        env="K_1=sk-for-both-of-them",
    )
    providers = home.config.providers
    assert providers["a"].api_key == providers["b"].api_key == Secret("sk-for-both-of-them")


def test_a_variable_that_is_not_set_is_told_with_its_name(home: Home) -> None:
    home.write(yaml=CUSTOM % "api_key_env: OPENKEY_TOKEN")
    assert "providers.openkey.api_key_env: names OPENKEY_TOKEN, which is not set." in home.said


def test_a_key_pasted_in_place_of_the_variables_name_is_refused_and_not_repeated(home: Home) -> None:
    home.write(yaml=CUSTOM % "api_key_env: sk-pasted-key")
    assert "should be the name of an environment variable" in home.said
    assert "sk-pasted" not in home.said


class TestPrefix:
    def test_a_prefix_that_disagrees_with_the_provider_is_told(self, home: Home) -> None:
        home.write(
            yaml="model: {default: openkey/gpt-4o-mini, provider: openrouter}\nproviders: {openkey: {base_url: 'http://r'}}"
        )
        assert home.config.model.provider == "openrouter"
        assert "model.default: is 'openkey/gpt-4o-mini', but model.provider is openrouter" in home.said

    def test_a_vendor_before_a_relays_model_is_as_it_should_be(self, home: Home) -> None:
        home.set(OPENROUTER_API_KEY="sk-or-0123456789", OPENAI_API_KEY="sk-0123456789")
        home.write(yaml="model: {default: openai/gpt-4o-mini, provider: openrouter}")
        assert home.problems == ()

    def test_without_a_provider_the_prefix_chooses(self, home: Home) -> None:
        home.set(OPENAI_API_KEY="sk-0123456789")
        home.write(yaml="model: openkey/x\nproviders: {openkey: {base_url: 'http://r'}, other: {base_url: 'http://o'}}")
        assert home.config.model.provider == "openkey"

    def test_a_provider_that_is_not_configured_is_told(self, home: Home) -> None:
        home.write(yaml="model: {default: x, provider: nowhere}")
        assert "model.provider: names 'nowhere', which is not configured." in home.said


def test_the_model_section_alone_can_describe_a_provider(home: Home) -> None:
    home.write(
        yaml="model: {default: x, provider: openkey, base_url: 'https://relay.example/v1'}",
        env="OPENKEY_API_KEY=sk-by-custom",
    )
    config = home.config
    assert (config.model.provider, config.model.base_url) == ("openkey", "https://relay.example/v1")
    assert config.providers["openkey"].api_key == Secret("sk-by-custom")
    assert home.problems == ()


def test_fallbacks_in_both_forms(home: Home) -> None:
    home.write(yaml="model: {default: x, fallbacks: [openrouter/a, {provider: embedded, model: b}, nowhere/c]}")
    assert home.config.model.fallbacks == ("openrouter/a", "embedded/b", "nowhere/c")
    assert "there is no provider nowhere" in home.said


class TestKeysAtCallTime:
    def test_a_key_added_to_the_file_is_used_at_the_next_call(self, tmp_path: Path) -> None:
        files = EnvFiles([tmp_path / ".env", tmp_path / "absent" / ".env"])
        provider = ProviderConfig("openkey", api_key_env="OPENKEY_TOKEN")
        assert resolve_key(provider, {}, files) is None
        (tmp_path / ".env").write_text("OPENKEY_TOKEN=sk-first-key")
        assert resolve_key(provider, {}, files) == Secret("sk-first-key")
        (tmp_path / ".env").write_text("OPENKEY_TOKEN=sk-other-key")
        os.utime(tmp_path / ".env", (1, 1))  # an editor may even set the time back
        assert resolve_key(provider, {}, files) == Secret("sk-other-key")

    def test_the_process_environment_goes_first(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-file")
        files = EnvFiles([tmp_path / ".env"])
        environ = {"OPENAI_API_KEY": "sk-from-process"}
        assert resolve_key(ProviderConfig("openai"), environ, files) == Secret("sk-from-process")

    def test_a_placeholder_is_no_key(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-file")
        files = EnvFiles([tmp_path / ".env"])
        assert resolve_key(ProviderConfig("openai"), {"OPENAI_API_KEY": "<key>"}, files) == Secret("sk-from-file")

    def test_a_key_of_the_configuration_file_is_the_last_resort(self, tmp_path: Path) -> None:
        provider = ProviderConfig("openkey", api_key=Secret("sk-literal"))
        assert resolve_key(provider, {}, EnvFiles([tmp_path / ".env"])) == Secret("sk-literal")


class TestSeveralKeys:
    def test_keys_come_from_both_settings_each_once(self, home: Home) -> None:
        home.write(
            yaml="providers: {openai: {api_keys: [sk-second-key, sk-third-key, sk-first-key]}}",
            env="OPENAI_API_KEY=sk-first-key",
        )
        provider = home.config.providers["openai"]
        assert provider.api_keys == tuple(map(Secret, ("sk-first-key", "sk-second-key", "sk-third-key")))
        assert provider.api_key == Secret("sk-first-key")
        assert home.problems == ()

    @pytest.mark.parametrize("place", ["env", "process"])
    def test_a_variable_with_commas_holds_several(self, home: Home, place: str) -> None:
        line = "sk-first-key, sk-second-key"
        home.write(env=f"ANTHROPIC_API_KEYS='{line}'") if place == "env" else home.set(ANTHROPIC_API_KEYS=line)
        config = home.config
        assert config.providers["anthropic"].api_keys == (Secret("sk-first-key"), Secret("sk-second-key"))
        assert (config.model.provider, config.model.default) == ("anthropic", "claude-haiku-5-5")
        assert config.model.api_mode == "anthropic_messages"

    @pytest.mark.parametrize("form", ["'KEY_TWO, KEY_ONE'", "[KEY_TWO, KEY_ONE]"])
    def test_several_variables_may_be_named_and_their_order_counts(self, home: Home, form: str) -> None:
        home.write(yaml=CUSTOM % f"api_key_env: {form}", env="KEY_TWO=sk-second-key").set(KEY_ONE="sk-first-key")
        assert home.config.providers["openkey"].api_keys == (Secret("sk-second-key"), Secret("sk-first-key"))
        assert home.problems == ()

    def test_one_of_several_variables_that_is_not_set_is_named(self, home: Home) -> None:
        home.write(yaml=CUSTOM % "api_key_env: 'KEY_ONE, KEY_TWO'", env="KEY_TWO=sk-second-key")
        assert home.config.providers["openkey"].api_key == Secret("sk-second-key")
        assert "providers.openkey.api_key_env: names KEY_ONE, which is not set." in home.said

    def test_they_are_secrets_wherever_they_are_shown(self, home: Home) -> None:
        home.write(yaml="providers: {openai: {api_keys: [sk-canary-0123aaa, sk-canary-0123bbb]}}")
        loaded = home.load()
        told = explain(loaded, "providers.openai.api_keys")
        assert told.value == "…aaa, …bbb"
        assert "canary" not in f"{told}{loaded.config!r}"
        assert {Secret("sk-canary-0123aaa"), Secret("sk-canary-0123bbb")} <= set(loaded.config.secrets())

    def test_an_example_among_them_is_no_key(self, home: Home) -> None:
        home.write(env="OPENAI_API_KEYS=<key>,sk-real-0123456")
        assert home.config.providers["openai"].api_keys == (Secret("sk-real-0123456"),)


def test_a_local_server_alone_is_not_chosen_since_it_names_no_model(home: Home) -> None:
    home.set(OLLAMA_BASE_URL="http://127.0.0.1:11434/v1")
    assert home.config.model.provider == "embedded"
    home.set(HERMES_MODEL="qwen3")
    assert home.config.model.provider == "ollama"
    home.write(yaml="model: {default: anthropic/claude-haiku-5-5, provider: openrouter}")
    assert home.problems == ()


def test_every_dialect_can_be_named(home: Home) -> None:
    for mode in ("chat_completions", "responses", "anthropic_messages"):
        home.write(yaml=f"providers: {{relay: {{base_url: 'http://r', default_model: m, api_mode: {mode}}}}}")
        assert home.config.model.api_mode == mode
    home.write(yaml="model: {api_mode: responses}", env="OPENAI_API_KEY=sk-0123456789")
    assert home.config.model.api_mode == "responses"
