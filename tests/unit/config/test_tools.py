"""The settings of toolsets, compression and windows."""

from __future__ import annotations

from hermes.config.agent_settings import CompressionConfig, ToolChoice
from tests.unit.config.samples import Home


def test_unset_they_are_what_the_page_says(home: Home) -> None:
    config = home.config
    assert config.compression == CompressionConfig()
    assert (dict(config.tools), dict(config.toolsets), dict(config.context_windows)) == ({}, {}, {})
    assert config.context_window() == 64_000


def test_a_platform_has_its_choice_and_an_owner_toolsets(home: Home) -> None:
    home.write(yaml="tools: {telegram: {toolset: mine, disabled: [web]}}\ntoolsets: {mine: [files, web]}\n")
    assert home.config.tools["telegram"] == ToolChoice("mine", (), ("web",))
    assert home.config.toolsets["mine"] == ("files", "web")
    assert home.said == ""


def test_a_window_is_found_by_the_name_a_model_is_asked_for(home: Home) -> None:
    home.write(
        yaml="""
        model: {default: openai/gpt-4o-mini, context_window: 10000}
        model_routes: {fast: openai/tiny}
        context_windows: {gpt-4o-mini: 128000, tiny: 4000, openrouter/big: 1000000}
        """
    )
    config = home.set(OPENAI_API_KEY="sk-0123456789").config
    assert config.context_window() == 128_000
    assert config.context_window("fast") == 4000
    assert config.context_window("openrouter/big") == 1_000_000
    assert config.context_window("unheard-of") == 10_000


def test_a_share_outside_of_what_makes_sense_keeps_the_default(home: Home) -> None:
    home.write(yaml="compression: {at: 7}")
    assert home.config.compression.at == 0.7
    assert "compression.at" in home.said
