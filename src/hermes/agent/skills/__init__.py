"""Manage skills: find, check, install and bundle them, and show them to the model."""

from __future__ import annotations

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import Skill, SkillError, Variable

__all__ = ["Skill", "SkillError", "SkillLibrary", "Variable"]
