"""Configuration: typed, layered, watched and explained."""

from __future__ import annotations

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
    ToolProgress,
)

__all__ = [
    "EMBEDDED",
    "KNOWN",
    "AccountConfig",
    "AgentConfig",
    "ApiConfig",
    "BusyMode",
    "Config",
    "DeliveryConfig",
    "EnvFiles",
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
    "ToolProgress",
    "load",
    "resolve_key",
    "watched_files",
]
