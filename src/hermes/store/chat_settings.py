"""Store a chat's own choices: model, reasoning, voice, personality ..."""

from __future__ import annotations

from typing import Literal

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """``model`` is written ``provider/model``; ``reasoning`` is ``low``, ``medium``, ``high`` or ``off``.

    ``voice`` says when it is answered aloud: ``on``, ``off`` or ``only-when-asked``. ``tool_progress`` says what it is
    shown of tools at work: ``off``, ``new``, ``all`` or ``verbose``.
    ``personality`` is a name of ``personalities`` in the configuration.
    """

    model: str = ""
    reasoning: str = ""
    voice: str = ""
    tool_progress: str = ""
    personality: str = ""


NO_CHOICES = ChatSettings()


def of_lane(tx: Tx, lane: str) -> ChatSettings:
    columns = "model, reasoning, voice, tool_progress, personality"
    return tx.one(f"SELECT {columns} FROM lanes WHERE key = :lane", ChatSettings, lane=lane) or NO_CHOICES


def choose(
    tx: Tx, lane: str, column: Literal["model", "reasoning", "voice", "tool_progress", "personality"], value: str
) -> None:
    """Set one choice for every turn that begins from now on; '' goes back to the configured one."""
    tx.run(
        f"""
        INSERT INTO lanes (key, {column}) VALUES (:lane, :value)
        ON CONFLICT (key) DO UPDATE SET {column} = excluded.{column}
        """,
        lane=lane,
        value=value,
    )
