"""Configuration: typed, layered, watched and explained."""

from __future__ import annotations

from hermes.config.explain import Explanation, explain, find_key, format_value, keys_under, known_keys, secret_variables
from hermes.config.layers import Loaded, load, watched_files
from hermes.config.providers import EMBEDDED, KNOWN, EnvFiles, KnownProvider, resolve_key
from hermes.config.schema import (
    AccountConfig,
    AgentConfig,
    ApiConfig,
    BusyMode,
    Config,
    DeliveryConfig,
    LogsConfig,
    ModelConfig,
    Problem,
    ProviderConfig,
    ProxyConfig,
    ResetMode,
    ResetPolicy,
    SessionsConfig,
    SkillsConfig,
    SttConfig,
    ToolProgressMode,
    TtsConfig,
    VisionConfig,
    WebConfig,
)
from hermes.config.secrets import secrets_of
from hermes.config.watch import ConfigWatch

__all__ = [
    "EMBEDDED",
    "KNOWN",
    "AccountConfig",
    "AgentConfig",
    "ApiConfig",
    "BusyMode",
    "Config",
    "ConfigWatch",
    "DeliveryConfig",
    "EnvFiles",
    "Explanation",
    "KnownProvider",
    "Loaded",
    "LogsConfig",
    "ModelConfig",
    "Problem",
    "ProviderConfig",
    "ProxyConfig",
    "ResetMode",
    "ResetPolicy",
    "SessionsConfig",
    "SkillsConfig",
    "SttConfig",
    "ToolProgressMode",
    "TtsConfig",
    "VisionConfig",
    "WebConfig",
    "explain",
    "find_key",
    "format_value",
    "keys_under",
    "known_keys",
    "load",
    "resolve_key",
    "secret_variables",
    "secrets_of",
    "watched_files",
]
