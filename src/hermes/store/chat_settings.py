"""What a chat chose for itself: model, thinking, voice, tools shown, personality. Empty is the configured one."""

from __future__ import annotations

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
    return tx.one(f"SELECT {columns} FROM lanes WHERE key = :lane", ChatSettings, lane=lane) or NO_CHOICES  # noqa: S608


def choose_model(tx: Tx, lane: str, model: str) -> None:
    """Keep it for every turn that begins from now on; '' goes back to the configured one."""
    _choose(tx, lane, "model", model)


def choose_reasoning(tx: Tx, lane: str, reasoning: str) -> None:
    """The same for how hard to think; '' leaves it to the model."""
    _choose(tx, lane, "reasoning", reasoning)


def choose_voice(tx: Tx, lane: str, voice: str) -> None:
    _choose(tx, lane, "voice", voice)


def choose_tool_progress(tx: Tx, lane: str, mode: str) -> None:
    """What is shown of tools at work; '' goes back to the configured one."""
    _choose(tx, lane, "tool_progress", mode)


def choose_personality(tx: Tx, lane: str, name: str) -> None:
    """The same for who the agent is here."""
    _choose(tx, lane, "personality", name)


def _choose(tx: Tx, lane: str, column: str, value: str) -> None:
    tx.run(
        f"""
        INSERT INTO lanes (key, {column}) VALUES (:lane, :value)
        ON CONFLICT (key) DO UPDATE SET {column} = excluded.{column}
        """,  # noqa: S608 - names of our own columns
        lane=lane,
        value=value,
    )
