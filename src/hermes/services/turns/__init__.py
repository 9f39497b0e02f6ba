"""Run one turn, from prompt to reply: the state machine around the agent.

``core.turn.next_action`` decides the next step from stored rows, and each step is one transaction. A turn that was left
by a crash or on purpose is resumed where it was.

Start reading at ``runner``: it goes from step to step, and each kind of step has its file.

    lanes         which session runs next, one turn at a time
    turn          the running turn, and the services that all steps share
    preparation   a scheduled run's script and skills, or its plain message
    attachments   files that came with the message, before the first step
    model_calls   the model call
    tool_calls    the tool call and its result
    approvals     the question to a person before a tool call
    replies       the answer, its files, its voice message
    endings       the one place where a turn ends
    stop          how a running turn is stopped
    compression   shortening long conversations
"""

from __future__ import annotations

from hermes.services.turns.runner import TurnRunner
from hermes.services.turns.stop import StopReason, TurnControl
from hermes.services.turns.turn import TurnServices

__all__ = ["StopReason", "TurnControl", "TurnRunner", "TurnServices"]
