"""Define every error of the gateway, and who handles each.

GatewayError
├── ConfigError             the operator edits the configuration
├── ForeignHomeError        the home or a file in it is not ours; nothing was touched, the operator chooses
├── HomeInUseError          another process owns the home; a command asks that process, or waits for its end
├── StoreIsDownError        nothing was stored; whoever called tries again with backoff
│   ├── OutcomeOfCommitUnknownError   maybe stored; the same write, keyed by its caller, is repeated
│   └── NodeIsGoneError               other nodes have taken over; this worker ends, and the next one goes on
├── PlatformError
│   ├── UnreachableError      nothing was sent; tried again with backoff
│   ├── OutcomeUnknownError   sent, but no answer came; repeated up to 3 times, by idempotency key or with the mark ↻
│   ├── ConflictError         another process uses this account; tried again slowly, the operator is told
│   ├── RateLimitedError      tried again after retry_after seconds
│   ├── WindowClosedError     parked; sent with the chat's next inbound message
│   ├── CredentialsError      the adapter stops; the operator signs in again, or does what its cure says
│   └── RejectedError         never tried again; the reason is shown
├── ModelError              told in the chat; the fallback chain is tried first (see ModelErrorKind)
└── ToolError               the model reads the text and chooses another way
"""

from __future__ import annotations

import math
from enum import StrEnum

UNKNOWN_RETRY_SECONDS = 30.0
MAX_RETRY_SECONDS = 86_400.0


class GatewayError(Exception):
    """Anything the gateway itself says went wrong; its text is a sentence for a person."""


class ConfigError(GatewayError):
    """The configuration cannot be used as it is; the text names the key and what to type."""


class ForeignHomeError(GatewayError):
    """A home or a database that another program made. It is left exactly as it was."""


class HomeInUseError(GatewayError):
    """Another process has taken the home, perhaps just now. Nothing was opened."""


class StoreIsDownError(GatewayError):
    """Nothing was stored. Trying again later is safe."""


class OutcomeOfCommitUnknownError(StoreIsDownError):
    """The connection ended during COMMIT. Writes are keyed by their caller, so repeating is safe."""


class NodeIsGoneError(StoreIsDownError):
    """This node's lease has ended: other nodes do its work now. Nothing was stored, and nothing may be sent."""


class PlatformError(GatewayError):
    """A platform did not do what it was asked."""


class UnreachableError(PlatformError):
    """Nothing reached the platform."""


class OutcomeUnknownError(PlatformError):
    """The request left, and no usable answer came back."""


class ConflictError(PlatformError):
    """Another process uses the same account. ``cure``: what to do, where it is more than to end that one."""

    def __init__(self, reason: str, *, cure: str = "") -> None:
        super().__init__(reason)
        self.cure = cure


class RateLimitedError(PlatformError):
    """``in_all``: the whole account is to wait. Otherwise it is this chat, as far as the platform says.

    ``retry_after`` comes from outside: what is no number of seconds (NaN, endless, negative) becomes a bounded wait,
    since a timer set to NaN never rings, and from Python 3.13 on cannot be set.
    """

    def __init__(self, reason: str, retry_after: float, *, in_all: bool = False) -> None:
        super().__init__(reason)
        seconds = UNKNOWN_RETRY_SECONDS if math.isnan(retry_after) else retry_after
        self.retry_after = min(max(0.0, seconds), MAX_RETRY_SECONDS)
        self.in_all = in_all


class WindowClosedError(PlatformError):
    """The platform takes this only after the person's next message."""


class CredentialsError(PlatformError):
    """The platform rejects our login; with ``cure``, the login is right and something else has to change."""

    def __init__(self, reason: str, *, cure: str = "") -> None:
        super().__init__(reason)
        self.cure = cure


class RejectedError(PlatformError):
    """The platform read the request and said no."""


class ModelErrorKind(StrEnum):
    AUTH = "auth"  # the key is wrong: the owner mends it
    QUOTA = "quota"  # the account is out of credit: no tight retry
    RATE = "rate"  # too many requests: retry_after, then the fallback
    CONTEXT = "context"  # the prompt is too long for this model
    MODEL = "model"  # there is no such model
    REQUEST = "request"  # the provider refuses this request for another reason
    TRANSIENT = "transient"  # network, 5xx, broken stream: tried again
    EMPTY = "empty"  # the provider answered with nothing


class ModelError(GatewayError):
    """A model failed. ``partial``: text streamed before. ``is_settled``: a repeat would fail and cost the same.

    ``status`` is that of the provider's answer, 0 where none came.
    """

    def __init__(
        self,
        kind: ModelErrorKind,
        reason: str,
        *,
        provider: str = "",
        retry_after: float | None = None,
        partial: str = "",
        is_settled: bool = False,
        status: int = 0,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.kind = kind
        self.provider = provider
        self.retry_after = retry_after
        self.partial = partial
        self.is_settled = is_settled


class ToolError(GatewayError):
    """The model reads this text as the tool's result."""
