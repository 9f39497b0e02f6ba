"""A session while it runs: steer the turn, queue a message behind it, stop it; ask the last thing again; export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import orjson
from aiohttp import web

from hermes.agent.prompt import without_head
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, InboundMessage, Role
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions
from hermes.core.roles import Action, capped
from hermes.core.text import one_line, storable
from hermes.servers.api.bodies import decode
from hermes.servers.api.context import CALLER, ApiParts
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.input.chats import ChatWriter, writer_in
from hermes.servers.api.manage.bodies import SteerBody
from hermes.servers.api.parse import read_body
from hermes.servers.api.sessions import SessionSummary, find_session, line_to_dict
from hermes.servers.api.streams.run_events import run_id_of
from hermes.servers.app import json_response
from hermes.services.requests.requests import PLATFORM
from hermes.store import codec, inbox, outbox, people
from hermes.store.db import Tx
from hermes.store.ids import new_id
from hermes.store.inbox import InboxRow, InboxState, Incoming
from hermes.store.outbox import Outgoing
from hermes.store.sessions import sessions, transcripts
from hermes.store.turns import retry as retrying
from hermes.store.turns import turns
from hermes.store.turns.retry import RetryOrigin

LINES = 200
SHOWN = 80
FORMATS = {"markdown": ("md", "text/markdown"), "jsonl": ("jsonl", "application/x-ndjson")}


class SessionActionRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway
        self._db = parts.gateway.db

    async def steer(self, request: web.Request) -> web.Response:
        """Hand words to the turn that runs, before the model speaks again."""
        body = decode(await read_body(request), SteerBody)
        (shown, writer), caller = await self._own(request), request[CALLER]
        await self._gateway.requests.meet(caller.sender_id, caller.role)
        now, event_id = self._gateway.clock.now(), new_id("ev")
        message = InboundMessage(
            keys=(),
            session_key=shown.key,
            sender_id=caller.sender_id if writer is None else writer.account_id,
            text=self._gateway.requests.redact(storable(body.text)),
            sent_at=datetime.fromtimestamp(now, UTC),
        )
        rows = [] if writer is None else writer.mirror_rows(self._gateway, message.text, event_id)
        role = (caller.role if writer is None else writer.role).value
        found = await self._db.write(_steer, shown.session.key, event_id, message, role, rows, now=now)
        if found == "idle":
            words = "No turn runs in this session. Send the message as usual."
            raise ApiError(409, words, code="nothing_running", kind="conflict_error")
        if found == "anothers":
            words = "The turn that runs is another person's, or has more rights. It can be stopped, not steered."
            raise ApiError(403, words, code="turn_of_another", kind="permission_error")
        self._gateway.outbox_writer.due(rows)
        self._gateway.lanes.wake(shown.session.key)
        return json_response({"object": "session.steer", "event_id": event_id, "session_id": shown.session.id}, 202)

    async def queue(self, request: web.Request) -> web.Response:
        """Ask something for after the turn that runs."""
        body = decode(await read_body(request), SteerBody)
        (shown, writer), caller = await self._own(request), request[CALLER]
        message, event_id, requests = ChatMessage(Role.USER, storable(body.text)), new_id("ev"), self._gateway.requests
        if writer is None:
            asked = AgentRequest(RequestKind.RUN, shown.key, caller.sender_id, (message,))
            await requests.submit(asked, event_id=event_id, role=caller.role)
        else:
            asked, rows = (
                writer.request(message, TurnOptions()),
                writer.mirror_rows(self._gateway, message.text, event_id),
            )
            await requests.submit(asked, event_id=event_id, at_most=writer.role, shown=rows)
            self._gateway.outbox_writer.due(rows)
        return _run(event_id, shown)

    async def stop(self, request: web.Request) -> web.Response:
        """Stop the turn that runs, and set aside what waits behind it."""
        shown = await find_session(self._gateway, request, Action.TALK)
        if await self._db.read(sessions.of_lane, shown.session.key) != shown.session.id:
            # What runs in the chat is of another session, perhaps with the turns of other people.
            ended = {"object": "session.stop", "session_id": shown.session.id, "turn_id": None, "set_aside": 0}
            return json_response(ended)
        seq = await self._db.read(inbox.last_seq, shown.session.key)
        stopped = await self._gateway.lanes.stop(shown.session.key, up_to=seq)
        return json_response(
            {
                "object": "session.stop",
                "session_id": shown.session.id,
                "turn_id": stopped.turn_id or None,
                "set_aside": stopped.set_aside,
            }
        )

    async def retry(self, request: web.Request) -> web.Response:
        """Take the last exchange back, and ask its beginning again."""
        (shown, writer), caller = await self._own(request, Action.CHANGE_OWN), request[CALLER]
        await self._gateway.requests.meet(caller.sender_id, caller.role)
        person = await self._db.read(people.find, PLATFORM, caller.sender_id)
        key, asked = shown.key, new_id("ev")
        place = RetryOrigin(
            str(key), PLATFORM, key.account, caller.sender_id, person.id if person else "", caller.role.value
        )
        if writer is not None:
            place = replace(place, person_id=writer.person_id, role=writer.role.value)
            place = replace(place, sender_id=writer.account_id or caller.sender_id)

        def again(row: InboxRow | None, text: str) -> tuple[str, str]:
            if row is not None:  # of the phone, with its files: the answer is followed as that of any phone message
                return row.kind, row.body
            message = ChatMessage(Role.USER, text)
            if writer is None:
                return "request", codec.dump(AgentRequest(RequestKind.RUN, key, caller.sender_id, (message,)))
            bare = replace(message, text=without_head(text)) if writer.is_among_others else message
            return "request", codec.dump(writer.request(bare, TurnOptions()))

        def retry_rows(text: str) -> list[Outgoing]:
            if writer is None:
                return []
            return writer.mirror_rows(self._gateway, writer.words.RETRY.format(text=one_line(text, SHOWN)), asked)

        retried, rows = await self._db.write(
            _retry, shown.session.id, place, again, retry_rows, asked=asked, now=self._gateway.clock.now()
        )
        if retried.is_busy:
            raise ApiError(
                409, "A turn runs in this session. Stop it first.", code="session_busy", kind="conflict_error"
            )
        if retried.is_anothers:
            words = "The last exchange is another person's."
            raise ApiError(403, words, code="turn_of_another", kind="permission_error")
        if not retried.text:
            words = "There is nothing to ask again in this session."
            raise ApiError(409, words, code="nothing_to_retry", kind="conflict_error")
        self._gateway.outbox_writer.due(rows)
        self._gateway.lanes.wake(str(key))
        event_id = retrying.event_after(asked)
        return _run(event_id if await self._gateway.db.read(_is_request, event_id) else "", shown)

    async def export(self, request: web.Request) -> web.StreamResponse:
        """The whole session as Markdown, or as one JSON object for each line."""
        form = request.query.get("format", "markdown")
        if form not in FORMATS:
            raise bad_request("format is markdown or jsonl.", code="invalid_value", param="format")
        shown = await find_session(self._gateway, request, Action.READ_OWN)
        ending, kind = FORMATS[form]
        title = one_line(shown.session.title or shown.preview or shown.session.id, 80)
        plain = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in title).strip("-")
        response = web.StreamResponse(
            headers={
                "Content-Type": f"{kind}; charset=utf-8",
                "Content-Disposition": f'attachment; filename="{plain or "session"}.{ending}"; '
                f"filename*=UTF-8''{quote(title, safe='')}.{ending}",
            }
        )
        await response.prepare(request)
        if form == "markdown":
            await response.write(f"# {title}\n\n".encode())
        after = 0
        while lines := await self._db.read(transcripts.lines, shown.session.id, after=after, limit=LINES):
            shapes = [line_to_dict(line) for line in lines if line.kind == "message"]
            written = (orjson.dumps(shape) + b"\n" if form == "jsonl" else _markdown(shape) for shape in shapes)
            await response.write(b"".join(written) or b"\n")
            after = lines[-1].seq
        await response.write_eof()
        return response

    async def _own(
        self, request: web.Request, action: Action = Action.TALK
    ) -> tuple[SessionSummary, ChatWriter | None]:
        """Return the session, and who writes in it where it is the chat of a platform."""
        shown = await find_session(self._gateway, request, action)
        if shown.key.platform == PLATFORM:
            return shown, None
        return shown, await writer_in(self._gateway, request, shown.session)


def _run(event_id: str, shown: SessionSummary) -> web.Response:
    """Answer with a run; without one where messages of a phone are asked again, which are no run."""
    name = shown.key.chat if shown.key.platform == PLATFORM else shown.session.id
    run = {"object": "run", "run_id": run_id_of(event_id) if event_id else None, "status": "queued", "session_id": name}
    return json_response(run, 202)


def _retry(
    tx: Tx,
    session_id: str,
    place: RetryOrigin,
    again: retrying.Again,
    shown: Callable[[str], list[Outgoing]],
    *,
    asked: str,
    now: float,
) -> tuple[retrying.Retried, list[Outgoing]]:
    """Ask again, and show that in the chat: one transaction."""
    retried = retrying.retry(tx, session_id, place, again, asked=asked, now=now)
    rows = shown(retried.text) if retried.text else []
    if rows:
        outbox.enqueue(tx, rows, now=now)
    return retried, rows


def _is_request(tx: Tx, event_id: str) -> bool:
    row = inbox.get(tx, event_id)
    return row is not None and row.kind == "request"


def _steer(
    tx: Tx, lane: str, event_id: str, message: InboundMessage, role: str, rows: list[Outgoing], *, now: float
) -> str:
    """Queue a message for the turn that runs, and show it in the chat; '' if it was, else why not."""
    turn = turns.of_lane(tx, lane)
    if turn is None:
        return "idle"
    is_own, is_below = inbox.standing(tx, SessionKey.parse(lane).platform, message.sender_id, turn.id)
    if not is_own or is_below or capped(turn.role, role) != turn.role:
        return "anothers"
    body = codec.dump(message)
    row = Incoming(
        event_id,
        (f"{PLATFORM}/{event_id}",),
        lane,
        PLATFORM,
        SessionKey.parse(lane).account,
        "steer",
        message.sender_id,
        body,
        InboxState.QUEUED,
        ready_at=now,
        role=role,
    )
    inbox.accept(tx, [row], now=now)
    if rows:
        outbox.enqueue(tx, rows, now=now)
    return ""


def _markdown(shape: dict[str, Any]) -> bytes:
    """One line of a transcript. Headings and fences in it stay what people wrote."""
    content = shape.get("content")
    if isinstance(content, list):
        content = "\n\n".join(str(part.get("text", "[picture]")) for part in content if isinstance(part, dict))
    calls = [str(call["function"]["name"]) for call in shape.get("tool_calls", ())]
    when = datetime.fromtimestamp(shape["created_at"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    head = f"**{shape.get('role') or 'unreadable'}**, {when}"
    words = [str(content)] if content else []
    words += [f"*calls {', '.join(calls)}*"] if calls else []
    return ("\n\n".join([head, *words]) + "\n\n---\n\n").encode("utf-8", "replace")
