"""What a chat chose for itself: model, thinking, voice, tools shown, personality. Empty is the configured one."""

from __future__ import annotations

from hermes.core.values import dataclass
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class Choices:
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


NO_CHOICES = Choices()


def of_lane(tx: Tx, lane: str) -> Choices:
    columns = "model, reasoning, voice, tool_progress, personality"
    return tx.one(f"SELECT {columns} FROM lanes WHERE key = :lane", Choices, lane=lane) or NO_CHOICES  # noqa: S608


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


def choose_personality(tx: Tx, lane: str, name: str) -> None:
    """The same for who the agent is here."""
    tx.run(
        """
        INSERT INTO lanes (key, personality) VALUES (:lane, :name)
        ON CONFLICT (key) DO UPDATE SET personality = excluded.personality
        """,
        lane=lane,
        name=name,
    )
