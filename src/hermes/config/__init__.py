"""Hold the configuration: declared once, read from layers, watched and explained."""

from __future__ import annotations

from hermes.config.agent_settings import ModelConfig as ModelConfig
from hermes.config.agent_settings import ProviderConfig as ProviderConfig
from hermes.config.agent_settings import SkillsConfig as SkillsConfig
from hermes.config.agent_settings import SttConfig as SttConfig
from hermes.config.agent_settings import ToolProgressMode as ToolProgressMode
from hermes.config.agent_settings import TtsConfig as TtsConfig
from hermes.config.agent_settings import WebConfig as WebConfig
from hermes.config.explain import Explanation as Explanation
from hermes.config.explain import explain as explain
from hermes.config.explain import find_key as find_key
from hermes.config.explain import format_value as format_value
from hermes.config.explain import keys_under as keys_under
from hermes.config.explain import known_keys as known_keys
from hermes.config.explain import secret_variables as secret_variables
from hermes.config.layers import Loaded as Loaded
from hermes.config.layers import load as load
from hermes.config.layers import watched_files as watched_files
from hermes.config.providers import EMBEDDED as EMBEDDED
from hermes.config.providers import KNOWN as KNOWN
from hermes.config.providers import EnvFiles as EnvFiles
from hermes.config.providers import resolve_key as resolve_key
from hermes.config.schema import AccountConfig as AccountConfig
from hermes.config.schema import ApiConfig as ApiConfig
from hermes.config.schema import BusyMode as BusyMode
from hermes.config.schema import Config as Config
from hermes.config.schema import Problem as Problem
from hermes.config.schema import ProxyConfig as ProxyConfig
from hermes.config.secrets import secrets_of as secrets_of
from hermes.config.watch import ConfigWatch as ConfigWatch
