"""What a chat chose for itself: its model, and how hard that thinks. Empty is the configured one."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class Choices:
    """``model`` is written ``provider/model``; ``reasoning`` is ``low``, ``medium``, ``high`` or ``off``."""

    model: str = ""
    reasoning: str = ""


NO_CHOICES = Choices()


def of_lane(tx: Tx, lane: str) -> Choices:
    return tx.one("SELECT model, reasoning FROM lanes WHERE key = :lane", Choices, lane=lane) or NO_CHOICES


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
