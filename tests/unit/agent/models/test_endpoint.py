"""The name under which a provider knows a model."""

from __future__ import annotations

import pytest

from hermes.agent.models.endpoint import bare_model

CONFIGURED = {"openkey", "openrouter", "openai", "ollama"}


@pytest.mark.parametrize(
    "model, provider, bare",
    [
        ("gpt-4o-mini", "openkey", "gpt-4o-mini"),
        ("openkey/gpt-4o-mini", "openkey", "gpt-4o-mini"),
        ("openkey/gpt-4o-mini", "openrouter", "gpt-4o-mini"),
        ("openai/gpt-4o", "openai", "gpt-4o"),
        ("openai/gpt-4o", "openrouter", "openai/gpt-4o"),
        ("openrouter/openai/gpt-4o", "openrouter", "openai/gpt-4o"),
        ("openrouter/auto", "openrouter", "openrouter/auto"),
        ("ollama/hf.co/x/y:Q4", "ollama", "hf.co/x/y:Q4"),
        ("hf.co/x/y:Q4", "ollama", "hf.co/x/y:Q4"),
        ("openkey/", "openkey", "openkey/"),
        ("", "openkey", ""),
    ],
)
def test_prefix_that_only_our_configuration_knows_goes(model: str, provider: str, bare: str) -> None:
    assert bare_model(model, provider, CONFIGURED) == bare
