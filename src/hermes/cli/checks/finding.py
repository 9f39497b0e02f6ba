"""Hold what one check of ``hermes doctor`` found: a sentence, a reason, a command."""

from __future__ import annotations

from typing import Any, Literal

from hermes.core.dataclasses import dataclass

Level = Literal["good", "hint", "trouble"]

ARROW = " → "
"""In a text: what follows is the command to type, or what to do."""

REASONS = {
    "home": "Everything is stored in the home: nothing works without it.",
    "leftovers": "They take space, and look like files that are in use.",
    "config": "A setting that is not understood has no effect.",
    "platforms": "A platform that cannot be loaded receives and sends nothing.",
    "api": "Programs and the dashboard reach the gateway by this port.",
    "ports": "Everybody who can reach the port can try keys on it.",
    "stores": "Messages, conversations and people are kept there.",
    "model": "Without a model nobody gets an answer.",
    "network": "Without a connection no message arrives and no answer is sent.",
    "clock": "Jobs, pairing codes, signatures and certificates depend on the clock.",
    "people": "Hermes answers only people with access.",
    "unanswered": "Somebody waits for an answer.",
    "jobs": "A job that fails or has no target does nothing for anybody.",
    "growth": "A full disk stops the gateway.",
    "locks": "Only one process can work in a home.",
    "versions": "Old libraries have faults that newer ones do not have.",
    "approvals": "A model that was misled could run any command.",
    "cluster": "The nodes share the work.",
    "service": "Only a running gateway answers.",
}
"""Why a check matters, where the finding itself does not say more."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the screen; ``more`` are lines below it, ``fix`` is the repair of ``doctor --fix`` that cures it."""

    name: str
    level: Level
    text: str
    more: tuple[str, ...] = ()
    reason: str = ""
    fix: str = ""

    @property
    def why(self) -> str:
        """The reason why it matters; '' where all is well."""
        return "" if self.level == "good" else self.reason or REASONS.get(self.name, "")

    @property
    def command(self) -> str:
        """What to type or to do; '' where nothing needs to be done."""
        commands = [line.partition(ARROW)[2] for line in (self.text, *self.more) if ARROW in line]
        return commands[0] if commands and self.level != "good" else ""

    def to_dict(self, number: int) -> dict[str, Any]:
        return {
            "number": number,
            "name": self.name,
            "level": self.level,
            "text": self.text,
            "more": list(self.more),
            "sentence": self.text.partition(ARROW)[0],
            "reason": self.why,
            "command": self.command,
            "can_fix": bool(self.fix),
        }
