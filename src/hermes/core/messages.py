"""Define inbound and outbound messages, the same for every platform."""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey, Target

REPEAT_MARK = "↻ "
"""Stands before a message that may have been shown already, where the platform cannot know it by its key."""


class AttachmentKind(StrEnum):
    IMAGE = "image"
    VOICE = "voice"
    AUDIO = "audio"
    VIDEO = "video"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came in (``file_id`` is the platform's handle) or is to go out (``path``).

    ``is_written_down``: the platform told what is said in it, which stands in the text of the message.
    """

    kind: AttachmentKind
    file_id: str = ""
    path: str = ""
    name: str = ""
    mime: str = ""
    size: int = 0
    is_written_down: bool = False


MAX_PICTURES = 4
MAX_PICTURE_BYTES = 5 << 20
"""What a terminal may send with one message."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a terminal sends; ``path`` is where it found the picture, '' for one that is no file there."""

    name: str
    data: bytes
    path: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """The message that was replied to, as far as the platform shows it."""

    text: str
    sender_name: str = ""
    message_id: str = ""
    from_us: bool = False


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One message a person wrote.

    ``keys`` name the message for dedupe, its identity first; any hit means it was seen before.
    ``is_addressed`` is True in a direct chat, and in a group when the bot is mentioned or replied to.
    ``may_continue`` says that more is likely to follow at once (text at the platform's limit, a burst
    of forwards, an album), so intake waits a short pause and joins. ``folder`` is where its sender is on this machine,
    for whoever writes from a command line of it. ``language`` is what the platform says of the writer's (``zh-hans``).
    ``overheard`` is what others said in the group before, not to us; intake puts it there where the owner wants it.
    """

    keys: tuple[str, ...]
    session_key: SessionKey
    sender_id: str
    text: str
    sent_at: datetime
    sender_name: str = ""
    message_id: str = ""
    attachments: tuple[Attachment, ...] = ()
    quote: Quote | None = None
    is_addressed: bool = True
    may_continue: bool = False
    is_edit: bool = False
    folder: str = ""
    language: str = ""
    group_context: tuple[Quote, ...] = ()


@dataclass(frozen=True, slots=True)
class Press:
    """A button that a person pressed. ``press_id`` is what the platform wants answered."""

    keys: tuple[str, ...]
    session_key: SessionKey
    sender_id: str
    data: str
    sent_at: datetime
    press_id: str = ""
    message_id: str = ""
    sender_name: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A well-formed event that is not for us (a member joined, a sticker set changed)."""

    kind: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event we could not parse; kept raw and set aside, so that nothing is silently dropped."""

    raw: str
    reason: str
    keys: tuple[str, ...] = ()


InboundEvent = InboundMessage | Press | Ignored | Unreadable


@dataclass(frozen=True, slots=True)
class Button:
    """``data`` comes back in a Press; at most 64 bytes, the narrowest platform's limit."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class OutboundMessage:
    """One platform call: text in neutral Markdown, or one attachment with its caption.

    ``album`` are further pictures and films that are shown together with the attachment.

    ``replaces`` is the platform's id of an earlier message of ours to edit instead of sending anew.
    ``is_repeat``: an earlier attempt may already have arrived. It is shown with the mark ↻, unless the platform is sure
    to show one message for one ``idempotency_key`` however late it is repeated.
    """

    target: Target
    text: str
    reply_to: str = ""
    replaces: str = ""
    buttons: tuple[tuple[Button, ...], ...] = ()
    attachment: Attachment | None = None
    idempotency_key: str = ""
    is_repeat: bool = False
    album: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The platform took it. ``note`` says what it did differently (sent without formatting)."""

    message_id: str = ""
    note: str = ""


class TextUnit(StrEnum):
    CHARACTERS = "characters"
    UTF16 = "utf16"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in so many seconds, and no more."""

    calls: int
    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Rates:
    """How often a platform lets itself be called: in all, in one chat, in one group. None: as often as we like.

    ``in_chat`` and ``in_group`` count what is shown there. Ids of groups begin with one of ``group_marks``.
    """

    in_all: Rate | None = None
    in_chat: Rate | None = None
    in_group: Rate | None = None
    group_marks: tuple[str, ...] = ()

    def of_chat(self, chat: str) -> tuple[Rate, ...]:
        """Return the rates of one chat, besides those of the account."""
        is_group = bool(self.group_marks) and chat.startswith(self.group_marks)
        return tuple(rate for rate in (self.in_chat, self.in_group if is_group else None) if rate is not None)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform can do, as data: no service ever asks for a platform by name."""

    text_limit: int
    text_unit: TextUnit = TextUnit.CHARACTERS
    caption_limit: int = 0
    edits: bool = False
    typing: bool = False
    buttons: bool = False
    media: bool = False
    # True: speech in OGG/Opus is shown as a voice message.
    voice: bool = False
    # How many pictures and films one message can show together; below 2: each is a message of its own.
    album_limit: int = 0
    threads: bool = False
    catch_up: bool = False
    webhook: bool = False
    # The platform has a menu of its own for commands; its adapter is a ``SetsCommands``.
    command_menu: bool = False
    # … and can show another one in a single direct chat.
    chat_menus: bool = False
    # True: an event that was not acknowledged is offered again. False: it is handed out once.
    redelivers: bool = True
    # True: sending twice with one idempotency_key shows one message.
    idempotent_sends: bool = False
    # Pause between two calls to one chat that only refresh what is shown (edits of a preview).
    edit_pause_seconds: float = 1.0
    # Where nothing can be edited: how many messages one turn may send about its tools at work. 0 where each one costs
    # money or rings a bell.
    progress_notices: int = 3
    # How often it may be called. None: as often as we like.
    rates: Rates | None = None
    # How many messages may follow one of a person's. What is more waits in the outbox for their next one, and texts
    # that wait are joined. 0: as many as we like.
    sends_per_inbound: int = 0
    # What a message may have beyond text_limit, kept for a word of ours about what waits.
    note_room: int = 0
    # True: the platform ends every connection now and then, which is no trouble.
    ends_connections: bool = False
    # With no good frame for this long, the connection counts as dead and is made anew.
    silence_seconds: float = 25.0
    upload_limit_bytes: int = 50_000_000
    download_limit_bytes: int = 20_000_000


Cursor = Mapping[str, str]
Json = dict[str, Any]


def read(parse: Callable[..., InboundEvent], raw: Json, *args: Any, dump: Callable[[Json], str] = repr) -> InboundEvent:
    """Parse one platform event; whatever goes wrong in it, the event is kept raw instead of lost."""
    try:
        return parse(raw, *args)
    except Exception as error:  # noqa: BLE001 - the edge "intake of one event": the raw event is kept
        return unreadable(dump_event(raw, dump), f"{type(error).__name__}: {error}")


def unreadable(raw: str, reason: str, *, same: str = "") -> Unreadable:
    """Return an event to be stored raw, keyed by its own text, or by ``same``, the part that does not change."""
    name = hashlib.sha256((same or raw).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Unreadable(raw, reason, (f"raw:{name}",))


def dump_event(raw: Any, dump: Callable[[Any], str]) -> str:
    """Return an event as text, whatever it is made of."""
    try:
        return dump(raw)
    except (RecursionError, TypeError):  # nested deeper than anybody follows, or no JSON: its upper levels have to do
        short = reprlib.Repr()
        short.maxlevel, short.maxdict, short.maxlist, short.maxstring = 20, 100, 100, 10_000
        return short.repr(raw)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for. ``arguments`` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for the model: an http(s) or data: address."""

    url: str
    detail: str = "auto"


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One line of a transcript, and one message of a model request.

    ``thought`` is what a model wants to get back of its own thinking, signed or sealed by its provider. Only the
    dialect that wrote it reads it.
    """

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    images: tuple[Image, ...] = ()
    name: str = ""
    thought: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call. ``reasoning_tokens`` are those of ``completion_tokens`` that the model spent on thinking.

    ``cost`` is in US dollars as the provider reports it; 0 where it does not.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told about a tool; ``parameters`` is a JSON schema.

    ``strict``: the provider holds the arguments to the schema; None leaves it to the provider.
    """

    name: str
    description: str
    parameters: Json = field(default_factory=dict)
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a client of the API wants its answer sampled. None and () leave it to the model."""

    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    parallel_tool_calls: bool | None = None
    logprobs: bool = False
    top_logprobs: int = 0


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """The form an answer is asked for in: JSON as ``schema`` says, or any JSON object where that is None.

    ``name`` and ``description`` tell the model what it writes. ``strict`` None leaves it to the provider.
    """

    schema: Json | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None
