"""Define the interfaces of the outside world: adapters, models, the clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol, runtime_checkable

from hermes.core.dataclasses import dataclass
from hermes.core.keys import Target
from hermes.core.messages import (
    Attachment,
    Capabilities,
    ChatMessage,
    Cursor,
    InboundEvent,
    Json,
    OutboundMessage,
    OutputFormat,
    Receipt,
    Sampling,
    ToolCall,
    ToolSpec,
    Usage,
)

Alive = Callable[[], None]
"""Called by an adapter for every good frame: an update, an empty poll, a pong."""


class Emit(Protocol):
    async def __call__(self, events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        """Store a batch and the adapter's place in one transaction; a mark that is empty is forgotten.

        Raises only StoreIsDownError, and not even that for a platform that does not redeliver.
        When it returns, the platform may be told that the batch was taken.
        """


class Adapter(Protocol):
    """Speaks for one account. Built anew for each start; opens nothing in its constructor."""

    capabilities: Capabilities

    @property
    def identity(self) -> str:
        """Return the platform's own id of this account; known before the first emit. Scopes dedupe keys."""

    async def run(self, emit: Emit) -> None:
        """Receive until cancelled or broken (then it raises a PlatformError or StoreIsDownError)."""

    async def send(self, message: OutboundMessage) -> Receipt:
        """Deliver one message (``message.replaces`` set: edit that one), or raise a PlatformError."""


@runtime_checkable
class ShowsTyping(Protocol):
    async def typing(self, target: Target) -> None: ...


@runtime_checkable
class EndsTyping(Protocol):
    """For a platform on which typing goes on until it is told otherwise; elsewhere it ends by itself."""

    async def typing_ended(self, target: Target) -> None: ...


@runtime_checkable
class AnswersPresses(Protocol):
    async def answer_press(self, press_id: str, text: str) -> bool:
        """Tell whether whoever pressed is shown the whole text: False from a platform that shows none, or too late."""


@runtime_checkable
class FetchesFiles(Protocol):
    async def fetch(self, attachment: Attachment, into: Path) -> Path:
        """Download an inbound attachment into the folder and say where it is."""


@runtime_checkable
class Describes(Protocol):
    async def describe(self) -> str:
        """Ask the platform who we are, e.g. ``@ana_home_bot``: the probe of `gateway test`."""


@runtime_checkable
class FindsChats(Protocol):
    async def find_chats(self, name: str) -> Sequence[str]:
        """Return the ids of the chats that we are in and that have this name, written without its #, in any case."""


@dataclass(frozen=True, slots=True)
class CommandHint:
    """A command as a platform's own menu shows it."""

    name: str
    summary: str


@runtime_checkable
class SetsCommands(Protocol):
    async def set_commands(self, commands: Sequence[CommandHint], *, chat: str = "") -> None:
        """Replace the command menu (with ``chat``, of one direct chat); bad names are skipped, long texts cut."""


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; goes on during suspend where the system can."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. ``max_tokens`` 0 leaves the provider's default; ``deadline_seconds`` bounds the whole call.

    ``reasoning`` is ``low``, ``medium``, ``high`` or ``off``; empty leaves it to the model.
    ``language`` is that of whoever asked, for what a model of our own adds to its answer.
    ``format`` is the form of the answer; a model that cannot be held to one raises a ModelError.
    ``sampling``: a dialect sends those fields that its API has.
    """

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    model: str = ""
    max_tokens: int = 0
    temperature: float | None = None
    tool_choice: str = ""
    deadline_seconds: float = 600.0
    stream: bool = True
    reasoning: str = ""
    language: str = ""
    format: OutputFormat | None = None
    sampling: Sampling | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """Something a person should know about how the answer came to be (a fallback was used)."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The whole answer; always the last item of a stream. ``thought`` belongs to the message that it becomes."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    model: str = ""
    provider: str = ""
    thought: str = field(default="", repr=False)
    logprobs: tuple[Json, ...] = ()


ModelEvent = TextDelta | ReasoningDelta | ModelNotice | ModelReply


class Model(Protocol):
    """A provider and one of its models, with retries and fallback already inside."""

    @property
    def label(self) -> str:
        """For status and banners: ``openrouter / gpt-4o-mini``."""

    @property
    def has_tools(self) -> bool:
        """Tell whether tools may be offered to it."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield deltas, then one ModelReply. Raises ModelError. Closing the iterator ends the call."""
