"""Process groups of tools, for whoever records and ends them outside the agent."""

from __future__ import annotations

from hermes.agent.backends.process_groups import birth_of as birth_of
from hermes.agent.backends.process_groups import kill_group as kill_group
