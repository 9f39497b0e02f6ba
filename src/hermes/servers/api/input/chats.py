"""Write in the chat of a platform through the API: who may, as whom, and how the chat shows it.

The message enters the lane of the chat, so that the lane orders it among the messages of the phone. The turn belongs
to the person of the chat and runs with the lower of two roles: that person's and the caller's. Nobody gains rights.
The chat is shown the message with its origin, and then the answer.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from aiohttp import web

from hermes.agent.prompt import speaker, under, without_head
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.core.keys import LOCAL, ChatKind, SessionKey
from hermes.core.lane import DOORS
from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Role
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions
from hermes.core.roles import PersonRole, capped
from hermes.servers.api.context import CALLER, Caller
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.manage.demand import KEY_IN_A_FILE
from hermes.servers.dashboard.sign_in import SIGN_IN
from hermes.services.gateway import Gateway
from hermes.services.requests.requests import PLATFORM
from hermes.store import people
from hermes.store.db import Tx
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.reports.trace import REPLY_TO_COMMAND
from hermes.store.sessions import sessions
from hermes.store.sessions.sessions import Session


@dataclass(frozen=True, slots=True)
class ChatWriter:
    """Who writes in a chat, and as whom.

    ``account_id`` is the account of the turn's person on the platform; '' where callers write as themselves, which an
    owner does in a chat that several people share. ``role`` limits the turn. ``where`` names the writer in the chat.
    """

    key: SessionKey
    session_id: str
    caller: Caller
    person_id: str
    account_id: str
    role: PersonRole
    words: Texts
    where: str

    @property
    def is_among_others(self) -> bool:
        return not self.account_id and self.key.kind is not ChatKind.DM

    def request(self, message: ChatMessage, options: TurnOptions) -> AgentRequest:
        """Return the message as the lane of the chat takes it. Terminals follow a conversation by themselves."""
        if options.tools or options.format is not None:
            words = (
                "In the chat of a platform the agent has its own tools and answers in words: leave out tools and forms."
            )
            raise bad_request(words, code="invalid_value", param="tools")
        if self.is_among_others:
            message = replace(message, text=under(self._head(), message.text))
        if self.key.platform == LOCAL:
            options = replace(options, deliver=())
        return AgentRequest(RequestKind.RUN, self.key, self.caller.sender_id, (message,), options, self.person_id)

    def _head(self) -> str:
        """Name the writer to the model, as it reads everybody in a shared chat."""
        message = InboundMessage(
            (), self.key, self.caller.sender_id, "", datetime.fromtimestamp(0, UTC), sender_name=self.caller.name
        )
        return speaker(message, self.role.value)

    def mirror_rows(self, gateway: Gateway, text: str, event_id: str, *, pictures: int = 0) -> list[Outgoing]:
        """Return the rows that show the message in the chat. A terminal follows the conversation by itself."""
        if self.key.platform == LOCAL:
            return []
        written = gateway.requests.redact(without_head(text) if self.is_among_others else text).strip()
        written = "\n".join([*([written] if written else []), *([f"🖼 {pictures}"] if pictures else [])])
        text_there = self.words.WRITTEN_ELSEWHERE.format(where=self.where, text=written)
        return gateway.outbox_writer.rows(
            OutboundMessage(self.key.target, text_there), OutboxKind.REPLY, key=f"{REPLY_TO_COMMAND}{event_id}"
        )


async def writer_in(gateway: Gateway, request: web.Request, session: Session) -> ChatWriter:
    """Return who writes; raise ApiError for callers who may not, and where a message would reach another session."""
    caller, key = request[CALLER], SessionKey.parse(session.key)
    if key.platform in DOORS:
        words = (
            f"This session is no chat ({key.platform}): nobody reads answers there. "
            f"Fork it (POST /api/sessions/{session.id}/fork) and go on with the copy."
        )
        raise ApiError(409, words, code="session_not_of_chat", kind="conflict_error")
    if caller.stands_in_file:
        raise ApiError(403, KEY_IN_A_FILE, code="key_in_a_file", kind="permission_error")
    await gateway.requests.meet(caller.sender_id, caller.role)
    found = await gateway.db.read(_look, session, caller)
    if not found.may_write:
        words = "Only the person of this chat, or an owner, writes in it. Fork the session and go on with the copy."
        raise ApiError(403, words, code="not_your_chat", kind="permission_error")
    if found.current != session.id:
        words = "This chat goes on with another session: a message would not reach this one. Write there, or fork this."
        extras = {"session_id": found.current or None}
        raise ApiError(409, words, code="session_not_current", kind="conflict_error", extras=extras)
    words_here = words_of(pick(gateway.config.language, found.language))
    signed_in = request.get(SIGN_IN)
    place = words_here.FROM_DASHBOARD if signed_in is not None else "API"
    is_named = signed_in is None or bool(signed_in.key_hash)  # a link has no name, whatever a key is called
    return ChatWriter(
        key,
        session.id,
        caller,
        found.person_id,
        found.account_id,
        PersonRole(capped(found.role, caller.role.value)),
        words_here,
        f"{place} ({caller.name})" if is_named else place,
    )


def only_message(messages: tuple[ChatMessage, ...]) -> ChatMessage:
    """Return the one message that a chat takes at a time."""
    if len(messages) != 1 or messages[0].role is not Role.USER:
        words = "A chat of a platform takes one message of a person at a time."
        raise bad_request(words, code="invalid_value", param="input")
    return messages[0]


@dataclass(frozen=True, slots=True)
class _Found:
    may_write: bool
    current: str
    person_id: str
    account_id: str
    role: str
    language: str


def _look(tx: Tx, session: Session, caller: Caller) -> _Found:
    key, own = SessionKey.parse(session.key), people.find(tx, PLATFORM, caller.sender_id)
    alone = sessions.sole_person(tx, session.id)
    is_own = own is not None and own.id == alone
    has_one = bool(alone) and (is_own or key.kind is ChatKind.DM or bool(key.person))
    person = people.get(tx, alone) if has_one else own
    if person is None:
        return _Found(False, "", "", "", "", "")
    accounts = [each.user_id for each in people.accounts(tx, person.id) if each.platform == key.platform]
    return _Found(
        is_own or caller.role is PersonRole.OWNER,
        sessions.of_lane(tx, session.key),
        person.id,
        accounts[0] if accounts and has_one else "",
        person.role,
        person.language,
    )
