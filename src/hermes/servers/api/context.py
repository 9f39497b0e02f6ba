"""What every family of routes is handed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Protocol

from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.roles import Action, PersonRole, may
from hermes.hosting.tool_processes import ToolProcesses
from hermes.servers.api.errors import bad_request
from hermes.services.gateway import Gateway
from hermes.services.requests.requests import PLATFORM
from hermes.store.api.api_keys import DEFAULT_NAME, sender_id_of
from hermes.store.ids import new_id

DEFAULT_SENDER = sender_id_of(DEFAULT_NAME)
SESSION_ID_HEADER = "X-Hermes-Session-Id"
SESSION_KEY_HEADER = "X-Hermes-Session-Key"
LONGEST_NAME = 256


@dataclass(frozen=True, slots=True)
class Caller:
    """The API key of a request, with its role and id; the middleware sets it.

    A key's data belongs to its id. The name is for people, and may be used again for another key. ``tools`` are those
    of the gateway that a request uses if it does not say so itself.
    """

    name: str
    role: PersonRole
    id: str = ""
    tools: str = ""

    @property
    def sender_id(self) -> str:
        return sender_id_of(self.id or self.name)

    @property
    def label(self) -> str:
        """Name the key as people read it."""
        return f"key:{self.name}"

    @property
    def stands_in_file(self) -> bool:
        """Tell whether the agent's commands may have read this key: the default key is in a file."""
        return self.name == DEFAULT_NAME

    @property
    def sees_all(self) -> bool:
        return may(self.role, Action.READ_ALL)

    @property
    def person(self) -> str:
        """Return the person part of its session keys: two keys never share a session by its name.

        Sessions of the default key have none, as in releases with one key.
        """
        return "" if self.sender_id == DEFAULT_SENDER else self.sender_id


CALLER = web.RequestKey("caller", Caller)
REQUEST_ID = web.RequestKey("request_id", str)
"""What `x-request-id` of the answer says: the event's id where there is one, so that `hermes trace` finds it."""


class StillValid(Protocol):
    """Tells whether the key or the cookie of a request would be accepted now as it was."""

    async def __call__(self) -> bool: ...


STILL = web.RequestKey("still", StillValid)
"""For streams that stay open: a key may be revoked meanwhile."""
WARNINGS = web.RequestKey("warnings", list[str])
"""What was left out of a request, for the header `X-Hermes-Warning` of its answer."""


@dataclass(frozen=True, slots=True)
class ApiParts:
    """``process`` tells what the process knows of itself (pid, start, heartbeat); nothing in a test.

    ``tools`` knows the processes that were started for tools.
    """

    gateway: Gateway
    process: Callable[[], Mapping[str, Any]] = dict
    tools: ToolProcesses = field(default_factory=ToolProcesses)


@dataclass(frozen=True, slots=True)
class SessionNames:
    """``is_named``: the client named the session, so it goes on. ``memory_key`` names a memory, never a lane."""

    session_id: str
    is_named: bool
    memory_key: str = ""
    person: str = ""

    @property
    def key(self) -> SessionKey:
        return SessionKey(PLATFORM, ChatKind.DM, self.session_id, person=self.person)

    def headers(self) -> dict[str, str]:
        """Echoed with every answer."""
        echoed = {SESSION_ID_HEADER: self.session_id}
        return {**echoed, SESSION_KEY_HEADER: self.memory_key} if self.memory_key else echoed


def session_names(request: web.Request, *, session_id: str = "") -> SessionNames:
    """From the headers; ``session_id`` is what the body or a chain of responses says, used when there is none."""
    named = _clean(request, SESSION_ID_HEADER) or session_id
    memory_key = _clean(request, SESSION_KEY_HEADER)
    return SessionNames(named or new_id("s"), bool(named), memory_key, request[CALLER].person)


def _clean(request: web.Request, header: str) -> str:
    given = request.headers.get(header)
    if not given:
        return ""
    value = "".join(letter for letter in given if letter.isprintable()).strip()
    if len(value) > LONGEST_NAME:
        raise bad_request(f"{header} is longer than {LONGEST_NAME} characters.", code="header_too_long", param=header)
    return value
