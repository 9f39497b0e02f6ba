"""One turn, from prompt to reply: the state machine around the agent.

What happens next is decided by ``core.turn.next_action`` from stored rows; each step is one transaction. So a turn can
be left at any point, by a crash or on purpose, and taken up where it was.

``runner`` is where to begin reading: it goes from step to step, and each kind of step has its file.

    control     how a running turn is asked to end
    work        the turn in hand, and what all of these share
    files       before the first step: what came along, and what never arrived
    asking      the model is asked
    calls       a tool runs, and its result is written
    questions   a person is asked first: put, slept on, answered or not
    replies     what goes out: the answer, its files, its voice, and the preview it takes the place of
    endings     however it ends, it ends once, and whoever waits for it hears of it
"""

from __future__ import annotations

from hermes.services.turns.runner import TurnRunner
from hermes.services.turns.stop import StopReason, TurnControl
from hermes.services.turns.turn import TurnServices

__all__ = ["StopReason", "TurnControl", "TurnRunner", "TurnServices"]
