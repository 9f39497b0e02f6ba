"""Define requests that do not come from a chat, and their typed result."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, OutputFormat, ToolCall, ToolSpec, Usage


class RequestKind(StrEnum):
    """Which door it came through: that decides what a restart does with it."""

    CHAT = "chat"  # somebody waits on the connection; after a restart nobody does
    RESPONSE = "response"  # synchronous too, but stored: it goes on after a restart
    RUN = "run"  # asked for and looked up later


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """How one turn differs from the agent's ordinary ones.

    ``instructions`` stands beside the persona. ``tools`` are the client's own: their calls end the turn and are
    handed back. A tool of the client with the name of ours replaces ours. ``origin`` is the lane of the chat on whose
    behalf a turn without a chat works: its questions are put there. ``depth`` counts errands within errands. ``folder``
    is where the owner asks from on this machine: their tools work there. ``reports``: the answer is told in the chat of
    ``origin``, below a line that names the task. ``format`` is the form of the answer: nothing but that answer is told,
    whatever the model said on its way there.
    """

    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = ""
    model: str = ""
    temperature: float | None = None
    max_tokens: int = 0
    origin: str = ""
    depth: int = 0
    folder: str = ""
    reports: bool = False
    format: OutputFormat | None = None


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One request, stored in the inbox as it is. ``messages`` are what this session has not seen yet.

    ``person_id`` names whose turn it is where the gateway itself asks; otherwise the sender's account tells.
    """

    kind: RequestKind
    session_key: SessionKey
    sender_id: str
    messages: tuple[ChatMessage, ...]
    options: TurnOptions = field(default_factory=TurnOptions)
    person_id: str = ""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended, for whoever asked for it.

    ``state`` is one of the store's turn states. ``text`` is the final reply, or what there was of it;
    ``finish_reason`` is 'stop', 'length' (the model was cut off), 'tool_calls' (``tool_calls`` are the client's to
    run) or 'error'. ``steps`` counts the times that the gateway ran tools of its own.
    """

    turn_id: str
    state: str
    text: str = ""
    reason: str = ""
    finish_reason: str = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    error_kind: str = ""
    steps: int = 0

    @property
    def is_completed(self) -> bool:
        return self.state == "done"

    @property
    def is_partial(self) -> bool:
        """Some of the answer is there and some is not."""
        return self.finish_reason == "length" or (not self.is_completed and bool(self.text))
