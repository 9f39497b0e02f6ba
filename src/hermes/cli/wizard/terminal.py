"""Ask where the owner's commands run: as the owner, or in a sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.support.home import load_config
from hermes.cli.support.prompts import Choice
from hermes.cli.wizard.platform import write

if TYPE_CHECKING:
    from hermes.cli.support.prompts import Questions

KEY = ("terminal", "backend")
NAMES = ("local", "guarded")
CHOICES = (
    Choice("local", "as you", "with your account's rights; dangerous commands ask first"),
    Choice("guarded", "in a sandbox", "can write only to its workspace, sees no keys"),
)


def set_up(home: Path, name: str, ask: Questions | None) -> bool:
    """Write the choice, and tell whether there was one.

    The question is asked once, and only if a sandbox works on this machine.
    """
    loaded = load_config(home)
    if not name:
        if ask is None or KEY in loaded.sources or _why_no_sandbox():
            return False
        ask.say(f"\n── Commands {'─' * 52}")
        name = ask.one("Where do the agent's commands run on this machine?", CHOICES, "local")
        if name == "guarded":
            ask.say("  A command that needs more than the sandbox allows asks each time.")
    write(home, loaded, {".".join(KEY): name})
    return True


def _why_no_sandbox() -> str:
    from hermes.agent.backends import bubblewrap, landlock

    return bubblewrap.why_not() and landlock.why_not()
