"""Skills: written know-how in folders, found, shown to the model on demand, shipped, installed and checked."""

from __future__ import annotations

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import Skill, SkillError, Variable

__all__ = ["Skill", "SkillError", "SkillLibrary", "Variable"]
