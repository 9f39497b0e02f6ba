"""Decide what of an answer is still to be shown: shared by the chat in a terminal and the plain one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.cli.support.program_name import command_name
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts
from hermes.core.i18n.failures import sentence


@dataclass(frozen=True, slots=True)
class Unseen:
    """The parts of a delivered answer that were not streamed: in front of the streamed text, or after it.

    ``whole`` is the answer where the streamed text is no part of it.
    """

    before: str = ""
    after: str = ""
    whole: str = ""


def unseen_of(text: str, streamed: str) -> Unseen:
    streamed = streamed.strip()
    if streamed and text.startswith(streamed):
        return Unseen(after=text.removeprefix(streamed))
    if streamed and text.strip().endswith(streamed):
        return Unseen(before=text.strip().removesuffix(streamed).strip())
    return Unseen(whole=text)


def closing_line(result: Mapping[str, Any], words: Texts, *, was_told: bool) -> str:
    """What remains to be said of a message that has ended; '' where the person was told all."""
    state = result["state"]
    if state == "lost":
        return f"✗ {sentence(result['reason'])} {words.CHAT_LOOK.format(command=f'{command_name()} logs')}"
    if was_told:
        return ""
    if state == "queued":
        codes = ", ".join(f"/approve {asked['code']}" for asked in result["approvals"])
        return f"  ({words.CHAT_QUEUED.format(codes=codes)})"
    if state in {"interrupted", "stopped"}:
        return f"  ({result['reason'] or state})"
    return ""
