"""What a chat chose for itself: model, thinking, voice, what is shown of tools. Empty is the configured one."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class Choices:
    """``model`` is written ``provider/model``; ``reasoning`` is ``low``, ``medium``, ``high`` or ``off``.

    ``voice`` says when it is answered aloud: ``on``, ``off`` or ``only-when-asked``. ``tool_progress`` says what it is
    shown of tools at work: ``off``, ``new``, ``all`` or ``verbose``.
    """

    model: str = ""
    reasoning: str = ""
    voice: str = ""
    tool_progress: str = ""


NO_CHOICES = Choices()


def of_lane(tx: Tx, lane: str) -> Choices:
    found = tx.one("SELECT model, reasoning, voice, tool_progress FROM lanes WHERE key = :lane", Choices, lane=lane)
    return found or NO_CHOICES


def choose_model(tx: Tx, lane: str, model: str) -> None:
    """Keep it for every turn that begins from now on; '' goes back to the configured one."""
    tx.run(
        """
        INSERT INTO lanes (key, model) VALUES (:lane, :model)
        ON CONFLICT (key) DO UPDATE SET model = excluded.model
        """,
        lane=lane,
        model=model,
    )


def choose_reasoning(tx: Tx, lane: str, reasoning: str) -> None:
    """The same for how hard to think; '' leaves it to the model."""
    tx.run(
        """
        INSERT INTO lanes (key, reasoning) VALUES (:lane, :reasoning)
        ON CONFLICT (key) DO UPDATE SET reasoning = excluded.reasoning
        """,
        lane=lane,
        reasoning=reasoning,
    )


def choose_voice(tx: Tx, lane: str, voice: str) -> None:
    tx.run(
        """
        INSERT INTO lanes (key, voice) VALUES (:lane, :voice)
        ON CONFLICT (key) DO UPDATE SET voice = excluded.voice
        """,
        lane=lane,
        voice=voice,
    )


def choose_tool_progress(tx: Tx, lane: str, mode: str) -> None:
    """What is shown of tools at work; '' goes back to the configured one."""
    tx.run(
        """
        INSERT INTO lanes (key, tool_progress) VALUES (:lane, :mode)
        ON CONFLICT (key) DO UPDATE SET tool_progress = excluded.tool_progress
        """,
        lane=lane,
        mode=mode,
    )
