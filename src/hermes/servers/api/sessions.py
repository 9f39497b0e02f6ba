"""`/api/sessions`: every conversation, wherever it is held: listed, read, renamed, deleted, forked, gone on with.

A session is named by its own id, or by the id that its client gave it in `X-Hermes-Session-Id`. The chat of a platform
is continued by its own person or by an owner, in the chat's own order (``input.chats``); everybody else forks it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import ChatKind, SessionKey, quote
from hermes.core.lane import DOORS
from hermes.core.messages import ChatMessage, Json, Role
from hermes.core.requests import AgentRequest, RequestKind
from hermes.core.roles import Action, PersonRole, may
from hermes.core.text import one_line, storable
from hermes.servers.api import parse, results
from hermes.servers.api.bodies import LONGEST_TITLE, SessionChangeBody, SessionChatRequestBody, SessionForkBody, decode
from hermes.servers.api.content import INPUT_LIMITS, InputLimits
from hermes.servers.api.context import CALLER, ApiParts, Caller, SessionNames
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.input.tools import own_tools
from hermes.servers.api.run_reader import Run, RunReader, feeds_of
from hermes.servers.api.shutdown import OpenRequests
from hermes.servers.api.streams.run_events import run_id_of
from hermes.servers.api.streams.sse import ClientGoneError, EventStream, event_stream
from hermes.servers.api.transcripts import check_answers, message_to_dict
from hermes.servers.app import RouteAdder, json_response
from hermes.services.gateway import Gateway
from hermes.services.requests.requests import PLATFORM, RequestHandle
from hermes.store import codec, inbox, people
from hermes.store.db import Tx
from hermes.store.ids import new_id
from hermes.store.sessions import sessions, transcripts
from hermes.store.sessions.sessions import Session, SessionFilter
from hermes.store.sessions.transcripts import TranscriptLine

if TYPE_CHECKING:
    from hermes.servers.api.input.chats import ChatWriter
    from hermes.store.sqlite.search_index import IndexHit

log = logging.getLogger(__name__)

PREVIEW = 80
LONGEST_SNIPPET = 300
MAX_WORDS = 20
SEARCH_SECONDS = 0.25
"""How long a search waits for its index; what was said since then is found by the next one."""
FIRST_LINES = 5
PAGE = 50
LARGEST_PAGE = 200
FROM_THE_NEWEST = (1e18, "")
BUSY = "A turn is open in this session, or waits for it."


def routes(parts: ApiParts, limits: InputLimits = INPUT_LIMITS) -> RouteAdder:
    def add(app: web.Application) -> None:
        family = SessionRoutes(parts, RunReader(parts.gateway, feeds_of(app, parts.gateway)), limits)
        session_path = "/api/sessions/{id}"
        app.router.add_get("/api/sessions", family.listed)
        app.router.add_get(session_path, family.read)
        app.router.add_patch(session_path, family.change)
        app.router.add_delete(session_path, family.delete)
        app.router.add_get(f"{session_path}/messages", family.messages)
        app.router.add_post(f"{session_path}/fork", family.fork)
        app.router.add_post(f"{session_path}/chat", family.chat)
        app.router.add_post(f"{session_path}/chat/stream", family.stream)
        app.on_shutdown.append(family.calls.end)

    return add


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session with what a list shows of it. ``label`` is the same for talks that begin alike."""

    session: Session
    label: str
    preview: str
    is_busy: bool
    may_write: bool = True

    @property
    def key(self) -> SessionKey:
        return SessionKey.parse(self.session.key)

    def to_dict(self) -> Json:
        session, key = self.session, self.key
        return {
            "id": session.id,
            "object": "session",
            "session_id": key.chat if key.platform == PLATFORM else None,
            "key": session.key,
            "platform": key.platform,
            "title": session.title,
            "label": self.label,
            "preview": self.preview,
            "message_count": session.seq,
            "is_busy": self.is_busy,
            "may_write": self.may_write,
            "created_at": session.created_at,
            "updated_at": session.updated_at,
            "ended_at": session.ended_at,
            "end_reason": session.end_reason or None,
        }


class SessionRoutes:
    def __init__(self, parts: ApiParts, reader: RunReader, limits: InputLimits) -> None:
        self._gateway = parts.gateway
        self._db = parts.gateway.db
        self._reader = reader
        self._limits = limits
        self.calls = OpenRequests()

    # Reading

    async def listed(self, request: web.Request) -> web.Response:
        """The newest first. ``next_cursor`` asks for the page after this one."""
        limit = _number(request, "limit", PAGE, most=LARGEST_PAGE)
        key, platform, cursor = (storable(request.query.get(name, "")) for name in ("key", "platform", "cursor"))
        if query := storable(request.query.get("query", "")).strip():
            return await self._found(query, request[CALLER], limit)
        caller = request[CALLER]
        found = await self._db.read(_page, key, platform, caller, before=_cursor(cursor), limit=limit + 1)
        shown, more = found[:limit], len(found) > limit
        following = f"{shown[-1].session.updated_at!r}~{shown[-1].session.id}" if more else None
        return json_response(
            {
                "object": "list",
                "data": [session.to_dict() for session in shown],
                "has_more": more,
                "next_cursor": following,
            }
        )

    async def _found(self, query: str, caller: Caller, limit: int) -> web.Response:
        """Sessions whose titles or messages hold these words, the best match first; each once."""
        from hermes.agent.session_search import SessionSearch  # few search: a start does not import it

        search = SessionSearch(self._db, self._gateway.home, self._gateway.clock)
        person = await self._db.read(people.find, PLATFORM, caller.sender_id)
        whose = "" if caller.sees_all else person.id if person is not None else "-"
        hits, is_complete = await search.search_all(query, person_id=whose, count=limit, seconds=SEARCH_SECONDS)
        found = await self._db.read(_matches, query.split(), hits, caller, limit)
        return json_response({"object": "list", "data": found, "has_more": False, "is_complete": is_complete})

    async def read(self, request: web.Request) -> web.Response:
        return json_response((await self._find(request)).to_dict())

    async def messages(self, request: web.Request) -> web.Response:
        """In order, from the line after ``after`` on."""
        shown = await self._find(request)
        limit = _number(request, "limit", PAGE, most=LARGEST_PAGE)
        after = _number(request, "after", 0, least=0)
        lines = await self._db.read(transcripts.lines, shown.session.id, after=after, limit=limit + 1)
        page, more = lines[:limit], len(lines) > limit
        data = [line_to_dict(line) for line in page if line.kind == "message"]
        from hermes.store.sessions import undo  # no start needs it

        undone = await self._db.read(undo.taken_back, shown.session.id)
        for line in data if undone else ():
            if any(first <= line["seq"] < last for first, last in undone):
                line["is_taken_back"] = True
        if shown.key.platform != PLATFORM:
            from hermes.store.turns.origins import origins_of  # no start needs it

            origins = await self._db.read(origins_of, [line.turn_id for line in page])
            for line in data:
                if line["role"] == Role.USER.value and (origin := origins.get(line["turn_id"] or "")) is not None:
                    line["origin"] = {"platform": origin.platform, "name": origin.name}
        after_next = page[-1].seq if more else None
        return json_response({"object": "list", "data": data, "has_more": more, "next_after": after_next})

    # Changing

    async def change(self, request: web.Request) -> web.Response:
        body = decode(await parse.read_body(request, self._limits), SessionChangeBody)
        title = one_line(storable(body.title), LONGEST_TITLE)
        shown = await self._find(request, Action.CHANGE_OWN)
        await self._db.write(sessions.rename, shown.session.id, title)
        return json_response(replace(shown, session=replace(shown.session, title=title)).to_dict())

    async def delete(self, request: web.Request) -> web.Response:
        """For good. Not while something runs or waits in it."""
        shown = await self._find(request, Action.CHANGE_OWN)
        if not await self._db.write(_delete_idle, shown.session, now=self._gateway.clock.now()):
            raise ApiError(409, f"{BUSY} Stop it first.", code="session_busy", kind="conflict_error")
        await self._gateway.deletion().erase([shown.session.id])
        return json_response({"id": shown.session.id, "object": "session", "deleted": True})

    async def fork(self, request: web.Request) -> web.Response:
        """A session of the caller's own that begins with the transcript of this one, up to line ``up_to``."""
        body = decode(await parse.read_body(request, self._limits) if await request.read() else {}, SessionForkBody)
        title = one_line(storable(body.title or ""), LONGEST_TITLE)
        shown = await self._find(request, Action.CHANGE_OWN)
        last = shown.session.seq
        if body.up_to is not None and body.up_to > last:
            message = f"up_to is the seq of one of its messages, from 1 to {last}."
            raise bad_request(message, code="invalid_value", param="up_to")
        forked, named = new_id("s"), new_id("fork")  # no session of a single request: it is kept
        key = SessionKey(PLATFORM, ChatKind.DM, named, person=request[CALLER].person)
        await self._db.alone(
            sessions.fork,
            shown.session.id,
            forked,
            str(key),
            title=title or (f"{shown.session.title} (fork)" if shown.session.title else ""),
            up_to=body.up_to or last,
            now=self._gateway.clock.now(),
        )
        copy = await self._db.read(_find, forked, request[CALLER])
        assert copy is not None  # noqa: S101 - it was just made
        return json_response({**copy.to_dict(), "forked_from": shown.session.id}, 201)

    # Talking

    async def chat(self, request: web.Request) -> web.StreamResponse:
        names, asked, writer = await self._parse_request(request)
        event_id = new_id("ev")
        async with self._ask(asked, writer, event_id, request[CALLER]) as handle:
            with self.calls.waiting():
                result = await results.end_of(handle, self._gateway.requests, names)
        if not (reason := results.finish_reason(result)):
            raise results.failure(result, names)
        run = await self._run(handle.event_id, asked)
        body = {
            "object": "session.chat",
            "run_id": run_id_of(handle.event_id),
            "session_id": names.session_id,
            "turn_id": result.turn_id,
            "message": {
                "message_id": run.answer[-1][0] if run.answer else None,
                **message_to_dict(_assistant_message(result.text, run)),
            },
            "finish_reason": reason,
            "usage": results.usage_of(result.usage),
            "transcript": run.transcript(),
        }
        if results.has_extras(result):
            body["hermes"] = results.extras(result)
        response = json_response(body)
        response.headers.update({**names.headers(), **results.outcome_headers(result)})
        return response

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """The events of a run, until it ends or a person has to answer; then it goes on as `/v1/runs/{run_id}`."""
        names, asked, writer = await self._parse_request(request)
        event_id = new_id("ev")
        feeds = feeds_of(request.app, self._gateway)
        feed = feeds.open(event_id, names.session_id, str(asked.session_key))
        feed.begin()
        stream: EventStream | None = None
        is_stored = False
        try:
            async with self._ask(asked, writer, event_id, request[CALLER]):
                is_stored = True
            run = await self._run(event_id, asked)
            async with event_stream(request, names.headers()) as stream:
                await self._reader.tell(stream, feed, run, 0, last="run.waiting_approval")
        except (ClientGoneError, StoreIsDownError) as error:
            if stream is None:
                raise
            log.debug("Stream ends early", extra={"event": event_id, "reason": str(error)})
        finally:
            if not is_stored:
                feeds.discard(event_id)
        return stream.response

    @asynccontextmanager
    async def _ask(
        self, asked: AgentRequest, writer: ChatWriter | None, event_id: str, caller: Caller
    ) -> AsyncIterator[RequestHandle]:
        """Store the request; in the chat of a platform, with what shows it there."""
        requests = self._gateway.requests
        if writer is None:
            async with requests.ask(asked, event_id=event_id, role=caller.role) as handle:
                yield handle
            return
        [message] = asked.messages
        shown = writer.mirror_rows(self._gateway, message.text, event_id, pictures=len(message.images))
        async with requests.ask(asked, event_id=event_id, at_most=writer.role, shown=shown) as handle:
            self._gateway.outbox_writer.due(shown)
            yield handle

    async def _parse_request(self, request: web.Request) -> tuple[SessionNames, AgentRequest, ChatWriter | None]:
        """Everything is looked at before anything is stored. The writer is None in a session of the API."""
        body = parse.decode_input_body(await parse.read_body(request, self._limits), SessionChatRequestBody)
        # The session has its own history.
        reading = partial(parse.read_input, is_whole=False, has_history=False, tools=own_tools(request))
        messages, options = await parse.apart(request, reading, body, self._limits)
        shown = await self._find(request)
        key = shown.key
        if key.platform != PLATFORM:
            from hermes.servers.api.input.chats import only_message, writer_in  # no start needs it

            writer = await writer_in(self._gateway, request, shown.session)
            return (
                SessionNames(shown.session.id, is_named=True),
                writer.request(only_message(messages), options),
                writer,
            )
        names = SessionNames(key.chat, is_named=True, person=key.person)
        await check_answers(self._gateway, names, messages, "input")
        return names, AgentRequest(RequestKind.CHAT, key, request[CALLER].sender_id, messages, options), None

    async def _run(self, event_id: str, asked: AgentRequest) -> Run:
        state = await self._gateway.requests.state_of(event_id)
        assert state is not None  # noqa: S101 - it was just stored
        return await self._reader.whole(Run(state, asked))

    async def _find(self, request: web.Request, action: Action = Action.READ_OWN) -> SessionSummary:
        return await find_session(self._gateway, request, action)


async def find_session(gateway: Gateway, request: web.Request, action: Action) -> SessionSummary:
    """Return the session that is meant, if this caller may see it, and may do this with it."""
    name, caller = storable(request.match_info["id"]), request[CALLER]
    shown = await gateway.db.read(_find, name, caller)
    if shown is None:
        message = f"There is no session {name[:80]!r} for this key. GET /api/sessions lists those there are."
        raise not_found(message, code="session_not_found")
    if not may(caller.role, action):
        message = f"A key with the role {caller.role} may not do this. Ask with one of a user, an admin or the owner."
        raise ApiError(403, message, code="role_not_enough", kind="permission_error")
    return shown


# What is asked


def _wanted(key: str, platform: str, caller: Caller, person_id: str) -> SessionFilter:
    """A caller that does not see all sees what its own key began, and the chats of its person alone."""
    beginning = f"agent:main:{quote(platform)}" if platform else ""
    beginnings = (f"{beginning}:", f"{beginning}@") if platform else ("", "")
    if caller.sees_all:
        return SessionFilter(key, beginnings)
    return SessionFilter(key, beginnings, (f"agent:main:{PLATFORM}:", f":p={quote(caller.person)}"), person_id)


def _cursor(text: str) -> tuple[float, str]:
    if not text:
        return FROM_THE_NEWEST
    at, _, session_id = text.partition("~")
    try:
        return float(at), session_id
    except ValueError:
        raise bad_request("cursor is the next_cursor of a list.", code="invalid_value", param="cursor") from None


def _number(request: web.Request, name: str, default: int, *, least: int = 1, most: int = 2**53) -> int:
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17 and least <= int(text)):
        raise bad_request(f"{name} is a whole number from {least} on.", code="invalid_value", param=name)
    return min(int(text), most)


# What is told


def line_to_dict(line: TranscriptLine) -> Json:
    """Show one line of a transcript."""
    message = codec.read_chat(line.body)
    shown = message_to_dict(message) if message is not None else {"role": None, "content": None, "is_damaged": True}
    return {"seq": line.seq, "turn_id": line.turn_id or None, "created_at": line.at, **shown}


def _assistant_message(text: str, run: Run) -> ChatMessage:
    calls = run.last_words.tool_calls if run.last_words is not None else ()
    return ChatMessage(Role.ASSISTANT, text, tool_calls=calls)


# In the store


def _page(
    tx: Tx, key: str, platform: str, caller: Caller, *, before: tuple[float, str], limit: int
) -> list[SessionSummary]:
    wanted = _wanted(key, platform, caller, _person_id(tx, caller))
    return [_summarize(tx, session, caller) for session in sessions.page(tx, wanted, before=before, limit=limit)]


def _person_id(tx: Tx, caller: Caller) -> str:
    person = people.find(tx, PLATFORM, caller.sender_id)
    return person.id if person is not None else ""


def _matches(tx: Tx, words: Sequence[str], hits: Sequence[IndexHit], caller: Caller, limit: int) -> list[Json]:
    """Titles first. What this caller may not see is left out."""
    ending = "" if caller.sees_all else f":p={quote(caller.person)}"
    named = sessions.with_title(tx, words[:MAX_WORDS], ending, limit=limit)
    snippets = {hit.session_id: hit.snippet for hit in hits}
    others = (sessions.get(tx, name) for name in snippets if all(name != session.id for session in named))
    shown = [session for session in (*named, *others) if session is not None and _sees(tx, caller, session)][:limit]
    return [
        {
            **_summarize(tx, session, caller).to_dict(),
            "snippet": one_line(snippets.get(session.id, ""), LONGEST_SNIPPET),
        }
        for session in shown
    ]


def _find(tx: Tx, name: str, caller: Caller) -> SessionSummary | None:
    """By its own id, or by the name that this caller's client gave it."""
    session = sessions.get(tx, name)
    if session is None or not _sees(tx, caller, session):
        key = SessionKey(PLATFORM, ChatKind.DM, name, person=caller.person)
        session = next(iter(sessions.newest(tx, key=str(key), limit=1)), None)
    return _summarize(tx, session, caller) if session is not None else None


def _sees(tx: Tx, caller: Caller, session: Session) -> bool:
    key = SessionKey.parse(session.key)
    if caller.sees_all or (key.platform == PLATFORM and key.person == caller.sender_id):
        return True
    return key.platform not in DOORS and sessions.belongs_to(tx, session.id, _person_id(tx, caller))


def _summarize(tx: Tx, session: Session, caller: Caller) -> SessionSummary:
    lines = transcripts.lines(tx, session.id, limit=FIRST_LINES)
    spoken = (codec.read_chat(line.body) for line in lines if line.kind == "message")
    opened = [message for message in spoken if message is not None]
    first = next((message for message in opened if message.role is Role.USER), None)
    instructions = _instructions(tx, lines[0].turn_id) if lines else ""
    talk = parse.Conversation(instructions, (first,) if first is not None else ())
    preview = one_line(first.text, PREVIEW) if first is not None else ""
    return SessionSummary(session, talk.label, preview, _is_busy(tx, session), _may_write(tx, session, caller))


def _instructions(tx: Tx, turn_id: str) -> str:
    """Those of the request that began the session."""
    for row in inbox.of_turn(tx, turn_id):
        if row.kind == "request":
            with suppress(ValueError):  # a damaged row spoils a label and not the list
                return codec.load_request(row.body).options.instructions
    return ""


def _may_write(tx: Tx, session: Session, caller: Caller) -> bool:
    """Whether a message of this caller would be accepted: the rule of ``input.chats``, for one who only looks."""
    platform = SessionKey.parse(session.key).platform
    if platform == PLATFORM:
        return True
    if platform in DOORS or caller.stands_in_file or sessions.of_lane(tx, session.key) != session.id:
        return False
    return caller.role is PersonRole.OWNER or sessions.belongs_to(tx, session.id, _person_id(tx, caller))


def _is_busy(tx: Tx, session: Session) -> bool:
    """Whether a turn is open in it, or is about to begin."""
    lane = tx.one("SELECT session_id, turn_id FROM lanes WHERE key = :key", lambda *row: row, key=session.key)
    return lane is not None and lane[0] == session.id and (lane[1] != "" or inbox.has_queued(tx, session.key))


def _delete_idle(tx: Tx, session: Session, *, now: float) -> bool:
    from hermes.store.retention import deletion  # a start deletes nothing

    if _is_busy(tx, session):
        return False
    deletion.delete(tx, session.id, now=now)
    return True
